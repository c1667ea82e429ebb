"""Batches of sentence pairs for a causal language model, in the layout of smt/lm/tokenizer.py.

Letters in the shape comments: B sentence pairs, S source and T target pieces (both padded), N = S + T, V pieces among
which the output layer chooses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from smt.lm.network import mask_of
from smt.lm.tokenizer import OFFSET, Layout, Tokens
from smt.policies.waitk import FULL, HIDDEN_WORD, pad
from smt.training.corpus import Buckets, parts

IGNORED = -100  # label of a position without a training target


@dataclass(frozen=True, slots=True)
class Pairs:
    """Segmented sentence pairs in flat arrays (memory-mapped when loaded).

    Pair n's source segment is source[source_start[n] : source_start[n + 1]]; `needs` has the number of words to read
    before each piece is visible.  Its target pieces are target[target_start[n] : target_start[n + 1]], and `words` has
    the 0-based word of each piece.  The layout adds the pieces around them.
    """

    source: np.ndarray  # int32
    needs: np.ndarray  # int16
    source_start: np.ndarray  # (pairs + 1,) int64
    target: np.ndarray  # int32
    words: np.ndarray  # int16
    target_start: np.ndarray  # (pairs + 1,) int64

    def __len__(self) -> int:
        return len(self.source_start) - 1

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]], tokens: Tokens, layout: Layout, longest: int) -> Pairs:
        """Segment pairs of (source, target) text; omit those without target or with over `longest` pieces on a side."""
        columns: tuple[list[int], ...] = ([], [], [], [])
        starts: tuple[list[int], list[int]] = ([0], [0])
        for source_text, target_text in pairs:
            rows = (*layout.source(tokens, source_text.split()), *tokens.words(target_text.split()))
            if max(map(len, rows)) <= longest and rows[-1]:
                for column, row in zip(columns, rows, strict=True):
                    column.extend(row)
                starts[0].append(len(columns[0]))
                starts[1].append(len(columns[-1]))
        kinds = (np.int32, np.int16) * 2
        source, needs, target, words = (np.array(column, kind) for column, kind in zip(columns, kinds, strict=True))
        source_start, target_start = (np.array(start, np.int64) for start in starts)
        return cls(source, needs, source_start, target, words, target_start)


@dataclass(frozen=True, slots=True)
class Batch:
    """Tensors of one batch of pairs."""

    pieces: Tensor  # (B, N) source segment, padding, target segment without its last piece, padding
    positions: Tensor  # (B, N)
    source_needs: Tensor  # (B, S) words to read before a source piece is visible; HIDDEN_WORD = padding
    target_words: Tensor  # (B, T) 0-based word to which each target position adds a piece
    labels: Tensor  # (B, T) next piece; IGNORED without a training target

    def to(self, device: torch.device) -> Batch:
        """Copy the tensors to a device."""
        return Batch(*(getattr(self, name).to(device) for name in self.__slots__))

    def mask(self, k: Tensor, dtype: torch.dtype, ahead: Tensor | None = None) -> Tensor:
        """Return the additive attention mask (B, 1, N, N); `k` (B,) counts source words.

        Where `ahead` (B,) is true, source positions also attend to later source positions.
        """
        b, n = self.pieces.shape
        s = self.source_needs.shape[1]
        allowed = self.pieces.new_ones(n, n, dtype=torch.bool).tril().expand(b, n, n).clone()
        read = (self.target_words + k[:, None]).clamp_max(HIDDEN_WORD - 1)  # (B, T): padding is never visible
        allowed[:, s:, :s] = self.source_needs[:, None, :] <= read[:, :, None]
        if ahead is not None:
            allowed[:, :s, :s] |= ahead[:, None, None] & (self.source_needs < HIDDEN_WORD)[:, None, :]
        return mask_of(allowed, dtype)


class Batches:
    """The batches of segmented pairs."""

    def __init__(self, pairs: Pairs, layout: Layout, batch_pieces: int, seed: int) -> None:
        self.pairs, self.layout, self.seed = pairs, layout, seed
        lengths = np.diff(pairs.source_start) + np.diff(pairs.target_start) + len(layout.asking)
        self.buckets = Buckets(lengths[:, None], batch_pieces, seed)

    def at(self, number: int) -> Batch:
        """Return batch `number`, counted from the start of training."""
        return self.make(self.buckets.at(number), np.random.default_rng((self.seed, 2, number)))

    def make(self, chosen: np.ndarray, rng: np.random.Generator) -> Batch:
        """Return the tensors of these pairs.

        For half of the targets, the end is predicted after the whole source has been read.  For the other half, the end
        follows the schedule like a separate word; if predicted before the source has ended, it means READ.
        """
        p, layout = self.pairs, self.layout
        source, needs = (parts(flat, p.source_start, chosen) for flat in (p.source, p.needs))
        target, words, labels = [], [], []
        before = len(layout.asking) - 1
        written = zip(*(parts(flat, p.target_start, chosen) for flat in (p.target, p.words)), strict=True)
        for pieces, narrow in written:
            word = narrow.astype(np.int64)
            last = FULL if rng.random() < 0.5 else int(word[-1]) + 1
            target.append(np.concatenate([layout.asking, pieces]))
            words.append(np.concatenate([np.zeros(before, np.int64), word, [last]]))
            labels.append(np.concatenate([np.full(before, IGNORED), pieces, [layout.end]]))
        source_pieces, target_pieces = pad(source, 0), pad(target, 0)
        b, s = source_pieces.shape
        positions = torch.cat([torch.arange(s), OFFSET + torch.arange(target_pieces.shape[1])]).expand(b, -1)
        return Batch(
            torch.cat([source_pieces, target_pieces], 1),
            positions,
            pad(needs, HIDDEN_WORD),
            pad(words, 0),
            pad(labels, IGNORED),
        )


def frequent(pairs: Pairs, tokens: Tokens, layout: Layout, size: int) -> Tensor:
    """Return the pieces (V,) among which an output layer learns to choose, in ascending order.

    They are the `size` most frequent target pieces, the letters and bytes that can spell all other words, and the line
    break.
    """
    counts = np.bincount(pairs.target, minlength=tokens.size)
    order = np.argsort(-counts, kind="stable")[:size]
    kept = np.concatenate([order[counts[order] > 0], np.flatnonzero(tokens.spelling), [layout.end]])
    return torch.from_numpy(np.unique(kept))


def writable(learnt: Tensor, tokens: Tokens) -> Tensor:
    """Return the pieces (V,) of translations in ascending order: the learnt pieces and all others of Latin script.

    The base model knows words that occur in no training target.  Without the pieces of such words, the model cannot
    spell one in five content words of a Quizbowl question, most of them names.
    """
    return torch.from_numpy(np.union1d(learnt.numpy(), np.flatnonzero(tokens.latin)))
