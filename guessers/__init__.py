"""Guessers: rankings of the pages that an unfinished text may be about, best first."""
