"""Beam search over complete sentences.

The search keeps n hypotheses per sentence, ranked by their log probability per piece, including the final piece.
Hypotheses that have ended stay in the beam, so the beam of the others shrinks.  The search ends when the best
hypothesis has ended, and all its words are published.

Letters in the shape comments: A sentences, n hypotheses of each, R = A n of them, V vocabulary, T target pieces.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from smt.models.stepper import GROWTH, Stepper, Writer, Written, lengthen


@dataclass(slots=True)
class _Hypotheses:
    """The hypotheses in R rows; the first row of a sentence is its best hypothesis."""

    score: Tensor  # (R,) log probability
    length: Tensor  # (R,) in pieces, including the final piece
    finished: Tensor  # (R,) bool
    pieces: Tensor  # (R, T) the whole target, by position

    def take(self, rows: Tensor) -> None:
        """Keep these rows (indices or bool), in this order."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[rows])


_MOVED = ("last", "written", "word_open", "last_pieces", "runs")  # fields of `State` that differ between hypotheses


class BeamSearch:
    """The searches of A sentences, whose sources have been read completely."""

    def __init__(self, writer: Writer, stepper: Stepper, n: int) -> None:
        """Start from a `stepper` with n adjacent rows per sentence and no written words."""
        self.writer, self.stepper, self.state, self.n = writer, stepper, stepper.state, n
        zero = torch.zeros_like(self.state.written)
        self.start = self.due = zero  # (R,) nothing is left to READ
        score = self.first(len(zero)).log()
        self.hypotheses = _Hypotheses(score, zero.float(), zero > 0, zero.new_zeros(len(zero), GROWTH))

    def first(self, r: int) -> Tensor:
        """Return 1.0 for the first of the n rows of each sentence and 0.0 for the others, (R,)."""
        return (self.numbers(r) % self.n == 0).float()

    def numbers(self, n: int) -> Tensor:
        """Return the integers 0 .. n - 1."""
        return torch.arange(n, device=self.due.device)

    def keep(self, rows: Tensor) -> None:
        """Keep only these rows, (R,) bool."""
        self.hypotheses.take(rows)
        self.start = self.due = self.due[rows]
        self.stepper.keep(rows)

    @torch.inference_mode()
    def advance(self, choices: int = 1) -> list[tuple[int, list[Written]]]:
        """Extend all hypotheses by a piece; return (sentence, words) for each sentence whose search is over.

        A sentence whose search is over is no longer alive.  `choices` is ignored.
        """
        state, hypotheses, n = self.state, self.hypotheses, self.n
        parent, piece, score = self.extend()
        hypotheses.take(parent)
        hypotheses.score = score
        for name in _MOVED:
            setattr(state, name, getattr(state, name)[parent])
        self.append(piece)
        if not torch.equal(parent, self.numbers(len(parent))):
            self.stepper.move(parent)
        done = (hypotheses.finished & state.alive).view(-1, n)[:, :1].expand(-1, n).flatten()  # (R,)
        return self.publish(done)

    def extend(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return the n best continuations per sentence, best first: parent row, piece and score, each (R,)."""
        hypotheses, n = self.hypotheses, self.n
        log_p = self.log_probabilities()
        log_p[hypotheses.finished] = float("-inf")
        log_p[hypotheses.finished, self.writer.rules.nothing] = 0.0  # a finished hypothesis keeps its score
        total = hypotheses.score[:, None] + log_p
        length = hypotheses.length + ~hypotheses.finished
        a, v = len(total) // n, total.shape[1]
        best = (total / length[:, None]).view(a, n * v).topk(n).indices  # (A, n)
        score = total.view(a, n * v).gather(1, best)
        parent = best // v + n * self.numbers(a)[:, None]
        return parent.flatten(), (best % v).flatten(), score.flatten()

    def log_probabilities(self) -> Tensor:
        """Return the model's log probability of each next piece, (R, V); -inf where the rules forbid the piece."""
        state, rules = self.state, self.writer.rules
        scores, full = self.stepper.score()
        log_p = rules.forbid(scores.log_softmax(-1), state.word_open, state.past)
        if bool(full.any()):
            ends = log_p[full, rules.end]
            log_p[full] = float("-inf")
            log_p[full, rules.end] = ends
        return log_p

    def append(self, piece: Tensor) -> None:
        """Append a piece (R,) to each unfinished hypothesis."""
        state, hypotheses = self.state, self.hypotheses
        live = ~hypotheses.finished
        end = live & (piece == self.writer.rules.end)
        commit = live & ~end
        hypotheses.length = hypotheses.length + live
        hypotheses.finished = hypotheses.finished | end | hypotheses.score.isneginf()
        longest = int(state.written.max()) + 1
        if longest > hypotheses.pieces.shape[1]:
            hypotheses.pieces = lengthen(hypotheses.pieces, 1, longest + GROWTH)
        hypotheses.pieces[commit, state.written[commit]] = piece[commit]
        state.commit(piece, commit)

    def publish(self, done: Tensor) -> list[tuple[int, list[Written]]]:
        """Return the words of the sentences whose search is over; done: (R,)."""
        state, n = self.state, self.n
        published = []
        for row in (done & self.first(len(done)).bool()).nonzero()[:, 0].tolist():
            tokens = self.tokens(self.hypotheses.pieces[row, : int(state.written[row])].tolist())
            published.append((row // n, [Written(token, int(state.g[row]), True) for token in tokens]))
        rows = self.numbers(len(done))
        best = torch.where(done, rows // n * n, rows)  # the other hypotheses of a sentence are dropped at its end
        self.hypotheses.take(best)
        state.written = state.written[best]
        state.alive = state.alive & ~done
        return published

    def tokens(self, pieces: Sequence[int]) -> list[str]:
        """Return the words that the pieces spell, without empty words."""
        words: list[list[int]] = []
        last = self.writer.rules.nothing
        for piece in pieces:
            if not words or bool(self.writer.rules.starts(torch.tensor(piece), torch.tensor(last))):
                words.append([])
            words[-1].append(piece)
            last = piece
        return [token for token in map(self.writer.spell, words) if token]
