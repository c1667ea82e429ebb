"""Decoding interface of a model: a `Stepper` reads source words, scores the next target piece and commits a choice.

The decoding loop (smt/models/decode.py) uses this interface.  The Transformer implements it in
smt/models/transformer_stepper.py, the language model in smt/lm/lm_stepper.py.

Three rules stop degenerate output of small models:

1.  No phrase of up to REPEAT pieces is written twice in a row, and no piece inside a word three times in a row.  This
    stops loops of small models, at the cost of names such as "Sing Sing".  Digits are exempt.
2.  A sentence may have 10 target pieces plus 2 per visible source piece; at this limit, the end is chosen.
3.  Only a word start or the end of the sentence may follow a published word.

Letters in the shape comments: B sentences, S source pieces, V target pieces that may be chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from smt.policies.waitk import HIDDEN_WORD, Schedule

Table = Tensor | np.ndarray
REPEAT = 8  # longest phrase, in pieces, that may not be written twice in a row


def piece_limit(visible_pieces: Tensor) -> Tensor:
    """Return the number of target pieces allowed for a number of visible source pieces (rule 2)."""
    return 2 * visible_pieces + 10


class Rules:
    """Rules 1 and 3 over the V pieces that may be chosen."""

    def __init__(
        self,
        starts_word: Table,
        joins_next: Table,
        never: Table,
        free: Table,
        end: int,
        nothing: int,
        device: torch.device | None = None,
    ) -> None:
        """Store the rules' tables; the first four are of shape (V,), bool.

        Args:
            starts_word: Pieces that begin a word.
            joins_next: Pieces that the next piece continues.
            never: Pieces that are never chosen.
            free: Pieces that may be repeated.
            end: The piece that ends a sentence.
            nothing: A piece that is never chosen, used as padding.
            device: Device of the scores.
        """
        tables = (torch.as_tensor(table, device=device) for table in (starts_word, joins_next, free, never))
        self.starts_word, self.joins_next, self.free, never = tables
        self.end, self.nothing = end, nothing
        opens = self.starts_word.clone()
        opens[end] = True
        # (2, V): pieces that cannot follow a published word, and pieces that cannot continue a word
        self.banned = torch.stack([~opens | never, never])

    def forbid(self, scores: Tensor, state: State) -> Tensor:
        """Set scores (B, V) in place to -inf where rules 1 and 3 forbid a piece; the end is never forbidden."""
        scores.masked_fill_(self.banned[state.word_open.long()], float("-inf"))
        return scores.scatter_(1, self.repeats(state), float("-inf"))

    def starts(self, choice: Tensor, last: Tensor) -> Tensor:
        """Return whether each choice (B,) begins a word after the piece before it (B,)."""
        return self.starts_word[choice] & ~self.joins_next[last]

    def repeats(self, state: State) -> Tensor:
        """Return the pieces (B, REPEAT) that rule 1 forbids, padded with `nothing`."""
        last, run = state.last_pieces, state.runs
        candidate = last.clamp_min(0)  # candidate n - 1 would repeat the last n pieces
        repeats = run >= torch.arange(REPEAT, device=run.device)
        repeats[:, 0] = self.starts_word[candidate[:, 0]] | (run[:, 0] >= 1)  # a piece inside a word may occur twice
        repeats &= (last >= 0) & ~self.free[candidate]
        return torch.where(repeats, candidate, self.nothing)


GROWTH = 32  # number of target positions by which caches grow


class Begun(NamedTuple):
    """The incomplete words of B sentences, and the number of source words read."""

    pieces: Sequence[Sequence[int]]  # piece ids of the incomplete word; empty if there is none
    trackers: Sequence[Any]  # tracker of each source sentence (`Bonus.tracker`)
    read: Sequence[int]  # source words read


class Bonus(Protocol):
    """A bonus that depends on the source words read."""

    def tracker(self, words: Iterable[str] = ()) -> Any:
        """Return the tracker of a sentence whose first `words` are read; it has `hear` and `wrote`."""

    def favour(self, scores: Tensor, begun: Begun) -> Tensor:
        """Add the bonus (nats) to scores (B, V), in place."""


class Written(NamedTuple):
    """A target word, the source words read when it was published, and whether the source had ended by then."""

    token: str
    g: int
    ended: bool


@dataclass(slots=True)
class State:
    """The progress of reading and writing B sentences."""

    needs: Tensor  # (B, S) source words to read before a source piece is visible; HIDDEN_WORD = padding
    length: Tensor  # (B,) |S| in words; HIDDEN_WORD while it is unknown
    read: Tensor  # (B,) words read; |S| + 1 includes the end
    last: Tensor  # (B,) last chosen piece, as an index among the V pieces
    written: Tensor  # (B,) target pieces chosen
    words: Tensor  # (B,) target words finished
    word_open: Tensor  # (B,) whether the last word can still grow
    alive: Tensor  # (B,) whether the sentence is unfinished
    last_pieces: Tensor  # (B, REPEAT) pieces, newest first, -1 = none yet
    runs: Tensor  # (B, REPEAT) column n - 1: number of last pieces that equal the piece n positions earlier

    @classmethod
    def begin(cls, needs: Tensor, length: Tensor, last: int) -> State:
        """Return the state before the first READ; `last` precedes the first piece."""
        zeros, runs = torch.zeros_like(length), length.new_zeros(len(length), REPEAT)
        starting = torch.full_like(length, last)
        return cls(needs, length, zeros, starting, zeros, zeros, zeros > 0, zeros == 0, runs - 1, runs)

    @property
    def ended(self) -> Tensor:
        """Return whether the end of the source was read (B,)."""
        return self.read > self.length

    @property
    def g(self) -> Tensor:
        """Return the number of source words read (B,)."""
        return torch.minimum(self.read, self.length)

    def visible(self) -> Tensor:
        """Return which source pieces have been read (B, S)."""
        return self.needs <= self.read[:, None]

    def full(self, pieces: Tensor) -> Tensor:
        """Return whether only the end may follow (B,), given the number of visible source pieces (B,)."""
        return self.written >= piece_limit(pieces)

    def commit(self, piece: Tensor, taken: Tensor) -> None:
        """Write a piece (B,) where `taken` (B,) is true."""
        new, rows = piece[:, None], taken[:, None]
        self.runs = torch.where(rows, (self.runs + 1) * (self.last_pieces == new), self.runs)
        self.last_pieces = torch.where(rows, torch.cat([new, self.last_pieces[:, :-1]], 1), self.last_pieces)
        self.last = torch.where(taken, piece, self.last)
        self.word_open = self.word_open | taken
        self.written = self.written + taken

    def read_on(self, due: Tensor, written: Tensor, schedule: Schedule) -> None:
        """READ `due` (B,) more words, and as many as `written` (B,) target pieces require, up to the end."""
        self.read = torch.minimum(self.read + due, self.length + 1)
        if schedule.unit == "piece":
            pieces = (self.needs < HIDDEN_WORD).sum(1)
            last = torch.minimum(schedule.pieces_before(written), pieces) - 1
            self.read = torch.maximum(self.read, self.needs.gather(1, last[:, None])[:, 0])

    def pull(
        self, source: Iterator[str], pieces_of: Callable[[str | None], Sequence[int]], due: Tensor, needed: Tensor
    ) -> Iterator[Sequence[int]]:
        """Read more words of a streamed source for all rows; yield the pieces of each word and of the end.

        Reads `due` (B,) words, and further words until there are `needed` (B,) pieces.
        """
        remaining, ended = int(due[0]), bool(self.ended[0])
        while not ended and (remaining > 0 or self.needs.shape[1] < int(needed[0])):
            word = next(source, None)
            ended, remaining, pieces = word is None, remaining - 1, pieces_of(word)
            self.read = self.read + 1
            if ended:
                self.length = self.read - 1
            self.needs = torch.cat([self.needs, self.read[:, None].expand(-1, len(pieces))], 1)
            yield pieces

    def keep(self, rows: Tensor) -> None:
        """Keep only these rows, (B,) bool."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[rows])


def at_most(numbers: Tensor, bound: int) -> int:
    """Return the maximum of `numbers`, or on a GPU `bound`, since reading the value would wait for the device."""
    return int(numbers.max()) if numbers.device.type == "cpu" else bound


class Stepper(Protocol):
    """Sentences being decoded, with the model's caches."""

    state: State

    def read(self, due: Tensor, written: Tensor) -> None:
        """READ `due` (B,) more words, and as many as `written` (B,) target pieces require, up to the end."""

    def score(self) -> tuple[Tensor, Tensor]:
        """Return the scores of each next piece (B, V), and whether only the end may follow (B,)."""

    def keep(self, rows: Tensor) -> None:
        """Keep only these rows, (B,) bool."""


class Writer(Protocol):
    """A model ready to translate in one direction."""

    @property
    def rules(self) -> Rules:
        """Return the rules over the pieces that may be chosen."""

    @property
    def bonus(self) -> Bonus | None:
        """Return the bonus on translations of the source words."""

    @property
    def batch(self) -> int:
        """Return the number of sentences decoded together on a CPU."""

    @property
    def device(self) -> torch.device:
        """Return the device of the weights."""

    def begin(self, sentences: Sequence[Sequence[str]], schedule: Schedule) -> Stepper:
        """Return a stepper of complete, non-empty sentences before the first READ."""

    def stream(self, source: Iterator[str], schedule: Schedule) -> Stepper:
        """Return a stepper of a sentence whose words arrive one by one."""

    def spell(self, pieces: Sequence[int]) -> str:
        """Return the word that pieces (indices among the V pieces) spell, or "" if they spell no word."""


def by_length(sentences: Sequence[Sequence[str]], rows: int) -> list[list[int]]:
    """Return the indices of the non-empty sentences, shortest first, in groups of `rows`."""
    order = sorted((i for i, s in enumerate(sentences) if s), key=lambda i: len(sentences[i]))
    return [order[start : start + rows] for start in range(0, len(order), rows)]


def lengthen(x: Tensor, dim: int, size: int) -> Tensor:
    """Append zeros to x along a dimension up to `size`."""
    missing = size - x.shape[dim]
    return F.pad(x, [0, 0] * (x.dim() - dim - 1) + [0, missing]) if missing > 0 else x
