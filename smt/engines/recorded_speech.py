"""Logs of speech translation systems (`smt.engines.speech_logs`) as translators of questions with word times.

g(j) is the number of source words spoken when target word j was written.  A source word counts if its entry in the
question's `word_times` is at most a microsecond after that time.  The inverse of equation 1 gives the sentence of a
word (`sqa.core.trace.by_sentence`), as for logs of whole questions.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path

from smt.engines.speech_logs import Recording, read, recording_name
from sqa.core.errors import DataError
from sqa.core.trace import by_sentence
from sqa.core.types import Emission, Question
from sqa.files.logs import Pieces
from sqa.files.store import digest

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
        for question in questions:
            if question.id not in self._of:
                raise DataError(f"{self.path}: not yet compared with the data set of question {question.id}")
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
