"""Logs of other simultaneous systems as translators.

    translator: {name: recorded, file: output/instances.log}
    translator: {name: recorded, file: output/instances.log, unit: question}

`sqa.files.logs` detects which program wrote a log.  `smt.engines.speech_logs` reads logs of systems that translate
speech.  If the tokens of a log are pieces of words, `pieces` or the log's `prediction_spm` must state it
(`sqa.files.target_words`).

`file` has one *unit* for every sentence of the data set (`unit: sentence`) or for every question (`unit: question`), in
the order of the data set.  A delay is the number of source words of the unit that were read before the token was
written.  Delays are whole numbers and never decrease.  With `unit: question` they count all words of the question, and
a token with delay d belongs to the sentence that contains word d (the inverse of equation 1, see `sqa.core.trace`).

SimulEval's `instances.log` of a text-to-text evaluation in words, one JSON object per line:
    Release 1.1: delays 0..|x|; a system is told that a word is the last one.
    Release 1.0 (its lines have "metric"): delays 0..|x|+1, since the end of the sentence is read like a word.
    In both releases, a final "</s>" and its delay are dropped, since it is not a word.
    With `--start-index` the first index is not 0.  Every line must then have `source`, to detect a wrong part.

Every error is a DataError "FILE:LINE: PROBLEM".
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple
from unicodedata import is_normalized

from sqa.core import SOUGHT, BatchTranslator, DataError, Emission, File, Question, by_sentence
from sqa.files import Pieces, digest, kind_of, lines, log_line, numbered_lines

VERSION = 1  # increase when the emissions change
EOS = "</s>"  # SimulEval 1.0's end of sentence
MARKS = "▁Ġ@#￭￨"  # signs of word pieces
ODD = "<>[&_\u034f\ufe0f\ufffd"  # a prediction with one of these, or an unprintable sign, is cleaned
Unit = Literal["sentence", "question"]


@dataclass(frozen=True, slots=True)
class RecordedConfig:
    """The file and how to read it."""

    file: Annotated[File, "the log; for SimulStreaming also a folder of NAME.jsonl"]
    unit: Annotated[Unit, "unit of a line of the log"] = "sentence"
    pieces: Annotated[Pieces | None, "kind of the tokens; null = words, refused if they look like pieces"] = None

    ABSENT: ClassVar = {"k": "a recorded log has no k; it contains its delays"}


@dataclass(frozen=True, slots=True)
class Record:
    """The translation of one unit."""

    index: int
    tokens: tuple[str, ...]
    delays: tuple[int, ...]  # one per token, >= 0, in ascending order
    line: int  # 1-based
    counts_end: bool  # whether the end of the unit counts as a read, so that |x| + 1 is a valid delay
    source: tuple[str, ...] | None = None  # the words of the unit, if the file has them
    source_length: float | None = None  # |x|, if the file has it


class DataUnit(NamedTuple):
    """A sentence or a question of the data set."""

    question: Question
    sentence: int | None  # 0-based; None for the whole question
    words: tuple[str, ...]

    def __str__(self) -> str:
        return self.question.id if self.sentence is None else f"{self.question.id} sentence {self.sentence}"


class RecordedTranslator:
    """Emissions from a log for whole questions; nothing is streamed."""

    def __init__(self, path: Path, unit: Unit, records: Iterable[Record]) -> None:
        self.path, self.unit, self._records = path, unit, list(records)
        self._of: dict[str, list[Record]] = {}  # by question id, after `check`

    def check(self, questions: Sequence[Question]) -> None:
        """Check that the file has every unit of the data set once, in order, with delays within the source."""
        units = [unit for question in questions for unit in units_of(question, self.unit)]
        of: dict[str, list[Record]] = {question.id: [] for question in questions}
        other: Unit = "question" if self.unit == "sentence" else "sentence"
        lines = len(self._records)
        if lines == sum(len(units_of(question, other)) for question in questions) != len(units):
            problem = f"{lines} lines for {len(units)} {self.unit}s; the data set has {lines} {other}s"
            hint = f"if each has a line here, set `unit: {other}`; or is the file truncated?"
            raise DataError(f"{self.path}: {problem}: {hint}")
        start = _start(self._records) if lines == len(units) else 0
        for index, record in enumerate(self._records):
            where = f"{self.path}:{record.line}"
            if index == len(units):
                raise DataError(f"{where}: too many {self.unit}s; the data set has {len(units)}")
            if record.index != start + index:
                problem = f"expected index {start + index}, got index {record.index}"
                raise DataError(f"{where}: {problem}; each {self.unit} must occur once, in order")
            _check_source(self.path, record, units[index])
            of[units[index].question.id].append(record)
        if len(self._records) < len(units):
            missing, line = units[len(self._records)], self._records[-1].line if self._records else 1
            ends = f"ends after {len(self._records)} of {len(units)} {self.unit}s, {missing} is missing"
            raise DataError(f"{self.path}:{line}: {ends}; is the file truncated, or for another data set?")
        self._of = of

    def translate_batch(self, questions: Sequence[Question]) -> list[list[Emission]]:
        """Return the emissions of whole questions; call `check` with the whole data set first."""
        pairs = ([*zip(units_of(q, self.unit), self._of[q.id], strict=True)] for q in questions)
        return [[word for unit, record in units for word in _of_unit(unit, record)] for units in pairs]

    def fingerprint(self) -> str:
        """Return a hash of the words, their delays and their unit."""
        rows = [[r.tokens, r.delays, r.counts_end] for r in self._records]
        return digest(["recorded", VERSION, self.unit, rows])


def build(config: RecordedConfig) -> BatchTranslator:
    """Return the translator of a config."""
    path = Path(config.file)
    if not path.exists():
        raise DataError(f"{path}: no such file; {SOUGHT}")
    if not path.is_dir():
        try:
            first = next(numbered_lines(path), None)
        except DataError:
            from sqa.files import log_rows

            first = next(log_rows(lines(path), str(path)))  # names the program that wrote the file
        if first is None or not kind_of(f"{path}:{first[0]}", first[1]).speech:
            return RecordedTranslator(path, config.unit, _simuleval(path, config.pieces))
    from smt.engines.speech_logs import RecordedSpeech  # imported here, since text logs do not need it

    return RecordedSpeech(path, config.pieces)


def units_of(question: Question, unit: Unit) -> list[DataUnit]:
    """Return the sentences of a question, or the whole question as one unit."""
    if unit == "question":
        return [DataUnit(question, None, question.words)]
    return [DataUnit(question, i, words) for i, words in enumerate(question.sentences)]


def _start(records: Sequence[Record]) -> int:
    """Return the first index of a log, which --start-index sets, if every line has a source to check it; else 0."""
    return records[0].index if records and all(record.source is not None for record in records) else 0


def _check_source(path: Path, record: Record, unit: DataUnit) -> None:
    """Raise DataError unless the source, source length and delays of a record match its unit."""
    where, size = f"{path}:{record.line}", len(unit.words)
    if record.source is not None and record.source != unit.words:
        pairs = zip((*record.source, ""), (*unit.words, ""), strict=False)
        i, (got, expected) = next((i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1])
        raise DataError(f"{where}: the source differs from {unit}: word {i} is {got!r}, expected {expected!r}")
    if record.source_length is not None and record.source_length != size:
        raise DataError(f"{where}: source_length is {record.source_length!r}, but {unit} has {size} words")
    limit = size + record.counts_end
    for i, delay in enumerate(record.delays):
        if delay > limit:
            raise DataError(f"{where}: delay {delay} of word {i} is past the source: {unit} has {size} words")


def _of_unit(unit: DataUnit, record: Record) -> Iterator[Emission]:
    """Yield the emissions of one unit, with g counted in words of the sentence."""
    size, written = len(unit.words), zip(record.tokens, record.delays, strict=True)
    words = ((token, delay, delay >= size + record.counts_end, 0) for token, delay in written)
    if unit.sentence is None:
        return by_sentence(unit.question, words)
    return (Emission(unit.sentence, token, min(delay, size), ended) for token, delay, ended, _ in words)


def _simuleval(path: Path, pieces: Pieces | None) -> Iterator[Record]:
    """Yield the records of an instances.log."""
    cleaner: Any = None  # made if it is needed
    for number, line in numbered_lines(path):
        where = f"{path}:{number}"
        row = log_line(where, line, "index", "prediction", "delays")
        if kind_of(where, line).speech:
            raise DataError(f"{where}: `source` is an audio file, but the first line's is text")
        text, size = row.prediction, len(row.delays)
        if row.prediction_length not in (None, size):
            raise DataError(f"{where}: prediction_length is {row.prediction_length}, but there are {size} delays")
        for i, (previous, delay) in enumerate(pairwise((0, *row.delays))):
            if not isinstance(delay, int) or delay < previous:
                raise DataError(f"{where}: delays[{i}] is {delay:g} after {previous:g}; give whole, ascending numbers")
        tokens, delays = text.split(), row.delays
        if pieces or row.prediction_spm or len(tokens) != size or any(mark in text for mark in MARKS):
            from sqa.files import words_at  # imported here, since logs of plain words do not need it

            tokens, delays = words_at(where, text, delays, "delays", pieces, row.prediction_spm)
        if EOS in tokens[:-1]:
            raise DataError(f"{where}: word {tokens.index(EOS)} is {EOS}, but more words follow")
        if tokens and tokens[-1] == EOS:
            del tokens[-1], delays[-1]
        if not text.isprintable() or any(sign in text for sign in ODD) or not is_normalized("NFC", text):
            from sqa.files import Cleaner

            cleaner = cleaner or Cleaner(path, pieces)
            tokens, delays = cleaner.words(where, tokens, delays)
        source = tuple(row.source.split()) if isinstance(row.source, str) else None
        yield Record(row.index, tuple(tokens), tuple(delays), number, "metric" in line, source, row.source_length)
    if cleaner:
        cleaner.report()
