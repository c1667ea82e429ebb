"""Implement `sqa latency`: compute all latencies of a simultaneous translation from its log.

Each line is a JSON object with these keys, as in SimulEval's `instances.log`:

    delays             source units read before each target word, >= 0; [] if nothing was written
    source_length      |x| > 0 in the same unit
    source             optional: an audio file, alone or first in a list, or the text; see `sqa.files.logs`
    reference_length   |y*|, optional; or `reference`, whose words (or characters) are counted
    index              optional, consecutive from 0 or from SimulEval's --start-index
    elapsed            optional, >= 0: delays including computing time in milliseconds, for --computation-aware
    time_to_recording_end  optional, for OmniSTEval's LongYAAL and YAAL: ms from the segment's start
    prediction         optional: if it ends with "</s>", the end of the sentence has its own delay
    prediction_length  optional: the number of delays, with or without the end

OmniSTEval's `instances.resegmented.jsonl` has `emission_cu` and `emission_ca` instead of `delays` and `elapsed`.  Both
may be negative, since they count from the segment's start.

Odd lines.  Some lines with implausible values still have a latency.  It is computed as in SimulEval, and the line is
marked as odd (`Scored.odd`).  A line is odd if delays decrease, exceed the end or are fractions for text, or if the
numbers of delays and words differ.  Elapsed times of speech are odd if they decrease or are below the delays.  `strict`
makes odd lines errors.

End of a sentence.  Conventions that count it (iwslt-2020-final, simuleval-1.0.2) use |x| + 1 as the length of a text
and give the end a delay.  If the log lacks that delay it is added, as in their original evaluation.  `end="log"` uses
the log unchanged.

Kind of source.  ATD, the end of a sentence, and computing time (for speech only) depend on it.  A log without `source`
counts as text in words unless `source="speech"` is given; if its delays are fractions, `source` must be given.

Segments (`sqa latency LOG --segments FILE`).  OmniSTEval's SoftSegmenter resegments a log of whole recordings: it
aligns the words of each recording with those of the reference, and gives each word to the segment of its reference
word (Polak et al. 2025).  The log's `elapsed` values are accumulated.  `LogOptions.computing` names the definition of
delays with computing time:

    accumulated   source heard plus all computing until the word, as SimulEval writes it; waiting never overlaps with it
    increment     source heard before the word plus the computing since the previous word, as `omnisteval longform
                  --fix_simuleval_emission_ca`
"""

import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sqa.core import ConfigError, DataError, Floats, need
from sqa.metrics import latency
from sqa.metrics.delays import Delays
from sqa.metrics.latency import CONVENTIONS, FORMULAS, Convention
from sqa.metrics.log_lines import Log, SegmentLine, Source, in_a_file, lines_beside, read_log
from sqa.results import Table, show


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Options for reading a log, and the texts beside it."""

    convention: str = "simuleval-1.1"  # a key of CONVENTIONS, or a prefix of one
    unit: Literal["word", "char"] = "word"  # unit of `reference` if there is no reference_length
    source: Source = "auto"
    end: Literal["auto", "log"] = "auto"  # end of a sentence: by the convention, or as in the log
    references: Path | None = None  # one line per line of the log, or per segment; replaces the log's references
    use_reference: bool = True  # False: |y| is the number of delays
    computation_aware: bool = False  # include computing time; speech only
    strict: bool = False  # make odd lines errors
    sources: Path | None = None  # one line per line of the log, or per segment; not used by latencies
    segments: Path | None = None  # of whole recordings; YAML or JSON: a list of {"wav", "offset" (s), "duration" (s)}
    language: str | None = None  # with segments: language of Moses' tokenizer; None: words are aligned as written
    computing: Literal["accumulated", "increment"] = "increment"  # with segments: definition of `elapsed`


@dataclass(frozen=True, slots=True)
class Scored:
    """The latencies of a log."""

    convention: Convention
    values: dict[str, Floats]  # printed name -> (S,), nan = undefined
    references: dict[str, str]  # name -> origin of |y*|: "log", "file", or "none" (|y| is the number of words)
    index: tuple[int, ...]  # index of each sentence
    lines: Sequence[int]  # 1-based line of each sentence
    whole: dict[str, float]  # scores of the whole log: OmniSTEval's degeneracy test
    odd: dict[int, str] = dataclass_field(default_factory=dict)  # 1-based line -> reason
    speech: bool = False  # delays are milliseconds
    signature: str = ""  # convention, segmenter and definition of computing time
    name: str = ""  # name of the log in messages

    def rows(self) -> Iterator[dict[str, int | float | str | None]]:
        """Yield one JSON object per sentence; null means undefined, and "odd" says why a line is odd."""
        table = np.stack(list(self.values.values()), 1).tolist() if self.values else []
        for index, line, row in zip(self.index, self.lines, table, strict=True):
            numbers = (None if math.isnan(value) else value for value in row)
            odd = {"odd": self.odd[line]} if line in self.odd else {}
            yield {"index": index, **dict(zip(self.values, numbers, strict=True)), **odd}

    def means(self) -> dict[str, tuple[float, int, int]]:
        """Return a dict that maps each name to (mean or nan, number of sentences with a value, number without)."""
        out = {}
        for name, values in self.values.items():
            defined = values[~np.isnan(values)]
            out[name] = (float(defined.mean()) if len(defined) else math.nan, len(defined), len(values) - len(defined))
        return out


def convention_named(name: str) -> Convention:
    """Return the convention of a name or an unambiguous prefix.  Raises ConfigError otherwise."""
    matches = [name] if name in CONVENTIONS else [each for each in CONVENTIONS if each.startswith(name)]
    if len(matches) != 1:
        raise ConfigError(f"--convention: expected one of {', '.join(CONVENTIONS)}, got {name!r}")
    return CONVENTIONS[matches[0]]


def score(path: str, options: LogOptions) -> Scored:
    """Score a log ("-" = standard input).  Raises DataError "FILE:LINE: ..." for an invalid line."""
    if options.segments is None:
        return _score(path, options, path)
    with resegmented(path, options) as file:  # with the references
        return _score(file, replace(options, references=None), f"segments of {path}")


def _score(path: str, options: LogOptions, name: str) -> Scored:
    convention = convention_named(options.convention)
    log = read_log(path, options.source)
    references = _references(log, options, convention) if options.use_reference else [None] * len(log.rows)
    delays = log.packed(options.end == "auto" and convention.eos, references)
    odd = {log.numbers[row]: problem for row, problem in log.odd(delays).items()}
    if odd and options.strict:
        line, problem = next(iter(odd.items()))
        raise DataError(f"{name}:{line}: {problem}; --strict refuses it")
    if options.computation_aware:
        delays = replace(delays, flat=log.elapsed(), read=delays.flat)
    suffix = "_CA" if options.computation_aware else ""
    formulas = {FORMULAS[name].label + suffix: FORMULAS[name] for name in latency.scored_by(convention)}
    values = {label: formula(delays, convention) for label, formula in formulas.items()}
    origin = "none" if np.isnan(delays.reference).all() else "log" if options.references is None else "file"
    used = {
        label: origin if latency.takes_reference(formula, convention) else "none" for label, formula in formulas.items()
    }
    whole = degeneracy(delays) if "yaal" in convention.formulas and not options.computation_aware else {}
    first = int(log.rows[0].index or 0)
    index = tuple(range(first, first + len(log.rows)))
    signature = _signature(convention, options, log)
    return Scored(convention, values, used, index, log.numbers, whole, odd, log.speech, signature, name)


def _signature(convention: Convention, options: LogOptions, log: Log) -> str:
    """Return the convention, followed by the segmenter and the definition of computing time if they are used.

    OmniSTEval's resegmented logs do not state the definition, so theirs is "logged".
    """
    computing = "logged" if isinstance(log.rows[0], SegmentLine) else "accumulated"
    if options.segments is not None:
        computing = options.computing
    parts = [convention.name, "segments:soft" if options.segments is not None else ""]
    return "|".join(filter(None, [*parts, f"ca:{computing}" if options.computation_aware else ""]))


def degeneracy(delays: Delays) -> dict[str, float]:
    """Return OmniSTEval's test for a policy that waits for the end, over all sentences; values in percent.

    SWF   words written before the source ended
    EFSW  share of the source beyond the mean lag: sum max(0, |x| - YAAL) / sum |x|, over sentences with a YAAL
    DSPTV EFSW - SWF; above 20 or below -20 the policy is likely degenerate.  nan without words or source.
    """
    yaal = latency.yet_another_average_lagging(delays)  # (S,)
    source = np.where(np.isnan(yaal), 0.0, delays.source)
    early = delays.flat < delays.source[delays.sentence]
    swf = 100 * early.mean() if len(early) else np.nan
    efsw = 100 * np.nansum(np.maximum(0, source - yaal)) / source.sum() if source.sum() else np.nan
    return {"SWF": float(swf), "EFSW": float(efsw), "DSPTV": float(efsw - swf)}


def _of_characters(log: Log) -> bool:
    """Return whether each prediction of several characters has a delay for each character and not for each word."""
    texts = [(row.prediction.strip(), len(row.delays)) for row in log.rows if row.prediction and row.delays]
    return bool(texts) and all(n == len(text) and n > len(text.split()) + 1 for text, n in texts)


def _references(log: Log, options: LogOptions, convention: Convention) -> list[float | None]:
    """Return |y*| of every line; None if the log has none.

    Raises DataError if it would be counted in words although the delays are of characters.
    """
    rows = log.rows
    if options.unit == "word" and not all(row.reference_length for row in rows) and _of_characters(log):
        problem = f"{len(rows[0].delays)} delays for a prediction of as many characters"
        raise DataError(f"{log.where(0)}: {problem}; count the reference in characters: --unit char")

    def size(text: str) -> float:
        return float(latency.reference_size(text, options.unit, convention))

    if options.references is not None:
        return [size(text) for text in lines_beside(log.path, options.references, len(rows))]
    given = any(row.reference for row in rows)  # "" in every line means that there were no references

    def length_of(row: Any) -> float | None:
        length: float | None = row.reference_length
        return length if length is not None or row.reference is None or not given else size(row.reference) or None

    return [length_of(row) for row in rows]


def main(path: str, options: LogOptions, as_json: bool) -> None:
    """Print a table of means, or one JSON object per sentence."""
    scored = score(path, options)
    if scored.odd:
        line, what = next(iter(scored.odd.items()))
        many = f"{len(scored.odd)} of {len(scored.index)} lines are odd, the first:"
        where = f"{scored.name}:{line}"
        print(f"sqa: {where}: {many} {what}; computed as SimulEval does (--strict refuses them)", file=sys.stderr)
    if as_json:
        sys.stdout.writelines(json.dumps(row) + "\n" for row in scored.rows())
        return
    cells: list[Any] = [(name, *row, scored.signature, scored.references[name]) for name, row in scored.means().items()]
    cells += [(name, share, len(scored.index), 0, scored.signature, "none") for name, share in scored.whole.items()]
    header = ("metric", "value", "n", "undefined", "convention", "reference")
    show(Table(header, cells, {"value": 4}))


RESEGMENTED = "instances.resegmented.jsonl"  # OmniSTEval's name of the file


def resegmented(log: str, options: LogOptions) -> AbstractContextManager[str]:
    """Write a log's segments to a temporary file during the block, and yield its path.

    Raises ConfigError without the package or references, and DataError for a file that OmniSTEval refuses.
    """
    if options.references is None:
        raise ConfigError("--segments: give --references, with a line for each segment")
    need("omnisteval", "--segments")
    if options.language is not None:
        need("mosestokenizer", "--lang")
    from omnisteval import resegment
    from omnisteval.io import load_resegmentation_inputs

    try:
        reference_words, words, segmentation, references = load_resegmentation_inputs(
            str(options.segments),
            None,
            str(options.references),
            log,
            char_level=options.unit == "char",
            fix_emission_ca_flag=options.computing == "increment",
        )
        _, rows = resegment(
            reference_words,
            words,
            segmentation,
            references,
            char_level=options.unit == "char",
            lang=options.language,
        )
    except (OSError, ValueError, KeyError, TypeError, AssertionError) as error:
        problem = f"OmniSTEval cannot segment it by {options.segments}, only SimulEval's logs of speech: {error}"
        raise DataError(f"{log}: {problem}; docs/latency.md names the commands for other logs") from error
    return in_a_file("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), RESEGMENTED)
