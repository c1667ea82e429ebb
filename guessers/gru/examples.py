"""Tossups as token ids, and the examples that the GRU guesser sees in an epoch.

examples: prefix     every tossup once, from a random sentence on, queried at each later sentence end and at some random
                     words: single sentences, whole questions and all prefixes, in one pass of a forward network
examples: sentence   every sentence by itself, queried at its end (as in QANTA)

The random choices for a tossup depend only on seed, epoch and its id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from tqdm import tqdm

from guessers import noise
from guessers.gru.guesser import UNITS, Unit
from guessers.gru.network import Direction
from sqa.core import BelowOne, Count, FilePath, Positive, checked
from sqa.data.sentences import split
from sqa.data.texts import Tossup
from sqa.files import Arithmetic, Device, Dtype


@dataclass(frozen=True, slots=True)
class Example:
    """One tossup as token ids."""

    id: str
    ids: np.ndarray  # (L,) int32 token ids
    ends: np.ndarray  # (S,) int32, number of tokens up to the end of each sentence; increasing, the last is L
    page: int


@dataclass(frozen=True, slots=True)
class Material:
    """Training data: tossups as ids, with the words and pages of the ids."""

    words: tuple[str, ...]
    pages: tuple[str, ...]
    train: tuple[Example, ...]
    dev: tuple[Example, ...]

    @classmethod
    def of(cls, tossups: Sequence[Tossup], dev: Sequence[Tossup], vocabulary: int, units: Unit = "stems") -> Material:
        """Build the data of a training run; words and pages come only from `tossups`.

        Tossups without a known token are omitted.
        """
        tokens = UNITS[units]
        count: Counter[str] = Counter()
        for tossup in tossups:
            for word in tossup.text.split():
                count.update(tokens(word))
        common = sorted(count.items(), key=lambda item: (-item[1], item[0]))[:vocabulary]
        words = tuple(word for word, times in common if times > 1)
        pages = tuple(sorted({tossup.page for tossup in tossups if tossup.page}))
        word_ids = {word: id for id, word in enumerate(words, start=1)}
        page_ids = {page: id for id, page in enumerate(pages)}

        def example(tossup: Tossup) -> Example:
            """Return a tossup as ids; page -1 = unknown."""
            ids: list[int] = []
            ends: list[int] = []
            for sentence in split(tossup.text, "en"):
                ids += [word_ids.get(token, 0) for word in sentence for token in tokens(word)]
                if len(ids) > (ends[-1] if ends else 0):
                    ends.append(len(ids))
            page = page_ids.get(tossup.page or "", -1)
            return Example(tossup.id, np.array(ids, np.int32), np.array(ends, np.int32), page)

        train = [example(tossup) for tossup in tqdm(tossups, "reading tossups", mininterval=4)]
        return cls(words, pages, tuple(read for read in train if len(read.ends)), tuple(map(example, dev)))


@dataclass(frozen=True, slots=True)
@checked
class GruTraining:
    """Settings of the entry `gru` in configs/train_guessers.yaml, which documents their meanings and units."""

    kind: Literal["gru"]
    output: Path
    work: Path
    folds: tuple[str, ...]
    vocabulary: Count
    embedding: Count
    hidden: Count
    bottleneck: int | None
    dropout: BelowOne
    word_dropout: BelowOne
    start: Literal["svd", "random"]
    whole: BelowOne
    points: Count
    label_smoothing: BelowOne
    batch: Annotated[int, Meta(ge=2)]
    learning_rate: Positive
    clip: Positive
    epochs: Count
    patience: int
    stop_after: Count
    seed: int
    direction: Direction = "forward"
    units: Unit = "stems"
    vectors: Path | None = None
    examples: Literal["prefix", "sentence"] = "prefix"
    rate_factor: Annotated[float, Meta(gt=0, lt=1)] = 0.3
    texts: Annotated[tuple[FilePath, ...], "your own texts instead of the tossups: JSON lines {text, page, id?}"] = ()
    device: Annotated[Device, "auto = a GPU if there is one"] = "cpu"
    dtype: Annotated[Dtype, "element type of the weights in training: float32"] = "auto"
    ARITHMETIC: ClassVar = Arithmetic(("float32",))

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        wrong = []
        if self.direction == "bidirectional" and self.bottleneck is not None:
            wrong.append(f"bottleneck: must be null, since the bidirectional network has none, got {self.bottleneck}")
        if self.direction == "forward" and (self.bottleneck or 0) < 1:
            wrong.append(f"bottleneck: must be >= 1, got {self.bottleneck}")
        elif self.direction == "forward" and self.start == "svd" and self.bottleneck != self.embedding:
            wrong.append(f"bottleneck: start: svd needs it equal to embedding ({self.embedding})")
        if self.vectors is not None and self.start == "svd":
            wrong.append("start: must be random if `vectors` names a file")
        return wrong


class Reading(NamedTuple):
    """Tokens read in one pass, the queried token indices, and the right page."""

    ids: np.ndarray
    points: list[int]
    page: int


def draw(example: Example, config: GruTraining, epoch: int) -> list[Reading]:
    """Return the examples of a tossup in one epoch."""
    rng = noise.rng_for(config.seed, example.id, epoch)
    if config.examples == "sentence":
        begins = [0, *example.ends[:-1].tolist()]
        parts = [example.ids[begin:end] for begin, end in zip(begins, example.ends.tolist(), strict=True)]
        points_of_parts = [[len(part) - 1] for part in parts]
    else:
        first = 0 if rng.random() < config.whole else int(rng.integers(len(example.ends)))
        begin = 0 if first == 0 else int(example.ends[first - 1])
        parts = [example.ids[begin:]]
        ends = {int(end) - begin - 1 for end in example.ends[first:]}
        points_of_parts = [sorted(ends | set(rng.integers(len(parts[0]), size=config.points).tolist()))]
    parts = [noise.hide_words(part, config.word_dropout, rng) for part in parts]
    return [Reading(part, points, example.page) for part, points in zip(parts, points_of_parts, strict=True)]


def batches(material: Material, config: GruTraining, epoch: int) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Yield batches of similar length: ids (B, L), and rows (N,), columns (N,) and pages (N,) of the queried points.

    B is at least `config.batch` and less than twice that (or the whole data).  No batch has a single row, because batch
    normalisation needs at least two.
    """
    readings = [reading for example in material.train for reading in draw(example, config, epoch)]
    rng = np.random.default_rng([config.seed, epoch])
    order = np.argsort(np.array([len(reading.ids) for reading in readings]) + rng.uniform(0, 8, len(readings)))
    groups = np.array_split(order, max(1, len(order) // config.batch))
    for group in rng.permutation(len(groups)):
        chosen = [readings[i] for i in groups[group]]
        points = [(row, point, reading.page) for row, reading in enumerate(chosen) for point in reading.points]
        rows, columns, pages = (torch.tensor(column) for column in zip(*points, strict=True))
        yield padded([reading.ids for reading in chosen]), rows, columns, pages


def padded(lists: Sequence[np.ndarray]) -> Tensor:
    """Return the rows as one int64 tensor of shape (B, L), padded with 0."""
    return pad_sequence([torch.from_numpy(part).long() for part in lists], batch_first=True)
