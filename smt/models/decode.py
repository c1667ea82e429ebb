"""Greedy wait-k decoding, once each way: streaming (reads words one by one) and batched (a recorded corpus at once).

Both follow the same rules, so that a test can ask for equal words and equal g(j):

1.  READ k words; then, per target word, WRITE its pieces and READ one more source word.  With an emission rate r
    other than 1, word j + 1 needs k + floor(j / r) source words: now and then two are read, or none.
2.  A word is known to be complete when the model's next choice starts another word or ends the sentence.  It is
    published with the g of that moment; the choice itself is thrown away and made again after the READ, now among
    word starts and the end of the sentence only, since the published word can no longer grow.
3.  Choosing the end of the sentence before the source has ended means READ: there is nothing to say yet.  So
    g(j) = min(k + j - 1, |S|) unless the model waited by itself; it is never smaller.
4.  What may be chosen at all: smt/models/next_piece.py.

With `unit: piece` k counts pieces, as fairseq's does, and rules 1 and 2 become:

1.  Target piece j is chosen when at least k + floor((j - 1) / r) source pieces were read, the end of the source being
    one of them.  A source word arrives whole, so READ takes whole words until that many pieces are there.
2.  The choice that shows a word to be complete stands.  The word is published with the g (in WORDS) of that moment,
    which the READ due for the choice is part of: where every word is one piece, g(j) = k + j, not k + j - 1.

A bidirectional encoder encodes the words read anew after every READ, and the target goes on from what was written:
test-time wait-k (Ma et al. 2019, Section 3).  It was never trained for that, and costs an encoding per READ.

A beam, which looks ahead before it publishes a word: smt/models/beam.py.  The tensors: smt/models/rows.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from smt.models.copying import Begun, Names
from smt.models.next_piece import Chooser, Lexicon, Past, piece_limit
from smt.models.rows import Reader, Rows, lengthen
from smt.models.transformer import KeyValue, Transformer
from smt.models.vocab import BOS, EOS, Vocabulary
from smt.policies.waitk import Schedule, Unit

BATCH_ROWS = 256  # sentences decoded together
ENCODED_ROWS = 32  # sentences encoded together: little padding, and the activations stay in the cache
ALIVE = 0.75  # finished sentences are dropped when fewer than this share go on; copying for every one costs more


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
    unit: Unit = "word",
    chooser: Chooser | None = None,
) -> list[list[Written]]:
    """Translate whole sentences at once; the very words and g of `decode_stream`.

    BATCH_ROWS sentences of similar length at a time; an empty sentence gives no words.
    """
    chooser = chooser or Chooser(model, vocabulary)
    return _Batch(model, vocabulary, chooser, sentences, Schedule(k, emission_rate, unit)).run()


def by_length(sentences: Sequence[Sequence[str]], rows: int) -> list[list[int]]:
    """Numbers of the sentences that are not empty, shortest first, in groups of `rows`."""
    order = sorted((i for i, s in enumerate(sentences) if s), key=lambda i: len(sentences[i]))
    return [order[start : start + rows] for start in range(0, len(order), rows)]


def begin(model: Transformer, vocabulary: Vocabulary, sentences: Sequence[Sequence[str]], schedule: Schedule) -> Rows:
    """The rows of some sentences (none empty) before anything is written, as much read as the first word needs."""
    chunks = [sentences[i : i + ENCODED_ROWS] for i in range(0, len(sentences), ENCODED_ROWS)]
    rows = Rows.joined([Rows.begin(model, vocabulary, chunk) for chunk in chunks])
    if schedule.unit == "word":
        rows.read = torch.minimum(torch.tensor(schedule.k), rows.length + 1)
    else:
        rows.read = rows.words_holding(schedule.pieces_before(rows.at))
    rows.encode_read(model, rows.read <= rows.length)
    return rows


class _Batch:
    """Some sentences and what is written of them."""

    def __init__(
        self, model: Transformer, vocabulary: Vocabulary, chooser: Chooser, sentences: Sequence[Sequence[str]],
        schedule: Schedule,
    ) -> None:  # fmt: skip
        self.model, self.vocabulary, self.chooser = model, vocabulary, chooser
        self.sentences, self.schedule = sentences, schedule
        self.names = [chooser.copier.names(words) for words in sentences] if chooser.copier else None
        self.numbers: list[int] = []  # which sentence each row is
        self.open_pieces: list[list[int]] = [[] for _ in sentences]
        self.written: list[list[Written]] = [[] for _ in sentences]

    def run(self) -> list[list[Written]]:
        """Decode to the end of every sentence."""
        for numbers in by_length(self.sentences, BATCH_ROWS):
            self.numbers = numbers
            rows = begin(self.model, self.vocabulary, [self.sentences[i] for i in self.numbers], self.schedule)
            lexicon = self.chooser.lexicon(rows.source)
            while going := int(rows.alive.sum()):
                if going < ALIVE * len(rows.alive):
                    self.numbers = [number for number, on in zip(self.numbers, rows.alive.tolist(), strict=True) if on]
                    rows.keep(rows.alive)
                    lexicon = self.chooser.lexicon(rows.source)
                self.advance(rows, lexicon)
        return self.written

    def advance(self, rows: Rows, lexicon: Lexicon | None) -> None:
        """One choice per sentence; those that have ended stay as they are."""
        x, attention, full = rows.look(self.model)
        past = Past(rows.last_pieces, rows.runs)
        choice = self.chooser(x, attention, lexicon, rows.word_open, full, past, self.begun(rows))
        starts, end = self.chooser.starts(choice, rows.last), choice == EOS
        ended = rows.read > rows.length
        complete = rows.word_open & (starts | end) & rows.alive
        due = torch.where(complete, self.schedule.words_after(rows.words + 1), 1)
        due = torch.where(end, due.clamp_min(1), due)
        wait = ~ended & (end | complete) & (due > 0) & rows.alive
        commit = ~end & ~wait & rows.alive
        self.record(torch.stack([complete, commit, choice, ended, torch.minimum(rows.read, rows.length)], 1))
        rows.word_open = (rows.word_open & ~complete) | commit
        rows.words += complete
        rows.last = torch.where(commit, choice, rows.last)
        longer = past.then(choice)
        rows.last_pieces = torch.where(commit[:, None], longer.last, past.last)
        rows.runs = torch.where(commit[:, None], longer.run, past.run)
        rows.at += commit
        rows.alive &= ~(end & ended)
        read_on(self.model, rows, self.schedule, wait * due, rows.at)

    def begun(self, rows: Rows) -> Begun | None:
        """The open words and the names of the rows, if a bonus asks for them."""
        if self.names is None:
            return None
        names = [self.names[number] for number in self.numbers]
        return Begun([self.open_pieces[number] for number in self.numbers], names, rows.read.tolist())

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


def read_on(model: Transformer, rows: Rows, schedule: Schedule, due: Tensor, written: Tensor) -> None:
    """READ `due` (B,) more words, and as many as `written` (B,) target pieces ask for; never beyond the end."""
    before = rows.read
    rows.read = torch.minimum(before + due, rows.length + 1)
    if schedule.unit == "piece":
        rows.read = torch.maximum(rows.read, rows.words_holding(schedule.pieces_before(written)))
    rows.encode_read(model, rows.read > before)


def decode_stream(
    model: Transformer,
    vocabulary: Vocabulary,
    source: Iterator[str],
    k: int,
    chooser: Chooser | None = None,
    emission_rate: float = 1.0,
    unit: Unit = "word",
) -> Iterator[str]:
    """Translate while reading: pulls a word from `source` for READ, yields a word for WRITE.

    `chooser` may be given so that its tables are not made again for every sentence.
    """
    schedule = Schedule(k, emission_rate, unit)
    chooser = chooser or Chooser(model, vocabulary)
    reader, names = Reader(model, vocabulary), chooser.copier.names() if chooser.copier else Names()
    source = names.heard(source)
    stream = _Stream(model, vocabulary, chooser, schedule, reader, names)
    feed(reader, source, schedule, k if unit == "word" else 0, 0)
    if not reader.words:
        return
    while True:
        token, reads, finished = stream.advance()
        if token:
            yield token
        if finished:
            return
        feed(reader, source, schedule, reads, stream.at)


def feed(reader: Reader, source: Iterator[str], schedule: Schedule, due: int, written: int) -> None:
    """READ `due` more words, and as many as `written` target pieces ask for; never beyond the end."""
    needed = int(schedule.pieces_before(torch.tensor(written)))
    while not reader.ended and (due > 0 or len(reader.pieces) < needed):
        reader.feed(next(source, None))
        due -= 1


class _Stream:
    """What is written of one sentence while it is read."""

    def __init__(
        self, model: Transformer, vocabulary: Vocabulary, chooser: Chooser, schedule: Schedule, reader: Reader,
        names: Names,
    ) -> None:  # fmt: skip
        self.model, self.vocabulary, self.chooser = model, vocabulary, chooser
        self.schedule, self.reader, self.names = schedule, reader, names
        self.written = 0  # target words finished
        head = model.config.width // model.config.heads
        empty = torch.zeros(1, model.config.heads, 0, head)
        self.cache = [KeyValue(empty, empty) for _ in model.decoder]
        self.last, self.at = BOS, 0
        self.open_pieces: list[int] = []
        self.past = Past.none(1)

    @torch.inference_mode()
    def advance(self) -> tuple[str, int, bool]:
        """One choice: (word published or "", how often to READ, whether the sentence is finished)."""
        memory, ended = self.reader.memory(), self.reader.ended
        if self.cache[0].key.shape[2] <= self.at:
            self.cache = [KeyValue(*(lengthen(part, 2, self.at + 16) for part in kv)) for kv in self.cache]
        cache = [KeyValue(kv.key[:, :, : self.at + 1], kv.value[:, :, : self.at + 1]) for kv in self.cache]
        visible = torch.ones(memory.pieces.shape, dtype=torch.bool)
        cached = torch.ones(1, self.at + 1, dtype=torch.bool)
        x, alignment = self.model.step(
            torch.tensor([self.last]), torch.tensor([self.at]), memory, visible, cache, cached
        )
        full = torch.tensor([self.at >= piece_limit(memory.pieces.shape[1])])
        word_open = torch.tensor([bool(self.open_pieces)])
        align = None if alignment is None else alignment[:, 0]
        lexicon = self.chooser.lexicon(memory.pieces)
        begun = Begun([self.open_pieces], [self.names], [self.names.words])
        choice = int(self.chooser(x[:, 0], align, lexicon, word_open, full, self.past, begun))
        starts = self.chooser.starts(torch.tensor(choice), torch.tensor(self.last))
        boundary = choice == EOS or bool(starts)
        token, reads = "", 0
        if self.open_pieces and boundary:
            token, self.open_pieces = self.vocabulary.decode_word(self.open_pieces), []
            self.written += 1
            reads = int(self.schedule.words_after(torch.tensor(self.written)))
        if choice == EOS:
            return token, max(reads, 1), ended
        if reads and not ended:
            return token, reads, False
        self.open_pieces.append(choice)
        self.last, self.at = choice, self.at + 1
        self.past = self.past.then(torch.tensor([choice]))
        return token, 0, False
