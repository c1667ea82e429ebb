"""Decoding state of a causal language model: cached keys and values of a batch or of one streamed sentence.

The scores of both can differ by a few units in the last place, since the sums in matrix products differ in order.

The source occupies the first slots of the memory (smt/lm/network.py), and the target the slots after them.

Letters in the shape comments: B sentences, S source and T target positions, R slots of the source (at least S), V
pieces that may be chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from smt.lm.base import Base
from smt.lm.network import CausalLM, Memory, mask_of
from smt.lm.tokenizer import OFFSET, Layout, Tokens
from smt.models.int8 import Matrix8, multiplied, quantised
from smt.models.stepper import GROWTH, Bonus, Rules, State, at_most, lengthen
from smt.policies.waitk import HIDDEN_WORD, Schedule, pad
from smt.statistical.lexicon import Glosses


@dataclass(frozen=True, slots=True)
class LmWriter:
    """A language model ready to translate in one direction."""

    batch: ClassVar[int] = 64

    model: CausalLM
    tokens: Tokens
    layout: Layout
    pieces: Tensor  # (V,) ids of the pieces that may be chosen, ascending
    numbers: np.ndarray  # `pieces` on the CPU
    rows: Tensor | Matrix8  # (V, D) the rows of these pieces in the output layer
    rules: Rules  # rules over the indices of `pieces`
    ahead: bool = False  # whether the source attends in both directions, which needs the complete source
    bonus: Bonus | None = None  # bonus on translations of the words read
    glosses: Glosses | None = None  # glosses after rare source words

    @classmethod
    def of(cls, base: Base, layout: Layout, pieces: Tensor, ahead: bool = False) -> LmWriter:
        """Return a writer that chooses from `pieces` (V,); pieces with whitespace inside are never chosen."""
        model, tokens = base.network, base.tokens
        numbers = np.unique(np.concatenate([pieces.numpy(), [layout.end]]))
        end = int(np.searchsorted(numbers, layout.end))
        starts, joins, never = tokens.starts_word[numbers], np.zeros(len(numbers), bool), tokens.unprintable[numbers]
        never[end] = False
        nothing = int(np.flatnonzero(never)[0])
        rules = Rules(starts, joins, never, tokens.has_digit[numbers], end, nothing, model.device)
        choice = torch.from_numpy(numbers).to(model.device)
        rows = model.output_rows(choice)
        table = quantised(rows) if model.is_int8 else rows
        return cls(model, tokens, layout, choice, numbers, table, rules, ahead)

    @property
    def device(self) -> torch.device:
        """Return the device of the weights."""
        return self.model.device

    def scores(self, states: Tensor) -> Tensor:
        """Return the scores of the V pieces, float32 (B, V), for states (B, D)."""
        if isinstance(self.rows, Matrix8):
            return multiplied(states, self.rows).float()
        return F.linear(states, self.rows).float()

    def places(self, word: str) -> list[int] | None:
        """Return the indices of a word's pieces among the V pieces, or None if a piece cannot be chosen."""
        pieces = np.array(self.tokens.word(word))
        indices = self.numbers.searchsorted(pieces).clip(max=len(self.numbers) - 1)
        return indices.tolist() if (self.numbers[indices] == pieces).all() else None

    def begin(self, sentences: Sequence[Sequence[str]], schedule: Schedule) -> LmStepper:
        """Return a stepper of complete, non-empty sentences before the first READ."""
        segments = [self.layout.source(self.tokens, [*map(self.glossed, words)]) for words in sentences]
        stepper = LmStepper(self, schedule, torch.tensor([len(words) for words in sentences], device=self.device))
        stepper.state.needs = pad([np.array(needs) for _, needs in segments], HIDDEN_WORD).to(self.device)
        stepper.encode(pad([np.array(pieces) for pieces, _ in segments], 0).to(self.device))
        return stepper

    def stream(self, source: Iterator[str], schedule: Schedule) -> LmStepper:
        """Return a stepper of a sentence whose words arrive one by one."""
        length = torch.full((1,), HIDDEN_WORD, device=self.device)
        stepper = LmStepper(self, schedule, length, source)
        stepper.state.needs = length.new_zeros(1, len(self.layout.opening))
        stepper.encode(stepper.tensor([self.layout.opening]))
        return stepper

    def source_pieces(self, word: str | None) -> Sequence[int]:
        """Return the pieces of a source word, or of the end of the source for None."""
        return (self.layout.end,) if word is None else self.tokens.word(self.glossed(word))

    def glossed(self, word: str) -> str:
        """Return a source word as the model reads it, with its gloss if it has one."""
        return word if self.glosses is None else self.glosses.word(word)

    def spell(self, pieces: Sequence[int]) -> str:
        """Return the word that pieces spell; pieces are indices among the V pieces."""
        return self.tokens.decode(self.numbers[list(pieces)].tolist())


class LmStepper:
    """Sentences being decoded."""

    def __init__(
        self, writer: LmWriter, schedule: Schedule, length: Tensor, source: Iterator[str] | None = None
    ) -> None:
        """Start on sources of `length` (B,) words; `source` yields a streamed sentence, None for complete ones."""
        self.writer, self.schedule, self.source = writer, schedule, source
        self.tensor, self.arange = (partial(make, device=writer.device) for make in (torch.tensor, torch.arange))
        self.state = State.begin(length.new_zeros(len(length), 0), length, writer.rules.nothing)
        self.memory, self.room = Memory(), 0  # the source has the slots below `room`
        self.pieces = list(writer.layout.opening)  # pieces of the streamed source read so far
        self.asked = False  # whether the network has read the pieces before the first target word, except the last
        self.scored = 0  # number of choices so far, an upper bound on the pieces written

    @torch.inference_mode()
    def encode(self, pieces: Tensor) -> None:
        """Encode the last source pieces (B, n) of `needs`."""
        b, n = pieces.shape
        needs, size = self.state.needs[:, -n:], self.state.needs.shape[1]
        if size > self.room:
            self._make_room(size if self.source is None else size + GROWTH)
        backwards = needs.new_ones(n, n, dtype=torch.bool).tril().expand(b, n, n)
        own = (needs < HIDDEN_WORD)[:, None].expand(b, n, n) if self.writer.ahead else backwards
        allowed = torch.cat([own.new_ones(b, n, size - n), own], 2)  # (B, n, S)
        slots = (size - n + self.arange(n)).expand(b, n)
        self.memory.fill(slots, size)
        self.writer.model(pieces, slots, mask_of(allowed, self.writer.model.dtype), self.memory)

    def _make_room(self, room: int) -> None:
        """Insert slots before those of the target, so that the source has `room` slots."""
        old, more = self.room, room - self.room
        self.memory = self.memory.map(
            lambda x: torch.cat([x[:, :, :old], lengthen(x[:, :, :0], 2, more), x[:, :, old:]], 2)
        )
        self.room = room

    @torch.inference_mode()
    def read(self, due: Tensor, written: Tensor) -> None:
        """READ `due` (B,) more words, and as many as `written` (B,) target pieces require, up to the end."""
        if self.source is None:
            self.state.read_on(due, written, self.schedule)
            return
        length, whole = len(self.pieces), self.writer.ahead
        needed = self.schedule.pieces_before(written)
        for pieces in self.state.pull(self.source, self.writer.source_pieces, due, needed):
            self.pieces += pieces
            if not whole:
                self.encode(self.tensor([pieces]))
        # All words read are encoded again if new words change earlier states.
        if whole and len(self.pieces) > length:
            self.encode(self.tensor([self.pieces]))

    @torch.inference_mode()
    def score(self) -> tuple[Tensor, Tensor]:
        """Return the scores of each next piece (B, V), and whether only the end may follow (B,)."""
        s, w, asking = self.state, self.writer, self.writer.layout.asking
        if not self.asked:
            self.asked = True
            if asking[:-1]:
                self._run(self.tensor(asking[:-1]).expand(len(s.written), -1), torch.zeros_like(s.written), 0)
        last = torch.where(s.written > 0, w.pieces[s.last], asking[-1])
        begun = len(asking) - 1
        states = self._run(last[:, None], s.written + begun, self.scored + begun)[:, -1]
        self.scored += 1
        return w.scores(states), s.full(s.visible().sum(1))

    def _run(self, pieces: Tensor, at: Tensor, most: int) -> Tensor:
        """Run target pieces (B, n) and store their keys and values.

        Their positions in the target segment begin at `at` (B,), which is at most `most`.
        """
        b, n = pieces.shape
        longest = at_most(at, most) + n
        positions = at[:, None] + self.arange(n)  # (B, n)
        visible = F.pad(self.state.visible(), (0, self.room - self.state.needs.shape[1]))  # (B, R)
        before = self.arange(longest) <= positions[:, :, None]  # (B, n, T)
        allowed = torch.cat([visible[:, None].expand(b, n, -1), before], 2)
        self.memory.fill(self.room + positions, self.room + longest)
        mask = mask_of(allowed, self.writer.model.dtype)
        return self.writer.model(pieces, OFFSET + positions, mask, self.memory)

    def keep(self, rows: Tensor) -> None:
        """Keep only these rows (B,) bool, and only the slots that they use."""
        s = int((self.state.needs[rows] < HIDDEN_WORD).sum(1).max())
        self.scored = int(self.state.written[rows].max())
        room, end = self.room, self.room + self.scored + len(self.writer.layout.asking) - 1
        self.state.needs = self.state.needs[:, :s]
        self.memory = self.memory.map(lambda x: torch.cat([x[:, :, :s], x[:, :, room:end]], 2))
        self.room = s
        self.state.keep(rows)
        self.memory = self.memory.map(lambda x: x[rows])
