"""Batches of a packed corpus."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from smt.models.vocab import BOS, PAD
from smt.policies.waitk import HIDDEN_WORD, pad
from smt.training.corpus import Packed


@dataclass(frozen=True, slots=True)
class Batch:
    """Tensors of one batch; word indices are 0-based, the end-of-sentence piece has the next index."""

    source: Tensor  # (B, S) int64
    source_word: Tensor  # (B, S)
    target_input: Tensor  # (B, T)
    target: Tensor  # (B, T)
    target_word: Tensor  # (B, T)
    links: Tensor  # (L, 3) sentence, target piece, source piece

    def to(self, device: torch.device) -> Batch:
        """The same on another device."""
        return Batch(*(getattr(self, name).to(device, non_blocking=True) for name in self.__slots__))


class Buckets:
    """Which sentences are a batch: those of similar length, in an order that depends on (seed, epoch) alone."""

    def __init__(self, lengths: np.ndarray, batch_pieces: int, seed: int) -> None:
        """lengths: pieces of each sentence, (N, sides); of no side has a batch more than batch_pieces with padding."""
        self.lengths, self.batch_pieces, self.seed = lengths, batch_pieces, seed
        self._epoch = -1
        self._order: list[np.ndarray] = []
        self._per_epoch = len(self.order(0))  # later epochs differ by a batch or two; `at` wraps around

    def order(self, epoch: int) -> list[np.ndarray]:
        """Sentence numbers of each batch of an epoch."""
        if epoch != self._epoch:
            rng = np.random.default_rng((self.seed, epoch))
            by_length = np.lexsort((rng.random(len(self.lengths)), *self.lengths.T))
            batches: list[np.ndarray] = []
            start, widest = 0, 0
            for i, n in enumerate(by_length):
                widest_now = max(widest, int(self.lengths[n].max()))
                if i > start and widest_now * (i + 1 - start) > self.batch_pieces:
                    batches.append(by_length[start:i])
                    start, widest_now = i, int(self.lengths[n].max())
                widest = widest_now
            batches.append(by_length[start:])
            self._epoch, self._order = epoch, [batches[i] for i in rng.permutation(len(batches))]
        return self._order

    def at(self, number: int) -> np.ndarray:
        """The sentences of the number-th batch since the start of the training."""
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
        """The number-th batch since the start of the training."""
        return self.make(self.buckets.at(number))

    def _words(self, ids: np.ndarray) -> np.ndarray:
        """0-based word of each piece; the final EOS counts as a word of its own."""
        start = self.starts_word[ids]
        start[0] = True
        start[-1] = True
        return np.cumsum(start) - 1

    def make(self, sentences: np.ndarray) -> Batch:
        """Tensors of these sentences."""
        p = self.packed
        source = [np.asarray(p.source[p.source_start[n] : p.source_start[n + 1]]) for n in sentences]
        target = [np.asarray(p.target[p.target_start[n] : p.target_start[n + 1]]) for n in sentences]
        links = [p.links[p.link_start[n] : p.link_start[n + 1]] for n in sentences]
        rows = [
            np.stack([np.full(len(link), i), link[:, 1], link[:, 0]], 1).astype(np.int64)
            for i, link in enumerate(links)
        ]
        return Batch(
            pad(source, PAD),
            pad([self._words(x) for x in source], HIDDEN_WORD),
            pad([np.concatenate([[BOS], y[:-1]]) for y in target], PAD),
            pad(target, PAD),
            pad([self._words(y) for y in target], 0),
            torch.from_numpy(np.concatenate(rows)),
        )
