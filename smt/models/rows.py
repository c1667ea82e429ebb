"""Sentences in the middle of decoding: the tensors of many of them, and the source of one that is still being read.

Letters in the shape comments: B sentences, L decoder layers, H heads, D width, S source and T target pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from smt.models.next_piece import Past, piece_limit
from smt.models.transformer import KeyValue, Memory, Transformer
from smt.models.vocab import BOS, EOS, PAD, Vocabulary
from smt.policies.waitk import HIDDEN_WORD, pad

GROWTH = 32  # target positions by which the caches grow


@dataclass(slots=True)
class Rows:
    """The tensors of B sentences."""

    source: Tensor  # (B, S)
    source_word: Tensor  # (B, S) which word each piece belongs to
    cross: Tensor  # (B, 2 L, H, S, D/H) keys and values of the source, layer by layer
    align_key: Tensor  # (B, S, D), or (B, S, 0) without a lexicon
    cache: Tensor  # (B, 2 L, H, T, D/H) keys and values of the target
    length: Tensor  # (B,) |S| in words
    read: Tensor  # (B,) words read; |S| + 1: told that the source has ended
    last: Tensor  # (B,) the piece chosen last
    at: Tensor  # (B,) its position = target pieces chosen
    words: Tensor  # (B,) target words finished
    word_open: Tensor  # (B,) whether its word can still grow
    alive: Tensor  # (B,) whether the sentence goes on
    last_pieces: Tensor  # (B, REPEAT) see Past
    runs: Tensor  # (B, REPEAT) see Past

    @classmethod
    def begin(cls, model: Transformer, vocabulary: Vocabulary, sentences: Sequence[Sequence[str]]) -> Rows:
        """Sentences (none empty) of which nothing is read or written yet."""
        segmented = [vocabulary.words(words) for words in sentences]
        source = pad([np.array([*ids, EOS]) for ids, _ in segmented], PAD)
        words = [np.array([*index, len(s)]) for (_, index), s in zip(segmented, sentences, strict=True)]
        length = torch.tensor([len(s) for s in sentences])
        memory = model.remember(model.encode(source)[0], source)
        return cls.of(memory, pad(words, HIDDEN_WORD), length)

    @classmethod
    def of(cls, memory: Memory, source_word: Tensor, length: Tensor) -> Rows:
        """The same from an encoded source."""
        cross = stack(memory.cross)
        b, past = len(length), Past.none(len(length))
        return cls(
            source=memory.pieces,
            source_word=source_word,
            cross=cross,
            align_key=cross.new_zeros(*memory.pieces.shape, 0) if memory.align_key is None else memory.align_key,
            cache=cross.new_zeros(*cross.shape[:3], GROWTH, cross.shape[4]),
            length=length,
            read=torch.zeros(b, dtype=torch.long),
            last=torch.full((b,), BOS),
            at=torch.zeros(b, dtype=torch.long),
            words=torch.zeros(b, dtype=torch.long),
            word_open=torch.zeros(b, dtype=torch.bool),
            alive=torch.ones(b, dtype=torch.bool),
            last_pieces=past.last,
            runs=past.run,
        )

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """All rows of some groups."""
        together = {}
        for field in fields(cls):
            tensors = [getattr(part, field.name) for part in parts]
            if dim := _POSITIONS.get(field.name):
                size = max(tensor.shape[dim] for tensor in tensors)
                tensors = [lengthen(tensor, dim, size, _FILL.get(field.name, 0)) for tensor in tensors]
            together[field.name] = torch.cat(tensors)
        return cls(**together)

    def keep(self, rows: Tensor) -> None:
        """Keep these rows (B,) bool only, and as many positions as they use."""
        pieces, written = int((self.source[rows] != PAD).sum(1).max()), int(self.at[rows].max())
        for field in fields(self):
            part = getattr(self, field.name)
            if field.name in _POSITIONS:
                part = part.narrow(_POSITIONS[field.name], 0, written if field.name == "cache" else pieces)
            setattr(self, field.name, part[rows])

    def repeated(self, n: int) -> Rows:
        """Each row n times, side by side."""
        return Rows(*(getattr(self, field.name).repeat_interleave(n, 0) for field in fields(self)))

    def see(self, reader: Reader) -> None:
        """Let all rows stand for the one sentence that `reader` has read so far."""
        memory, b = reader.memory(), len(self.last)
        self.source = memory.pieces.expand(b, -1)
        self.source_word = torch.tensor([reader.source_word]).expand(b, -1)
        self.cross = stack(memory.cross).expand(b, -1, -1, -1, -1)
        if memory.align_key is not None:
            self.align_key = memory.align_key.expand(b, -1, -1)
        self.read = torch.full((b,), reader.words + reader.ended)
        self.length = torch.full((b,), reader.words if reader.ended else HIDDEN_WORD)

    def words_holding(self, pieces: Tensor) -> Tensor:
        """Words to read (the end counts as one) so that this many source pieces (B,) are read, or all there are."""
        last = torch.minimum(pieces, (self.source != PAD).sum(1)) - 1
        return self.source_word.gather(1, last[:, None])[:, 0] + 1

    def look(self, model: Transformer) -> tuple[Tensor, Tensor | None, Tensor]:
        """The decoder's step after each row's last piece.

        Returns states (B, D), log alignment (B, S) or None, and whether only the end may follow (B,) bool.
        """
        longest = int(self.at.max()) + 1
        if longest > self.cache.shape[3]:
            self.cache = lengthen(self.cache, 3, longest + GROWTH)
        visible = self.source_word < self.read[:, None]  # (B, S)
        pieces = visible.sum(1)
        most = int(pieces.max())  # what no sentence has read yet need not be looked at
        cached = torch.arange(longest) <= self.at[:, None]  # (B, T)
        align_key = self.align_key[:, :most] if self.align_key.shape[2] else None
        memory = Memory(_layers(self.cross[:, :, :, :most]), align_key, self.source[:, :most])
        cache = _layers(self.cache[:, :, :, :longest])
        x, alignment = model.step(self.last, self.at, memory, visible[:, :most], cache, cached)
        return x[:, 0], None if alignment is None else alignment[:, 0], self.at >= piece_limit(pieces)

    def encode_read(self, model: Transformer, rows: Tensor) -> None:
        """For a bidirectional encoder: encode anew what these rows (B,) bool have read, as if it were all."""
        if model.config.encoder == "causal" or not bool(rows.any()):
            return
        source = torch.where(self.source_word[rows] < self.read[rows, None], self.source[rows], PAD)
        memory = model.remember(model.encode(source)[0], source)
        self.cross[rows] = stack(memory.cross)
        if memory.align_key is not None:
            self.align_key[rows] = memory.align_key


_POSITIONS = {"source": 1, "source_word": 1, "cross": 3, "align_key": 1, "cache": 3}  # the dimension that counts them
_FILL = {"source": PAD, "source_word": HIDDEN_WORD}


def lengthen(x: Tensor, dim: int, size: int, value: int = 0) -> Tensor:
    """x with `value` appended along a dimension up to `size`."""
    missing = size - x.shape[dim]
    return F.pad(x, [0, 0] * (x.dim() - dim - 1) + [0, missing], value=value) if missing > 0 else x


def stack(layers: Sequence[KeyValue]) -> Tensor:
    """Keys and values of all layers as (B, 2 L, H, S, D/H)."""
    return torch.stack([part for layer in layers for part in layer], 1)


def _layers(stacked: Tensor) -> list[KeyValue]:
    """Keys and values of each layer in (B, 2 L, H, S, D/H), as views."""
    return [KeyValue(stacked[:, i], stacked[:, i + 1]) for i in range(0, stacked.shape[1], 2)]


class Reader:
    """The source of one sentence while it is read."""

    def __init__(self, model: Transformer, vocabulary: Vocabulary) -> None:
        self.model, self.vocabulary = model, vocabulary
        self.words, self.ended = 0, False  # source words read, whether the end was told
        self.pieces: list[int] = []  # of the source read so far
        self.source_word: list[int] = []  # which word each of them belongs to
        self._past: list[KeyValue] | None = None
        self._memory: Memory | None = None  # of the first pieces

    def feed(self, word: str | None) -> bool:
        """Read one more word, or the end of the source (None); False at the end."""
        new = [EOS] if word is None else list(self.vocabulary.word(word))
        self.pieces.extend(new)
        self.source_word.extend([self.words] * len(new))
        self.ended = word is None
        self.words += not self.ended
        return not self.ended

    @torch.inference_mode()
    def memory(self) -> Memory:
        """What the decoder sees of everything read so far, which must be something.

        Only what is new is encoded; by a bidirectional encoder everything, since each word changes the others.
        """
        known = 0 if self._memory is None else self._memory.pieces.shape[1]
        if self._memory is not None and known == len(self.pieces):
            return self._memory
        if self.model.config.encoder == "bidirectional":
            known, self._memory = 0, None
        new = torch.tensor([self.pieces[known:]])
        states, past = self.model.encode(new, self._past if known else None)
        more = self.model.remember(states, new)
        self._past = past
        self._memory = more if self._memory is None else _joined(self._memory, more)
        return self._memory


def _joined(a: Memory, b: Memory) -> Memory:
    """Two memories, one after the other."""
    cross = [
        KeyValue(torch.cat([x.key, y.key], 2), torch.cat([x.value, y.value], 2))
        for x, y in zip(a.cross, b.cross, strict=True)
    ]
    if a.align_key is None or b.align_key is None:
        align_key = None
    else:
        align_key = torch.cat([a.align_key, b.align_key], 1)
    return Memory(cross, align_key, torch.cat([a.pieces, b.pieces], 1))
