"""Guessers: which pages a text that is still being written may be about, best first."""
