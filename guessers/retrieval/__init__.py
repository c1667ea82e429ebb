"""Guessers that retrieve pages by their words: BM25 and TF-IDF."""
