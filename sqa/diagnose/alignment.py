"""Word alignment of sentences with their translations by a statistical aligner, averaged over several seeds.

    aligner = load_aligner("es-en")
    [alignment] = aligner.align([(("Nació", "en", "Lima."), ("Born", "in", "Lima."))])
    alignment.links           # ((0, 0), (1, 1), (2, 2)): source word, target word

A test set is too small to learn word translations from, so the aligner (sqa/diagnose/hmm.py) uses *priors*: link counts
of stemmed words in a large parallel corpus.  The priors of es-en and pl-en are included.

The aligner runs with several seeds.  A word's trust is a mean over seeds, and its spread is the standard deviation.
The same texts give the same numbers, and `load_aligner(..., cache=FILE)` stores them.
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from msgspec import MsgspecError, convert, to_builtins

from sqa.core import ConfigError, DataError, Floats
from sqa.data.priors import Priors, bundled_priors
from sqa.diagnose.hmm import Links, draw
from sqa.files import digest, parse_json, write_text

VERSION = 2  # increase when the numbers change
SEEDS = (0, 1, 2, 3)
PICKED, PICKS = 0.75, 0.25  # trust of a word that is picked by a word of the other side, and of a word that only picks

DIGITS = 4  # decimal digits of every number

T = TypeVar("T")
Words = Sequence[str]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Evidence of the aligner in addition to the trust; each tuple has one number per target word."""

    spread: tuple[float, ...]  # standard deviation of the word's trust over the seeds
    picks: tuple[float, ...]  # probability that the word picks some source word, 0-1
    picked: tuple[float, ...]  # highest probability with which a source word picks the word
    rival: tuple[float, ...]  # highest probability with which the picked source word picks another target word
    lift: tuple[float, ...]  # ln of p(word | best source word) over its share of the language, >= 0


@dataclass(frozen=True, slots=True)
class Alignment:
    """Word links of one sentence pair."""

    links: tuple[tuple[int, int], ...]  # (source word, target word), 0-based, sorted
    source: tuple[float, ...]  # per source word, 0 to 1: trust that some target word translates it
    target: tuple[float, ...]  # per target word, 0 to 1: trust that it translates some source word
    evidence: Evidence | None = None  # None: the aligner provides none


class HmmAligner:
    """The aligner of sqa/diagnose/hmm.py, run once per seed: every word picks a word of the other side or none.

    A word's trust for one seed is an expectation.  A link in both directions counts 1.  A word that is picked by a word
    of the other side counts PICKED.  A word that only picks counts PICKS, because words without counterpart often pick
    one.  A word without a link counts 0.
    """

    def __init__(self, priors: Priors, seeds: Sequence[int] = SEEDS, cache: Path | None = None) -> None:
        if not seeds:
            raise ConfigError("alignment: seeds must not be empty")
        self.pair = priors.pair  # "es-en": source and target language, ISO 639-1
        self.seeds, self._priors, self._cache = tuple(seeds), priors, cache

    def align(self, pairs: Sequence[tuple[Words, Words]]) -> list[Alignment]:
        """Return one alignment per pair of source and target words; a pair with an empty side has no links.

        The aligner learns from all texts of a call.
        """
        key = digest([VERSION, self._priors.digest, self.seeds, [[list(x), list(y)] for x, y in pairs]])
        return cached(self._cache, "alignments", key, list[Alignment], lambda: self._aligned(pairs))

    def _aligned(self, pairs: Sequence[tuple[Words, Words]]) -> list[Alignment]:
        full = [pair for pair in pairs if pair[0] and pair[1]]
        drawn = zip(*draw(full, self._priors, self.seeds), strict=True) if full else iter(())
        return [_judged(next(drawn)) if x and y else _unlinked(len(x), len(y)) for x, y in pairs]


def load_aligner(pair: str, cache: Path | None = None, seeds: Sequence[int] = SEEDS) -> HmmAligner:
    """Return the default aligner of a pair, with the bundled priors; `cache` stores results.

    A pair without bundled priors is aligned from the texts alone, with a warning on stderr.  With one seed, the trust
    comes from a single alignment.
    """
    priors = bundled_priors(pair)
    if priors is None:
        print(f"sqa: no priors for {pair}; aligned from these texts alone, with more errors", file=sys.stderr)
        priors = Priors(pair, {}, {}, {}, "none")
    return HmmAligner(priors, seeds, cache)


def _judged(draws: Sequence[Links]) -> Alignment:
    """Combine the draws of all seeds; two words are linked if either direction links them with probability above .5."""
    forward, reverse = (np.stack([getattr(links, side) for links in draws]) for side in ("forward", "reverse"))
    either = (1 - (1 - forward) * (1 - reverse)).mean(0)  # (J, I)
    joint = forward * reverse
    target = (joint + PICKED * (reverse - joint) + PICKS * (forward - joint)).max(2)  # (seeds, J)
    source = (joint + PICKED * (forward - joint) + PICKS * (reverse - joint)).max(1)  # (seeds, I)
    picks, picked = forward.mean(0), reverse.mean(0)
    best = picks.argmax(1)
    rival = np.array([np.delete(picked[:, i], j).max(initial=0.0) for j, i in enumerate(best)])
    lift = np.mean([links.lift.max(1) for links in draws], axis=0)
    evidence = Evidence(*map(_rounded, (target.std(0), picks.sum(1), picked.max(1), rival, lift)))
    links = tuple(sorted((int(i), int(j)) for j, i in zip(*np.nonzero(either > 0.5), strict=True)))
    return Alignment(links, _rounded(source.mean(0)), _rounded(target.mean(0)), evidence)


def _unlinked(sources: int, targets: int) -> Alignment:
    none = (0.0,) * targets
    return Alignment((), (0.0,) * sources, none, Evidence(*[none] * 5))


def _rounded(numbers: Floats) -> tuple[float, ...]:
    return tuple(np.clip(numbers, 0.0, None).round(DIGITS).tolist())


def cached(path: Path | None, what: str, key: str, kind: type[T], compute: Callable[[], T]) -> T:
    """Return the values stored as `what` in a file with this key; otherwise compute them, and write them to the file.

    Without a `path`, nothing is stored.  If the file cannot be written, as in a read-only folder, a warning goes to
    stderr.  Raises DataError if the file is damaged.
    """
    if path is not None and path.is_file():
        try:
            record = parse_json(path.read_text(encoding="utf-8"))
            if record["key"] == key:
                return convert(record[what], kind)
        except (ValueError, KeyError, TypeError, MsgspecError) as error:
            raise DataError(f"{path}: the stored {what} are damaged ({error}); delete the file") from error
    values = compute()
    if path is not None:
        try:
            write_text(path, json.dumps({"key": key, what: to_builtins(values)}) + "\n")
        except OSError as error:
            reason = error.strerror or error
            print(f"sqa: {path}: {what} not stored ({reason}), so the next call recomputes them", file=sys.stderr)
    return values
