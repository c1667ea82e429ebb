"""Beam search within the source read so far: over complete sentences, and before every word that wait-k publishes.

The search keeps n hypotheses per sentence, ranked by their log probability per piece, including the final piece.
Hypotheses that have ended stay in the beam, so the beam of the others shrinks.  The search ends when the best
hypothesis has ended.

1.  While the source continues, the published words are fixed, and every search restarts after them.  A hypothesis ends
    with the choice that completes its word number `look_ahead` (the start of another word; only the most probable such
    choice counts) or with the end of the sentence.
2.  The first word of the best hypothesis is published, the other hypotheses are dropped, and READ follows the schedule
    of smt/models/decode.py.  If the best hypothesis ends the sentence immediately, the search READs one word and
    publishes nothing.  This is the speculative beam search of Zheng et al. 2019.
3.  After the source has ended, one search continues to the end of the sentence, and all its words are published.  With
    k = full, this is ordinary beam search.
4.  With `unit: piece` READ also happens between words: the search for a word starts when enough pieces for its first
    piece have been read.

With n = 1, look_ahead = 1 and `unit: word`, the words and g equal those of the greedy search of smt/models/decode.py.

Letters in the shape comments: A sentences, n hypotheses of each, R = A n of them, V vocabulary, T target pieces.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from smt.models.stepper import GROWTH, Stepper, Writer, Written, lengthen
from smt.policies.waitk import FULL, Schedule
from sqa.core.errors import ConfigError

VERSION = 1  # increase when the search changes its output
WIDEST = 64


@dataclass(frozen=True, slots=True)
class Beam:
    """Width and look-ahead of a search."""

    n: int  # hypotheses, 1 to WIDEST
    look_ahead: int = 2  # words of a hypothesis while the source continues, >= 1

    def __post_init__(self) -> None:
        for key, value, most in (("beam", self.n, WIDEST), ("look_ahead", self.look_ahead, FULL)):
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
                raise ConfigError(f"{key}: must be 1 to {most}, got {value!r}")


def beam_of(n: int, look_ahead: int = 2) -> Beam | None:
    """Return the beam of n hypotheses, or None for n = 1 (greedy).  Raises ConfigError for an invalid number."""
    beam = Beam(n, look_ahead)
    return beam if n > 1 else None


@dataclass(slots=True)
class _Hypotheses:
    """The hypotheses in R rows; the first row of a sentence is its best hypothesis."""

    score: Tensor  # (R,) log probability of everything since the start of the search
    length: Tensor  # (R,) in pieces, including the final piece
    finished: Tensor  # (R,) bool
    words: Tensor  # (R,) words completed
    pieces: Tensor  # (R, T) the whole target, by position
    mark: Tensor  # (R,) position after the first word, if it is complete
    mark_last: Tensor  # (R,) the piece before `mark`
    mark_last_pieces: Tensor  # (R, REPEAT), see Past
    mark_runs: Tensor  # (R, REPEAT)

    def take(self, rows: Tensor) -> None:
        """Keep these rows (indices or bool), in this order."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[rows])


# field of `_Hypotheses` -> field of `State` whose value it keeps
_MARKED = {"mark": "written", "mark_last": "last", "mark_last_pieces": "last_pieces", "mark_runs": "runs"}
_MOVED = ("last", "written", "word_open", "last_pieces", "runs")  # fields of `State` that differ between hypotheses


class BeamSearch:
    """A sequence of searches for each of A sentences, which advance independently."""

    def __init__(self, writer: Writer, stepper: Stepper, schedule: Schedule, beam: Beam) -> None:
        """Start from a `stepper` with n adjacent rows per sentence and no written words."""
        self.writer, self.stepper, self.state = writer, stepper, stepper.state
        self.schedule, self.beam = schedule, beam
        self.start = self.state.written  # (R,) position at which the search began
        self.due = torch.zeros_like(self.start)  # (R,) words to READ before the next search
        r = len(self.start)
        zero = torch.zeros_like(self.start)
        none = zero > 0
        marks = (getattr(self.state, name) for name in _MARKED.values())
        self.hypotheses = _Hypotheses(self.first(r).log(), zero.float(), none, zero, zero.new_zeros(r, GROWTH), *marks)

    def first(self, r: int) -> Tensor:
        """Return 1.0 for the first of the n rows of each sentence and 0.0 for the others, (R,)."""
        return (self.numbers(r) % self.beam.n == 0).float()

    def numbers(self, n: int) -> Tensor:
        """Return the integers 0 .. n - 1."""
        return torch.arange(n, device=self.start.device)

    def keep(self, rows: Tensor) -> None:
        """Keep only these rows, (R,) bool."""
        self.hypotheses.take(rows)
        self.start, self.due = self.start[rows], self.due[rows]
        self.stepper.keep(rows)

    @torch.inference_mode()
    def advance(self, choices: int = 1) -> list[tuple[int, list[Written]]]:
        """Extend all hypotheses by a piece; return (sentence, words) for each sentence whose search is over.

        Sets `due`, and sets `start` to the pieces published.  A complete sentence is no longer alive.  `choices` is
        ignored.
        """
        state, hypotheses, n = self.state, self.hypotheses, self.beam.n
        ended = state.ended
        limit = torch.where(ended, FULL, self.beam.look_ahead)
        parent, piece, score = self.extend(limit)
        hypotheses.take(parent)
        hypotheses.score = score
        for name in _MOVED:
            setattr(state, name, getattr(state, name)[parent])
        self.append(piece, limit)
        done = (hypotheses.finished & state.alive).view(-1, n)[:, :1].expand(-1, n)  # (A, n)
        parent = torch.where(done, parent.view(-1, n)[:, :1], parent.view(-1, n)).flatten()
        if not torch.equal(parent, self.numbers(len(parent))):
            self.stepper.move(parent, int(self.start[state.alive].min()))  # hypotheses of a sentence agree before it
        return self.publish(done.flatten(), ended)

    def extend(self, limit: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the n best continuations per sentence, best first: parent row, piece and score, each (R,)."""
        state, hypotheses, n = self.state, self.hypotheses, self.beam.n
        log_p = self.log_probabilities()
        self.merge_ends(log_p, state.word_open & (hypotheses.words + 1 >= limit))
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

    def merge_ends(self, log_p: Tensor, rows: Tensor) -> None:
        """Forbid all pieces that complete the current word in these rows, (R,) bool, except the most probable."""
        if not bool(rows.any()):
            return
        rules = self.writer.rules
        joins = rules.joins_next[self.state.last[rows]]
        ends = rules.starts_word & ~joins[:, None]  # (rows, V)
        ends[:, rules.end] = True
        row_log_p = log_p[rows]
        value, piece = row_log_p.masked_fill(~ends, float("-inf")).max(1, keepdim=True)
        log_p[rows] = row_log_p.masked_fill_(ends, float("-inf")).scatter_(1, piece, value)

    def append(self, piece: Tensor, limit: Tensor) -> None:
        """Append a piece (R,) to each unfinished hypothesis."""
        state, hypotheses, rules = self.state, self.hypotheses, self.writer.rules
        live = ~hypotheses.finished
        end = live & (piece == rules.end)
        complete = live & state.word_open & (rules.starts(piece, state.last) | end)
        first = complete & (hypotheses.words == 0)
        for mark, name in _MARKED.items():
            setattr(hypotheses, mark, _where(first, getattr(state, name), getattr(hypotheses, mark)))
        hypotheses.words = hypotheses.words + complete
        stop = end | (complete & (hypotheses.words >= limit))
        commit = live & ~stop
        hypotheses.length = hypotheses.length + live
        hypotheses.finished = hypotheses.finished | stop | hypotheses.score.isneginf()
        longest = int(state.written.max()) + 1
        if longest > hypotheses.pieces.shape[1]:
            hypotheses.pieces = lengthen(hypotheses.pieces, 1, longest + GROWTH)
        hypotheses.pieces[commit, state.written[commit]] = piece[commit]
        state.commit(piece, commit)

    def publish(self, done: Tensor, ended: Tensor) -> list[tuple[int, list[Written]]]:
        """Return the words of the sentences whose search is over, and prepare their next search; done, ended: (R,)."""
        state, hypotheses, n = self.state, self.hypotheses, self.beam.n
        published = []
        for row in (done & self.first(len(done)).bool()).nonzero()[:, 0].tolist():
            g, is_end = int(state.g[row]), bool(ended[row])
            stop = int((state.written if is_end else hypotheses.mark)[row])
            tokens = self.tokens(hypotheses.pieces[row, int(self.start[row]) : stop].tolist())
            published.append((row // n, [Written(token, g, is_end) for token in tokens]))
        rows = self.numbers(len(done))
        head = torch.where(done, rows // n * n, rows)  # the best hypothesis of each row's sentence
        hypotheses.take(head)
        goes_on = done & ~ended
        wrote = goes_on & (hypotheses.mark > self.start)
        state.words = state.words + wrote
        self.due = torch.where(wrote, self.schedule.words_after(state.words), goes_on.long())
        state.written = state.written[head]
        for mark, name in _MARKED.items():
            setattr(state, name, _where(goes_on, getattr(hypotheses, mark), getattr(state, name)))
        state.word_open = state.word_open & ~goes_on
        state.alive = state.alive & ~(done & ended)
        hypotheses.score = torch.where(done, self.first(len(done)).log(), hypotheses.score)
        hypotheses.length = hypotheses.length * ~done
        hypotheses.finished = hypotheses.finished & ~goes_on
        hypotheses.words = hypotheses.words * ~done
        self.start = torch.where(done, state.written, self.start)
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


def _where(rows: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Select per row (R,) from a or b, each (R,) or (R, N)."""
    return torch.where(rows if a.dim() == 1 else rows[:, None], a, b)
