"""The TF-IDF guesser: another weighting of the BM25 guesser's counts.

The score of a page d for a text q is

    sum over tokens t of q of  boost(t) idf(t) . boost(t) idf(t) (1 + ln tf(t, d)) / |d|^b,   idf(t) = 1 + ln(N / df(t))

over words and pairs together, where |d| is the Euclidean length of the page's vector boost idf (1 + ln tf).  b = 1
orders pages by the cosine of their vector and the text's (with raw counts).  A smaller b favours pages with more
training text, as people who write questions do.  Both sides include an idf, so one rare word weighs as much as
several common ones.  On complete questions of unseen tournaments this gains three points over BM25
(data/models/bm25/README.md).
"""

from dataclasses import dataclass
from typing import Annotated

from sqa.core import File, Guesser, NotNegative, Share, checked


@dataclass(frozen=True, slots=True)
@checked
class TfidfConfig:
    """Config of `guesser: {name: tfidf, ...}`."""

    model: Annotated[File, "counts of the BM25 guesser: a bundled model or a folder"] = "bm25"
    b: Annotated[Share, "how much long pages are discounted, from 0 (not at all) to 1 (cosine)"] = 0.7
    pair_boost: Annotated[NotNegative, "weight of the pairs of words, >= 0"] = 0.7


def build(config: TfidfConfig) -> Guesser:
    """Return the guesser of a config; raises ConfigError for an unknown model."""
    from guessers.retrieval import bm25

    return bm25.build(bm25.Bm25Config(config.model, b=config.b, pair_boost=config.pair_boost, similarity="tfidf"))
