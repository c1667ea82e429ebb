"""The next piece of a translation: the model's scores under rules that stop degenerate output of small models.

1.  No phrase of up to REPEAT pieces is written twice in a row, and no piece inside a word three times in a row.  This
    stops loops of small models, at the cost of names such as "Sing Sing".  Digits are exempt.
2.  A sentence may have 10 target pieces plus 2 per visible source piece; at this limit, the end is chosen.
3.  Only a word start or the end of the sentence may follow a published word.

Letters in the shape comments: B sentences, V pieces that may be chosen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

Table = Tensor | np.ndarray
REPEAT = 8  # longest phrase, in pieces, that may not be written twice in a row


def piece_limit(visible_pieces: Tensor) -> Tensor:
    """Return the number of target pieces allowed for a number of visible source pieces (rule 2)."""
    return 2 * visible_pieces + 10


class Past(NamedTuple):
    """The last pieces of B sentences that rule 1 needs."""

    last: Tensor  # (B, REPEAT) pieces, newest first, -1 = none yet
    run: Tensor  # (B, REPEAT) column n - 1: number of last pieces that equal the piece n positions earlier

    @classmethod
    def none(cls, rows: int, device: torch.device) -> Past:
        """Return the state before anything is written."""
        zeros = torch.zeros((rows, REPEAT), dtype=torch.long, device=device)
        return cls(zeros - 1, zeros)

    def then(self, pieces: Tensor) -> Past:
        """Append a piece to each sentence (B,)."""
        new = pieces[:, None]
        return Past(torch.cat([new, self.last[:, :-1]], 1), (self.run + 1) * (self.last == new))


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

    def forbid(self, scores: Tensor, word_open: Tensor, past: Past) -> Tensor:
        """Set scores (B, V) in place to -inf where rules 1 and 3 forbid a piece; the end is never forbidden."""
        scores.masked_fill_(self.banned[word_open.long()], float("-inf"))
        return scores.scatter_(1, self.repeats(past), float("-inf"))

    def starts(self, choice: Tensor, last: Tensor) -> Tensor:
        """Return whether each choice (B,) begins a word after the piece before it (B,)."""
        return self.starts_word[choice] & ~self.joins_next[last]

    def repeats(self, past: Past) -> Tensor:
        """Return the pieces (B, REPEAT) that rule 1 forbids, padded with `nothing`."""
        candidate, run = past.last.clamp_min(0), past.run  # candidate n - 1 would repeat the last n pieces
        repeats = run >= torch.arange(REPEAT, device=run.device)
        repeats[:, 0] = self.starts_word[candidate[:, 0]] | (run[:, 0] >= 1)  # a piece inside a word may occur twice
        repeats &= (past.last >= 0) & ~self.free[candidate]
        return torch.where(repeats, candidate, self.nothing)
