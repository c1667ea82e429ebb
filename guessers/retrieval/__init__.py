"""Guessers that look pages up by their words: BM25 and TF-IDF."""
