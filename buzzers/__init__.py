"""Buzzers: decide when to answer, from the guesses so far."""
