"""The probability that a word of a translation is wrong: a small network over its signals, trained on planted errors.

    detector = load_detector("es")                      # uses spelling, vocabulary and alignment
    detector = load_detector("es", build("es-en"))      # also uses a model's scores of the words
    [probabilities] = detector.words([(source, target)], aligner.align([(source, target)]))

The cards of the weights say how they were computed.  data/models/errors-es-en/README.md reports the accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from sqa.core import DATA, ConfigError, DataError, Floats
from sqa.diagnose.alignment import Alignment, Words, cached
from sqa.diagnose.signals import GROUPS, WordScores, word_signals
from sqa.files import digest, parse_json

FILE = "detector.json"
PREFIX = "errors-"  # prefix of the bundled folders' names
VERSION = 1
FALLBACK = "es"  # language whose weights are used for languages without their own


@dataclass(frozen=True)
class Network:
    """Mean of M networks, each with F standardised signals, H tanh units and one output, plus weighted direct signals.

    `sqa.diagnose.signals` lists the direct signals.  A logistic curve turns the sum into a probability.
    """

    mean: Floats  # (F,)
    deviation: Floats  # (F,) > 0, standard deviation
    inner: Floats  # (M, F, H)
    inner_bias: Floats  # (M, H)
    outer: Floats  # (M, H)
    outer_bias: Floats  # (M,)
    direct: Floats  # (F,) >= 0
    slope: float  # slope of the logistic curve
    shift: float

    def logits(self, signals: Floats) -> Floats:
        """Return the outputs (N,) for signals (N, F), before the logistic curve with its slope and shift."""
        x = np.clip((signals - self.mean) / self.deviation, -8, 8)
        hidden = np.tanh(np.einsum("nf,mfh->mnh", x, self.inner) + self.inner_bias[:, None])
        logits: Floats = (np.einsum("mnh,mh->mn", hidden, self.outer) + self.outer_bias[:, None]).mean(0)
        return logits + signals @ self.direct

    def probabilities(self, signals: Floats) -> Floats:
        """Return the probabilities (N,), 0 to 1, that words with the signals (N, F) are wrong."""
        logits = np.clip(self.slope * self.logits(signals) + self.shift, -50, 50)
        return np.asarray(1 / (1 + np.exp(-logits)))

    @classmethod
    def of(cls, record: Mapping[str, Any], signals: int) -> Network:
        """Return the network whose weights are in `record`, with F = `signals`.

        Raises ValueError, KeyError or TypeError if the record is invalid.
        """
        arrays = {name: np.array(value, dtype=np.float64) for name, value in record.items()}
        slope, shift = (float(arrays.pop(name)) for name in ("slope", "shift"))
        network = cls(**arrays, slope=slope, shift=shift)
        members, _, hidden = network.inner.shape
        inner = ((members, signals, hidden), (members, hidden), (members, hidden), (members,))
        shapes = ((signals,), (signals,), *inner, (signals,))
        if tuple(array.shape for array in arrays.values()) != shapes:
            raise ValueError(f"expected weights for {signals} signals")
        if not (network.deviation > 0).all() or (network.direct < 0).any():
            raise ValueError("deviations must be above 0 and direct weights at least 0")
        return network


class WordScorer(Protocol):
    """Interface of a scoring model, as used by `Detector`."""

    group: str  # group in `sqa.diagnose.signals.GROUPS` whose weights were trained with these scores

    def score(self, pairs: Sequence[tuple[Words, Words]]) -> list[WordScores]:
        """Return the scores of each pair of source and target words."""

    def fingerprint(self) -> str:
        """Return a hash of everything that affects the scores."""


class Detector:
    """A detector that computes probabilities with a network over the signals of each word; `cache` stores scores."""

    def __init__(
        self, language: str, network: Network, scorer: WordScorer | None = None, cache: Path | None = None
    ) -> None:
        self.language, self.network, self.scorer, self.cache = language, network, scorer, cache

    def words(self, pairs: Sequence[tuple[Words, Words]], alignments: Sequence[Alignment]) -> list[Floats]:
        """Return for each pair of source and target words the probabilities (J,), 0-1, that target words are wrong."""
        scores: Sequence[WordScores | None] = [None] * len(pairs)
        if (scorer := self.scorer) is not None:
            key = digest([scorer.fingerprint(), [[list(x), list(y)] for x, y in pairs]])
            scores = cached(self.cache, "scores", key, list[WordScores], lambda: scorer.score(pairs))
        return [
            self.network.probabilities(word_signals(source, target, alignment, self.language, scored))
            for (source, target), alignment, scored in zip(pairs, alignments, scores, strict=True)
        ]


def read_networks(path: Path) -> dict[str, Network]:
    """Return the networks of a file by group of signals (`sqa.diagnose.signals.GROUPS`).

    Raises DataError if the file is damaged.
    """
    try:
        record = parse_json(path.read_text(encoding="utf-8"))
        if record["version"] != VERSION:
            raise DataError(f"{path}: version {record['version']} of the weights, expected {VERSION}")
        return {group: Network.of(given, len(GROUPS[group])) for group, given in record["networks"].items()}
    except OSError as error:
        raise DataError(f"{path}: cannot read the weights: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: the weights are damaged ({error}); restore or retrain them") from error


def load_detector(language: str, scorer: WordScorer | None = None, cache: Path | None = None) -> Detector:
    """Return the bundled detector of a source language; with a `scorer`, it also uses a model's scores.

    A language without weights gets the weights of FALLBACK; its probabilities are then not calibrated.  `cache` is a
    file that stores the scores.
    """
    group = "words" if scorer is None else scorer.group
    folder = DATA / "models" / f"{PREFIX}{language}-en"
    if not folder.is_dir():
        folder = DATA / "models" / f"{PREFIX}{FALLBACK}-en"
    networks = read_networks(folder / FILE)
    if group not in networks:
        raise ConfigError(f"{folder}: has no weights for the signals {group!r}, only {', '.join(sorted(networks))}")
    return Detector(language, networks[group], scorer, cache)
