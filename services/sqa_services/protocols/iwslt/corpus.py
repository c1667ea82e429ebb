"""What an evaluation server reads out: source sentences word by word, or recordings in blocks of 10 ms.

    text    a line a sentence, in two files
    speech  a JSON file {"utts": {ID: {"input": {"path", "length_ms"}, "output": {"text"}}}} as the target file, or a
            file with the path of a recording a line beside a target file with a line each

Recordings are 16-bit mono .wav files; a request reads the samples it asks for from the file, nothing is kept.
"""

from __future__ import annotations

import math
import unicodedata
import wave
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from sqa.core.errors import DataError
from sqa.files.records import lines, parse_json
from sqa_services.net.guard import Refused

EOS = "</s>"
SKIPPED = "<skipped>"  # dropped by the 13a tokenizer of BLEU
INVISIBLE = frozenset("\u115f\u1160\u3164\uffa0\u2800")  # fillers and a blank that Unicode calls letters and a symbol
LEAST_RATE = 1000  # samples a second: one for each ms
BLOCK = 10  # ms: recordings are read in multiples of it
MAX_SEGMENT = 60_000  # ms of one answer


def words(text: str) -> list[str]:
    """The words of a hypothesis: what stands between blanks and shows a letter, a digit, a mark or a symbol.

    A token without any would have a delay and no part in the text that is scored.
    """
    return [token for token in text.split() if any(map(_visible, token.replace(SKIPPED, "")))]


def _visible(character: str) -> bool:
    return unicodedata.category(character)[0] in "LNPS" and character not in INVISIBLE


class Segment(NamedTuple):
    """What one read gives."""

    segment: str | list[int]  # a word, 16-bit samples, or EOS
    start: int  # where it started: words, or ms
    step: int  # where the reader is afterwards; the end of a text counts as a word, that of a recording does not


@dataclass(frozen=True, slots=True)
class TextCorpus:
    """Sentences as lists of words."""

    sources: tuple[tuple[str, ...], ...]
    targets: tuple[str, ...]
    kind: Literal["text"] = "text"

    def __len__(self) -> int:
        return len(self.sources)

    def read(self, sentence: int, step: int, size: int | None = None) -> Segment:
        """The word after `step`; `size` means nothing here.  Unknown sentence: IndexError."""
        words = self.sources[sentence]
        if step >= len(words):
            return Segment(EOS, step, len(words) + 1)
        return Segment(words[step], step, step + 1)

    def length(self, sentence: int) -> int:
        """Words."""
        return len(self.sources[sentence])


@dataclass(frozen=True, slots=True)
class Recording:
    """A .wav file, its header read."""

    path: Path
    rate: int  # samples a second
    samples: int
    milliseconds: int

    def read(self, first: int, number: int) -> list[int]:
        """16-bit samples `first` to `first + number`, fewer at the end."""
        with wave.open(str(self.path), "rb") as file:
            file.setpos(min(first, self.samples))
            frames = file.readframes(number)
        return np.frombuffer(
            frames[: len(frames) // 2 * 2], dtype="<i2"
        ).tolist()  # a cut file can end in half a sample

    @property
    def duration(self) -> float:
        """ms, from the number of samples."""
        return self.samples * 1000 / self.rate

    def take(self, first: int, size: int) -> tuple[list[int], bool]:
        """Samples of `size` ms from `first` on, and whether the recording has fewer; a wrong size: Refused."""
        if not 1 <= size <= MAX_SEGMENT:
            raise Refused(500, f"segment_size must be 1 to {MAX_SEGMENT} ms, got {size}")
        number = math.ceil(size / 1000 * self.rate)
        return self.read(first, number), first + number > self.samples


@dataclass(frozen=True, slots=True)
class SpeechCorpus:
    """Recordings."""

    recordings: tuple[Recording, ...]
    targets: tuple[str, ...]
    kind: Literal["speech"] = "speech"

    def __len__(self) -> int:
        return len(self.recordings)

    def read(self, sentence: int, step: int, size: int | None = None) -> Segment:
        """Whole blocks after `step` ms, of `size` ms rounded down; a wrong size: Refused."""
        recording = self.recordings[sentence]
        size = BLOCK if size is None else size
        if not BLOCK <= size <= MAX_SEGMENT:
            raise Refused(500, f"segment_size must be {BLOCK} to {MAX_SEGMENT} ms, got {size}")
        if step >= recording.milliseconds:
            return Segment(EOS, step, step)
        blocks = size // BLOCK
        width = recording.rate // 1000 * BLOCK
        samples = recording.read(step // BLOCK * width, blocks * width)
        return Segment(samples, step, min(recording.milliseconds, step + blocks * BLOCK))

    def length(self, sentence: int) -> int:
        """ms."""
        return self.recordings[sentence].milliseconds


def load(
    source: Path | None, target: Path, kind: Literal["text", "speech"], strict: bool = False
) -> TextCorpus | SpeechCorpus:
    """The corpus of the files.  Files that do not fit each other: DataError; `strict` takes them as they are."""
    if kind == "speech" and target.suffix == ".json":
        return _speech_from_json(target)
    if source is None:
        raise DataError(f"a {kind} server needs a source file beside {target}")
    targets = _lines(target)
    sources = _lines(source)
    if len(sources) != len(targets) and not strict:
        raise DataError(f"{source} has {len(sources)} lines, {target} {len(targets)}; they must be line by line")
    if kind == "speech":
        recordings = tuple(_recording(Path(line), source) for line in sources)
        return SpeechCorpus(recordings, targets)
    for number, line in enumerate(sources, start=1):
        if EOS in line.split() and not strict:
            raise DataError(f"{source}:{number}: has the word {EOS}, which means the end of a sentence on the wire")
    return TextCorpus(tuple(tuple(line.split()) for line in sources), targets)


def _lines(path: Path) -> tuple[str, ...]:
    stripped = tuple(line.strip() for line in lines(path))
    if not stripped:
        raise DataError(f"{path}: is empty")
    return stripped


def _speech_from_json(path: Path) -> SpeechCorpus:
    """Recordings and texts of a data description in ESPnet's style."""
    try:
        content: Any = parse_json(path.read_bytes())
        utterances = list(content["utts"].values())
        rows = [
            (Path(item["input"]["path"].strip()), int(item["input"]["length_ms"]), item["output"]["text"].strip())
            for item in utterances
        ]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise DataError(
            f"{path}: expected utts[*].input.path, .input.length_ms and .output.text ({type(error).__name__}: {error})"
        ) from error
    if not rows:
        raise DataError(f"{path}: has no utterances")
    for number, (_, length, _) in enumerate(rows):
        if length < 1:
            raise DataError(f"{path}: utterance {number}: length_ms must be 1 or more, got {length}")
    recordings = tuple(_recording(wav, path, length) for wav, length, _ in rows)
    return SpeechCorpus(recordings, tuple(text for _, _, text in rows))


def _recording(path: Path, where: Path, milliseconds: int | None = None) -> Recording:
    """A recording that `where` names, its path relative to the working directory or to that file."""
    if not path.is_file():
        path = where.parent / path
    if not path.is_file():
        raise DataError(f"{where}: names {path}, which does not exist")
    try:
        with wave.open(str(path), "rb") as file:
            width, channels, rate, samples = (
                file.getsampwidth(),
                file.getnchannels(),
                file.getframerate(),
                file.getnframes(),
            )
    except (wave.Error, EOFError, RuntimeError) as error:  # the last of a header whose sizes lead past the end
        raise DataError(f"{path}: not a .wav file ({error or 'its header is damaged'})") from error
    if (width, channels) != (2, 1):
        raise DataError(f"{path}: must be 16-bit mono, is {8 * width}-bit with {channels} channels")
    if rate < LEAST_RATE:
        raise DataError(f"{path}: has {rate} samples a second; {LEAST_RATE} are the least")
    return Recording(path, rate, samples, samples * 1000 // rate if milliseconds is None else milliseconds)
