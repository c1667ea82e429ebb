"""The evidence for every page after every word of a text.

There are P pages, M candidates of a step, and R = len(EVIDENCE) values for each candidate.  A text is read once, from
its start.  Each word adds its postings, so the evidence at a word depends only on the words so far.
"""

from collections import deque

import numpy as np

from guessers import text
from guessers.rerank.answer_types import MARK, KindReader, Kinds
from guessers.retrieval.bm25 import Bm25Config, Bm25Guesser, Index
from guessers.retrieval.tfidf import TfidfConfig

EVIDENCE = (
    "words",  # TF-IDF score of the words read
    "pairs",  # the same for pairs of words
    "bm25",
    "word hits",  # number of words read that occur in the page
    "pair hits",  # number of pairs that occur in the page
    "most",  # largest contribution of a pair to the TF-IDF score
    "last 12",  # TF-IDF score of the last 12 words
    "last 25",
    "last 50",
    "untold kinds",  # log ratio of the probability that the unnamed kinds do not apply, relative to an average page
    "title",  # share of the title's words, by idf, that was read, because a question does not name its answer
    "title word",  # highest idf of a title word that was read
    "whole title",  # 1 if all title words were read
    "bracket",  # 1 if a word in the title's parentheses was read
    "kinds",  # log ratio of the probability of the question's kinds (answer_types.py), relative to an average page
    "pronouns",  # like `kinds`, for pronouns
    "last kinds",  # like `kinds`, for the last three kinds including pronouns
    "last kind",  # like `kinds`, for the last kind
    "kind",  # largest share of the page's lessons that use one of the question's kinds
    "length",  # ln(1 + words counted for the page)
    "lessons",  # ln(1 + number of the page's training texts)
)
WINDOWS = (12, 25, 50)
LAST_KINDS = 3
_WORDS, _PAIRS, _BM25, _HITS = 0, 1, 2, 3


class Knowledge:
    """The evidence about the pages of a retrieval model."""

    def __init__(self, index: Index, kinds: Kinds) -> None:
        """Combine an index and kinds; raises ValueError if they have different pages."""
        if len(index.titles) != len(kinds.lessons):
            raise ValueError(f"kinds for {len(kinds.lessons)} pages, but an index of {len(index.titles)} pages")
        self.kinds, self.titles = kinds, index.titles
        self.number = {title: page for page, title in enumerate(index.titles)}
        weighting = TfidfConfig()
        self.tfidf = Bm25Guesser(index, Bm25Config(b=weighting.b, pair_boost=weighting.pair_boost, similarity="tfidf"))
        self.bm25 = Bm25Guesser(index, Bm25Config())
        words, postings = index.fields()[0]
        rarity = np.log(len(index.titles) / np.diff(index.starts)[words])
        self._idf = dict(zip(index.words, rarity.tolist(), strict=True))
        self.length = np.log1p(np.bincount(index.pages[postings], index.counts[postings], minlength=len(self.titles)))
        self.lessons = np.log1p(kinds.lessons)
        self.untold = kinds.negatives()
        self.of_title, self.title_weight = self._named([title.partition("(")[0] for title in self.titles])
        self.of_bracket, _ = self._named([title.partition("(")[2] for title in self.titles])

    def idf(self, stem: str) -> float:
        """Return ln(pages / pages with the stem); an unknown stem counts as occurring in one page."""
        return self._idf.get(stem, float(np.log(max(len(self.titles), 1))))

    def _named(self, names: list[str]) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return, by stem, the pages with that stem in their name, and the summed idf of each page's name."""
        pages_of: dict[str, list[int]] = {}
        weight = np.zeros(len(names))
        for page, name in enumerate(names):
            for stem in sorted(text.line_stems(name)):  # fixes the order of the sums, independent of the hash seed
                pages_of.setdefault(stem, []).append(page)
                weight[page] += self.idf(stem)
        return {stem: np.array(pages, np.int64) for stem, pages in pages_of.items()}, weight


class Reading:
    """The evidence of one text."""

    def __init__(self, knowledge: Knowledge) -> None:
        pages = len(knowledge.titles)
        self._knowledge, self._reader = knowledge, KindReader()
        self._sums = np.zeros((pages, 5))  # words, pairs, bm25, word hits, pair hits
        self._most = np.zeros(pages)
        self._before: deque[np.ndarray] = deque([np.zeros(pages)], maxlen=max(WINDOWS) + 1)  # scores after each word
        self._title, self._title_word, self._bracket = np.zeros(pages), np.zeros(pages), np.zeros(pages)
        self._kinds, self._pronouns, self._kind = np.zeros(pages), np.zeros(pages), np.zeros(pages)
        self._untold = knowledge.untold.copy()
        self._columns: dict[str, np.ndarray] = {}  # evidence of the kinds named so far
        self._last_kinds: deque[str] = deque(maxlen=LAST_KINDS)
        self._stems: set[str] = set()

    def read(self, word: str, terms: list[int]) -> None:
        """Read the next word and its terms in the index."""
        k, words = self._knowledge, len(self._knowledge.tfidf.index.words)
        starts, pages = k.tfidf.index.starts, k.tfidf.index.pages
        for term in terms:
            postings = slice(starts[term], starts[term + 1])
            hits, gain, pair = pages[postings], k.tfidf.weights[postings], int(term >= words)
            self._sums[hits, _WORDS + pair] += gain
            self._sums[hits, _BM25] += k.bm25.weights[postings]
            self._sums[hits, _HITS + pair] += 1
            self._most[hits] = np.maximum(self._most[hits], gain)
        self._before.append(self._sums[:, _WORDS] + self._sums[:, _PAIRS])
        for stem in text.content_stems(word):
            if stem not in self._stems:
                self._stems.add(stem)
                self._name(stem)
        for kind in self._reader.read(word):
            self._add_kind(kind)

    def _name(self, stem: str) -> None:
        """Update the evidence of titles with a stem that was not read before."""
        if (pages := self._knowledge.of_title.get(stem)) is not None:
            idf = self._knowledge.idf(stem)
            self._title[pages] += idf
            self._title_word[pages] = np.maximum(self._title_word[pages], idf)
        if (pages := self._knowledge.of_bracket.get(stem)) is not None:
            self._bracket[pages] = 1

    def _add_kind(self, kind: str) -> None:
        if kind not in self._columns:
            if (found := self._knowledge.kinds.evidence(kind)) is None:
                return
            column, negative = found
            self._columns[kind] = column
            self._untold -= negative
            if kind.startswith(MARK):
                self._pronouns += column
            else:
                self._kinds += column
                pages, share = self._knowledge.kinds.called(kind)
                self._kind[pages] = np.maximum(self._kind[pages], share)
        self._last_kinds.append(kind)

    def of(self, pages: np.ndarray) -> np.ndarray:
        """Return the evidence for M pages after the words read, of shape (M, R), with the columns of EVIDENCE."""
        k, score = self._knowledge, self._before[-1][pages]
        back = [self._before[max(len(self._before) - 1 - window, 0)] for window in WINDOWS]
        share = self._title[pages] / np.maximum(k.title_weight[pages], 1e-9)
        last = [self._columns[kind][pages] for kind in dict.fromkeys(self._last_kinds)] or [np.zeros(len(pages))]
        last_one = self._columns[self._last_kinds[-1]][pages] if self._last_kinds else np.zeros(len(pages))
        columns = [
            *self._sums[pages].T,
            self._most[pages],
            *(score - past[pages] for past in back),
            self._untold[pages],
            share,
            self._title_word[pages],
            share > 1 - 1e-9,
            self._bracket[pages],
            self._kinds[pages],
            self._pronouns[pages],
            np.sum(last, axis=0),
            last_one,
            self._kind[pages],
            k.length[pages],
            k.lessons[pages],
        ]
        return np.stack(columns, axis=1)
