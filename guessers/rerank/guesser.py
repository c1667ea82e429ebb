"""The rerank guesser: the pages retrieved by TF-IDF and BM25, reordered by learnt weights.

Retrieval nearly always has an indexed right page among its ten best for a complete question, but often ranks another
page first: the author instead of the novel, or a page that the question names.  Every page among the best 50 of either
method is described by its evidence (guessers/rerank/evidence.py).  A page's evidence consists of its scores (also for
the last words alone), the kinds that its training texts use or avoid for it (answer_types.py), and the share of its
title that was read.  Further features compare the page with the other candidates (features.py).  One layer of rectified
units maps the features to a logit, and a softmax over the pages of the step and "none of them" gives probabilities.

A text is read once; each further word adds its postings.

    guesser: {name: rerank}
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np

from guessers.rerank.answer_types import Kinds
from guessers.rerank.evidence import Knowledge, Reading
from guessers.rerank.features import NUMBERS, numbers
from guessers.retrieval.bm25 import shared_index
from sqa.core import DataError, File, Guess
from sqa.files import folder_digest, read_tensors, resolve_model, write_tensors

CLIP = 8.0  # limit of standardised features, in standard deviations

Tensors = Mapping[str, np.ndarray]


class Scorer:
    """The weights for D features per candidate."""

    def __init__(self, tensors: Tensors, numbers: int) -> None:
        """Store the tensors; raises ValueError for wrong names or shapes, or deviations that are not above 0.

        The tensors are mean (D,), deviation (D,), hidden.weight (H, D), hidden.bias (H,), output.weight (1, H) and
        output.bias (1,).
        """
        d, h = numbers, len(tensors.get("hidden.bias", ()))
        expected = {"mean": (d,), "deviation": (d,), "hidden.weight": (h, d), "hidden.bias": (h,)}
        expected |= {"output.weight": (1, h), "output.bias": (1,)}
        if {name: array.shape for name, array in tensors.items()} != expected or not (tensors["deviation"] > 0).all():
            raise ValueError(f"weights of {d} numbers have {expected}, deviations above 0")
        self.tensors = dict(tensors)
        self._double = {name: array.astype(np.float64) for name, array in tensors.items()}

    def chances(self, rows: np.ndarray, step: np.ndarray) -> np.ndarray:
        """Return the probability of each of M candidates; with "none of them", those of a step sum to 1.

        `rows`, of shape (M + T, D), has the features of the candidates, then those of "none of them" of every step.
        `step` has the step of each candidate.
        """
        t, m = self._double, len(step)
        rows = np.clip((rows - t["mean"]) / t["deviation"], -CLIP, CLIP)
        hidden = np.maximum(rows @ t["hidden.weight"].T + t["hidden.bias"], 0)
        logits = hidden @ t["output.weight"][0] + t["output.bias"][0]  # (M + T,)
        highest = logits[m:].copy()  # (T,)
        np.maximum.at(highest, step, logits[:m])
        raised = np.exp(logits[:m] - highest[step])
        total = np.bincount(step, raised, len(highest)) + np.exp(logits[m:] - highest)
        return raised / total[step]


def best(scores: np.ndarray, pages: Sequence[str], step: np.ndarray, steps: int, n: int) -> list[list[Guess]]:
    """Return the best `n` candidates of each step, ties by title; `step` has each candidate's step, ascending."""
    ends = np.searchsorted(step, np.arange(steps + 1))
    listed = []
    for start, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        near = scores[start:end]
        if 0 < n < end - start:  # keep all that tie with the last selected one, so that titles decide
            indices = start + np.flatnonzero(near >= np.partition(near, end - start - n)[end - start - n])
        else:
            indices = np.arange(start, end)
        pairs = sorted((-score, pages[i]) for i, score in zip(indices.tolist(), scores[indices].tolist(), strict=True))
        listed.append([Guess(page, -score) for score, page in pairs[: max(n, 0)]])
    return listed


KIND = "rerank"
VERSION = 2  # version of the files and of the code that turns words into guesses
DEPTH = 50  # pages taken from TF-IDF and from BM25


@dataclass(frozen=True, slots=True)
class RerankConfig:
    """Options of `guesser: {name: rerank, ...}`."""

    model: Annotated[File, "a bundled model (folder of data/models) or a folder"] = "rerank"
    device: Annotated[Literal["auto", "cpu"], "computed with numpy"] = "cpu"
    dtype: Annotated[Literal["auto", "float32"], "computed with numpy"] = "auto"


class Candidates(NamedTuple):
    """The candidates of T steps, by step."""

    pages: np.ndarray  # (M,) int64, indices of titles
    step: np.ndarray  # (M,) int64, ascending; every step occurs
    rows: np.ndarray  # (M + T, D), see guessers/rerank/features.py
    words: list[int]  # (T,) words read at each step; there is no step before the first indexed word


def candidates(knowledge: Knowledge, words: Sequence[str], at: Sequence[int]) -> Candidates:
    """Return the candidates after each number of words in `at`, which ascends within 1 .. len(words)."""
    first, second = (model.guess_prefixes(words, DEPTH) for model in (knowledge.tfidf, knowledge.bm25))
    reading, wanted = Reading(knowledge), set(at)
    pages, evidence, ends = [], [], []
    for end, (word, terms) in enumerate(zip(words, knowledge.tfidf.terms(words), strict=True), start=1):
        reading.read(word, terms)
        if end in wanted and first[end - 1]:
            named = {guess.page for guesses in (first[end - 1], second[end - 1]) for guess in guesses}
            pages.append(np.array(sorted(map(knowledge.number.__getitem__, named)), np.int64))
            evidence.append(reading.of(pages[-1]))
            ends.append(end)
    if not ends:
        return Candidates(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, len(NUMBERS))), [])
    step = np.repeat(np.arange(len(ends)), [len(of_step) for of_step in pages])
    return Candidates(np.concatenate(pages), step, numbers(np.concatenate(evidence), step, ends), ends)


class RerankGuesser:
    """A retrieval model, and the weights that order its results."""

    def __init__(self, knowledge: Knowledge, scorer: Scorer, retrieval: str, digest: str = "") -> None:
        """Store the parts; `retrieval` is the name or folder of the counts, `digest` represents the weights' files."""
        self._knowledge, self._scorer, self._retrieval, self._digest = knowledge, scorer, retrieval, digest

    @property
    def pages(self) -> frozenset[str]:
        """All pages that the guesser can name."""
        return frozenset(self._knowledge.titles)

    def fingerprint(self) -> str:
        """Return the sha256 of the weights, the kinds, the counts and the code version."""
        return hashlib.sha256(f"rerank {VERSION} {self._digest}".encode()).hexdigest()

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """Return the best `n` pages for each text; scores are probabilities."""
        split = [text.split() for text in texts]
        return [self._guesses(words, [len(words)], n)[0] if words else [] for words in split]

    def guess_prefixes(self, words: Sequence[str], n: int) -> list[list[Guess]]:
        """Return the guesses after each word."""
        return self._guesses(words, range(1, len(words) + 1), n)

    def _guesses(self, words: Sequence[str], at: Sequence[int], n: int) -> list[list[Guess]]:
        """Return the guesses after each number of words in `at`."""
        described = candidates(self._knowledge, words, at)
        titles = [self._knowledge.titles[page] for page in described.pages.tolist()]
        chances = self._scorer.chances(described.rows, described.step)
        guesses = best(chances, titles, described.step, len(described.words), n)
        listed = dict(zip(described.words, guesses, strict=True))
        return [listed.get(end, []) for end in at]

    # --- files

    def save(self, folder: Path) -> None:
        """Write model.safetensors and config.json, which refers to the counts by name."""
        tables = self._knowledge.kinds.tables() | self._scorer.tensors
        about = {
            "kind": KIND,
            "version": VERSION,
            "retrieval": self._retrieval,
            "titles": digest_of(self._knowledge.titles),
        }
        write_tensors(folder, tables, about)

    @classmethod
    def load(cls, folder: Path) -> RerankGuesser:
        """Read a folder written by `save`, and the counts that it names; raises DataError if they do not match."""
        tensors, config = read_tensors(folder, KIND, VERSION)
        retrieval = config.get("retrieval")
        if not isinstance(retrieval, str):
            raise DataError(f"{folder}: config.json: retrieval: expected the name of a bm25 model; train it again")
        counts = resolve_model(retrieval)
        counts_digest = folder_digest(counts)
        index = shared_index(counts, counts_digest)
        if config.get("titles") != digest_of(index.titles):
            raise DataError(f"{folder}: the pages of {retrieval} changed after training; train the reranker again")
        weights: Tensors = {name: array for name, array in tensors.items() if array.dtype.kind == "f"}
        try:
            scorer, kinds = Scorer(weights, len(NUMBERS)), Kinds.read(tensors)
            if len(kinds.lessons) != len(index.titles):
                raise ValueError(f"lessons of {len(kinds.lessons)} pages, not {len(index.titles)}")
        except (KeyError, ValueError) as error:
            raise DataError(f"{folder}: not a rerank model ({error}); restore or train it again") from error
        digest = f"{folder_digest(folder)} {counts_digest}"
        return cls(Knowledge(index, kinds), scorer, retrieval, digest)


def digest_of(titles: Sequence[str]) -> str:
    """Return the sha256 of the pages in their order."""
    return hashlib.sha256("\n".join(titles).encode()).hexdigest()


def build(config: RerankConfig) -> RerankGuesser:
    """Return the guesser of a config; raises ConfigError for an unknown model."""
    return RerankGuesser.load(resolve_model(config.model))
