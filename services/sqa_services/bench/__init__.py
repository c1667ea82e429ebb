"""Measurements of speed and memory, beside other programs."""
