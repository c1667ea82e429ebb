"""Logs of four speech translation programs, and such logs as translators of questions with word times.

A log gives target words with times in seconds of their recording:

    simulstream      {"id", "metadata": {"wav_name"}} begins a recording; then {"id", "total_audio_processed" (s),
                     "computation_time", "generated_tokens", "deleted_tokens"} after every chunk, by release 1.0
    SimulStreaming   the standard output for one recording, {"emission_time" (s), "text", ...}, from Whisper or the
                     translation; a line of "status" COMPLETE replaces the INCOMPLETE lines before it
    OmniSTEval       instances.resegmented.jsonl, {"docid", "segid", "prediction", "emission_cu" (ms since the segment's
                     start), "time_to_recording_end" (ms)}: a recording is a docid, and begins with its first segment
    SimulEval        instances.log of speech, {"source": [WAV, ...], "prediction", "delays" (ms)}

`sqa.files.logs` detects the program.  No time includes computation ("emission_time" is SimulStreaming's simulated
time).  A word that a later line continues ("Vien", then "na") is written at the time of its last piece, as in
simulstream's own reader; deleted tokens retract the words that they belonged to.  Tokens are words unless `pieces`
names another kind.

Impossible times are refused: decreasing times, negative times, and times past the end of the recording.

Every error is a DataError "FILE:LINE: PROBLEM".

For a question, g(j) is the number of source words spoken when target word j was written.  A source word counts if its
entry in the question's `word_times` is at most a microsecond after that time.  The inverse of equation 1 gives the
sentence of a word (`sqa.core.trace.by_sentence`), as for logs of whole questions.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby, pairwise
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta, Struct

from smt.policies.policy import Words, writes
from sqa.core import DataError, Emission, Question, by_sentence, misspelt
from sqa.files import LogLine, Pieces, converted, digest, kind_of, log_line, numbered_lines
from sqa.files.target_words import JOIN, JOINERS, Cleaner, check_words, words_at
from sqa.metrics.log_lines import SegmentLine

GREATEST = 1e7  # s: four months
MILLISECOND = 1.0  # ms: rounding of times
OVERLAP = 500.0  # ms: permitted overlap of neighbouring segments
CHUNK = 1000.0  # ms: silence pads the last chunk of a recording
Rows = Iterable[tuple[str, int, dict[str, Any]]]  # "FILE:LINE", line number, object
Seconds = Annotated[float, Meta(ge=0, le=GREATEST)]


class TimedWord(NamedTuple):
    """A target word and the time at which it was written."""

    seconds: float  # seconds of the recording, >= 0, in ascending order
    token: str  # "" if words are retracted and none follows
    erase: int  # number of words retracted before the word is written
    line: int


@dataclass(frozen=True, slots=True)
class Recording:
    """The translation of one recording."""

    name: str | int | None  # file name without extension, or the index of the recording in the log; None: unnamed
    line: int  # first line in the log
    wrote: tuple[TimedWord, ...]
    seconds: float | None = None  # length of the recording, if the log states it


class Shown(NamedTuple):
    """All words of a recording's translation after a line of its log."""

    seconds: float
    line: int
    words: Sequence[str]
    revised: bool = False  # a word was retracted


def recording_name(source: str | list[str]) -> str:
    """Return the name of a recording: its file name without folder and extension."""
    file = source if isinstance(source, str) else source[0]
    return PurePosixPath(file.replace("\\", "/")).stem


def words_of(states: Sequence[Shown]) -> tuple[TimedWord, ...]:
    """Return the words, each at the time when it is complete; words missing from a later state are retracted."""
    words: list[TimedWord] = []
    previous: Words = ()
    for state, complete in zip(states, map(tuple, _whole(states)), strict=True):
        words += (TimedWord(state.seconds, token, erase, state.line) for token, erase in writes(previous, complete))
        previous = complete
    return tuple(words)


def _whole(states: Sequence[Shown]) -> list[Sequence[str]]:
    """Return the words of each state, without a last word that a later state continues."""
    words, grows = [state.words for state in states], False
    for i in range(len(states) - 2, -1, -1):
        current, following = states[i].words, states[i + 1]
        goes_on = following.words[len(current) - 1 : len(current)] != current[-1:]  # slices: `following` may be short
        grows = goes_on or (grows and len(following.words) == len(current))
        grows = grows and bool(current) and not following.revised
        if grows:
            words[i] = current[:-1]
    return words


# ------------------------------------------------------------------------------------------------------- simulstream


class Wav(Struct):
    """The metadata of a recording in simulstream's log."""

    wav_name: str


class Begins(Struct):
    """The line that begins a recording."""

    id: int | str
    metadata: Wav


class Output(Struct):
    """A line of output."""

    id: int | str
    total_audio_processed: Seconds
    generated_tokens: list[str]
    deleted_tokens: list[str]
    computation_time: Annotated[float, Meta(ge=0)] = 0.0


def _simulstream(rows: Rows, pieces: Pieces | None) -> Iterator[Recording]:
    shown: dict[str, tuple[int, list[Shown]]] = {}  # recording -> its first line, and its tokens, not joined to words
    of_id: dict[int | str, list[Shown]] = {}  # an id may be reused for another recording
    tokens: list[str] = []
    for where, number, row in rows:
        if "metadata" in row:
            begins = converted(where, row, Begins)
            name = recording_name(begins.metadata.wav_name)
            if name in shown:
                raise DataError(f"{where}: the recording {name!r} appears twice (line {shown[name][0]})")
            shown[name] = number, []
            of_id[begins.id] = shown[name][1]
        elif "id" in row:
            output = converted(where, row, Output)
            if output.id not in of_id:
                problem = f'id {output.id!r:.40} has no earlier line with "metadata"'
                raise DataError(f"{where}: {problem}; is the log truncated?")
            tokens += output.generated_tokens
            of_id[output.id].append(_after(where, number, output, of_id[output.id]))
        elif "model_loading_time" not in row:
            keys = '"id" with "metadata" or "total_audio_processed", or "model_loading_time"'
            got = f"the keys {', '.join(row)[:80]}" if row else "an empty object"
            raise DataError(f"{where}: expected simulstream's {keys}, got {got}")
    file, join = where.rpartition(":")[0], JOINERS[pieces or "words"]
    check_words(file, tokens, pieces)
    for name, (line, states) in shown.items():
        if not states:
            raise DataError(f"{file}:{line}: recording {name!r} has no further lines; is the log truncated?")
        whole = [state._replace(words=join(state.words).split()) for state in states]
        yield Recording(name, line, words_of(whole))


def _after(where: str, number: int, output: Output, shown: Sequence[Shown]) -> Shown:
    """Return the tokens of a recording's translation after a line of output."""
    seconds, gone = output.total_audio_processed, output.deleted_tokens
    before = shown[-1] if shown else Shown(0.0, number, [])
    if seconds < before.seconds:
        raise DataError(f"{where}: total_audio_processed falls from {before.seconds:g} to {seconds:g}")
    kept = len(before.words) - len(gone)  # if negative, no slice has the length of `gone`
    if before.words[kept:] != gone:
        raise DataError(f"{where}: deleted_tokens {gone!r:.60} are not the last ones written")
    return Shown(seconds, number, [*before.words[:kept], *output.generated_tokens], bool(gone))


# ---------------------------------------------------------------------------------------------------- SimulStreaming


class Said(Struct):
    """A line of SimulStreaming output."""

    emission_time: Seconds
    text: str = ""
    status: Literal["COMPLETE", "INCOMPLETE"] | None = None


def _simulstreaming(rows: Rows, _: Pieces | None) -> Iterator[Recording]:
    states: list[Shown] = []
    text, previous = "", 0.0
    for where, number, row in rows:
        if wrong := misspelt(row, ("text", "status")):
            raise DataError(f"{where}: unknown key {wrong}")
        said = converted(where, row, Said)
        if said.emission_time < previous:
            problem = f"emission_time is {said.emission_time:g} after {previous:g}"
            raise DataError(f"{where}: {problem}; times must not decrease, and each recording needs its own file")
        previous = said.emission_time
        if said.status != "INCOMPLETE":  # the translation's units are whole words, with or without a space
            text += said.text if said.status is None else f" {said.text}"
            states.append(Shown(said.emission_time, number, text.split()))
    yield Recording(None, 1, words_of(states))


# -------------------------------------------------------------------------------------------- OmniSTEval, SimulEval


def _omnisteval(rows: Rows, pieces: Pieces | None) -> Iterator[Recording]:
    segments: list[tuple[str, int, Any]] = []
    for position, (where, number, row) in enumerate(rows):
        segment = log_line(where, row, "index", "docid", "segid", "prediction", kind=SegmentLine)
        if segment.index != position:
            raise DataError(
                f"{where}: index {segment.index}, expected {position}; each segment must occur once, in order"
            )
        segments.append((where, number, segment))
    for due, (document, group) in enumerate(groupby(segments, key=lambda row: row[2].docid)):
        members = list(group)
        where, number, first = members[0]
        if document != due:
            raise DataError(f"{where}: docid {document}, expected {due}; each recording must occur once, in order")
        end = first.time_to_recording_end
        yield Recording(due, number, tuple(_of_document(members, pieces)), None if end is None else end / 1000)


def _of_document(members: Sequence[tuple[str, int, SegmentLine]], pieces: Pieces | None) -> Iterator[TimedWord]:
    """Yield the words of a recording's segments, whose times count from the first segment's start."""
    first = members[0][2].time_to_recording_end
    heard = seconds = 0.0  # end of the latest segment, in ms; time of the latest word
    for where, number, segment in members:
        end = segment.time_to_recording_end
        timed = _timed((where, number), segment, "emission_cu", pieces)
        if timed and end is None:
            raise DataError(f'{where}: expected a number of milliseconds as "time_to_recording_end"')
        if timed and (first is None or end is None):
            problem = "the first segment of its recording has no words, hence no start"
            raise DataError(f"{where}: {problem}; give the log that was segmented instead of this one")
        if first is None or end is None:
            continue
        start, length = first - end, segment.source_length or 0.0
        if start < heard - OVERLAP:
            problem = f"time_to_recording_end is {end:g}, so it begins {heard - start:g} ms before an earlier one ends"
            raise DataError(f"{where}: {problem}; segment the log again with OmniSTEval 0.1.10")
        if length > end + MILLISECOND:
            raise DataError(f"{where}: source_length is {length:g}, but time_to_recording_end only {end:g}")
        heard = max(heard, start + length)
        for word in timed:
            time = round(start / 1000 + word.seconds, 6)
            if time < seconds:
                problem = f"{word.token!r} is written at {time:g} s of the recording, after a word at {seconds:g}"
                raise DataError(f"{where}: {problem}; times must not decrease or be negative")
            seconds = time
            yield word._replace(seconds=time)


def _simuleval(rows: Rows, pieces: Pieces | None) -> Iterator[Recording]:
    lines: dict[str, int] = {}
    for where, number, row in rows:
        spoken = log_line(where, row, "source", "prediction", "delays")
        if not kind_of(where, row).speech:
            raise DataError(f"{where}: `source` names no audio file, but the first line's does")
        name, length = recording_name(spoken.source), spoken.source_length
        if lines.setdefault(name, number) != number:
            raise DataError(f"{where}: the recording {name!r} appears twice (line {lines[name]})")
        words = _timed((where, number), spoken, "delays", pieces)
        if length is not None and spoken.delays and spoken.delays[-1] > length + CHUNK:
            problem = f"delays[{len(spoken.delays) - 1}] is {spoken.delays[-1]:g}, past the recording's end"
            raise DataError(f"{where}: {problem}: source_length is {length:g}")
        words = [word for word in words if word.token != "</s>"]
        yield Recording(name, number, tuple(words), None if length is None else length / 1000)


def _timed(at: tuple[str, int], line: LogLine, key: str, pieces: Pieces | None) -> list[TimedWord]:
    """Return the words of a prediction with their times, given in milliseconds, which must not decrease."""
    (where, number), times = at, line.delays or ()
    for i, (previous, following) in enumerate(pairwise(times), 1):
        if following < previous:
            raise DataError(f"{where}: {key}[{i}] is {following:g} after {previous:g}; times must not decrease")
    words = zip(*words_at(where, line.prediction or "", times, key, pieces, line.prediction_spm), strict=True)
    return [TimedWord(time / 1000, token, 0, number) for token, time in words]


# ----------------------------------------------------------------------------------------------------------- reading

READERS = {
    "simulstream": _simulstream,
    "SimulStreaming": _simulstreaming,
    "OmniSTEval": _omnisteval,
    "SimulEval": _simuleval,
}


def read(path: Path, pieces: Pieces | None = None) -> list[Recording]:
    """Return the recordings of a log, or of a folder with one SimulStreaming log per recording (NAME.jsonl)."""
    if path.is_dir():
        files = sorted(path.glob("*.jsonl"))
        if not files:
            raise DataError(f"{path}: expected a file NAME.jsonl for each recording, found none")
        return [Recording(file.stem, 1, recording.wrote) for file in files for recording in read(file)]
    rows = ((f"{path}:{number}", number, row) for number, row in numbered_lines(path))
    first = next(rows)
    program = kind_of(first[0], first[2]).program
    if pieces is not None and program == "SimulStreaming":
        raise DataError(f"{path}: a log of SimulStreaming contains words; omit `pieces`")
    recordings = list(READERS[program](chain([first], rows), pieces))
    tokens = [word.token for each in recordings for word in each.wrote]
    check_words(str(path), tokens, "words" if pieces else None, JOIN)
    cleaner = Cleaner(path, pieces)
    cleaned = [replace(each, wrote=tuple(_clean(f"{path}:{each.line}", each.wrote, cleaner))) for each in recordings]
    cleaner.report()
    return cleaned


def _clean(where: str, wrote: Sequence[TimedWord], cleaner: Cleaner) -> Iterator[TimedWord]:
    """Yield the words without oddities; retractions count the words that are left."""
    kept: list[int] = []  # for each word written, how many words are left of it
    for word in wrote:
        gone = sum(kept[len(kept) - word.erase :]) if word.erase else 0
        del kept[len(kept) - word.erase :]
        tokens = cleaner.words(where, [word.token], [0])[0] if word.token else []
        kept += [len(tokens)] if word.token else []
        for n, token in enumerate(tokens or ([""] if gone else [])):
            yield word._replace(token=token, erase=0 if n else gone)


VERSION = 1  # increase when the emissions change
MICROSECOND = 1e-6  # s: sums of chunk lengths have rounding errors
TOLERANCE = 0.1  # s: the ends of the last word and of the recording are measured by different programs
PAGE = "docs/simulstream.md"


class RecordedSpeech:
    """Emissions from a log of recordings; each question names its recording."""

    def __init__(self, path: Path, pieces: Pieces | None = None) -> None:
        self.path, self._recordings = path, read(path, pieces)
        self._of: dict[str, Recording] = {}  # by question id, after `check`

    def check(self, questions: Sequence[Question]) -> None:
        """Check that the log has every recording of the data set, and that the questions have word times."""
        for question in questions:
            if not question.word_times:
                line = self._recordings[0].line if self._recordings else 1
                problem = f"the source is speech, but question {question.id} has no `word_times` ({PAGE})"
                raise DataError(f"{self.path}:{line}: {problem}")
        logged = {recording.name for recording in self._recordings}
        named = [q.recording if q.recording in logged else recording_name(q.recording) for q in questions]
        names = list(dict.fromkeys(named))
        by_name = self._by_name(names)
        for question, name in zip(questions, named, strict=True):
            if name not in by_name:
                logs = _few([str(recording.name) for recording in self._recordings])
                problem = f"the recording {name!r} of question {question.id} is missing"
                raise DataError(f"{self.path}: {problem}; the log has {logs}")
            self._of[question.id] = recording = by_name[name]
            if recording.seconds is not None and question.word_times[-1] > recording.seconds + TOLERANCE:
                problem = f"the recording takes {1000 * recording.seconds:g} ms, but the last word of question"
                problem += f" {question.id} is spoken at {question.word_times[-1]:g} s"
                raise DataError(f"{self.path}:{recording.line}: {problem}; are the log's times seconds?")
        for name, recording in by_name.items():
            if name not in names:
                problem = f"the recording {name!r} belongs to no question; the data set has {_few(names)}"
                raise DataError(f"{self.path}:{recording.line}: {problem} (`recording`, or `id`)")

    def _by_name(self, names: Sequence[str]) -> dict[str, Recording]:
        """Return a dict of recordings by name; those without a name take the data set's names, in order."""
        if any(recording.name is None for recording in self._recordings) and len(names) != 1:
            problem = f"the log has one recording, but the data set has {len(names)}"
            raise DataError(f"{self.path}:1: {problem}; give a folder with a file for each, such as {names[0]}.jsonl")
        by_name = {}
        for recording in self._recordings:
            if isinstance(recording.name, str):
                by_name[recording.name] = recording
            elif (index := recording.name or 0) < len(names):
                by_name[names[index]] = recording
            else:
                problem = f"docid {index}, but the data set has {len(names)} recordings"
                raise DataError(f"{self.path}:{recording.line}: {problem}")
        return by_name

    def translate_batch(self, questions: Sequence[Question]) -> list[list[Emission]]:
        """Return the emissions of whole questions; call `check` with the whole data set first."""
        return [list(by_sentence(question, self._placed(question))) for question in questions]

    def _placed(self, question: Question) -> Iterator[tuple[str, int, bool, int]]:
        sentence_of = [i for i, sentence in enumerate(question.sentences) for _ in sentence]
        sentence, written = 0, 0  # the current sentence, and its words so far
        for wrote in self._of[question.id].wrote:
            read = bisect_right(question.word_times, wrote.seconds + MICROSECOND)
            current = max(sentence, sentence_of[read - 1] if read else 0)
            written = written if current == sentence else 0
            if wrote.erase > written:
                problem = f"retracts {wrote.erase} words, some of them written before sentence {current} of question"
                hint = f"{question.id} began; give its `source` as one text ({PAGE})"
                raise DataError(f"{self.path}:{wrote.line}: {problem} {hint}")
            written, sentence = written - wrote.erase + bool(wrote.token), current
            yield wrote.token, read, read == len(question.words), wrote.erase

    def fingerprint(self) -> str:
        """Return a hash of the words and their times; the data set's hash covers the times of the questions' words."""
        rows = [[r.name, [[w.seconds, w.token, w.erase] for w in r.wrote]] for r in self._recordings]
        return digest([VERSION, "speech", rows])


def _few(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown
