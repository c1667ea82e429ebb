"""Buzzers, which decide from the guesses so far when to answer."""
