"""Plausibility, rounding and rank of models."""
