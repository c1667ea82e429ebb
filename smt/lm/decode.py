"""Wait-k decoding with a causal language model, many recorded sentences at once or one that is still being read.

The rules are those of smt/models/decode.py (words, READ, what is published when) and of smt/models/next_piece.py (what
may be chosen).  Both ways take the same step, so they write the same words with the same g; only the order of the sums
in a matrix product can differ, by a few units of the last place.

Letters in the shape comments: B sentences, S source and T target positions, G key/value heads, C head size, V pieces
that may be chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from smt.lm.layout import OFFSET, Layout
from smt.lm.network import CausalLM, KeyValue, Seen, mask_of
from smt.lm.tokens import Tokens
from smt.models.copying import Begun, Copier, Names
from smt.models.decode import Written, by_length
from smt.models.int8 import Matrix8, multiplied, quantised
from smt.models.next_piece import Past, Rules, piece_limit
from smt.models.rows import lengthen
from smt.policies.waitk import FULL, HIDDEN_WORD, Schedule, pad

BATCH_ROWS = 64  # sentences decoded together
ALIVE = 0.75  # finished sentences are dropped when fewer than this share go on
GROWTH = 32  # target positions by which the caches grow
WHOLE = Schedule(FULL)


@dataclass(frozen=True, slots=True)
class Writer:
    """A model ready to translate in one direction."""

    model: CausalLM
    tokens: Tokens
    layout: Layout
    pieces: Tensor  # (V,) numbers of the pieces that may be chosen, ascending
    rows: Tensor | Matrix8  # (V, D) their rows of the output layer
    rules: Rules  # over places in `pieces`
    end: int  # place of the line break
    offset: int | None = OFFSET  # position of the first target piece; None = where the source segment ends
    ahead: bool = False  # the source looks at itself in both directions, so it is read whole before a word is written
    copier: Copier | None = None  # a bonus for what spells names of the source

    @classmethod
    def of(
        cls, model: CausalLM, tokens: Tokens, layout: Layout, pieces: Tensor, offset: int | None = OFFSET,
        ahead: bool = False, int8: bool = False,
    ) -> Writer:  # fmt: skip
        """`pieces` (V,) are those the output layer chooses from; those with blanks inside never are.

        int8: the output layer is one of 8-bit integers.
        """
        numbers = np.unique(np.concatenate([pieces.numpy(), [layout.end]]))
        end = int(np.searchsorted(numbers, layout.end))
        starts = tokens.starts_word[numbers]
        never = tokens.unprintable[numbers].copy()
        never[end] = False
        rules = Rules(
            torch.from_numpy(starts), torch.zeros(len(numbers), dtype=torch.bool), torch.from_numpy(never),
            torch.from_numpy(tokens.has_digit[numbers]), end, int(np.flatnonzero(never)[0]),
        )  # fmt: skip
        chosen = torch.from_numpy(numbers)
        rows = model.output_rows(chosen)
        return cls(model, tokens, layout, chosen, quantised(rows) if int8 else rows, rules, end, offset, ahead)

    def scores(self, states: Tensor) -> Tensor:
        """States (B, D) -> float32 (B, V)."""
        if isinstance(self.rows, Matrix8):
            return multiplied(states, self.rows).float()
        return F.linear(states, self.rows).float()

    def copying(self, bonus: float, language: str = "") -> Writer:
        """The same model with a bonus, in nats, for what spells names of the source (smt/models/copying.py).

        language: ISO 639-1 code of the source; "" = any.
        """
        numbers = self.pieces.numpy()
        starts = self.tokens.starts_word[numbers]
        return replace(self, copier=Copier(self.tokens.texts, starts, numbers, bonus, language) if bonus else None)

    def names(self, words: Iterable[str] = ()) -> Names:
        """The names of a sentence, `words` of which are heard."""
        return self.copier.names(words) if self.copier else Names(words)


class Step(NamedTuple):
    """What one choice did in each sentence, each (B,)."""

    complete: Tensor  # a word is complete
    commit: Tensor  # the piece was taken
    choice: Tensor  # place of the piece among those that may be chosen
    ended: Tensor  # the source had ended
    g: Tensor  # source words read
    due: Tensor  # source words to READ now


class Sentences:
    """The tensors of B sentences in the middle of decoding."""

    def __init__(self, writer: Writer, rows: int, schedule: Schedule = WHOLE) -> None:
        self.writer, self.schedule = writer, schedule
        s, dtype = writer.model.shape, writer.model.dtype
        empty = torch.zeros(rows, s.key_heads, 0, s.head_size, dtype=dtype)
        self.source = [KeyValue(empty, empty) for _ in range(s.layers)]  # (B, G, S, C)
        self.needs = torch.zeros(rows, 0, dtype=torch.long)  # (B, S) words to be read before a position is seen
        self.target = [KeyValue(empty, empty) for _ in range(s.layers)]  # (B, G, T, C)
        asking = torch.tensor(writer.layout.asking).expand(rows, -1)
        self.prompt = asking[:, :-1]  # pieces to be run before the first choice
        self.last = asking[:, -1]  # (B,) number of the piece chosen last
        self.at = torch.full((rows,), asking.shape[1] - 1)  # (B,) its position in the target segment
        self.first = torch.full((rows,), OFFSET if writer.offset is None else writer.offset)  # (B,) position of piece 0
        self.read = torch.zeros(rows, dtype=torch.long)  # words read; |S| + 1: told that the source has ended
        self.length = torch.full((rows,), HIDDEN_WORD)  # (B,) |S| in words as far as it is known
        self.written = torch.zeros(rows, dtype=torch.long)  # target pieces chosen
        self.words = torch.zeros(rows, dtype=torch.long)  # target words finished
        self.word_open = torch.zeros(rows, dtype=torch.bool)
        self.alive = torch.ones(rows, dtype=torch.bool)
        self.past = Past.none(rows)

    def hear(self, pieces: Tensor, needs: Tensor) -> None:
        """Encode more source pieces (B, n), each seen once `needs` (B, n) words are read; HIDDEN_WORD = padding."""
        known = self.needs.shape[1]
        b, n = pieces.shape
        positions = known + torch.arange(n).expand(b, -1)
        dtype = self.writer.model.dtype
        backwards = torch.ones(n, n, dtype=torch.bool).tril().expand(b, n, n)
        own = mask_of((needs < HIDDEN_WORD)[:, None].expand(b, n, n) if self.writer.ahead else backwards, dtype)
        before = [Seen(self.source, torch.zeros(b, 1, n, known, dtype=dtype))] if known else []
        _, new = self.writer.model(pieces, positions, own, before)
        self.source = [joined(a, b) for a, b in zip(self.source, new, strict=True)]
        self.needs = torch.cat([self.needs, needs], 1)
        if self.writer.offset is None:
            self.first = (self.needs < HIDDEN_WORD).sum(1)

    def look(self) -> Tensor:
        """Run the piece chosen last, and before the first choice what asks for the translation: states (B, D)."""
        if self.prompt.shape[1]:
            self._run(self.prompt, torch.zeros(len(self.last), dtype=torch.long))
            self.prompt = self.prompt[:, :0]
        return self._run(self.last[:, None], self.at)[:, -1]

    def _run(self, pieces: Tensor, at: Tensor) -> Tensor:
        """Target pieces (B, n) from position `at` (B,) of their segment on; their keys and values are kept."""
        b, n = pieces.shape
        needed = int(at.max()) + n
        if self.target[0].key.shape[2] < needed:
            self.target = [KeyValue(*(lengthen(part, 2, needed + GROWTH) for part in kv)) for kv in self.target]
        dtype = self.writer.model.dtype
        visible = (self.needs <= self.read[:, None])[:, None].expand(b, n, -1)
        longest = int(at.max())
        cached = (torch.arange(longest) < at[:, None])[:, None].expand(b, n, -1)
        own = torch.ones(n, n, dtype=torch.bool).tril().expand(b, n, n)
        seen = [
            Seen(self.source, mask_of(visible, dtype)),
            Seen([KeyValue(k[:, :, :longest], v[:, :, :longest]) for k, v in self.target], mask_of(cached, dtype)),
        ]
        places = at[:, None] + torch.arange(n)  # (B, n)
        states, new = self.writer.model(pieces, self.first[:, None] + places, mask_of(own, dtype), seen)
        row = torch.arange(b)[:, None]
        for cache, fresh in zip(self.target, new, strict=True):
            for part, value in zip(cache, fresh, strict=True):
                part[row, :, places] = value.transpose(1, 2)  # (B, n, G, C)
        return states

    def advance(self, begun: Begun) -> Step:
        """One choice per sentence; those that have ended stay as they are."""
        w = self.writer
        scores = w.rules.forbid(w.scores(self.look()), self.word_open, self.past)  # (B, V)
        if w.copier is not None:
            w.copier.favour(scores, begun)
        full = self.written >= piece_limit((self.needs <= self.read[:, None]).sum(1))
        choice = torch.where(full, w.end, scores.argmax(-1))
        end, ended = choice == w.end, self.read > self.length
        complete = self.word_open & (w.rules.starts_word[choice] | end) & self.alive
        due = torch.where(complete, self.schedule.words_after(self.words + 1), 1)
        due = torch.where(end, due.clamp_min(1), due)
        wait = ~ended & (end | complete) & (due > 0) & self.alive
        commit = ~end & ~wait & self.alive
        step = Step(complete, commit, choice, ended, torch.minimum(self.read, self.length), wait * due)
        self.words += complete
        self.word_open = (self.word_open & ~complete) | commit
        self.last = torch.where(commit, w.pieces[choice], self.last)
        longer = self.past.then(choice)
        self.past = Past(*(torch.where(commit[:, None], a, b) for a, b in zip(longer, self.past, strict=True)))
        self.at += commit
        self.written += commit
        self.alive &= ~(end & ended)
        return step

    def keep(self, rows: Tensor) -> None:
        """Keep these sentences only, bool (B,) or numbers, and as many positions as they use."""
        s = int((self.needs[rows] < HIDDEN_WORD).sum(1).max())
        t = int(self.at[rows].max())
        self.source = [KeyValue(k[rows, :, :s], v[rows, :, :s]) for k, v in self.source]
        self.needs = self.needs[rows, :s]
        self.target = [KeyValue(k[:, :, :t], v[:, :, :t]) for k, v in self.target]
        self.move(rows)

    def move(self, rows: Tensor) -> None:
        """The translations of these rows in place of all; the sources stay."""
        self.target = [KeyValue(k[rows], v[rows]) for k, v in self.target]
        self.past = Past(self.past.last[rows], self.past.run[rows])
        for name in ("last", "at", "first", "read", "length", "written", "words", "word_open", "alive", "prompt"):
            setattr(self, name, getattr(self, name)[rows])


def joined(a: KeyValue, b: KeyValue) -> KeyValue:
    """Keys and values of positions, and those of the ones after them."""
    return KeyValue(torch.cat([a.key, b.key], 2), torch.cat([a.value, b.value], 2))


@torch.inference_mode()
def decode_batch(writer: Writer, sentences: Sequence[Sequence[str]], schedule: Schedule) -> list[list[Written]]:
    """Translate whole sentences at once; the very words and g of `decode_stream`.  An empty one gives no words."""
    written: list[list[Written]] = [[] for _ in sentences]
    open_pieces: list[list[int]] = [[] for _ in sentences]
    names = [writer.names(words) for words in sentences]
    for group in by_length(sentences, BATCH_ROWS):
        numbers = group
        segments = [writer.layout.source(writer.tokens, sentences[i]) for i in numbers]
        rows = Sentences(writer, len(numbers), schedule)
        rows.length = torch.tensor([len(sentences[i]) for i in numbers])
        rows.read = torch.minimum(torch.tensor(schedule.k), rows.length + 1)
        rows.hear(pad([np.array(s) for s, _ in segments], 0), pad([np.array(n) for _, n in segments], HIDDEN_WORD))
        while going := int(rows.alive.sum()):
            if going < ALIVE * len(rows.alive):
                numbers = [number for number, on in zip(numbers, rows.alive.tolist(), strict=True) if on]
                rows.keep(rows.alive)
            step = rows.advance(
                Begun([open_pieces[n] for n in numbers], [names[n] for n in numbers], rows.read.tolist())
            )
            for number, row in zip(numbers, torch.stack(step[:-1], 1).tolist(), strict=True):
                publish(writer, row, open_pieces[number], written[number])
            rows.read = torch.minimum(rows.read + step.due, rows.length + 1)
    return written


@torch.inference_mode()
def decode_stream(writer: Writer, source: Iterator[str], schedule: Schedule) -> Iterator[str]:
    """Translate while reading: pulls a word from `source` for READ, yields a word for WRITE."""
    rows, names = Sentences(writer, 1, schedule), writer.names()
    source = names.heard(source)
    rows.hear(torch.tensor([writer.layout.opening]), torch.zeros(1, len(writer.layout.opening), dtype=torch.long))
    _read(rows, source, schedule.k)
    if int(rows.length) == 0:
        return
    open_pieces: list[int] = []
    while bool(rows.alive):
        step = rows.advance(Begun([open_pieces], [names], [names.words]))
        published: list[Written] = []
        publish(writer, [int(part) for part in step[:-1]], open_pieces, published)
        yield from (word.token for word in published)
        _read(rows, source, int(step.due))


def _read(rows: Sentences, source: Iterator[str], due: int) -> None:
    """READ `due` more words, or what there is of them and the end."""
    writer = rows.writer
    for _ in range(due):
        if int(rows.read) > int(rows.length):
            return
        word = next(source, None)
        if word is None:
            rows.length = rows.read.clone()
        pieces = (writer.layout.end,) if word is None else writer.tokens.word(word)
        rows.read = rows.read + 1
        rows.hear(torch.tensor([pieces]), rows.read[:, None].expand(1, len(pieces)))


def publish(writer: Writer, step: Sequence[int], open_pieces: list[int], written: list[Written]) -> None:
    """Take over one choice of one sentence: (complete, commit, choice, ended, g)."""
    complete, commit, choice, ended, g = step
    if complete:
        token = writer.tokens.decode(open_pieces)
        open_pieces.clear()
        if token:
            written.append(Written(token, g, bool(ended)))
    if commit:
        open_pieces.append(int(writer.pieces[choice]))
