"""Packed training data and batches from clean parallel text (smt/training/clean.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from smt.models.vocab import BOS, EOS, PAD, Vocabulary
from smt.policies.waitk import HIDDEN_WORD, pad
from smt.training.clean import Pair, linked

Arrays = TypeVar("Arrays")


def weigh(pairs: Sequence[Pair], weight_of: Callable[[Pair], float], rng: np.random.Generator) -> list[Pair]:
    """Repeat each pair according to its weight, and shuffle; a weight of 2.5 means 2 or 3 times, equally likely."""
    mixed: list[Pair] = []
    for pair in pairs:
        weight = weight_of(pair)
        times = int(weight) + (rng.random() < weight - int(weight))
        mixed.extend([pair] * times)
    order = rng.permutation(len(mixed))
    return [mixed[i] for i in order]


def save_arrays(arrays: Any, folder: Path) -> None:
    """Write each field of a dataclass of arrays to its .npy file."""
    folder.mkdir(parents=True, exist_ok=True)
    for field in fields(arrays):
        np.save(folder / f"{field.name}.npy", getattr(arrays, field.name))


def load_arrays(kind: type[Arrays], folder: Path) -> Arrays:
    """Memory-map the arrays of a dataclass `kind` written by `save_arrays`."""
    names = [field.name for field in fields(kind)]
    return kind(*(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in names))


def parts(flat: np.ndarray, start: np.ndarray, chosen: np.ndarray) -> list[np.ndarray]:
    """Return the chosen rows of a flat array; row n is flat[start[n] : start[n + 1]]."""
    return [np.asarray(flat[start[n] : start[n + 1]]) for n in chosen]


@dataclass(frozen=True, slots=True)
class Packed:
    """A segmented corpus in flat arrays (memory-mapped when loaded).

    Sentence n's source pieces are source[source_start[n] : source_start[n + 1]], its target likewise, both ending
    in EOS.  Its alignment links are links[link_start[n] : link_start[n + 1]], rows (source piece, target piece);
    a sentence without links was not aligned.
    """

    source: np.ndarray  # (sum of source lengths,) uint16
    source_start: np.ndarray  # (N + 1,) int64
    target: np.ndarray  # (sum of target lengths,) uint16
    target_start: np.ndarray  # (N + 1,) int64
    links: np.ndarray  # (L, 2) uint8
    link_start: np.ndarray  # (N + 1,) int64

    def __len__(self) -> int:
        return len(self.source_start) - 1


def pack(pairs: Sequence[Pair], vocabulary: Vocabulary) -> Packed:
    """Segment `pairs`, without alignment links."""
    sides: list[tuple[np.ndarray, np.ndarray]] = []
    for side in (0, 1):
        ids: list[int] = []
        start = [0]
        for pair in pairs:
            ids.extend(vocabulary.words(pair[side].split())[0])
            ids.append(EOS)
            start.append(len(ids))
        sides.append((np.array(ids, dtype=np.uint16), np.array(start, dtype=np.int64)))
    return Packed(*sides[0], *sides[1], np.zeros((0, 2), np.uint8), np.zeros(len(pairs) + 1, np.int64))


def with_links(packed: Packed, links: Sequence[Sequence[tuple[int, int]]]) -> Packed:
    """Return the corpus with the (source piece, target piece) links of its first sentences."""
    counts = np.zeros(len(packed) + 1, np.int64)
    counts[1 : len(links) + 1] = [len(sentence) for sentence in links]
    rows = np.array([row for sentence in links for row in sentence], np.uint8).reshape(-1, 2)
    return replace(packed, links=rows, link_start=counts.cumsum())


def align(packed: Packed, most: int) -> list[list[tuple[int, int]]]:
    """Align the pieces of the first `most` sentences with eflomal (Ostling and Tiedemann 2016); see `merged_links`.

    The result has the forward links that the reverse direction confirms, plus links of otherwise unaligned pieces;
    grow-diag is omitted.
    """

    def lines(flat: np.ndarray, start: np.ndarray) -> list[str]:
        return [" ".join(map(str, flat[a : b - 1])) for a, b in pairwise(start[: most + 1])]

    sides = lines(packed.source, packed.source_start), lines(packed.target, packed.target_start)
    return [merged_links(forward, reverse) for forward, reverse in linked(*sides)]


def merged_links(forward: str, reverse: str) -> list[tuple[int, int]]:
    """Return the links of both directions, plus links of one direction that align an otherwise unaligned piece."""
    a, b = (
        {(int(source), int(target)) for source, _, target in (link.partition("-") for link in way.split())}
        for way in (forward, reverse)
    )
    links = a & b
    sources, targets = {s for s, _ in links}, {t for _, t in links}
    for s, t in sorted((a | b) - links):
        if t not in targets or s not in sources:
            links.add((s, t))
            sources.add(s)
            targets.add(t)
    return sorted(link for link in links if max(link) < 256)


def lexicon(packed: Packed, size: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the piece translation table p(target piece | source piece) from the alignment links.

    Returns (ids (V, width) int32, probabilities (V, width) float32), most probable first, padded with probability 0.
    Add-0.5 smoothing towards "unaligned" prevents a single chance link from counting as certain.
    """
    from scipy.sparse import coo_matrix

    sentence = np.repeat(np.arange(len(packed)), np.diff(packed.link_start))
    source = packed.source[packed.source_start[:-1][sentence] + packed.links[:, 0]]
    target = packed.target[packed.target_start[:-1][sentence] + packed.links[:, 1]]
    counts = coo_matrix((np.ones(len(source)), (source, target)), shape=(size, size)).tocsr()
    ids = np.zeros((size, width), dtype=np.int32)
    probabilities = np.zeros((size, width), dtype=np.float32)
    for piece in range(size):
        row = counts.data[counts.indptr[piece] : counts.indptr[piece + 1]]
        columns = counts.indices[counts.indptr[piece] : counts.indptr[piece + 1]]
        best = np.argsort(-row, kind="stable")[:width]
        ids[piece, : len(best)] = columns[best]
        probabilities[piece, : len(best)] = row[best] / (row.sum() + 0.5)
    return ids, probabilities


@dataclass(frozen=True, slots=True)
class Batch:
    """Tensors of one batch; word indices are 0-based, and the end piece has the index after the last word."""

    source: Tensor  # (B, S) int64
    source_word: Tensor  # (B, S)
    target_input: Tensor  # (B, T)
    target: Tensor  # (B, T)
    target_word: Tensor  # (B, T)
    links: Tensor  # (L, 3) sentence, target piece, source piece

    def to(self, device: torch.device) -> Batch:
        """Copy the tensors to a device."""
        return Batch(*(getattr(self, name).to(device, non_blocking=True) for name in self.__slots__))


class Buckets:
    """Batches of sentences of similar length, in an order that depends only on (seed, epoch)."""

    def __init__(self, lengths: np.ndarray, batch_pieces: int, seed: int) -> None:
        """Group sentences with `lengths` (N, sides) in pieces; a padded batch has at most `batch_pieces` per side."""
        self.lengths, self.batch_pieces, self.seed = lengths, batch_pieces, seed
        self.order = lru_cache(maxsize=1)(self._order)
        self._per_epoch = len(self.order(0))  # later epochs may have a batch or two more or less; `at` wraps around

    def _order(self, epoch: int) -> list[np.ndarray]:
        """Return the sentence indices of each batch of an epoch."""
        rng = np.random.default_rng((self.seed, epoch))
        by_length = np.lexsort((rng.random(len(self.lengths)), *self.lengths.T))
        starts, widest = [0], 0
        for i, length in enumerate(self.lengths[by_length].max(1).tolist()):
            widest = max(widest, length)
            if i > starts[-1] and widest * (i + 1 - starts[-1]) > self.batch_pieces:
                starts.append(i)
                widest = length
        batches = np.split(by_length, starts[1:])
        return [batches[i] for i in rng.permutation(len(batches))]

    def at(self, number: int) -> np.ndarray:
        """Return the sentences of batch `number`, counted from the start of training."""
        epoch, within = divmod(number, self._per_epoch)
        order = self.order(epoch)
        return order[within % len(order)]


class Batches:
    """The batches of a packed corpus."""

    def __init__(self, packed: Packed, starts_word: np.ndarray, batch_pieces: int, seed: int) -> None:
        self.packed, self.starts_word = packed, starts_word
        lengths = np.stack([np.diff(packed.source_start), np.diff(packed.target_start)], 1)  # (N, 2)
        self.buckets = Buckets(lengths, batch_pieces, seed)

    def at(self, number: int) -> Batch:
        """Return batch `number`, counted from the start of training."""
        return self.make(self.buckets.at(number))

    def _words(self, ids: np.ndarray) -> np.ndarray:
        """Return the 0-based word of each piece; the final EOS counts as a separate word."""
        start = self.starts_word[ids]
        start[[0, -1]] = True
        return np.cumsum(start) - 1

    def make(self, sentences: np.ndarray) -> Batch:
        """Return the tensors of these sentences."""
        p = self.packed
        source = parts(p.source, p.source_start, sentences)
        target = parts(p.target, p.target_start, sentences)
        links = [
            np.stack([np.full(len(link), i), link[:, 1], link[:, 0]], 1).astype(np.int64)
            for i, link in enumerate(parts(p.links, p.link_start, sentences))
        ]
        return Batch(
            pad(source, PAD),
            pad([self._words(x) for x in source], HIDDEN_WORD),
            pad([np.concatenate([[BOS], y[:-1]]) for y in target], PAD),
            pad(target, PAD),
            pad([self._words(y) for y in target], 0),
            torch.from_numpy(np.concatenate(links)),
        )
