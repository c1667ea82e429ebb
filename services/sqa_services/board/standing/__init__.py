"""Plausibility and rank of models."""
