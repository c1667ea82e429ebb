"""Training data of the BERT guesser: texts as passages, and the stored sums of the encoder.

Shapes: R passages read, H width of the encoder.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from guessers import text
from guessers.bert.encoder import Encoder, spans
from guessers.cached_vectors import cached_vectors
from sqa.core.errors import ConfigError

VERSION = 2  # version of the files of stored sums
SHARD = 500  # passages read between two writes
MIN_COUNT = 2  # minimum number of occurrences of a known stem in the training texts


class Lesson(text.Profile, Protocol):
    """A text with its page and id."""

    @property
    def id(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Reading:
    """A text split into passages, at most one of which is also given in a truncated form."""

    page: int  # -1 if it is not a page of the training texts
    whole: tuple[str, ...]
    broken: tuple[int, str] | None  # index of the truncated passage in `whole`, and its remaining text


@dataclass(frozen=True)
class Material:
    """The data of a training run."""

    titles: tuple[str, ...]
    words: frozenset[str]
    train: tuple[Reading, ...]
    dev: tuple[Reading, ...]

    @classmethod
    def of(cls, lessons: Sequence[Lesson], dev: Sequence[Lesson], broken: float, seed: int) -> Material:
        """Build the data; pages and words come only from `lessons`.

        A share `broken` of the lessons also has one truncated passage.  Lessons without a page or a word are omitted.
        """
        lessons = [lesson for lesson in lessons if lesson.page is not None and lesson.text.split()]
        titles = tuple(sorted({lesson.page for lesson in lessons if lesson.page}))
        ids = {title: id for id, title in enumerate(titles)}
        counts: Counter[str] = Counter()
        for lesson in lessons:
            for word in lesson.text.split():
                counts.update(text.content_stems(word))
        words = frozenset(stem for stem, count in counts.items() if count >= MIN_COUNT)
        train = tuple(_reading(lesson, ids, broken, seed) for lesson in lessons)
        kept = tuple(_reading(lesson, ids, 0.0, seed) for lesson in dev if lesson.text.split())
        return cls(titles, words, train, kept)


def _reading(lesson: Lesson, ids: dict[str, int], broken: float, seed: int) -> Reading:
    words = lesson.text.split()
    parts = spans(words)
    rng = np.random.default_rng([seed, *hashlib.sha256(lesson.id.encode()).digest()[:8]])
    broken_off = None
    if rng.random() < broken:
        number = int(rng.integers(len(parts)))
        start, end = parts[number]
        broken_off = (number, " ".join(words[start : start + 1 + int(rng.integers(end - start))]))
    return Reading(ids.get(lesson.page or "", -1), tuple(" ".join(words[a:b]) for a, b in parts), broken_off)


@dataclass(frozen=True)
class Sums:
    """The encoder's sums of readings' passages; the truncated passage of a reading follows its whole passages."""

    table: np.ndarray  # (R, 2 + 2 H) float16, the result of `Encoder.sums`
    starts: np.ndarray  # (readings + 1,) index of the first passage of each reading

    def added(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Return the sum over each group of passages, float32 of shape (len(rows), 2 + 2 H)."""
        flat = np.fromiter((row for group in rows for row in group), np.int64)
        owner = np.repeat(np.arange(len(rows)), [len(group) for group in rows])
        total = torch.zeros(len(rows), self.table.shape[1])
        return total.index_add_(0, torch.from_numpy(owner), torch.from_numpy(self.table[flat].astype(np.float32)))


def read(readings: Sequence[Reading], encoder: Encoder, folder: Path, identity: str) -> Sums:
    """Return the sums of all passages, stored in `folder`; raises ConfigError if its texts or encoder differ."""
    texts, starts = [], [0]
    for reading in readings:
        texts += [*reading.whole, *([reading.broken[1]] if reading.broken else [])]
        starts.append(len(texts))
    _claim(folder, hashlib.sha256("\n".join([f"{VERSION} {identity}", *texts]).encode()).hexdigest())
    table = cached_vectors(folder, texts, SHARD, 2 + 2 * encoder.width, encoder.sums)
    return Sums(table, np.array(starts))


def _claim(folder: Path, identity: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "identity"
    if not path.is_file():
        path.write_text(identity, encoding="utf-8")
    elif path.read_text(encoding="utf-8") != identity:
        raise ConfigError(f"work: {folder} belongs to other texts or another encoder; remove it or name another folder")
