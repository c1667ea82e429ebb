"""Guessers, which rank the pages that an unfinished text may be about."""
