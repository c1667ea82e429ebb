"""The interface of a model in decoding: a `Stepper` reads source words, scores the next target piece, commits a choice.

The greedy loop (smt/models/decode.py) and the beam (smt/models/beam.py) are written over it once; the Transformer's is
in smt/models/transformer_stepper.py, the language model's in smt/lm/lm_stepper.py.

Letters in the shape comments: B sentences, S source pieces, V target pieces that may be chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from smt.models.copying import Bonus
from smt.models.next_piece import Past, Rules, piece_limit
from smt.policies.waitk import HIDDEN_WORD, Schedule

SIZE = 128  # pieces of a long sentence
GROWTH = 32  # target positions by which caches and hypotheses grow


class Written(NamedTuple):
    """A target word, the source words read when it was published, and whether the source had ended by then."""

    token: str
    g: int
    ended: bool


@dataclass(slots=True)
class State:
    """How far B sentences are read and written."""

    needs: Tensor  # (B, S) source words to be read before a source piece is seen; HIDDEN_WORD = padding
    length: Tensor  # (B,) |S| in words; HIDDEN_WORD while it is unknown
    read: Tensor  # (B,) words read; |S| + 1: the end has been read, too
    last: Tensor  # (B,) the piece chosen last, by its number among the V
    written: Tensor  # (B,) target pieces chosen
    words: Tensor  # (B,) target words finished
    word_open: Tensor  # (B,) whether the last word can still grow
    alive: Tensor  # (B,) whether the sentence is unfinished
    last_pieces: Tensor  # (B, REPEAT) see Past
    runs: Tensor  # (B, REPEAT) see Past

    @classmethod
    def begin(cls, needs: Tensor, length: Tensor, last: int) -> State:
        """Before the first READ; `last` stands before the first piece."""
        zeros, past = torch.zeros_like(length), Past.none(len(length), length.device)
        return cls(needs, length, zeros, torch.full_like(length, last), zeros, zeros, zeros > 0, zeros == 0, *past)

    @property
    def past(self) -> Past:
        """The last pieces."""
        return Past(self.last_pieces, self.runs)

    @property
    def ended(self) -> Tensor:
        """Whether the end of the source was read (B,)."""
        return self.read > self.length

    @property
    def g(self) -> Tensor:
        """Source words read (B,)."""
        return torch.minimum(self.read, self.length)

    def visible(self) -> Tensor:
        """Which source pieces have been read (B, S)."""
        return self.needs <= self.read[:, None]

    def full(self, pieces: Tensor) -> Tensor:
        """Where only the end may follow, with so many source pieces visible (B,)."""
        return self.written >= piece_limit(pieces)

    def commit(self, piece: Tensor, taken: Tensor) -> None:
        """Write a piece (B,) where it is `taken` (B,)."""
        longer = self.past.then(piece)
        self.last_pieces = torch.where(taken[:, None], longer.last, self.last_pieces)
        self.runs = torch.where(taken[:, None], longer.run, self.runs)
        self.last = torch.where(taken, piece, self.last)
        self.word_open = self.word_open | taken
        self.written = self.written + taken

    def read_on(self, due: Tensor, written: Tensor, schedule: Schedule) -> None:
        """READ `due` (B,) more words, and as many as `written` (B,) target pieces ask for; never beyond the end."""
        self.read = torch.minimum(self.read + due, self.length + 1)
        if schedule.unit == "piece":
            pieces = (self.needs < HIDDEN_WORD).sum(1)
            last = torch.minimum(schedule.pieces_before(written), pieces) - 1
            self.read = torch.maximum(self.read, self.needs.gather(1, last[:, None])[:, 0])

    def pull(
        self, source: Iterator[str], pieces_of: Callable[[str | None], Sequence[int]], due: Tensor, needed: Tensor
    ) -> Iterator[Sequence[int]]:
        """`due` (B,) more words of a source that still comes, and as many as have `needed` (B,) pieces, for all rows:
        yields the pieces of each word and of the end."""
        remaining, ended = int(due[0]), bool(self.ended[0])
        while not ended and (remaining > 0 or self.needs.shape[1] < int(needed[0])):
            word = next(source, None)
            ended, remaining, pieces = word is None, remaining - 1, pieces_of(word)
            self.read = self.read + 1
            if ended:
                self.length = self.read - 1
            self.needs = torch.cat([self.needs, self.read[:, None].expand(-1, len(pieces))], 1)
            yield pieces

    def take(self, rows: Tensor) -> None:
        """Keep these rows, numbers or bool (B,), in this order."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[rows])


def at_most(numbers: Tensor, bound: int) -> int:
    """Return the greatest of some numbers; on a GPU an upper bound, since reading it would wait for all work there."""
    return int(numbers.max()) if numbers.device.type == "cpu" else bound


class Stepper(Protocol):
    """Sentences being decoded, with the model's caches."""

    state: State

    def read(self, due: Tensor, written: Tensor) -> None:
        """READ `due` (B,) more words, and as many as `written` (B,) target pieces ask for; never beyond the end."""

    def score(self) -> tuple[Tensor, Tensor]:
        """Scores of each next piece (B, V), and where only the end may follow (B,) bool."""

    def keep(self, rows: Tensor) -> None:
        """Go on with these rows (B,) bool only."""

    def move(self, rows: Tensor, start: int) -> None:
        """The translations of these rows (B,) in place of all, from target piece `start` on; the sources stay."""


class Writer(Protocol):
    """A model ready to translate in one direction."""

    @property
    def rules(self) -> Rules:
        """The pieces that may be chosen."""

    @property
    def bonus(self) -> Bonus | None:
        """The bonus on names of the source, or on translations of its words."""

    @property
    def batch(self) -> int:
        """Hypotheses decoded together on a CPU."""

    @property
    def device(self) -> torch.device:
        """The device of the weights."""

    @property
    def row_bytes(self) -> int:
        """Memory of a hypothesis, for a sentence of SIZE pieces."""

    def begin(self, sentences: Sequence[Sequence[str]], schedule: Schedule, n: int = 1) -> Stepper:
        """Non-empty sentences that are complete, n adjacent rows for each, before the first READ."""

    def stream(self, source: Iterator[str], schedule: Schedule, n: int = 1) -> Stepper:
        """A sentence whose words come one by one."""

    def spell(self, pieces: Sequence[int]) -> str:
        """The word that pieces (numbers among the V) spell; "" if they spell none."""


def by_length(sentences: Sequence[Sequence[str]], rows: int) -> list[list[int]]:
    """Numbers of the sentences that are not empty, shortest first, in groups of `rows`."""
    order = sorted((i for i, s in enumerate(sentences) if s), key=lambda i: len(sentences[i]))
    return [order[start : start + rows] for start in range(0, len(order), rows)]


def lengthen(x: Tensor, dim: int, size: int) -> Tensor:
    """Append zeros to x along a dimension up to `size`."""
    missing = size - x.shape[dim]
    return F.pad(x, [0, 0] * (x.dim() - dim - 1) + [0, missing]) if missing > 0 else x
