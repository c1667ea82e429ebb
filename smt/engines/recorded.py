"""Logs of other simultaneous systems as translators.

    translator: {name: recorded, file: output/instances.log}
    translator: {name: recorded, file: output.tsv, unit: question}

The first line of a file says its format.  Logs of systems that translate speech: `smt.engines.recorded_speech`.

`file` has one *unit* for every sentence of the data set (`unit: sentence`) or for every question (`unit: question`),
in the order of the data set.  A delay is the number of source words of its unit read before the token was written:
whole numbers, never falling.  With `unit: question` they run over all words of the question, and a token written
after d of them belongs to the sentence that holds word d (the inverse of equation 1, see `sqa.core.trace`).

format: simuleval    SimulEval's `instances.log` of a text-to-text evaluation in words, one JSON object a line.
    Release 1.1: delays 0..|x|; a system knows that the last word is the last.
    Release 1.0 (its lines have "metric"): delays 0..|x|+1, since the end of the sentence is read like a word.
    A final "</s>" and its delay are dropped in both: it is not a word.

format: tsv          a table, `smt.engines.recorded_table`

Every error is a DataError "FILE:LINE: what is wrong".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from sqa.core.errors import DataError
from sqa.core.registry import misspelt
from sqa.core.trace import by_sentence
from sqa.core.types import BatchTranslator, Emission, Question
from sqa.files.records import lines, numbered_lines, parse_json

VERSION = 1  # raise when the emissions change
EOS = "</s>"  # SimulEval 1.0's end of sentence
KEYS = ("index", "prediction", "delays", "elapsed", "prediction_length", "source", "source_length")  # that are read
Unit = Literal["sentence", "question"]
Key = tuple[str | int, ...]  # what names a unit: (index,), (question id, sentence) or (question id,)
OF_SPEECH = frozenset(("docid", "emission_cu", "emission_time", "id", "model_loading_time"))  # keys of other programs


@dataclass(frozen=True, slots=True)
class RecordedConfig:
    """The file and how to read it."""

    file: str  # the log; of SimulStreaming's a folder, too, with a file NAME.jsonl for each recording
    format: Literal["auto", "simuleval", "tsv"] = "auto"  # instances.log, a table with a line a word; any
    unit: Unit = "sentence"  # what one line of the log, or one name in the TSV, stands for


@dataclass(frozen=True, slots=True)
class Record:
    """The translation of one unit."""

    key: Key
    tokens: tuple[str, ...]
    delays: tuple[int, ...]  # as many as tokens, >= 0, in ascending order
    lines: tuple[int, ...]  # 1-based: of the record itself, then of each token
    counts_end: bool  # the end of the unit is a read: |x| + 1 is a delay
    source: tuple[str, ...] | None = None  # the words of the unit, if the file has them
    source_length: object = None  # |x|, if the file has it


class DataUnit(NamedTuple):
    """A sentence or a question of the data set."""

    question: Question
    sentence: int | None  # 0-based; None for the whole question
    words: tuple[str, ...]

    def __str__(self) -> str:
        return self.question.id if self.sentence is None else f"{self.question.id} sentence {self.sentence}"


class RecordedTranslator:
    """Emissions out of a log, of whole questions: there is nothing to stream."""

    def __init__(self, config: RecordedConfig) -> None:
        self.path, self.unit = Path(config.file), config.unit
        tabular = config.format == "tsv" or (
            config.format == "auto" and _first(self.path).startswith(("index\t", "question\t"))
        )
        self._records = list(_table(self.path, config.unit) if tabular else _simuleval(self.path))
        self._of: dict[str, list[Record]] = {}  # by question id, once checked

    def check(self, questions: Sequence[Question]) -> None:
        """Compare the file with the whole data set: every unit once, in order, its delays within the source."""
        try:
            self._of = self._compared(questions)
        except DataError as error:
            raise DataError(f"{error}{self._other_unit(questions)}") from None

    def _compared(self, questions: Sequence[Question]) -> dict[str, list[Record]]:
        """question id -> its records."""
        units = [unit for question in questions for unit in units_of(question, self.unit)]
        of: dict[str, list[Record]] = {question.id: [] for question in questions}
        for index, record in enumerate(self._records):
            where = f"{self.path}:{record.lines[0]}"
            if index == len(units):
                raise DataError(f"{where}: one {self.unit} too many; the data set has {len(units)}")
            expected = _key(record.key, index, units[index])
            if record.key != expected:
                got, wanted = _named(record.key), _named(expected)
                raise DataError(f"{where}: expected {wanted} here, got {got}; each {self.unit} once, in data set order")
            _check_source(self.path, record, units[index])
            of[units[index].question.id].append(record)
        if len(self._records) < len(units):
            missing = units[len(self._records)]
            line = self._records[-1].lines[-1] if self._records else 1
            raise DataError(
                f"{self.path}:{line}: ends after {len(self._records)} of {len(units)} {self.unit}s, "
                f"{missing} is missing; is the file cut off, or of another data set?"
            )
        return of

    def _other_unit(self, questions: Sequence[Question]) -> str:
        """A hint for an error message where the file has as many lines as the data set has units of the other kind."""
        alternative: Unit = "question" if self.unit == "sentence" else "sentence"
        size = {unit: sum(len(units_of(question, unit)) for question in questions) for unit in (self.unit, alternative)}
        if len(self._records) != size[alternative] or size[alternative] == size[self.unit]:
            return ""
        return (
            f"; the data set has {size[alternative]} {alternative}s: if each has a line here, say `unit: {alternative}`"
        )

    def translate_batch(self, questions: Sequence[Question]) -> list[list[Emission]]:
        """Emissions of whole questions; `check` must have seen the whole data set first."""
        return [list(self._emissions(question)) for question in questions]

    def _emissions(self, question: Question) -> Iterator[Emission]:
        if question.id not in self._of:
            raise DataError(f"{self.path}: not yet compared with the data set of question {question.id}")
        for unit, record in zip(units_of(question, self.unit), self._of[question.id], strict=True):
            yield from _of_unit(unit, record)

    def fingerprint(self) -> str:
        """Hash of the words, their delays and their unit."""
        rows = [[r.tokens, r.delays, r.counts_end] for r in self._records]
        return hashlib.sha256(json.dumps([VERSION, self.unit, rows]).encode()).hexdigest()


def build(config: RecordedConfig) -> BatchTranslator:
    """The translator of a config."""
    path = Path(config.file)
    if config.format == "tsv" or (not path.is_dir() and _of_text(_first(path))):
        return RecordedTranslator(config)
    from smt.engines.recorded_speech import RecordedSpeech  # a log of text needs none of it

    return RecordedSpeech(path)


def _of_text(line: str) -> bool:
    """Whether a log's first line is of a system that translates text; the reader refuses what is not a JSON object."""
    try:
        row = parse_json(line)
    except ValueError:
        return True
    if not isinstance(row, dict):
        return True
    of_speech = OF_SPEECH & row.keys() or isinstance(row.get("source"), list)
    return not of_speech and bool({"prediction", "delays"} & row.keys() or misspelt(row, KEYS))


def _first(path: Path) -> str:
    """The first line that is not blank."""
    return next((line for line in lines(path) if line.strip()), "")


# ------------------------------------------------------------------------------------------- units of the data set


def units_of(question: Question, unit: Unit) -> list[DataUnit]:
    """The sentences of a question, or the one unit that is all of it."""
    if unit == "question":
        return [DataUnit(question, None, question.words)]
    return [DataUnit(question, i, words) for i, words in enumerate(question.sentences)]


def _key(example: Key, index: int, unit: DataUnit) -> Key:
    """The key of the unit number `index` of the data set in a file with keys like `example`."""
    if isinstance(example[0], int):
        return (index,)
    return (unit.question.id,) if unit.sentence is None else (unit.question.id, unit.sentence)


def _named(key: Key) -> str:
    if isinstance(key[0], int):
        return f"index {key[0]}"
    return f"question {key[0]!r}" + (f" sentence {key[1]}" if len(key) > 1 else "")


def _check_source(path: Path, record: Record, unit: DataUnit) -> None:
    """DataError unless source, its length and the delays of a record fit its unit."""
    where, size = f"{path}:{record.lines[0]}", len(unit.words)
    if record.source is not None and record.source != unit.words:
        pairs = zip((*record.source, ""), (*unit.words, ""), strict=False)
        i, (got, expected) = next((i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1])
        raise DataError(f"{where}: the source differs from {unit}: word {i} is {got!r}, expected {expected!r}")
    if record.source_length is not None and record.source_length != size:
        raise DataError(f"{where}: source_length is {record.source_length!r}, but {unit} has {size} words")
    limit = size + record.counts_end
    for i, (delay, line) in enumerate(zip(record.delays, record.lines[1:], strict=True)):
        if delay > limit:
            extra = " and one for its end" if record.counts_end else ""
            raise DataError(
                f"{path}:{line}: delay {delay} of word {i} is past the source: {unit} has {size} words{extra}"
            )


def _of_unit(unit: DataUnit, record: Record) -> Iterator[Emission]:
    """The words of one unit with g in words of their sentence."""
    size = len(unit.words)
    last_unended = size if record.counts_end else size - 1
    if unit.sentence is not None:
        for token, delay in zip(record.tokens, record.delays, strict=True):
            yield Emission(unit.sentence, token, min(delay, size), delay > last_unended)
        return
    words = ((t, d, d > last_unended, 0) for t, d in zip(record.tokens, record.delays, strict=True))
    yield from by_sentence(unit.question, words)


# ---------------------------------------------------------------------------------------------------- reading files


def _table(path: Path, unit: Unit) -> Iterator[Record]:
    """The units of a TSV."""
    from smt.engines.recorded_table import units  # a log needs none of it

    for key, tokens, delays, at in units(path, unit, _named):
        _check_delays([(f"{path}:{line}: delay", delay) for line, delay in zip(at[1:], delays, strict=True)])
        yield Record(key, tokens, delays, at, counts_end=True)


def _simuleval(path: Path) -> Iterator[Record]:
    """The lines of an instances.log."""
    return (_simuleval_record(f"{path}:{number}", number, row) for number, row in numbered_lines(path))


def _simuleval_record(where: str, number: int, row: dict[str, Any]) -> Record:
    if wrong := misspelt(row, KEYS):
        raise DataError(f"{where}: unknown key {wrong}")
    index, prediction, delays, source = (row.get(name) for name in ("index", "prediction", "delays", "source"))
    if type(index) is not int or not isinstance(prediction, str) or not isinstance(delays, list):
        raise DataError(f'{where}: expected a whole number "index", a text "prediction" and a list "delays"')
    if source is not None and not isinstance(source, str):
        raise DataError(f'{where}: expected a text "source", got {type(source).__name__}')
    tokens = prediction.split()
    if len(tokens) != len(delays):
        problem = f"{len(tokens)} words but {len(delays)} delays"
        raise DataError(f"{where}: {problem}; each word needs one (SimulEval's --eval-latency-unit word)")
    if row.get("prediction_length") not in (None, len(tokens)):
        raise DataError(
            f"{where}: prediction_length is {row['prediction_length']!r}, but there are {len(tokens)} words"
        )
    _check_delays([(f"{where}: delays[{i}]", delay) for i, delay in enumerate(delays)])
    _check_elapsed(where, row.get("elapsed"))
    if tokens and tokens[-1] == EOS:
        del tokens[-1], delays[-1]
    if EOS in tokens:
        raise DataError(f"{where}: word {tokens.index(EOS)} is {EOS}, but more words follow")
    return Record(
        key=(index,),
        tokens=tuple(tokens),
        delays=tuple(delays),
        lines=(number,) * (len(tokens) + 1),
        counts_end="metric" in row,
        source=None if source is None else tuple(source.split()),
        source_length=row.get("source_length"),
    )


def _check_delays(delays: Iterable[tuple[str, object]]) -> None:
    """DataError at the first (where, delay) that is not a whole number >= the one before."""
    previous = 0
    for where, delay in delays:
        if type(delay) is not int or delay < 0:
            raise DataError(f"{where} must be a whole number of source words >= 0, got {delay!r}")
        if delay < previous:
            raise DataError(f"{where} is {delay} after {previous}; delays never fall")
        previous = delay


def _check_elapsed(where: str, elapsed: object) -> None:
    """DataError for elapsed times that are not numbers: nothing here uses them, but such a log is damaged."""
    times = elapsed if isinstance(elapsed, list) else [] if elapsed is None else [elapsed]
    for i, time in enumerate(times):
        if isinstance(time, bool) or not isinstance(time, (int, float)) or time < 0:
            raise DataError(f"{where}: elapsed[{i}] must be a number of milliseconds >= 0, got {repr(time)[:60]}")
