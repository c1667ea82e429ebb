"""Buzzers: when to answer, from the guesses so far."""
