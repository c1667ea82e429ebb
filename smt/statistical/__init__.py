"""Phrase-based translation: tables, training, tuning, and the translator."""
