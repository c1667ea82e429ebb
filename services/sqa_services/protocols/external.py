"""An external program as a metric, over the SCORE/EVAL protocol of cdec and METEOR.

    SCORE ||| reference ||| ... ||| hypothesis   ->  numbers of one segment
    EVAL ||| numbers                             ->  cdec: a score of numbers that were summed over segments
    EVAL ||| numbers ||| numbers                 ->  METEOR 1.5: a score for each group of numbers and one for all

A test request shows which form of EVAL a program implements.  Only cdec's statistics are additive: METEOR's score of
all groups differs from its score of their sum.

The program is started without a shell and must answer one SCORE line before anything else.  A program that dies,
stalls, or writes too much or no numbers raises a RemoteProtocolError that quotes its output.

METEOR 1.5 (Denkowski and Lavie 2014) is the original Java program, called over its -stdio protocol.  The package
pycocoevalcap (extra "metrics") ships the jar and its English paraphrases.  METEOR's 23 statistics are not exactly
additive: its corpus score leaves out the chunks of segments that match perfectly (`MeteorStats.addStats`).
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from select import select
from tempfile import TemporaryFile
from threading import Event, Timer
from typing import IO, TYPE_CHECKING, Annotated, TypeVar

import numpy as np

from sqa.core import File, child_environment, lacking
from sqa.core.errors import ConfigError, DataError, NotComputable, RemoteProtocolError, SqaError
from sqa.files import digest, file_digest
from sqa.metrics.quality.text_metric import Segment, segment_of

if TYPE_CHECKING:
    from sqa.core import QuestionTrace

T = TypeVar("T")

HANDSHAKE = "SCORE ||| Reference initialization string . ||| Testing initialization string ."  # cdec's first line
START_SECONDS = 600.0  # seconds for the first reply, while the program loads its data
REPLY_SECONDS = 120.0  # seconds for every other reply
LINE_LIMIT = 1 << 20  # maximum bytes of one reply
SHOWN = 300  # maximum number of characters of a wrong reply or of stderr in an error message


@dataclass(frozen=True, slots=True)
class ExternalConfig:
    """Configuration of an external program and its score."""

    command: Annotated[tuple[File, ...], "program and arguments; no shell"]
    higher_is_better: Annotated[bool, "false for an error rate"] = True
    name: Annotated[str, 'in the report; "" = external:PROGRAM'] = ""

    def __post_init__(self) -> None:
        if not self.name and self.command:
            object.__setattr__(self, "name", f"external:{Path(self.command[0]).name}")
        if not self.command or not self.command[0]:
            raise ConfigError("external.command: a program is needed, e.g. [./my_metric, --quiet]")


def check_text(text: str) -> str:
    """Return the text.  Raises DataError if it contains `|||` or a line ending, which the protocol cannot carry."""
    for mark in ("|||", "\n", "\r"):
        if mark in text:
            what = f"holds {mark!r}, which its protocol cannot carry"
            raise DataError(f"text for an external metric {what}: {text[:80]!r}")
    return text


class External:
    """A running program; use it as a context manager, or close it."""

    def __init__(self, config: ExternalConfig, process: subprocess.Popen[bytes], complaints: IO[bytes]) -> None:
        """Wrap a started process; `complaints` is the file that receives the program's stderr."""
        self.config, self.process, self._complaints = config, process, complaints
        self.size, self.additive = 0, True  # number of statistics per segment; whether EVAL accepts their sum
        self._out = b""  # unread output of the program
        assert process.stdin and process.stdout
        self._stdin, self._stdout = process.stdin, process.stdout

    @classmethod
    def start(cls, config: ExternalConfig) -> External:
        """Start the program and perform the handshake.  Raises ConfigError if it cannot be started."""
        pipe, complaints, environment = subprocess.PIPE, TemporaryFile(), child_environment()
        try:
            process = subprocess.Popen(
                config.command, bufsize=0, stdin=pipe, stdout=pipe, stderr=complaints, env=environment
            )
        except OSError as error:
            raise ConfigError(f"external.command: {config.command[0]!r} cannot be started: {error.strerror}") from error
        program = cls(config, process, complaints)
        try:
            program._shake_hands()
        except SqaError:
            program.close()
            raise
        return program

    def __enter__(self) -> External:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def stats(self, references: Sequence[str], hypothesis: str) -> list[float]:
        """Return the program's statistics of one segment, a list of `size` numbers.

        Raises DataError if the protocol cannot carry the text.
        """
        if not references:
            raise DataError("an external metric needs at least one reference")
        fields = [check_text(text) for text in (*references, hypothesis)]
        # METEOR needs the space before an empty hypothesis.
        line = "SCORE" + "".join(f" ||| {field}" for field in fields)
        [reply] = self._ask([line], 1)
        stats = self._numbers(reply)
        if len(stats) != self.size:
            raise self._broken(f"{self.size} statistics at first, now {len(stats)}: {reply[:SHOWN]!r}")
        return stats

    def scores(self, groups: Sequence[Sequence[float]]) -> list[float]:
        """Return the score of each group of `size` statistics, and then the score of all groups together.

        A program that answers EVAL with one line receives one request per group, and one for the sum of all groups.
        """
        if not groups or any(len(group) != self.size for group in groups):
            raise DataError(f"external metric {self.config.command[0]}: expected groups of {self.size} statistics")
        if not self.additive:
            return [self._number(reply) for reply in self._ask([eval_request(groups)], len(groups) + 1)]
        together = np.sum(np.asarray(groups, dtype=np.float64), axis=0)
        asked = groups if len(groups) == 1 else [*groups, together]
        scores = [self._number(self._ask([eval_request([group])], 1)[0]) for group in asked]
        return scores * 2 if len(groups) == 1 else scores

    def close(self) -> None:
        """Close the program's input, and kill the program if it does not exit."""
        for stream in (self._stdin, self._stdout, self._complaints):
            stream.close()
        try:
            self.process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _shake_hands(self) -> None:
        [reply] = self._ask([HANDSHAKE], 1, START_SECONDS)
        stats = self._numbers(reply)
        if not stats:
            raise self._broken("an empty reply to its first SCORE line")
        self.size = len(stats)
        if self.size > 1:
            # The reply to the SCORE line is longer than a score, so it shows how many lines EVAL returned.
            first, second = self._ask([eval_request([stats]), HANDSHAKE], 2)
            self._number(first)
            self.additive = len(second.split()) > 1
            if not self.additive:
                self._ask([], 1)

    def _numbers(self, reply: str) -> list[float]:
        try:
            stats = [float(word) for word in reply.split()]
        except ValueError:
            stats = [math.nan]
        if not all(map(math.isfinite, stats)):
            raise self._broken(f"expected numbers, got {reply[:SHOWN]!r}")
        return stats

    def _number(self, reply: str) -> float:
        numbers = self._numbers(reply)
        if len(numbers) != 1:
            raise self._broken(f"expected one score, got {reply[:SHOWN]!r}")
        return numbers[0]

    def _broken(self, problem: str) -> RemoteProtocolError:
        """Return an error that quotes the program's remaining output."""
        self._complaints.seek(max(0, self._complaints.seek(0, os.SEEK_END) - SHOWN))
        complained = self._complaints.read().decode("utf-8", "replace").strip()
        on_stderr = f"; on stderr: {complained!r}" if complained else ""
        on_stdout = f"; its output: {self._out[:SHOWN].decode('utf-8', 'replace')!r}" if self._out else ""
        return RemoteProtocolError(f"external metric {self.config.command[0]}: {problem}{on_stderr}{on_stdout}")

    def _ask(self, requests: Sequence[str], replies: int, seconds: float | None = None) -> list[str]:
        """Send lines and read exactly `replies` lines; kill a program that does not reply in time."""
        late = Event()

        def give_up() -> None:
            late.set()
            self.process.kill()

        timer = Timer(REPLY_SECONDS if seconds is None else seconds, give_up)
        timer.start()
        try:
            if requests and select([self._stdout], [], [], 0)[0]:
                self._out += self._stdout.read(1 << 16)
            if requests and self._out:
                raise self._broken("wrote output without a request")
            with suppress(BrokenPipeError):  # the end of the output gives more details
                self._stdin.write("".join(f"{line}\n" for line in requests).encode())
            while self._out.count(b"\n") < replies:
                said = self._stdout.read(1 << 16)
                if not said:
                    raise self._broken("no reply in time" if late.is_set() else f"ended{self._status()}")
                self._out += said
                if len(self._out) > LINE_LIMIT * replies:
                    raise self._broken("a reply that is too long")
        finally:
            timer.cancel()
        *lines, self._out = self._out.split(b"\n", replies)
        return [line.decode("utf-8", "replace").strip() for line in lines]

    def _status(self) -> str:
        try:
            return f" with exit code {self.process.wait(timeout=1)}"
        except subprocess.TimeoutExpired:
            return " its output"


def eval_request(groups: Sequence[Sequence[float]]) -> str:
    """Return `EVAL ||| numbers ||| numbers`, with all digits that are needed to parse the same numbers."""
    return "EVAL" + "".join(" ||| " + " ".join(repr(float(value)) for value in group) for group in groups)


class ExternalMetric:
    """An external program as a metric of runs.  stats = [the program's statistics of one question, 1], (size + 1,).

    The statistics of a program with METEOR's EVAL are not additive: the program scores all questions together
    (`score_all`), and a sum of several questions has no score, hence no interval.  The program is started at the first
    use and ended with this object.
    """

    unit, digits, kind = "score", 3, "quality"

    def __init__(self, config: ExternalConfig) -> None:
        self.config = config
        self.name = self.label = config.name
        self.higher_is_better = config.higher_is_better
        self._files = _files_digest(config.command)

    @cached_property
    def program(self) -> External:
        """The running program."""
        started = External.start(self.config)
        weakref.finalize(self, started.close)
        return started

    def signature(self) -> str:
        command = " ".join(Path(word).name if Path(word).is_file() else word for word in self.config.command)
        return f"{self.name}|segment:question|together:EVAL|command:{command}|files:{self._files[:12] or 'none'}"

    def fingerprint(self) -> str:
        """Return a hash of the command and its files; a program that changes in another way needs a new name."""
        return digest(["external", self.name, self.config.command, self._files])

    def measure(self, segments: Sequence[Segment]) -> list[tuple[float, ...]]:
        """Return the program's statistics of each segment, with a 1 appended."""
        return self._ask(lambda program: [(*program.stats([s.reference], s.hypothesis), 1.0) for s in segments])

    def stats(self, trace: QuestionTrace) -> np.ndarray:
        return np.array(self.measure([segment_of(trace)])[0], dtype=np.float64)

    def score(self, stats: np.ndarray) -> float:
        """Return the score of summed statistics of shape (size + 1,).  Raises NotComputable if the sum has no score."""
        value = float(self.score_many(stats[None])[0])
        if math.isnan(value):
            why = (
                "its program's statistics do not add over questions"
                if stats[-1] > 0
                else "there is no question to score"
            )
            raise NotComputable(f"{self.name}: {why}")
        return value

    def score_many(self, stats: np.ndarray) -> np.ndarray:
        """Return the program's scores (B,) of sums of statistics (B, size + 1).

        The score is NaN for a sum of no questions, and for several questions if the statistics are not additive.
        """
        scores = np.full(len(stats), np.nan)
        most = np.inf if self._ask(lambda program: program.additive) else 1
        scored = (stats[:, -1] > 0) & (stats[:, -1] <= most)
        if scored.any():
            scores[scored] = self._ask(lambda program: program.scores(stats[scored, :-1].tolist())[:-1])
        return scores

    def score_all(self, stats: np.ndarray) -> float:
        """Return the program's score of all questions together; `stats` has shape (n, size + 1)."""
        return self._ask(lambda program: program.scores(stats[:, :-1].tolist())[-1])

    def _ask(self, question: Callable[[External], T]) -> T:
        """Call `question` with the program; after a protocol error, the next call starts the program again."""
        try:
            return question(self.program)
        except RemoteProtocolError:
            self.__dict__.pop("program", None)
            raise


def _files_digest(command: Sequence[str]) -> str:
    """Return the SHA-256 of all files among the program and its arguments, or "" without any."""
    paths = [Path(word) for word in (shutil.which(command[0]), *command[1:]) if word and Path(word).is_file()]
    return digest([file_digest(path) for path in paths]) if paths else ""


def build(config: ExternalConfig) -> ExternalMetric:
    """Return the metric of a config without starting its program.  Raises ConfigError if the program does not exist."""
    if shutil.which(config.command[0]) is None:
        raise ConfigError(f"external.command: {config.command[0]!r} is not a program that can be started")
    return ExternalMetric(config)


DEFAULT_ARGUMENTS = ("-l", "en", "-norm")  # recommendation of METEOR's authors for plain text
HTER_ARGUMENTS = ("-l", "en", "-t", "hter")  # alpha .40 beta 1.50 gamma .35 delta .55, text unchanged


def meteor_jar() -> Path:
    """Return the path of meteor-1.5.jar; its data folder is in the same directory."""
    package = find_spec("pycocoevalcap")
    if package is None or not package.submodule_search_locations:
        raise lacking("pycocoevalcap", "METEOR")
    return Path(package.submodule_search_locations[0], "meteor", "meteor-1.5.jar")


def meteor_command(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the command line of METEOR with the -stdio protocol.  Raises ConfigError if Java or METEOR is missing."""
    java = shutil.which("java")
    if java is None:
        problem = "METEOR needs Java, but no java is on PATH: install a Java runtime (17 is tested)"
        raise ConfigError(problem)
    return (java, "-Xmx2G", "-XX:+UseSerialGC", "-jar", str(meteor_jar()), "-", "-", "-stdio", *arguments)


def start_meteor(arguments: Sequence[str] = DEFAULT_ARGUMENTS) -> External:
    """Start METEOR and return the running program, which the caller must close."""
    return External.start(ExternalConfig(meteor_command(arguments)))
