"""Read and check a log for `sqa latency`, with or without `--facts`."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta, field, structs

from sqa.core import Bools, DataError, Floats, Whole
from sqa.files import LogLine, kind_of, log_line, log_rows, records
from sqa.files.logs import Kind
from sqa.files.target_words import check_plain
from sqa.metrics.delays import Delays, pack

EOS = "</s>"
MAX_SIZE = 1 << 30  # characters of a log
SCORED_BY: dict[str, str] = {  # programs whose logs other commands score
    "simulstream": "`sqa scorer simulstream` computes its latencies",
    "SimulStreaming": "`sqa run` scores it, as `translator: {name: recorded, file: LOG}`",
}
ROUNDING = 1e-3  # tolerance in ms: delays are sums of chunk lengths
Source = Literal["auto", "text", "speech"]  # unit of the delays: "auto" is determined by the log
SinceSegment = Annotated[float, Meta(ge=-1e100, le=1e100)]


class SegmentLine(LogLine, kw_only=True):
    """A line of OmniSTEval's log; its delays may be negative, since they count from the segment's start."""

    delays: list[SinceSegment] = field(name="emission_cu", default_factory=list)
    elapsed: list[SinceSegment] | None = field(name="emission_ca", default=None)
    docid: Whole | None = None
    segid: Whole | None = None


@dataclass(frozen=True, slots=True)
class Log:
    """The validated lines of a log."""

    path: str
    rows: Sequence[Any]  # LogLine with delays and source_length
    numbers: Sequence[int]  # 1-based line of each row
    speech: bool

    def where(self, row: int) -> str:
        """Return the location of a row, "FILE:LINE"."""
        return f"{self.path}:{self.numbers[row]}"

    def packed(self, convention_counts_end: bool, references: Sequence[float | None]) -> Delays:
        """Return delays, lengths and |y*|, which include the ends of sentences if the convention counts them."""
        delays = [row.delays for row in self.rows]
        lengths = [row.source_length for row in self.rows]
        given = [reference for reference in references if reference is not None]
        if given and len(given) < len(references):
            lacks = self.where(references.index(None))
            raise DataError(f"{lacks}: no reference_length or reference, although other lines have one")
        ends = self._ends()
        if convention_counts_end and not self.speech:
            lengths = [length + 1 for length in lengths]
            if not ends:
                delays = [[*row, length] for row, length in zip(delays, lengths, strict=True)]
            given = []
        elif convention_counts_end:
            given = [reference + 1 for reference in given]
        recording_ends = [row.time_to_recording_end for row in self.rows]
        signed = isinstance(self.rows[0], SegmentLine)
        return pack(delays, lengths, given or None, self.speech, recording_ends, signed)

    def elapsed(self) -> Floats:
        """Return the delays with computing time (N,).  Raises DataError for text or a log without such delays."""
        if not self.speech:
            hint = "computing time needs a log of speech, with an audio file as `source` (or --source speech)"
            raise DataError(f"{self.where(0)}: the delays are words, elapsed is milliseconds; {hint}")
        for n, row in enumerate(self.rows):
            if len(row.elapsed or ()) != len(row.delays):
                problem = f"{len(row.elapsed or ())} elapsed times for {len(row.delays)} delays"
                raise DataError(f"{self.where(n)}: {problem}; computing time needs one per delay")
        return np.array([time for row in self.rows for time in row.elapsed or ()], dtype=np.float64)

    def _ends(self) -> bool:
        """Return True if the end of each sentence has a delay.  Raises DataError if only some have one."""
        marked = {n: (row.prediction or "").endswith(EOS) for n, row in enumerate(self.rows) if row.delays}
        with_end = [number for number, mark in marked.items() if mark]
        if with_end and len(with_end) < len(marked):
            number = next(number for number, mark in marked.items() if not mark)
            other = f"that of line {self.numbers[with_end[0]]} does; mixed conventions"
            raise DataError(f"{self.where(number)}: prediction does not end with {EOS}, {other}")
        return bool(with_end)

    def odd(self, delays: Delays) -> dict[int, str]:
        """Return a dict that maps indices of odd rows, ascending, to a description of the row's first odd value."""
        odd: dict[int, str] = {}
        for wrong, key, values, problem in self._oddities(delays):
            before = np.concatenate(([0.0], values[:-1]))
            source = delays.source[delays.sentence]
            for n in np.flatnonzero(wrong).tolist():
                text = problem.format(value=values[n], before=before[n], source=source[n], delay=delays.flat[n])
                odd.setdefault(int(delays.sentence[n]), f"{key}[{delays.index[n]}]: {text}")
        for number, row in enumerate(self.rows):
            length = row.prediction_length
            if length is not None and len(row.delays) - 1 not in (length, length - 1):
                odd.setdefault(number, f"prediction_length is {length}, but there are {len(row.delays)} delays")
        return dict(sorted(odd.items()))

    def _oddities(self, delays: Delays) -> Iterator[tuple[Bools, str, Floats, str]]:
        """Yield (mask of odd delays (N,), key, values of that key (N,), problem)."""
        flat, source, first = delays.flat, delays.source[delays.sentence], delays.index == 0  # (N,)
        yield ~first & (flat < np.roll(flat, 1)), "delays", flat, "{value:g} after {before:g}: delays decrease"
        if not delays.speech:
            yield flat > source, "delays", flat, "{value:g} of {source:g} words: after the end"
            yield flat != np.floor(flat), "delays", flat, "{value:g} is not a whole number of words"
            return
        if all(row.time_to_recording_end is None for row in self.rows):
            yield flat > source + ROUNDING, "delays", flat, "{value:g} of {source:g} ms: after the end"
        elapsed = [row.elapsed or [0.0] * len(row.delays) for row in self.rows]
        if any(len(times) != len(row.delays) for times, row in zip(elapsed, self.rows, strict=True)):
            return  # `elapsed` raises the error
        times = np.array([time for row in elapsed for time in row], dtype=np.float64)
        measured = np.repeat([any(row) for row in elapsed], [len(row) for row in elapsed])
        yield (
            measured & ~first & (times < np.roll(times, 1)),
            "elapsed",
            times,
            "{value:g} after {before:g}: times decrease",
        )
        early = measured & (times < flat - ROUNDING)
        yield early, "elapsed", times, "{value:g} is less than the delay {delay:g}"


def read_log(path: str, source: Source = "auto") -> Log:
    """Read a log.

    Args:
        path: The file, or "-" for standard input.
        source: Whether delays count words of text or milliseconds of speech, if the user declares it.

    Raises:
        DataError: If a line is invalid, or inconsistent with itself or the other lines; "FILE:LINE: ...".
    """
    declared = None if source == "auto" else source == "speech"
    rows: list[Any] = []
    numbers: list[int] = []
    kinds: list[Kind] = []
    for number, record in log_rows(_lines(path), path):
        where = f"{path}:{number}"
        if "page" in record and not kinds:
            raise DataError(f"{where}: a file of questions, not a log; docs/latency.md describes logs")
        kind = kind_of(where, record, declared)
        if kind.program in SCORED_BY:
            raise DataError(f"{where}: a log of {kind.program}; {SCORED_BY[kind.program]}")
        of_program = SegmentLine if kind.program == "OmniSTEval" else LogLine
        row = log_line(where, record, "delays", "source_length", kind=of_program)
        if kinds and kind.speech != kinds[0].speech:
            names = [{True: "speech", False: "text", None: "not known"}[each.speech] for each in (kind, kinds[0])]
            raise DataError(f"{where}: `source` is {names[0]}, but that of line {numbers[0]} is {names[1]}")
        _check_line(where, row, kind)
        rows.append(row)
        numbers.append(number)
        kinds.append(kind)
    if not rows:
        raise DataError(f"{path}:1: the log is empty")
    log = Log(path, rows, numbers, bool(kinds[0].speech))
    _check_indices(log)
    _check_keys(log)
    return log


@contextmanager
def in_a_file(log: str, name: str = "instances.log") -> Iterator[str]:
    """Write a log's text to a temporary file of this name during the block, and yield its path."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / name
        file.write_text(log, encoding="utf-8")
        yield str(file)


def lines_beside(path: str, file: Path, lines: int) -> list[str]:
    """Return the lines of a file.  Raises DataError if their number differs from that of the log's lines."""
    texts = list(records.lines(file))
    if len(texts) != lines:
        raise DataError(f"{file}: {len(texts)} lines for {lines} lines of {path}")
    for number, text in enumerate(texts, 1):
        check_plain(f"{file}:{number}", text)
    return texts


def _lines(path: str) -> Iterator[str]:
    """Yield the lines of a log.  Raises DataError if it is longer than MAX_SIZE."""
    pieces = iter(lambda: sys.stdin.buffer.read(1 << 20), b"") if path == "-" else records.chunks(Path(path))
    size = 0
    for line in records.lines_of(pieces, path):
        size += len(line) + 1
        if size > MAX_SIZE:
            raise DataError(f"{path}: longer than {MAX_SIZE >> 20} MiB")
        yield line


def _check_line(where: str, row: Any, kind: Kind) -> None:
    """Raise DataError if the fields of a line contradict each other."""
    length, end = row.source_length, row.time_to_recording_end
    if end is not None and length > end + 1:
        raise DataError(f"{where}: source_length is {length:g}, but time_to_recording_end only {end:g}")
    if not kind.speech and length != int(length):
        hint = "" if kind.speech is False else "; for milliseconds, give --source speech"
        raise DataError(f"{where}: source_length {length:g} is not a whole number{hint}")
    broken = next((delay for delay in row.delays if delay != int(delay)), None)
    if broken is not None and kind.speech is None:
        hint = "no `source` gives the unit of the delays: give --source text or --source speech"
        raise DataError(f"{where}: the delay {broken:g} is not a whole number of words; {hint}")


def _check_indices(log: Log) -> None:
    """Check that indices are consecutive; SimulEval's --start-index sets the first one."""
    first = log.rows[0].index or 0
    for row, line in enumerate(log.rows):
        if line.index is not None and line.index != first + row:
            expected = f"index {line.index:g} instead of {first + row:g}; is a sentence missing?"
            raise DataError(f"{log.where(row)}: {expected}")


def _check_keys(log: Log) -> None:
    """Check that all lines have the same keys: a misspelt key would change the meaning of its line."""
    segments = isinstance(log.rows[0], SegmentLine)
    for key in structs.fields(log.rows[0]):
        rows = [n for n, row in enumerate(log.rows) if row.delays or not segments]  # lines without words have no times
        has_key = [getattr(log.rows[n], key.name) is not None for n in rows]
        if not all(has_key) and any(has_key):
            lacks, has = rows[has_key.index(False)], log.numbers[rows[has_key.index(True)]]
            problem = f"no {key.encode_name}, although line {has} has it; it must be in all lines or none"
            raise DataError(f"{log.where(lacks)}: {problem}")
