"""Corpora of an evaluation server, word by word or in blocks of 10 ms, and the state of a sentence in a session.

    text    two files with one sentence per line
    speech  a JSON file {"utts": {ID: {"input": {"path", "length_ms"}, "output": {"text"}}}} as the target file, or a
            file with the path of one recording per line, and a target file with one sentence per line

Recordings are 16-bit mono .wav files.  Each request reads its samples from the file; nothing is cached.
"""

import math
import unicodedata
import wave
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import Meta, Struct

from sqa.core import DataError
from sqa.files import converted, json_document, lines
from sqa_services.net.guard import Refused

EOS = "</s>"
GUIDE_EOS = r"<\s>"  # the end of a sentence as the published guide prints it
SKIPPED = "<skipped>"  # dropped by the 13a tokenizer of BLEU
INVISIBLE = frozenset("\u115f\u1160\u3164\uffa0\u2800")  # displayed as blank, but letters or symbols in Unicode
LEAST_RATE = 1000  # minimum samples per second: one per ms
CONVERT = "convert it: ffmpeg -i IN.wav -ac 1 -c:a pcm_s16le OUT.wav"
BLOCK = 10  # ms; recordings are read in multiples of this length
MAX_SEGMENT = 60_000  # maximum ms of one response


def words(text: str) -> list[str]:
    """Return the words of a hypothesis: the tokens with a letter, digit, punctuation mark or symbol.

    Any other token would have a delay although the scored text does not contain it.  The guide writes the end of a
    sentence as "<\\s>", which becomes "</s>".
    """
    tokens = (token for token in text.split() if any(map(_visible, token.replace(SKIPPED, ""))))
    return [EOS if token == GUIDE_EOS else token for token in tokens]


def _visible(character: str) -> bool:
    return unicodedata.category(character)[0] in "LNPS" and character not in INVISIBLE


@dataclass(frozen=True, slots=True)
class Sentence:
    """The state of one sentence; each request that changes it creates a new object."""

    step: float = 0  # position of the next read: words (the end counts as one) or ms
    samples: int = 0  # the same position for SimulEval's requests of a recording
    tokens: tuple[str, ...] = ()
    delays: tuple[float, ...] = ()
    elapsed: tuple[float, ...] = ()  # ms since the first read; for speech, in addition to the delay
    started: float | None = None  # time.monotonic() of the first read
    reach: float = 0  # furthest position sent so far, in the unit of `step`; it defines the delay

    @property
    def finished(self) -> bool:
        return EOS in self.tokens


class Segment(NamedTuple):
    """The result of one read."""

    answer: dict[str, Any]  # JSON: "segment_id", "segment" (a word, 16-bit samples or EOS), the samples' format
    after: int  # position after the read; the end of a text counts as a word, the end of a recording does not
    reach: float  # amount sent so far: words or ms


@dataclass(frozen=True, slots=True)
class TextCorpus:
    """Sentences as lists of words."""

    sources: tuple[tuple[str, ...], ...]
    targets: tuple[str, ...]
    kind: Literal["text"] = "text"

    def __len__(self) -> int:
        return len(self.sources)

    def read(self, sentence: int, step: int, size: int | None = None) -> Segment:
        """Return the word at the 0-based index `step`, or EOS; `size` is ignored.

        Raises IndexError if the sentence is unknown.
        """
        words = self.sources[sentence]
        after = min(step, len(words)) + 1
        return Segment({"segment_id": step, "segment": words[step] if step < len(words) else EOS}, after, after)

    def length(self, sentence: int) -> int:
        """Return the number of words."""
        return len(self.sources[sentence])

    duration = length


@dataclass(frozen=True, slots=True)
class Recording:
    """A .wav file whose header has been read."""

    path: Path
    rate: int  # samples per second
    samples: int
    milliseconds: int

    def read(self, first: int, number: int) -> list[int]:
        """Return `number` 16-bit samples from sample `first` on, or fewer at the end."""
        with wave.open(str(self.path), "rb") as file:
            file.setpos(min(first, self.samples))
            frames = file.readframes(number)
        return np.frombuffer(frames, "<i2").tolist()

    @property
    def duration(self) -> float:
        """Length in ms, from the number of samples."""
        return self.samples * 1000 / self.rate


@dataclass(frozen=True, slots=True)
class SpeechCorpus:
    """Recordings and their reference translations."""

    recordings: tuple[Recording, ...]
    targets: tuple[str, ...]
    kind: Literal["speech"] = "speech"

    def __len__(self) -> int:
        return len(self.recordings)

    def read(self, sentence: int, step: int, size: int | None = None) -> Segment:
        """Return the samples from `step` ms on, `size` ms rounded down to blocks; the last read returns all the rest.

        Raises Refused if the size is out of range.
        """
        recording = self.recordings[sentence]
        end = step + _checked(size, BLOCK) // BLOCK * BLOCK
        samples: list[int] | str = EOS
        after = step
        if step < recording.milliseconds:
            after = min(recording.milliseconds, end)
            first = step * recording.rate // 1000
            last = end * recording.rate // 1000 if end < recording.milliseconds else recording.samples
            samples = recording.read(first, last - first)
        # At the end, the last fraction of a ms counts as well.
        reach = after if after < recording.milliseconds else max(after, recording.duration)
        return Segment({"segment_id": step // BLOCK, "segment": samples}, after, reach)

    def take(self, sentence: int, first: int, size: int | None = None) -> Segment:
        """Return samples of `size` ms from `first` on, counted as in SimulEval 1.0.2.

        The segment id is the position in ms after the samples.
        """
        recording = self.recordings[sentence]
        number = math.ceil(_checked(size, 1) / 1000 * recording.rate)
        samples = recording.read(first, number)
        after = first + len(samples)
        position = after * 1000 / recording.rate
        answer = {
            "segment_id": position,
            "segment": samples or EOS,
            "sample_rate": recording.rate,
            "dtype": "int16",
            "finished": first + number > recording.samples,
        }
        return Segment(answer, after, position)

    def length(self, sentence: int) -> int:
        """Return the length in whole ms."""
        return self.recordings[sentence].milliseconds

    def duration(self, sentence: int) -> float:
        """Return the length in ms, including the last fraction of a ms."""
        return self.recordings[sentence].duration


Corpus = TextCorpus | SpeechCorpus


def _checked(size: int | None, least: int) -> int:
    """Return the requested length in ms, BLOCK by default.  Raises Refused (500) if the size is out of range."""
    size = BLOCK if size is None else size
    if not least <= size <= MAX_SEGMENT:
        raise Refused(500, f"segment_size must be {least} to {MAX_SEGMENT} ms, got {size}")
    return size


def load(source: Path | None, target: Path, kind: Literal["text", "speech"], strict: bool = False) -> Corpus:
    """Return the corpus of the files.

    Raises DataError if the files do not match each other; `strict` skips this check.
    """
    if kind == "speech" and target.suffix == ".json":
        return _speech_from_json(target)
    if source is None:
        raise DataError(f"a {kind} server needs a source file as well as {target}")
    targets, sources = _lines(target), _lines(source)
    if len(sources) != len(targets) and not strict:
        raise DataError(f"{source} has {len(sources)} lines, {target} {len(targets)}; each needs one sentence per line")
    if kind == "speech":
        return SpeechCorpus(tuple(_recording(Path(line), source) for line in sources), targets)
    for number, line in enumerate(sources, start=1):
        if EOS in line.split() and not strict:
            raise DataError(f"{source}:{number}: contains the word {EOS}, by which the protocol ends a sentence")
    return TextCorpus(tuple(tuple(line.split()) for line in sources), targets)


def _lines(path: Path) -> tuple[str, ...]:
    stripped = tuple(line.strip() for line in lines(path))
    if not stripped:
        raise DataError(f"{path}: is empty")
    return stripped


class _Input(Struct):
    path: str
    length_ms: Annotated[int, Meta(ge=1)]


class _Output(Struct):
    text: str


class _Utterance(Struct):
    input: _Input
    output: _Output


class _Speech(Struct):
    """A data description in ESPnet's format."""

    utts: dict[str, _Utterance]


def _speech_from_json(path: Path) -> SpeechCorpus:
    """Read the recordings and texts of a data description."""
    utterances = converted(str(path), json_document(path), _Speech, strict=False).utts.values()
    if not utterances:
        raise DataError(f"{path}: has no utterances")
    recordings = [_recording(Path(u.input.path.strip()), path, u.input.length_ms) for u in utterances]
    return SpeechCorpus(tuple(recordings), tuple(u.output.text.strip() for u in utterances))


def _recording(path: Path, where: Path, milliseconds: int | None = None) -> Recording:
    """Return a recording named in the file `where`; its path is relative to the working directory or to that file."""
    if not path.is_file():
        path = where.parent / path
    if not path.is_file():
        raise DataError(f"{where}: names {path}, which does not exist")
    try:
        with wave.open(str(path), "rb") as file:
            channels, width, rate, samples, _, _ = file.getparams()
            file.setpos(max(samples - 1, 0))
            if samples and len(file.readframes(1)) < width * channels:
                raise EOFError
    except wave.Error as error:
        raise DataError(f"{path}: not a plain .wav file ({error}); {CONVERT}") from error
    except (EOFError, RuntimeError) as error:  # RuntimeError: sizes in the header exceed the file
        raise DataError(f"{path}: no .wav file, or shorter than its header announces; {CONVERT}") from error
    if (width, channels) != (2, 1):
        raise DataError(f"{path}: must be 16-bit mono, is {8 * width}-bit with {channels} channels")
    if rate < LEAST_RATE:
        raise DataError(f"{path}: has {rate} samples per second; the minimum is {LEAST_RATE}")
    duration = samples * 1000 / rate
    if milliseconds is None:
        milliseconds = int(duration)
    if abs(milliseconds - duration) > BLOCK:
        problem = f"length_ms of {path} is {milliseconds}, its samples are {duration:.0f} ms; correct one of them"
        raise DataError(f"{where}: {problem}")
    return Recording(path, rate, samples, milliseconds)
