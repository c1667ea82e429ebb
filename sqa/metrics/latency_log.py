"""`sqa latency`: every latency of a simultaneous translation from its log alone.

One JSON object a line, of which these keys are read (SimulEval's `instances.log` has them all):

    delays             source units read before each target word, >= 0; [] = nothing was written
    source_length      |x| > 0 in the same unit
    reference_length   |y*|, optional; or `reference`, whose words (or characters) are counted
    index              optional, 0, 1, 2, ... without gaps
    elapsed            optional, >= 0: the delays with computing time added, in milliseconds, for --computation-aware
    prediction         optional: when it ends with "</s>", the end of the sentence has a delay of its own
    prediction_length  optional: as many words as there are delays, the end counted or not

Odd lines.  Values that no translator writes but that have a latency are computed as SimulEval does, and the line is
marked (`Scored.odd`): delays that fall, delays of a text past its end, delays of a text that are no whole numbers, more
or fewer of them than the prediction has words.  With `strict` the first such line is refused.

The end of a sentence.  Conventions that count it (iwslt-2020-final, simuleval-1.0.2) take |x| + 1 for the length of a
text and give the end a delay.  Where the log has no such delay it is added, as their own evaluators did; `end="log"`
leaves everything as it stands in the log.

Speech or text matters to ATD and to that end.  With `source="auto"`, lengths with a decimal point are taken for speech.
"""

import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import numpy as np
from msgspec import DecodeError, Meta, Struct, ValidationError, field, structs
from msgspec.json import Decoder

from sqa.core.errors import ConfigError, DataError
from sqa.core.registry import misspelt
from sqa.core.types import Floats
from sqa.files import records
from sqa.files.records import parse_json
from sqa.metrics.delays import Delays, pack
from sqa.metrics.latency import (
    CONVENTIONS,
    FORMULAS,
    Convention,
    scored_by,
    takes_reference,
    yet_another_average_lagging,
)

EOS = "</s>"
MAX_BYTES = 1 << 30  # of a log
# within these bounds sums and quotients stay finite
Delay = Annotated[int, Meta(ge=0, le=1 << 53)] | Annotated[float, Meta(ge=0, le=1e100)]
Length = Annotated[int, Meta(ge=1, le=1 << 53)] | Annotated[float, Meta(ge=1e-100, le=1e100)]


@dataclass(frozen=True, slots=True)
class LogOptions:
    """How a log is read."""

    convention: str = "simuleval-1.1"  # a key of CONVENTIONS, or the beginning of one
    unit: Literal["word", "char"] = "word"  # what `reference` is counted in, where there is no reference_length
    source: Literal["auto", "text", "speech"] = "auto"
    end: Literal["auto", "log"] = "auto"  # auto: as the convention wants the end of the sentence; log: as it stands
    references: Path | None = None  # a line for each line of the log; instead of the log's own
    use_reference: bool = True  # False: |y| is the number of delays
    computation_aware: bool = False  # elapsed instead of delays
    strict: bool = False  # refuse odd lines


@dataclass(frozen=True, slots=True)
class Scored:
    """The latencies of a log."""

    convention: Convention
    values: dict[str, Floats]  # name as printed -> (S,), nan = undefined
    references: dict[str, str]  # name -> whose lengths are |y*|: "log", "file", or "none" (of the words written)
    index: tuple[int, ...]  # of each sentence
    whole: dict[str, float]  # what only the whole log has: OmniSTEval's test of degeneracy
    odd: dict[int, str] = dataclass_field(default_factory=dict)  # 1-based line -> why it is odd

    def rows(self) -> Iterator[dict[str, int | float | str | None]]:
        """One JSON object a sentence; null = undefined.  An odd line says why in "odd"."""
        table = np.stack(list(self.values.values()), 1).tolist() if self.values else []
        for index, row in zip(self.index, table, strict=True):
            numbers = (None if math.isnan(value) else value for value in row)
            odd = {"odd": self.odd[index + 1]} if index + 1 in self.odd else {}
            yield {"index": index, **dict(zip(self.values, numbers, strict=True)), **odd}

    def means(self) -> dict[str, tuple[float, int, int]]:
        """name -> mean over the sentences that have a value (nan: none has), their number, the number without."""
        out = {}
        for name, values in self.values.items():
            defined = values[~np.isnan(values)]
            out[name] = (float(defined.mean()) if len(defined) else math.nan, len(defined), len(values) - len(defined))
        return out


def convention_named(name: str) -> Convention:
    """The convention of a name or of its unambiguous beginning, or your own in `file.py:build`; else ConfigError."""
    if ":" in name:
        from sqa.metrics.own_metrics import own_convention

        return own_convention(name)
    matches = [name] if name in CONVENTIONS else [each for each in CONVENTIONS if each.startswith(name)]
    if len(matches) != 1:
        raise ConfigError(f"--convention: expected one of {', '.join(CONVENTIONS)}, got {name!r}")
    return CONVENTIONS[matches[0]]


class Line(Struct, gc=False):
    """The keys that are read of a line; skipping all others unread halves the time."""

    delays: list[Delay]
    source_length: Length
    unscored: list[Delay] | None = field(name="elapsed", default=None)
    reference_length: Length | None = None
    reference: str | None = None
    prediction: str | None = None
    prediction_length: int | float | None = None
    index: int | None = None


class _TimedLine(Line, gc=False):
    """The same with computing time in the delays."""

    delays: list[Delay] = field(name="elapsed")
    unscored: list[Delay] | None = field(name="delays", default=None)


_SIMULSTREAM = "a log of simulstream; `sqa simulstream-score` has its latencies"
_OTHER_FORMATS = {  # a key of files that are not logs of SimulEval -> what such a file is
    b'"model_loading_time"': _SIMULSTREAM,
    b'"wav_name"': _SIMULSTREAM,
    b'"emission_time"': "a log of SimulStreaming; `sqa run` scores it, as `translator: {name: recorded, file: LOG}`",
    b'"page"': "questions, not a log; docs/latency.md says what a log has",
}
LineT = TypeVar("LineT", bound=Line)
_KEYS = Line.__struct_encode_fields__
_NAMES = [f'"{name}"'.encode() for name in _KEYS]


def score(path: str, options: LogOptions) -> Scored:
    """Score a log ("-" = standard input).  An invalid line: DataError "FILE:LINE: ..."."""
    convention = convention_named(options.convention)
    rows = read_lines(path, _TimedLine) if options.computation_aware else read_lines(path, Line)
    delays = _pack(path, rows, options, convention)
    odd = _odd(delays, rows)
    if odd and options.strict:
        line, what = next(iter(odd.items()))
        raise DataError(f"{path}:{line}: {what}; --strict refuses it")
    suffix = "_CA" if options.computation_aware else ""
    formulas = {FORMULAS[name].label + suffix: FORMULAS[name] for name in scored_by(convention)}
    values = {label: formula(delays, convention) for label, formula in formulas.items()}
    origin = "none" if np.isnan(delays.reference).all() else "log" if options.references is None else "file"
    used = {label: origin if takes_reference(formula, convention) else "none" for label, formula in formulas.items()}
    whole = degeneracy(delays) if "yaal" in convention.formulas and not options.computation_aware else {}
    return Scored(convention, values, used, tuple(range(len(rows))), whole, odd)


def degeneracy(delays: Delays) -> dict[str, float]:
    """OmniSTEval's test of a policy that waits for the end, over all sentences; shares in percent.

    SWF   words written before the source had ended
    EFSW  of the source, what lies beyond the mean lag: sum max(0, |x| - YAAL) / sum |x|, sentences with a YAAL only
    DSPTV EFSW - SWF; beyond 20 either way the policy is likely degenerate.  nan where nothing could be counted.
    """
    yaal = yet_another_average_lagging(delays)  # (S,)
    source = np.where(np.isnan(yaal), 0.0, delays.source)
    early = delays.flat < delays.source[delays.sentence]
    swf = 100 * early.mean() if len(early) else np.nan
    efsw = 100 * np.nansum(np.maximum(0, source - yaal)) / source.sum() if source.sum() else np.nan
    return {"SWF": float(swf), "EFSW": float(efsw), "DSPTV": float(efsw - swf)}


def read_lines(path: str, kind: type[LineT]) -> list[LineT]:
    """The objects of a log, line by line."""
    if path == "-":
        text = sys.stdin.buffer.read(MAX_BYTES + 1)
    else:
        with Path(path).open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise DataError(f"{path}: longer than {MAX_BYTES >> 20} MiB")
    lines = text.splitlines()
    if not lines:
        raise DataError(f"{path}:1: the log is empty")
    decoder = Decoder(kind)
    rows = []
    for number, line in enumerate(lines, start=1):
        try:
            if not line.isascii():
                line.decode()  # the decoder does not look at what it skips
            if b"\\u" in line or any(line.count(name) > 1 for name in _NAMES):
                parse_json(line)  # the decoder would accept a repeated key, whose last value wins
            rows.append(decoder.decode(line))
        except UnicodeDecodeError as error:
            what = f"not UTF-8 (byte {line[error.start]:#04x} at {error.start}); convert it to UTF-8"
            raise DataError(f"{path}:{number}: {what}") from error
        except ValidationError as error:
            other_format = next((what for key, what in _OTHER_FORMATS.items() if key in line), None)
            raise DataError(f"{path}:{number}: {other_format or error}") from error
        except DecodeError as error:
            raise DataError(f"{path}:{number}: not JSON ({error})") from error
        except ValueError as error:
            raise DataError(f"{path}:{number}: {error}") from error
    if wrong := misspelt(parse_json(lines[0]), _KEYS):
        raise DataError(f"{path}:1: unknown key {wrong}")
    return rows


def _pack(path: str, rows: Sequence[Line], options: LogOptions, convention: Convention) -> Delays:
    """The delays of a log as its convention counts them."""
    delays = [row.delays for row in rows]
    lengths = [row.source_length for row in rows]
    _check_order(path, rows)
    floats = any(isinstance(length, float) for length in lengths)
    speech = options.source == "speech" or (options.source == "auto" and floats)
    references = _references(path, rows, options) if options.use_reference else [None] * len(rows)
    ends = _ends(path, rows)
    counted = options.end == "auto" and convention.eos
    if counted and not speech:
        lengths = [length + 1 for length in lengths]
    if counted:
        references = [None if reference is None or not speech else reference + 1 for reference in references]
    given = [reference for reference in references if reference is not None]
    if given and len(given) < len(references):
        number = references.index(None) + 1
        raise DataError(f"{path}:{number}: no reference_length and no reference, though other lines have one")
    if counted and not speech and not ends:
        delays = [[*row, length] for row, length in zip(delays, lengths, strict=True)]
    _check_keys(path, rows)
    return pack(delays, lengths, given or None, speech)


def _odd(delays: Delays, rows: Sequence[Line]) -> dict[int, str]:
    """1-based line -> what is odd about its delays, the first reason only; ascending."""
    flat, source = delays.flat, delays.source[delays.sentence]  # (N,)
    before = np.concatenate(([0.0], flat[:-1])) * (delays.index > 0)
    kinds = [(flat < before, "{value:g} after {before:g}: a delay falls")]
    if not delays.speech:
        kinds += [
            (flat > source, "{value:g} of {source:g} words: past the end"),
            (flat != np.floor(flat), "{value:g} is no whole number of words"),
        ]
    odd: dict[int, str] = {}
    for wrong, what in kinds:
        for n in np.flatnonzero(wrong).tolist():
            problem = what.format(value=flat[n], before=before[n], source=source[n])
            odd.setdefault(int(delays.sentence[n]) + 1, f"delays[{delays.index[n]}]: {problem}")
    for line, row in enumerate(rows, start=1):
        length = row.prediction_length
        if length is not None and not delays.speech and len(row.delays) - 1 not in (length, length - 1):
            odd.setdefault(line, f"prediction_length is {length}, but there are {len(row.delays)} delays")
    return dict(sorted(odd.items()))


def _check_keys(path: str, rows: Sequence[Line]) -> None:
    """All lines have the same keys: a key misspelt in one line would have that line read by other rules."""
    for key in structs.fields(rows[0]):
        has_key = [getattr(row, key.name) is not None for row in rows]
        if not all(has_key) and any(has_key):
            lacks, has = has_key.index(False) + 1, has_key.index(True) + 1
            raise DataError(f"{path}:{lacks}: no {key.encode_name}, which line {has} has; all lines have it, or none")


def _check_order(path: str, rows: Sequence[Line]) -> None:
    """The indices, where there are any, count the lines."""
    for index, row in enumerate(rows):
        if row.index is not None and row.index != index:
            raise DataError(f"{path}:{index + 1}: index {row.index} instead of {index}; is a sentence missing?")


def _ends(path: str, rows: Sequence[Line]) -> bool:
    """Whether the log gives the end of the sentence a delay.  Some lines with it and some without: DataError."""
    marked = {n: (row.prediction or "").endswith(EOS) for n, row in enumerate(rows, start=1) if row.delays}
    with_end = [number for number, mark in marked.items() if mark]
    if with_end and len(with_end) < len(marked):
        number = next(number for number, mark in marked.items() if not mark)
        raise DataError(
            f"{path}:{number}: prediction does not end with {EOS}, that of line {with_end[0]} does; mixed conventions"
        )
    return bool(with_end)


def _references(path: str, rows: Sequence[Line], options: LogOptions) -> list[float | None]:
    """|y*| of every line, None where the log has none."""
    if options.references is not None:
        return [float(_size(text, options.unit)) for text in lines_beside(path, options.references, len(rows))]
    lengths = [row.reference_length for row in rows]
    if not any(row.reference for row in rows):  # "" in all of them: there were none
        return lengths
    sizes = [None if row.reference is None else _size(row.reference, options.unit) for row in rows]
    return [
        (float(size) if size else None) if length is None else length
        for length, size in zip(lengths, sizes, strict=True)
    ]


def lines_beside(path: str, file: Path, lines: int) -> list[str]:
    """The lines of a file, one for each line of a log; otherwise DataError."""
    texts = [line.removesuffix("\r") for line in records.lines(file)]
    if len(texts) != lines:
        raise DataError(f"{file}: {len(texts)} lines for {lines} lines of {path}")
    return texts


def _size(text: str, unit: str) -> int:
    """Words, split at each single blank as SimulEval does (at least 1), or characters."""
    return len(text.strip()) if unit == "char" else text.count(" ") + 1


def main(path: str, options: LogOptions, as_json: bool) -> None:
    """The command: a table of means, or one JSON object a sentence."""
    scored = score(path, options)
    if scored.odd:
        line, what = next(iter(scored.odd.items()))
        many = f"{len(scored.odd)} of {len(scored.index)} lines are odd, the first:"
        print(f"sqa: {path}:{line}: {many} {what}; computed as SimulEval does (--strict refuses them)", file=sys.stderr)
    if as_json:
        sys.stdout.writelines(json.dumps(row) + "\n" for row in scored.rows())
        return
    print("metric\tvalue\tn\tundefined\tconvention\treference")
    rows = [(name, *numbers, scored.references[name]) for name, numbers in scored.means().items()]
    rows += [(name, share, len(scored.index), 0, "none") for name, share in scored.whole.items()]
    for name, mean, n, undefined, reference in rows:
        value = "n/a" if math.isnan(mean) else f"{mean:.4f}"
        print(name, value, n, undefined, scored.convention.name, reference, sep="\t")
