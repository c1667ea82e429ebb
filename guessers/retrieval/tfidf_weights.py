"""The TF-IDF weighting of a page's terms; the formula stands in guessers/retrieval/tfidf.py."""

from __future__ import annotations

import numpy as np

from guessers.retrieval.index import Index


def tfidf_weights(index: Index, b: float, pair_boost: float) -> np.ndarray:
    """(postings,) float64, what one occurrence of the term adds to the page's score."""
    pages, frequency = len(index.titles), np.diff(index.starts)
    idf = 1 + np.log(pages / frequency)  # (terms,)
    idf[len(index.words) :] *= pair_boost
    idf = np.repeat(idf, frequency)
    vector = idf * (1 + np.log(index.counts))
    length = np.sqrt(np.bincount(index.pages, vector * vector, minlength=pages))
    return idf * vector / length[index.pages] ** b
