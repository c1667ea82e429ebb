"""Plausibility, views, rounding and the rank of models."""
