"""Beam search within the source read so far: over complete sentences, and before every word that wait-k publishes.

n hypotheses of each sentence are kept, ranked by their log probability per piece (the piece that ends them included).
Those that have ended keep their place, so the beam of the others shrinks; the search is over when the best has ended.

1.  While the source goes on, the words published are fixed, and the search begins behind them, always anew.  A
    hypothesis ends with the choice that shows its word number `look_ahead` to be complete (the start of another word;
    of all those only the most probable counts) or with the end of the sentence.
2.  The first word of the best hypothesis is published, the others are forgotten, and READ follows the schedule of
    smt/models/decode.py.  If the best hypothesis is the end of the sentence at once, one word is READ and nothing
    published. This is the speculative beam search of Zheng et al. 2019.
3.  Once the source has ended, one search goes to the end of the sentence, and all its words are published.  So with
    k = full this is ordinary beam search.
4.  With `unit: piece` READ happens between words, too: a word is searched for when as many pieces were read as its
    first piece needs.

With n = 1 and look_ahead = 1 words are counted, and these are the very words and g of the greedy smt.models.decode.

Letters in the shape comments: A sentences, n hypotheses of each, R = A n of them, V vocabulary, T target pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from smt.models.decode import ALIVE, Written, begin, by_length, feed, read_on
from smt.models.next_piece import Chooser, Past
from smt.models.rows import GROWTH, Reader, Rows, lengthen
from smt.models.transformer import Transformer
from smt.models.vocab import EOS, PAD, Vocabulary
from smt.policies.waitk import FULL, HIDDEN_WORD, Schedule
from sqa.core.errors import ConfigError

VERSION = 1  # raise when the search changes its output
BATCH_ROWS = 256  # hypotheses searched together
WIDEST = 64


@dataclass(frozen=True, slots=True)
class Beam:
    """How wide and how far ahead to search."""

    n: int  # hypotheses, 1 to WIDEST
    look_ahead: int = 2  # words of a hypothesis while the source goes on, >= 1

    def __post_init__(self) -> None:
        for key, value, most in (("beam", self.n, WIDEST), ("look_ahead", self.look_ahead, FULL)):
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
                raise ConfigError(f"{key}: must be 1 to {most}, got {value!r}")


GREEDY = Beam(1)


@torch.inference_mode()
def search_batch(
    model: Transformer,
    vocabulary: Vocabulary,
    sentences: Sequence[Sequence[str]],
    schedule: Schedule,
    beam: Beam,
) -> list[list[Written]]:
    """Translate whole sentences at once; the words and g of `search_stream`.  An empty sentence gives no words."""
    chooser = Chooser(model, vocabulary)
    written: list[list[Written]] = [[] for _ in sentences]
    for numbers in by_length(sentences, max(1, BATCH_ROWS // beam.n)):
        rows = begin(model, vocabulary, [sentences[i] for i in numbers], schedule).repeated(beam.n)
        search = _Search(model, vocabulary, chooser, schedule, beam, rows)
        while going := int(rows.alive.sum()):
            if going < ALIVE * len(rows.alive):
                numbers = [i for i, on in zip(numbers, rows.alive[:: beam.n].tolist(), strict=True) if on]
                search.keep(rows.alive)
            g, ended = torch.minimum(rows.read, rows.length), rows.read > rows.length
            for i, tokens in search.advance():
                row = i * beam.n
                written[numbers[i]] += [Written(token, int(g[row]), bool(ended[row])) for token in tokens]
            read_on(model, rows, schedule, search.due, search.start)
    return written


def search_stream(
    model: Transformer,
    vocabulary: Vocabulary,
    source: Iterator[str],
    schedule: Schedule,
    beam: Beam,
    chooser: Chooser | None = None,
) -> Iterator[str]:
    """Translate while reading: pulls a word from `source` for READ, yields a word for WRITE."""
    reader = Reader(model, vocabulary)
    feed(reader, source, schedule, schedule.k if schedule.unit == "word" else 0, 0)
    if not reader.words:
        return
    search = _Search.of_one(model, vocabulary, chooser or Chooser(model, vocabulary), schedule, beam, reader)
    while True:
        for _, tokens in search.advance():
            yield from tokens
        if not bool(search.rows.alive[0]):
            return
        before = len(reader.pieces)
        feed(reader, source, schedule, int(search.due[0]), int(search.start[0]))
        if len(reader.pieces) > before:
            search.see(reader)


@dataclass(slots=True)
class _Hypotheses:
    """What is searched for, in R rows; the best hypothesis of a sentence is its first row."""

    score: Tensor  # (R,) log probability of everything since the start of the search
    length: Tensor  # (R,) in pieces, the one that ends it included
    finished: Tensor  # (R,) bool
    words: Tensor  # (R,) words that it completed
    pieces: Tensor  # (R, T) the whole target, by position
    mark: Tensor  # (R,) position behind its first word, once that is complete
    mark_last: Tensor  # (R,) the piece before `mark`
    mark_last_pieces: Tensor  # (R, REPEAT) see Past
    mark_runs: Tensor  # (R, REPEAT)

    def take(self, rows: Tensor) -> None:
        """These rows (indices or bool) in place of all."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[rows])


_MOVED = ("last", "at", "word_open", "last_pieces", "runs")  # tensors of Rows that differ between hypotheses


class _Search:
    """One search after another for each of A sentences, every sentence at its own pace."""

    def __init__(
        self,
        model: Transformer,
        vocabulary: Vocabulary,
        chooser: Chooser,
        schedule: Schedule,
        beam: Beam,
        rows: Rows,
    ) -> None:
        """`rows`: n side by side for each sentence, before anything is written."""
        self.model, self.vocabulary, self.chooser = model, vocabulary, chooser
        self.schedule, self.beam, self.rows = schedule, beam, rows
        self.lexicon = chooser.lexicon(rows.source)
        self.start = rows.at.clone()  # (R,) position at which the search began
        self.due = torch.zeros_like(rows.at)  # (R,) words to READ before the next search
        r = len(rows.at)
        self.found = _Hypotheses(
            score=self.first(r).log(),
            length=torch.zeros(r),
            finished=torch.zeros(r, dtype=torch.bool),
            words=torch.zeros(r, dtype=torch.long),
            pieces=torch.zeros(r, GROWTH, dtype=torch.long),
            mark=rows.at.clone(),
            mark_last=rows.last.clone(),
            mark_last_pieces=rows.last_pieces.clone(),
            mark_runs=rows.runs.clone(),
        )

    @classmethod
    def of_one(
        cls,
        model: Transformer,
        vocabulary: Vocabulary,
        chooser: Chooser,
        schedule: Schedule,
        beam: Beam,
        reader: Reader,
    ) -> _Search:
        """The search for one sentence that is still being read."""
        with torch.inference_mode():
            rows = Rows.of(reader.memory(), torch.zeros(1, 1), torch.tensor([HIDDEN_WORD])).repeated(beam.n)
            search = cls(model, vocabulary, chooser, schedule, beam, rows)
        search.see(reader)
        return search

    @torch.inference_mode()
    def see(self, reader: Reader) -> None:
        """Go on with what `reader` has read by now."""
        self.rows.see(reader)
        self.lexicon = self.chooser.lexicon(self.rows.source)

    def first(self, r: int) -> Tensor:
        """1.0 for the first of the n rows of each sentence, 0.0 for the others: (R,)."""
        return (torch.arange(r) % self.beam.n == 0).float()

    def keep(self, rows: Tensor) -> None:
        """Keep these rows (R,) bool only."""
        self.found.take(rows)
        self.start, self.due = self.start[rows], self.due[rows]
        self.rows.keep(rows)
        self.lexicon = self.chooser.lexicon(self.rows.source)

    @torch.inference_mode()
    def advance(self) -> list[tuple[int, list[str]]]:
        """One more piece for all hypotheses; the words published by sentences whose search is over.

        Sets `due`, and `start` to the pieces published; a sentence of which nothing more will come is not alive.
        """
        rows, found, n = self.rows, self.found, self.beam.n
        ended = rows.read > rows.length
        limit = torch.where(ended, FULL, self.beam.look_ahead)
        parent, piece, score = self.extend(limit)
        found.take(parent)
        found.score = score
        for name in _MOVED:
            setattr(rows, name, getattr(rows, name)[parent])
        self.append(piece, limit)
        done = (found.finished & rows.alive).view(-1, n)[:, :1].expand(-1, n)  # (A, n)
        parent = torch.where(done, parent.view(-1, n)[:, :1], parent.view(-1, n)).flatten()
        lo = int(self.start[rows.alive].min())  # up to here the hypotheses of a sentence agree
        rows.cache[:, :, :, lo:] = rows.cache[parent, :, :, lo:]
        return self.publish(done.flatten(), ended)

    def extend(self, limit: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The n best of each sentence, best first: the row that each goes on from, its piece, its score; all (R,)."""
        rows, found, n = self.rows, self.found, self.beam.n
        x, attention, full = rows.look(self.model)
        past = Past(rows.last_pieces, rows.runs)
        log_p = self.chooser.log_probabilities(x, attention, self.lexicon, rows.word_open, full, past)  # (R, V)
        self.merge_ends(log_p, rows.word_open & (found.words + 1 >= limit))
        log_p[found.finished] = float("-inf")
        log_p[found.finished, PAD] = 0.0  # goes on as it is
        total = found.score[:, None] + log_p
        length = found.length + ~found.finished
        a, v = len(total) // n, total.shape[1]
        best = (total / length[:, None]).view(a, n * v).topk(n).indices  # (A, n)
        score = total.view(a, n * v).gather(1, best)
        parent = best // v + n * torch.arange(a)[:, None]
        return parent.flatten(), (best % v).flatten(), score.flatten()

    def merge_ends(self, log_p: Tensor, rows: Tensor) -> None:
        """Of the pieces that would complete the word of these rows (R,) bool leave the most probable one only."""
        if not bool(rows.any()):
            return
        joins = self.chooser.rules.joins_next[self.rows.last[rows]]
        ends = self.chooser.rules.starts_word & ~joins[:, None]  # (rows, V)
        ends[:, EOS] = True
        some = log_p[rows]
        value, piece = some.masked_fill(~ends, float("-inf")).max(1, keepdim=True)
        log_p[rows] = some.masked_fill_(ends, float("-inf")).scatter_(1, piece, value)

    def append(self, piece: Tensor, limit: Tensor) -> None:
        """Add a piece (R,) to each hypothesis that has not finished."""
        rows, found = self.rows, self.found
        live = ~found.finished
        end = live & (piece == EOS)
        complete = live & rows.word_open & (self.chooser.starts(piece, rows.last) | end)
        first = complete & (found.words == 0)
        found.mark = torch.where(first, rows.at, found.mark)
        found.mark_last = torch.where(first, rows.last, found.mark_last)
        found.mark_last_pieces = torch.where(first[:, None], rows.last_pieces, found.mark_last_pieces)
        found.mark_runs = torch.where(first[:, None], rows.runs, found.mark_runs)
        found.words = found.words + complete
        stop = end | (complete & (found.words >= limit))
        commit = live & ~stop
        found.length = found.length + live
        found.finished = found.finished | stop | found.score.isneginf()
        longest = int(rows.at.max()) + 1
        if longest > found.pieces.shape[1]:
            found.pieces = lengthen(found.pieces, 1, longest + GROWTH)
        found.pieces[commit, rows.at[commit]] = piece[commit]
        longer = Past(rows.last_pieces, rows.runs).then(piece)
        rows.last_pieces = torch.where(commit[:, None], longer.last, rows.last_pieces)
        rows.runs = torch.where(commit[:, None], longer.run, rows.runs)
        rows.last = torch.where(commit, piece, rows.last)
        rows.word_open = rows.word_open | commit
        rows.at = rows.at + commit

    def publish(self, done: Tensor, ended: Tensor) -> list[tuple[int, list[str]]]:
        """The words of the sentences whose search is over; their next search is made ready.  done, ended (R,)."""
        rows, found, n = self.rows, self.found, self.beam.n
        published = []
        for row in (done & self.first(len(done)).bool()).nonzero()[:, 0].tolist():
            stop = int((rows.at if ended[row] else found.mark)[row])
            published.append((row // n, self.tokens(found.pieces[row, int(self.start[row]) : stop].tolist())))
        head = torch.arange(len(done)) // n * n  # the best hypothesis of each row's sentence
        head = torch.where(done, head, torch.arange(len(done)))
        found.take(head)
        again = done & ~ended
        wrote = again & (found.mark > self.start)
        rows.words = rows.words + wrote
        self.due = torch.where(wrote, self.schedule.words_after(rows.words), again.long())
        rows.at = torch.where(done, torch.where(ended, rows.at[head], found.mark), rows.at)
        rows.last = torch.where(again, found.mark_last, rows.last)
        rows.last_pieces = torch.where(again[:, None], found.mark_last_pieces, rows.last_pieces)
        rows.runs = torch.where(again[:, None], found.mark_runs, rows.runs)
        rows.word_open = rows.word_open & ~again
        rows.alive = rows.alive & ~(done & ended)
        found.score = torch.where(done, self.first(len(done)).log(), found.score)
        found.length = found.length * ~done
        found.finished = found.finished & ~again
        found.words = found.words * ~done
        self.start = torch.where(done, rows.at, self.start)
        return published

    def tokens(self, pieces: Sequence[int]) -> list[str]:
        """The words that pieces spell; those that come out empty are left out."""
        words: list[list[int]] = []
        last = PAD
        for piece in pieces:
            if not words or bool(self.chooser.starts(torch.tensor(piece), torch.tensor(last))):
                words.append([])
            words[-1].append(piece)
            last = piece
        return [token for token in map(self.vocabulary.decode_word, words) if token]
