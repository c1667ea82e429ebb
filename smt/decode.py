"""Greedy wait-k decoding, once each way: streaming (reads words one by one) and batched (a recorded corpus at once).

Both follow the same rules, so that a test can ask for equal words and equal g(j):

1.  READ k words; then, per target word, WRITE its pieces and READ one more source word.
2.  A word is known to be complete when the model's next choice starts another word or ends the sentence.  It is
    published with the g of that moment; the choice itself is thrown away and made again after the READ, now among
    word starts and the end of the sentence only, since the published word can no longer grow.
3.  Choosing the end of the sentence before the source has ended means READ: there is nothing to say yet.  So
    g(j) = min(k + j - 1, |S|) unless the model waited by itself; it is never smaller.
4.  No phrase of up to 8 pieces is written twice in a row, and no piece inside a word three times ("Sing Sing" is
    lost, so that small models cannot loop).  Digits are free.
5.  A sentence may have 2 target pieces per visible source piece and 10 more; at the limit the end is chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from smt.transformer import LEXICON_FLOOR, KeyValue, Memory, Transformer
from smt.vocab import BOS, EOS, PAD, UNK, Vocabulary
from smt.waitk import HIDDEN_WORD, pad

BATCH_ROWS = 128
REPEAT = 8  # longest phrase, in pieces, that may not be written twice in a row
HISTORY = 2 * REPEAT - 1  # committed pieces that the rule looks back on


class Written(NamedTuple):
    """A target word, the source words read when it was published, and whether the source had ended by then."""

    token: str
    g: int
    ended: bool


def piece_limit(visible_pieces: Tensor | int) -> Tensor | int:
    """Target pieces allowed for this many visible source pieces (rule 5)."""
    return 2 * visible_pieces + 10


class _Chooser:
    """Turns decoder states into the next piece under the rules above."""

    def __init__(self, model: Transformer, vocabulary: Vocabulary) -> None:
        self.model = model
        self.starts_word = torch.from_numpy(vocabulary.starts_word)  # (V,)
        self.never = torch.zeros(vocabulary.size, dtype=torch.bool)
        self.never[[PAD, UNK, BOS]] = True
        opens = self.starts_word.clone()
        opens[EOS] = True
        self.cannot_open = ~opens | self.never  # pieces that cannot follow a published word
        self.free = torch.from_numpy(vocabulary.has_digit)  # pieces that may be repeated at will

    def __call__(
        self, x: Tensor, alignment: Tensor | None, source: Tensor, word_open: Tensor, full: Tensor, history: Tensor
    ) -> Tensor:
        """x (B, D), log alignment and source (B, S), word_open and full (B,), history (B, HISTORY) -> pieces (B,)."""
        scores = self.model.logits(x, None if alignment is None else self.lexical(alignment.exp(), source))  # (B, V)
        banned = torch.where(word_open[:, None], self.never, self.cannot_open)
        self.ban_repeats(history, banned)
        choice = scores.masked_fill(banned, float("-inf")).argmax(-1)
        return torch.where(full, EOS, choice)

    def ban_repeats(self, history: Tensor, banned: Tensor) -> None:
        """Mark in `banned` (B, V) what rule 4 forbids after `history` (B, HISTORY): newest last, -1 = none yet."""
        for n in range(1, REPEAT + 1):
            candidate = history[:, HISTORY - n]  # choosing it would write the last n pieces again
            again = (history[:, HISTORY - n + 1 :] == history[:, HISTORY - 2 * n + 1 : HISTORY - n]).all(1)
            again &= candidate >= 0
            if n == 1:
                inside = ~self.starts_word[candidate]
                again &= ~inside | (history[:, -2] == candidate)
            rows = (again & ~self.free[candidate]).nonzero().flatten()
            banned[rows, candidate[rows]] = True

    def lexical(self, attention: Tensor, source: Tensor) -> Tensor:
        """Floored lexicon mixture (B, V) of attention (B, S): the sparse form of Transformer.lexicon_matrix."""
        ids = self.model.lexicon_ids[source].long().flatten(1)  # (B, S * W)
        weight = (self.model.lexicon_probabilities[source] * attention[:, :, None]).flatten(1)
        out = torch.full((len(source), self.model.config.vocabulary), LEXICON_FLOOR)
        return out.scatter_add_(1, ids, weight)


@torch.inference_mode()
def decode_batch(
    model: Transformer, vocabulary: Vocabulary, sentences: Sequence[Sequence[str]], k: int
) -> list[list[Written]]:
    """Translate whole sentences at once; the very words and g of `decode_stream`.

    Sentences are sorted by length and go in groups of BATCH_ROWS; an empty sentence gives no words.
    """
    results: list[list[Written]] = [[] for _ in sentences]
    order = sorted((i for i, s in enumerate(sentences) if s), key=lambda i: len(sentences[i]), reverse=True)
    chooser = _Chooser(model, vocabulary)
    for start in range(0, len(order), BATCH_ROWS):
        rows = order[start : start + BATCH_ROWS]
        group = _Group(model, vocabulary, chooser, [sentences[i] for i in rows], k)
        for i, written in zip(rows, group.run(), strict=True):
            results[i] = written
    return results


class _Group:
    """The state of one group of sentences while it is decoded."""

    def __init__(
        self, model: Transformer, vocabulary: Vocabulary, chooser: _Chooser, sentences: list[Sequence[str]], k: int
    ) -> None:
        self.model, self.vocabulary, self.chooser = model, vocabulary, chooser
        segmented = [vocabulary.words(words) for words in sentences]
        self.source = pad([np.array([*ids, EOS]) for ids, _ in segmented], PAD)  # (B, S)
        words = [np.array([*index, len(s)]) for (_, index), s in zip(segmented, sentences, strict=True)]
        self.source_word = pad(words, HIDDEN_WORD)  # (B, S)
        self.length = torch.tensor([len(s) for s in sentences])  # |S| in words
        self.read = torch.minimum(torch.tensor(k), self.length + 1)  # |S| + 1: told that the source has ended
        states, _ = model.encode(self.source)
        self.memory = model.remember(states, self.source)
        b, c = len(sentences), model.config
        self.capacity = int(piece_limit(self.source.shape[1])) + 1
        shape = (b, c.heads, self.capacity, c.width // c.heads)
        self.past = [KeyValue(torch.zeros(shape), torch.zeros(shape)) for _ in model.decoder]
        self.last = torch.full((b,), BOS)
        self.history = torch.full((b, HISTORY), -1)
        self.at = torch.zeros(b, dtype=torch.long)
        self.word_open = torch.zeros(b, dtype=torch.bool)
        self.rows = torch.arange(b)
        self.open_pieces: list[list[int]] = [[] for _ in sentences]
        self.written: list[list[Written]] = [[] for _ in sentences]

    def run(self) -> list[list[Written]]:
        """Decode to the end of every sentence."""
        while len(self.rows):
            done = self.advance()
            if done.any():
                self.keep(~done)
        return self.written

    def advance(self) -> Tensor:
        """One choice per sentence; returns which sentences ended (B,)."""
        visible = self.source_word < self.read[:, None]  # (B, S)
        longest = int(self.at.max()) + 1
        past = [KeyValue(kv.key[:, :, :longest], kv.value[:, :, :longest]) for kv in self.past]
        past_mask = (torch.arange(longest) <= self.at[:, None])[:, None, None]  # (B, 1, 1, Tmax)
        x, alignment = self.model.step(self.last, self.at, self.memory, visible, past, past_mask)
        full = self.at >= piece_limit(visible.sum(1))
        choice = self.chooser(
            x[:, 0], None if alignment is None else alignment[:, 0], self.source, self.word_open, full, self.history
        )
        starts, end = self.chooser.starts_word[choice], choice == EOS
        ended = self.read > self.length
        complete = self.word_open & (starts | end)
        for i in complete.nonzero().flatten().tolist():
            self.publish(i, bool(ended[i]))
        self.word_open &= ~complete
        wait = ~ended & (end | (complete & starts))
        commit = ~end & ~wait
        self.read += wait
        for i in commit.nonzero().flatten().tolist():
            self.open_pieces[int(self.rows[i])].append(int(choice[i]))
        self.word_open |= commit
        self.last = torch.where(commit, choice, self.last)
        longer = torch.cat([self.history[:, 1:], choice[:, None]], 1)
        self.history = torch.where(commit[:, None], longer, self.history)
        self.at += commit
        return end & ended

    def publish(self, i: int, ended: bool) -> None:
        """Record the open word of row i."""
        row = int(self.rows[i])
        token = self.vocabulary.decode_word(self.open_pieces[row])
        self.open_pieces[row] = []
        if token:
            self.written[row].append(Written(token, min(int(self.read[i]), int(self.length[i])), ended))

    def keep(self, alive: Tensor) -> None:
        """Drop finished sentences from every tensor."""
        for name in ("source", "source_word", "length", "read", "last", "at", "word_open", "rows", "history"):
            setattr(self, name, getattr(self, name)[alive])
        width = int((self.source != PAD).sum(1).max()) if len(self.source) else 0
        self.source, self.source_word = self.source[:, :width], self.source_word[:, :width]
        cross = [KeyValue(kv.key[alive, :, :width], kv.value[alive, :, :width]) for kv in self.memory.cross]
        align_key = self.memory.align_key
        self.memory = Memory(cross, None if align_key is None else align_key[alive, :width], self.source)
        self.past = [KeyValue(kv.key[alive], kv.value[alive]) for kv in self.past]


def decode_stream(model: Transformer, vocabulary: Vocabulary, source: Iterator[str], k: int) -> Iterator[str]:
    """Translate while reading: pulls a word from `source` for READ, yields a word for WRITE."""
    stream = _Stream(model, vocabulary)
    for _ in range(k):
        if not stream.feed(next(source, None)):
            break
    if not stream.words:
        return
    while True:
        token, wait, finished = stream.advance()
        if token:
            yield token
        if finished:
            return
        if wait:
            stream.feed(next(source, None))


class _Stream:
    """The state of one sentence while it is read and written."""

    def __init__(self, model: Transformer, vocabulary: Vocabulary) -> None:
        self.model, self.vocabulary = model, vocabulary
        self.chooser = _Chooser(model, vocabulary)
        self.bidirectional = model.config.encoder == "bidirectional"
        self.words, self.ended = 0, False
        self.pieces: list[int] = []  # of the source read so far
        self.encoder_past: list[KeyValue] | None = None
        self.memory: Memory | None = None
        head = model.config.width // model.config.heads
        empty = torch.zeros(1, model.config.heads, 0, head)
        self.past = [KeyValue(empty, empty) for _ in model.decoder]
        self.last, self.at, self.open_pieces = BOS, 0, []
        self.history = torch.full((1, HISTORY), -1)

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
    def advance(self) -> tuple[str, bool, bool]:
        """One choice: (word published or "", whether to READ, whether the sentence is finished)."""
        memory = self.memory
        assert memory is not None
        if self.past[0].key.shape[2] <= self.at:
            self.past = [
                KeyValue(*(torch.cat([part, part.new_zeros(*part.shape[:2], 16, part.shape[3])], 2) for part in kv))
                for kv in self.past
            ]
        past = [KeyValue(kv.key[:, :, : self.at + 1], kv.value[:, :, : self.at + 1]) for kv in self.past]
        visible = torch.ones(1, len(self.pieces), dtype=torch.bool)
        mask = torch.ones(1, 1, 1, self.at + 1, dtype=torch.bool)
        x, alignment = self.model.step(torch.tensor([self.last]), torch.tensor([self.at]), memory, visible, past, mask)
        full = torch.tensor([self.at >= piece_limit(len(self.pieces))])
        word_open = torch.tensor([bool(self.open_pieces)])
        align = None if alignment is None else alignment[:, 0]
        choice = int(self.chooser(x[:, 0], align, memory.pieces, word_open, full, self.history))
        boundary = choice == EOS or bool(self.chooser.starts_word[choice])
        token, complete = "", bool(self.open_pieces) and boundary
        if complete:
            token, self.open_pieces = self.vocabulary.decode_word(self.open_pieces), []
        if choice == EOS:
            return token, not self.ended, self.ended
        if complete and not self.ended:
            return token, True, False
        self.open_pieces.append(choice)
        self.last, self.at = choice, self.at + 1
        self.history = torch.cat([self.history[:, 1:], torch.tensor([[choice]])], 1)
        return token, False, False
