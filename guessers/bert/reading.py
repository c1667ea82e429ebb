"""What the BERT guesser learns from: training texts as passages, and what the encoder says about them, read once.

R passages read, H width of the encoder.
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
from tqdm import tqdm

from guessers import text
from guessers.bert.encoder import Encoder, spans
from sqa.core.errors import ConfigError, DataError
from sqa.files.atomic import atomic

SHARD = 500  # passages read between two savings
MIN_COUNT = 2  # times a stem must occur in the training texts to be a known word


class Lesson(text.Profile, Protocol):
    """A text with its page and a name."""

    @property
    def id(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Reading:
    """A text as passages, and one of them broken off (or none)."""

    page: int  # -1: no page of the training texts
    whole: tuple[str, ...]
    broken: tuple[int, str] | None  # index in `whole` of the passage broken off, and what is left of it


@dataclass(frozen=True)
class Material:
    """What a training reads."""

    titles: tuple[str, ...]
    words: frozenset[str]
    train: tuple[Reading, ...]
    dev: tuple[Reading, ...]

    @classmethod
    def of(cls, lessons: Sequence[Lesson], dev: Sequence[Lesson], broken: float, seed: int) -> Material:
        """Pages and words come from `lessons` only; of a share `broken` of them one passage is broken off too.

        Lessons without a page or a word teach nothing and are left out.
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
    """What the encoder says about the passages of some readings, the broken one of a reading after its whole ones."""

    unread: np.ndarray  # (R, 1 + H) float16: sum of the pieces' weights, and of their weighted vectors
    read: np.ndarray  # (passages read, 1 + H) float16: the same with the states
    read_row: np.ndarray  # (R,) row of `read`, -1 = was not read
    starts: np.ndarray  # (readings + 1,) where the passages of a reading begin

    def added(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """(len(rows), 2 + 2 H) float32 as Encoder.sums: the sum over each group of passages; zeros for an empty one."""
        flat = np.fromiter((row for group in rows for row in group), np.int64)
        owner = np.repeat(np.arange(len(rows)), [len(group) for group in rows])
        read_rows = self.read_row[flat]
        unread = _grouped(self.unread[flat], owner, len(rows))  # (N, 1 + H)
        read = _grouped(self.read[read_rows[read_rows >= 0]], owner[read_rows >= 0], len(rows))
        return torch.cat([unread[:, :1], read[:, :1], unread[:, 1:], read[:, 1:]], 1)


def _grouped(rows: np.ndarray, owner: np.ndarray, groups: int) -> Tensor:
    """(groups, columns) float32: the sum of each owner's rows."""
    table = torch.zeros(groups, rows.shape[1])
    return table.index_add_(0, torch.from_numpy(owner), torch.from_numpy(rows.astype(np.float32)))


def read(
    readings: Sequence[Reading], encoder: Encoder, folder: Path, identity: str, most: int | None = None, seed: int = 0
) -> Sums:
    """The sums of all passages, `most` of them (None: all), drawn at random, with the states after reading.

    `folder` keeps what was read; more can be read later.  ConfigError if it is of other texts or another encoder.
    """
    texts, starts = [], [0]
    for reading in readings:
        texts += [*reading.whole, *([reading.broken[1]] if reading.broken else [])]
        starts.append(len(texts))
    order = np.random.default_rng([seed, len(texts)]).permutation(len(texts))[:most]
    _claim(folder, hashlib.sha256("\n".join([identity, str(seed), *texts]).encode()).hexdigest())
    half = 1 + encoder.width
    blocks = tqdm(range(0, len(texts), SHARD), f"unread {folder.name}", mininterval=4)
    unread = [_halves(encoder.sums(texts[i : i + SHARD], read=False), half)[0] for i in blocks]
    shards = [np.zeros((0, half), np.float16)]
    for start in tqdm(range(0, len(order), SHARD), f"reading {folder.name}", mininterval=4):
        chosen = order[start : start + SHARD]
        path = folder / f"{start:08d}-{len(chosen)}.npy"
        if not path.is_file():
            with atomic(path) as partial, partial.open("wb") as file:
                np.save(file, _halves(encoder.sums([texts[i] for i in chosen]), half)[1])
        with path.open("rb") as file:
            try:
                shards.append(np.lib.format.read_array(file, allow_pickle=False))
            except (ValueError, EOFError) as error:
                raise DataError(f"{path}: damaged ({error}); remove it to read these passages again") from error
    read_row = np.full(len(texts), -1)
    read_row[order] = np.arange(len(order))
    return Sums(np.concatenate(unread), np.concatenate(shards), read_row, np.array(starts))


def _halves(sums: np.ndarray, half: int) -> tuple[np.ndarray, np.ndarray]:
    """(R, 2 + 2 H) -> weight and vectors before reading, weight and states after, (R, 1 + H) float16 each."""
    before, after = np.r_[0, 2 : half + 1], np.r_[1, half + 1 : 2 * half]
    return sums[:, before].astype(np.float16), sums[:, after].astype(np.float16)


def _claim(folder: Path, identity: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "identity"
    if not path.is_file():
        path.write_text(identity, encoding="utf-8")
    elif path.read_text(encoding="utf-8") != identity:
        raise ConfigError(f"work: {folder} was read from other texts or by another encoder; remove it or name another")
