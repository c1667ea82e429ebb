"""Plausibility, views, rounding and rank of models."""
