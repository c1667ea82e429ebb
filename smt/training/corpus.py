"""From clean parallel text (smt/training/clean.py) to packed training data: weigh, segment, align."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from smt.models.vocab import EOS, Vocabulary
from smt.training.clean import Pair, linked

Arrays = TypeVar("Arrays")


def weigh(pairs: Sequence[Pair], weight_of: Callable[[Pair], float], rng: np.random.Generator) -> list[Pair]:
    """Each pair `weight` times in expectation, shuffled: 2.5 means twice, and once more with probability one half."""
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
    """Memory-map what `save_arrays` wrote of a dataclass `kind`."""
    names = [field.name for field in fields(kind)]
    return kind(*(np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in names))


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


def pack(pairs: Sequence[Pair], vocabulary: Vocabulary, links: Sequence[Sequence[tuple[int, int]]] | None) -> Packed:
    """Segment `pairs`; `links` (if given) are per pair (source piece, target piece)."""
    sides: list[tuple[np.ndarray, np.ndarray]] = []
    for side in (0, 1):
        ids: list[int] = []
        start = [0]
        for pair in pairs:
            ids.extend(vocabulary.words(pair[side].split())[0])
            ids.append(EOS)
            start.append(len(ids))
        sides.append((np.array(ids, dtype=np.uint16), np.array(start, dtype=np.int64)))
    rows = [row for sentence in links for row in sentence] if links else []
    counts = [len(sentence) for sentence in links] if links else [0] * len(pairs)
    flat = np.array(rows, dtype=np.uint8).reshape(-1, 2)
    return Packed(*sides[0], *sides[1], flat, np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))


def align(packed: Packed) -> list[list[tuple[int, int]]]:
    """Align the pieces of each sentence with eflomal (Ostling and Tiedemann 2016), both directions, intersected with
    grow-diag omitted: the links of the forward direction that the reverse one confirms, plus forward links of
    pieces left alone.
    """

    def lines(flat: np.ndarray, start: np.ndarray) -> list[str]:
        return [" ".join(map(str, flat[a : b - 1])) for a, b in pairwise(start)]

    sides = lines(packed.source, packed.source_start), lines(packed.target, packed.target_start)
    return [_merge(forward, reverse) for forward, reverse in linked(*sides)]


def _merge(forward: str, reverse: str) -> list[tuple[int, int]]:
    """Intersection of both directions, plus links of either whose source or target is otherwise unaligned."""
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
    """Piece translation table p(target piece | source piece) from the alignment links.

    Returns (ids (V, width) int32, probabilities (V, width) float32), most probable first, padded with
    probability 0.  Add-0.5 smoothing towards "unaligned" keeps one chance link from counting as certain.
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
