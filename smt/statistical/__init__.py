"""Phrase-based translation: tables, tuning, training, the translator."""
