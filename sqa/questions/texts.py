"""Translations by segment, with the source that had been read before each word: from logs, runs and plain texts.

    SimulEval, OmniSTEval          one line per segment
    logs of whole recordings       with `--segments`, which OmniSTEval cuts: SimulEval, simulstream, SimulStreaming
    a run's folder                 one segment per question
    a file of plain text           one line per segment; when each word was written is unknown

Words that were retracted later do not count, and a rewritten word counts from the last time it was written.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

from sqa.core import DataError, QuestionTrace
from sqa.files import Cleaner, clean_lines, kind_of, records
from sqa.files.logs import names_audio
from sqa.metrics.fact_metrics import written
from sqa.metrics.latency_log import LogOptions, resegmented
from sqa.metrics.log_lines import EOS, in_a_file, lines_beside, read_log
from sqa.pipeline import open_run
from sqa.questions.rules import words_of

Unit = Literal["words", "seconds", ""]  # "": unknown


@dataclass(frozen=True)
class Segment:
    """The translation of a segment."""

    where: str  # "FILE:LINE"
    words: tuple[str, ...]  # characters, if the log counts them
    reads: tuple[float, ...]  # source read before each word; () in plain text
    length: float  # of the source; 0 in plain text
    source: tuple[str, ...] = ()
    positions: tuple[float, ...] = ()  # source read after each source word; () without a source
    reference: str | None = None
    joint: str = " "  # between words; "" between characters

    def text(self, n: int) -> str:
        """Return the first n words as text."""
        return self.joint.join(self.words[:n])

    @cached_property
    def moments(self) -> list[tuple[float, int]]:
        """Each amount of source at which the text changed, ascending, with the number of words written by then."""
        if not self.reads:
            return [(0.0, len(self.words))] if self.words else []
        by_read = {read: n for n, read in enumerate(accumulate(self.reads, max), 1)}
        return list(by_read.items())


@dataclass(frozen=True, slots=True)
class Translated:
    """A system's translation of a text."""

    name: str
    segments: Sequence[Segment]
    unit: Unit  # of reads, lengths and positions


def of_log(path: str, options: LogOptions) -> Translated:
    """Return the segments of a log of SimulEval or OmniSTEval ("-": standard input).

    Raises DataError "FILE:LINE: ..." for an invalid line.
    """
    log = read_log(path, options.source)
    rows, scale = log.rows, 1000 if log.speech else 1
    references: Sequence[str | None] = [row.reference for row in rows]
    sources = [row.source if isinstance(row.source, str) and not names_audio(row.source) else "" for row in rows]
    if options.references is not None:
        references = lines_beside(path, options.references, len(rows))
    if options.sources is not None:
        sources = lines_beside(path, options.sources, len(rows))
    segments, cleaner = [], Cleaner(path)
    for n, (row, reference, source) in enumerate(zip(rows, references, sources, strict=True)):
        if row.prediction is None:
            raise DataError(f"{log.where(n)}: no prediction")
        units, joint = _units(log.where(n), row.prediction.removesuffix(f" {EOS}"), len(row.delays))
        read, length = tuple(source.split()), row.source_length / scale
        positions = _heard(read, length) if log.speech else tuple(range(1, len(read) + 1))
        words, delays = cleaner.words(log.where(n), units, row.delays[: len(units)])
        reads = tuple(delay / scale for delay in (*delays, *row.delays[len(units) :]))
        segments.append(Segment(log.where(n), tuple(words), reads, length, read, positions, reference, joint))
    cleaner.report()
    return Translated(path, segments, "seconds" if log.speech else "words")


def _units(where: str, prediction: str, delays: int) -> tuple[tuple[str, ...], str]:
    """Return the words of a prediction and the text between them; in a script without spaces, maybe its characters.

    Raises DataError unless there is one delay for each, or one more for the end.
    """
    words, characters = tuple(prediction.split()), tuple("".join(prediction.split()))
    unspaced = [(words_of(prediction), " "), (characters, "")] if words_of(prediction) != words else []
    for units, joint in ((words, " "), *unspaced):
        if delays in (len(units), len(units) + 1):
            return units, joint
    raise DataError(f"{where}: {len(words)} words in prediction and {delays} delays; expected one delay per word")


def _heard(words: Sequence[str], seconds: float) -> tuple[float, ...]:
    """Return the time at which each word has been heard, assuming that all characters take equally long."""
    ends = list(accumulate(len(word) + 1 for word in words))
    return tuple(seconds * end / ends[-1] for end in ends)


def of_run(folder: Path) -> Translated:
    """Return the questions of a finished run as segments, in seconds if all of them have word times."""
    traces = open_run(folder).traces
    timed = all(trace.question.word_times for trace in traces)
    return Translated(str(folder), [segment_of(trace, timed) for trace in traces], "seconds" if timed else "words")


def segment_of(trace: QuestionTrace, timed: bool = False) -> Segment:
    """Return the translation of a question; `timed`: in seconds by the question's word times."""
    question, (words, read) = trace.question, written(trace)
    times = (0.0, *question.word_times) if timed else tuple(map(float, range(len(question.words) + 1)))
    reads = tuple(times[n] for n in read)
    return Segment(question.id, words, reads, times[-1], question.words, times[1:], question.reference_text)


def translated(path: str, options: LogOptions, recordings: Callable[[Path], Iterable[Any]]) -> Translated:
    """Return the translation in a log, a run's folder or a plain text.

    Args:
        path: The file or folder; "-" reads a log from standard input.
        options: Texts beside the log, and how to read it.
        recordings: Reader of logs of whole recordings (smt/engines/speech_logs.py).
    """
    file, whole = Path(path), False  # whole: a log of whole recordings
    if (file / "run.json").is_file():
        return of_run(file)
    if path != "-" and not (whole := file.is_dir()):
        if not next(records.lines(file), "").lstrip().startswith("{"):
            return Translated(path, list(_plain(path, options)), "")
        whole = kind_of(path, next(records.json_lines(file))).program in ("simulstream", "SimulStreaming")
    with ExitStack() as stack:
        log = path
        if whole:
            if options.segments is None:
                raise DataError(f"{path}: a log of whole recordings; give their --segments FILE and --references FILE")
            log = stack.enter_context(in_a_file("".join(_recordings(recordings(file))), file.name))
        if options.segments is not None:
            log = stack.enter_context(resegmented(log, options))
        beside = replace(options, references=None) if options.segments else options
        return replace(of_log(log, beside), name=path)


def _plain(path: str, options: LogOptions) -> Iterator[Segment]:
    """Yield the lines of a plain text as segments."""
    lines = clean_lines(path)
    absent = [None] * len(lines)
    files = (options.references, options.sources)
    beside = (lines_beside(path, file, len(lines)) if file else absent for file in files)
    for n, (line, reference, source) in enumerate(zip(lines, *beside, strict=True), 1):
        yield Segment(f"{path}:{n}", words_of(line), (), 0.0, tuple((source or "").split()), (), reference)


def _recordings(recordings: Iterable[Any]) -> Iterator[str]:
    """Yield the lines of SimulEval's log of speech for recordings, without the words that were retracted."""
    for index, recording in enumerate(recordings):
        kept: list[tuple[str, float]] = []
        for word in recording.wrote:
            del kept[len(kept) - word.erase :]
            kept += [(word.token, 1000 * word.seconds)] if word.token else []
        last = kept[-1][1] if kept else 1.0
        line = {
            "index": index,
            "source": [f"{recording.name or index}.wav"],
            "prediction": " ".join(w for w, _ in kept),
        }
        length = max(1000 * recording.seconds if recording.seconds else last, 1.0)
        delays = [time for _, time in kept]
        yield json.dumps({**line, "delays": delays, "elapsed": delays, "source_length": length}) + "\n"
