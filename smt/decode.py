"""Greedy wait-k decoding, once each way: streaming (reads words one by one) and batched (a recorded corpus at once).

Both follow the same rules, so that a test can ask for equal words and equal g(j):

1.  READ k words; then, per target word, WRITE its pieces and READ one more source word.  With an emission rate r
    other than 1, word j + 1 needs k + floor(j / r) source words: now and then two are read, or none.
2.  A word is known to be complete when the model's next choice starts another word or ends the sentence.  It is
    published with the g of that moment; the choice itself is thrown away and made again after the READ, now among
    word starts and the end of the sentence only, since the published word can no longer grow.
3.  Choosing the end of the sentence before the source has ended means READ: there is nothing to say yet.  So
    g(j) = min(k + j - 1, |S|) unless the model waited by itself; it is never smaller.
4.  What may be chosen at all: smt/choose.py.

Letters in the shape comments: B sentences, L decoder layers, H heads, D width, S source and T target pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from smt.choose import Chooser, Lexicon, Past, piece_limit
from smt.transformer import KeyValue, Memory, Transformer
from smt.vocab import BOS, EOS, PAD, Vocabulary
from smt.waitk import HIDDEN_WORD, pad, reads_after

BATCH_ROWS = 256  # sentences decoded together
ENCODED_ROWS = 32  # sentences encoded together: little padding, and the activations stay in the cache
ALIVE = 0.75  # finished sentences are dropped when fewer than this share go on; copying for every one costs more
GROWTH = 32  # target positions by which the caches grow


class Written(NamedTuple):
    """A target word, the source words read when it was published, and whether the source had ended by then."""

    token: str
    g: int
    ended: bool


@torch.inference_mode()
def decode_batch(
    model: Transformer,
    vocabulary: Vocabulary,
    sentences: Sequence[Sequence[str]],
    k: int,
    emission_rate: float = 1.0,
) -> list[list[Written]]:
    """Translate whole sentences at once; the very words and g of `decode_stream`.

    BATCH_ROWS sentences of similar length at a time; an empty sentence gives no words.
    """
    return _Batch(model, vocabulary, sentences, k, emission_rate).run()


@dataclass(slots=True)
class _Rows:
    """The tensors of B sentences in the middle of decoding."""

    source: Tensor  # (B, S)
    source_word: Tensor  # (B, S) which word each piece belongs to
    cross: Tensor  # (B, 2 L, H, S, D/H) keys and values of the source, layer by layer
    align_key: Tensor  # (B, S, D), or (B, S, 0) without a lexicon
    cache: Tensor  # (B, 2 L, H, T, D/H) keys and values of the target
    length: Tensor  # (B,) |S| in words
    read: Tensor  # (B,) words read; |S| + 1: told that the source has ended
    last: Tensor  # (B,) the piece chosen last
    at: Tensor  # (B,) its position
    words: Tensor  # (B,) target words finished
    word_open: Tensor  # (B,) whether its word can still grow
    alive: Tensor  # (B,) whether the sentence goes on
    last_pieces: Tensor  # (B, REPEAT) see Past
    runs: Tensor  # (B, REPEAT) see Past

    def keep(self, rows: Tensor) -> None:
        """Keep these rows (B,) bool only, and as many positions as they use."""
        pieces, written = int((self.source[rows] != PAD).sum(1).max()), int(self.at[rows].max())
        for field in fields(self):
            part = getattr(self, field.name)
            if field.name in _POSITIONS:
                part = part.narrow(_POSITIONS[field.name], 0, written if field.name == "cache" else pieces)
            setattr(self, field.name, part[rows])

    @classmethod
    def joined(cls, parts: Sequence[_Rows]) -> _Rows:
        """All rows of some groups."""
        together = {}
        for field in fields(cls):
            tensors = [getattr(part, field.name) for part in parts]
            if dim := _POSITIONS.get(field.name):
                size = max(tensor.shape[dim] for tensor in tensors)
                tensors = [_lengthen(tensor, dim, size, _FILL.get(field.name, 0)) for tensor in tensors]
            together[field.name] = torch.cat(tensors)
        return cls(**together)


_POSITIONS = {"source": 1, "source_word": 1, "cross": 3, "align_key": 1, "cache": 3}  # the dimension that counts them
_FILL = {"source": PAD, "source_word": HIDDEN_WORD}


def _lengthen(x: Tensor, dim: int, size: int, value: int = 0) -> Tensor:
    """x with `value` appended along a dimension up to `size`."""
    missing = size - x.shape[dim]
    return F.pad(x, [0, 0] * (x.dim() - dim - 1) + [0, missing], value=value) if missing > 0 else x


def _layers(stacked: Tensor) -> list[KeyValue]:
    """Keys and values of each layer in (B, 2 L, H, S, D/H), as views."""
    return [KeyValue(stacked[:, i], stacked[:, i + 1]) for i in range(0, stacked.shape[1], 2)]


class _Batch:
    """Some sentences and what is written of them."""

    def __init__(
        self, model: Transformer, vocabulary: Vocabulary, sentences: Sequence[Sequence[str]], k: int, rate: float
    ) -> None:
        self.model, self.vocabulary, self.sentences, self.k, self.rate = model, vocabulary, sentences, k, rate
        self.chooser = Chooser(model, vocabulary)
        self.numbers: list[int] = []  # which sentence each row is
        self.open_pieces: list[list[int]] = [[] for _ in sentences]
        self.written: list[list[Written]] = [[] for _ in sentences]

    def run(self) -> list[list[Written]]:
        """Decode to the end of every sentence."""
        order = sorted((i for i, s in enumerate(self.sentences) if s), key=lambda i: len(self.sentences[i]))
        for start in range(0, len(order), BATCH_ROWS):
            self.numbers = order[start : start + BATCH_ROWS]
            rows = self.encode(self.numbers)
            lexicon = self.chooser.lexicon(rows.source)
            while going := int(rows.alive.sum()):
                if going < ALIVE * len(rows.alive):
                    self.numbers = [number for number, on in zip(self.numbers, rows.alive.tolist(), strict=True) if on]
                    rows.keep(rows.alive)
                    lexicon = self.chooser.lexicon(rows.source)
                self.advance(rows, lexicon)
        return self.written

    def encode(self, numbers: Sequence[int]) -> _Rows:
        """The rows of some sentences before anything is written."""
        chunks = [numbers[i : i + ENCODED_ROWS] for i in range(0, len(numbers), ENCODED_ROWS)]
        return _Rows.joined([self.begin([self.sentences[i] for i in chunk]) for chunk in chunks])

    def begin(self, sentences: Sequence[Sequence[str]]) -> _Rows:
        """Sentences of which nothing is written yet."""
        segmented = [self.vocabulary.words(words) for words in sentences]
        source = pad([np.array([*ids, EOS]) for ids, _ in segmented], PAD)
        words = [np.array([*index, len(s)]) for (_, index), s in zip(segmented, sentences, strict=True)]
        memory = self.model.remember(self.model.encode(source)[0], source)
        cross = torch.stack([part for layer in memory.cross for part in layer], 1)
        length = torch.tensor([len(s) for s in sentences])
        b, past = len(sentences), Past.none(len(sentences))
        return _Rows(
            source=source,
            source_word=pad(words, HIDDEN_WORD),
            cross=cross,
            align_key=cross.new_zeros(*source.shape, 0) if memory.align_key is None else memory.align_key,
            cache=cross.new_zeros(*cross.shape[:3], GROWTH, cross.shape[4]),
            length=length,
            read=torch.minimum(torch.tensor(self.k), length + 1),
            last=torch.full((b,), BOS),
            at=torch.zeros(b, dtype=torch.long),
            words=torch.zeros(b, dtype=torch.long),
            word_open=torch.zeros(b, dtype=torch.bool),
            alive=torch.ones(b, dtype=torch.bool),
            last_pieces=past.last,
            runs=past.run,
        )

    def advance(self, rows: _Rows, lexicon: Lexicon | None) -> None:
        """One choice per sentence; those that have ended stay as they are."""
        longest = int(rows.at.max()) + 1
        if longest > rows.cache.shape[3]:
            rows.cache = _lengthen(rows.cache, 3, longest + GROWTH)
        visible = rows.source_word < rows.read[:, None]  # (B, S)
        pieces = visible.sum(1)
        most = int(pieces.max())  # what no sentence has read yet need not be looked at
        cached = torch.arange(longest) <= rows.at[:, None]  # (B, T)
        align_key = rows.align_key[:, :most] if rows.align_key.shape[2] else None
        memory = Memory(_layers(rows.cross[:, :, :, :most]), align_key, rows.source[:, :most])
        cache = _layers(rows.cache[:, :, :, :longest])
        x, alignment = self.model.step(rows.last, rows.at, memory, visible[:, :most], cache, cached)
        full = rows.at >= piece_limit(pieces)
        past = Past(rows.last_pieces, rows.runs)
        attention = None if alignment is None else alignment[:, 0]
        choice = self.chooser(x[:, 0], attention, lexicon, rows.word_open, full, past)
        starts, end = self.chooser.starts(choice, rows.last), choice == EOS
        ended = rows.read > rows.length
        complete = rows.word_open & (starts | end) & rows.alive
        due = torch.where(complete, reads_after(rows.words + 1, self.rate), 1)
        due = torch.where(end, due.clamp_min(1), due)
        wait = ~ended & (end | complete) & (due > 0) & rows.alive
        commit = ~end & ~wait & rows.alive
        self.record(torch.stack([complete, commit, choice, ended, torch.minimum(rows.read, rows.length)], 1))
        rows.word_open = (rows.word_open & ~complete) | commit
        rows.words += complete
        rows.read = torch.minimum(rows.read + wait * due, rows.length + 1)
        rows.last = torch.where(commit, choice, rows.last)
        longer = past.then(choice)
        rows.last_pieces = torch.where(commit[:, None], longer.last, past.last)
        rows.runs = torch.where(commit[:, None], longer.run, past.run)
        rows.at += commit
        rows.alive &= ~(end & ended)

    def record(self, step: Tensor) -> None:
        """Publish the complete words and note the committed pieces: (B, 5) complete, commit, piece, ended, g."""
        for number, (complete, commit, piece, ended, g) in zip(self.numbers, step.tolist(), strict=True):
            if complete:
                token = self.vocabulary.decode_word(self.open_pieces[number])
                self.open_pieces[number] = []
                if token:
                    self.written[number].append(Written(token, g, bool(ended)))
            if commit:
                self.open_pieces[number].append(piece)


def decode_stream(
    model: Transformer,
    vocabulary: Vocabulary,
    source: Iterator[str],
    k: int,
    chooser: Chooser | None = None,
    emission_rate: float = 1.0,
) -> Iterator[str]:
    """Translate while reading: pulls a word from `source` for READ, yields a word for WRITE.

    `chooser` may be given so that its tables are not made again for every sentence.
    """
    stream = _Stream(model, vocabulary, chooser or Chooser(model, vocabulary), emission_rate)
    for _ in range(k):
        if not stream.feed(next(source, None)):
            break
    if not stream.words:
        return
    while True:
        token, reads, finished = stream.advance()
        if token:
            yield token
        if finished:
            return
        for _ in range(reads):
            if not stream.feed(next(source, None)):
                break


class _Stream:
    """The state of one sentence while it is read and written."""

    def __init__(self, model: Transformer, vocabulary: Vocabulary, chooser: Chooser, rate: float) -> None:
        self.model, self.vocabulary, self.chooser, self.rate = model, vocabulary, chooser, rate
        self.bidirectional = model.config.encoder == "bidirectional"
        self.words, self.ended = 0, False  # source words read, whether the end was told
        self.written = 0  # target words finished
        self.pieces: list[int] = []  # of the source read so far
        self.encoder_past: list[KeyValue] | None = None
        self.memory: Memory | None = None
        head = model.config.width // model.config.heads
        empty = torch.zeros(1, model.config.heads, 0, head)
        self.cache = [KeyValue(empty, empty) for _ in model.decoder]
        self.last, self.at, self.open_pieces = BOS, 0, []
        self.past = Past.none(1)

    @torch.inference_mode()
    def feed(self, word: str | None) -> bool:
        """Encode one more word, or the end of the source (None); False at the end."""
        self.ended = word is None
        self.words += not self.ended
        new = [EOS] if word is None else list(self.vocabulary.word(word))
        self.pieces.extend(new)
        if self.bidirectional:
            if self.ended:
                source = torch.tensor([self.pieces])
                self.memory = self.model.remember(self.model.encode(source)[0], source)
            return not self.ended
        states, self.encoder_past = self.model.encode(torch.tensor([new]), self.encoder_past)
        more = self.model.remember(states, torch.tensor([new]))
        if self.memory is None:
            self.memory = more
        else:
            cross = [
                KeyValue(torch.cat([a.key, b.key], 2), torch.cat([a.value, b.value], 2))
                for a, b in zip(self.memory.cross, more.cross, strict=True)
            ]
            align_key = None if more.align_key is None else torch.cat([self.memory.align_key, more.align_key], 1)
            self.memory = Memory(cross, align_key, torch.tensor([self.pieces]))
        return not self.ended

    @torch.inference_mode()
    def advance(self) -> tuple[str, int, bool]:
        """One choice: (word published or "", how often to READ, whether the sentence is finished)."""
        memory = self.memory
        assert memory is not None
        if self.cache[0].key.shape[2] <= self.at:
            self.cache = [
                KeyValue(*(torch.cat([part, part.new_zeros(*part.shape[:2], 16, part.shape[3])], 2) for part in kv))
                for kv in self.cache
            ]
        cache = [KeyValue(kv.key[:, :, : self.at + 1], kv.value[:, :, : self.at + 1]) for kv in self.cache]
        visible = torch.ones(1, len(self.pieces), dtype=torch.bool)
        cached = torch.ones(1, self.at + 1, dtype=torch.bool)
        x, alignment = self.model.step(
            torch.tensor([self.last]), torch.tensor([self.at]), memory, visible, cache, cached
        )
        full = torch.tensor([self.at >= piece_limit(len(self.pieces))])
        word_open = torch.tensor([bool(self.open_pieces)])
        align = None if alignment is None else alignment[:, 0]
        lexicon = self.chooser.lexicon(memory.pieces)
        choice = int(self.chooser(x[:, 0], align, lexicon, word_open, full, self.past))
        starts = self.chooser.starts(torch.tensor(choice), torch.tensor(self.last))
        boundary = choice == EOS or bool(starts)
        token, reads = "", 0
        if self.open_pieces and boundary:
            token, self.open_pieces = self.vocabulary.decode_word(self.open_pieces), []
            self.written += 1
            reads = int(reads_after(torch.tensor(self.written), self.rate))
        if choice == EOS:
            return token, max(reads, 1), self.ended
        if reads and not self.ended:
            return token, reads, False
        self.open_pieces.append(choice)
        self.last, self.at = choice, self.at + 1
        self.past = self.past.then(torch.tensor([choice]))
        return token, 0, False
