"""Metrics of this project for programs that use the SCORE/EVAL protocol of cdec and METEOR: `sqa scorer bleu`.

    SCORE ||| reference ||| ... ||| hypothesis   ->  sufficient statistics, which are additive over segments
    EVAL ||| statistics ||| ... ||| statistics   ->  the score of their sum
    SING ||| statistics                          ->  the score

Every line is answered immediately.  The reply to a line that cannot be answered begins with "Error: ".  Scores are
sacrebleu's, 0 to 100 (TER: 0 is best).  METEOR is a separate jar with its own variant of the protocol (`external`).
"""

import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import BinaryIO

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from sqa.core import ConfigError, DataError
from sqa_services.protocols.external import DEFAULT_ARGUMENTS, HANDSHAKE, meteor_command

LINE_LIMIT = 1 << 20  # maximum bytes of a request
NO_REFERENCE = "Error: specify hypothesis and at least one reference"
UNKNOWN = "Error: specify SCORE or EVAL or SING"

# cdec of 2011 sends the sentences of HANDSHAKE with EVAL instead of SCORE, and accepts any non-empty reply.
OLD_HANDSHAKE = HANDSHAKE.split("|||")[1:]


SACREBLEU: Mapping[str, tuple[str, type[Metric]]] = {
    "bleu": ("BLEU", BLEU),
    "chrf": ("chrF", CHRF),
    "ter": ("TER", TER),
}


class Scorer:
    """A metric that answers one line at a time and keeps no state between lines."""

    def __init__(self, metric: str) -> None:
        """Create the scorer of a metric.  Raises ConfigError if the metric is unknown."""
        if metric not in SACREBLEU:
            raise ConfigError(f"scorer: no metric {metric!r}; choose from {', '.join(SACREBLEU)}, meteor")
        self.name, kind = SACREBLEU[metric]
        self._metric = kind()
        self.size = len(self._statistics(["-"], "-"))

    def reply(self, line: str) -> str:
        """Return the reply to a line, without the line ending."""
        fields = line.split("|||")[1:]
        for command, answer in (("SCORE", self._stats), ("EVAL", self._eval), ("SING", self._sing)):
            if line.startswith((command, command.lower())):
                try:
                    return answer(fields)
                except DataError as error:
                    return f"Error: {error}"
        return UNKNOWN

    def _stats(self, fields: list[str]) -> str:
        if len(fields) < 2:
            return NO_REFERENCE
        *references, hypothesis = (field.strip() for field in fields)
        return " ".join(map(_shown, self._statistics(references, hypothesis)))

    def _eval(self, fields: list[str]) -> str:
        if fields == OLD_HANDSHAKE:
            return self._stats(fields)
        return self._score([field for field in fields if field.strip()])

    def _sing(self, fields: list[str]) -> str:
        return self._score(fields if len(fields) == 1 and fields[0].strip() else [])

    def _statistics(self, references: Sequence[str], hypothesis: str) -> list[float]:
        """Return the statistics that sacrebleu sums over a corpus, a list of `size` numbers."""
        [stats] = self._metric._extract_corpus_statistics([hypothesis], [[reference] for reference in references])
        return [float(value) for value in stats]

    def _score(self, groups: Sequence[str]) -> str:
        """Return the score of the sum of groups of statistics."""
        if not groups:
            raise DataError(f"specify {self.name} stats")
        columns = zip(*(self._numbers(group.split()) for group in groups), strict=True)
        total = [math.fsum(values) for values in columns]
        whole = [int(value) if value.is_integer() else value for value in total]  # tuners may send averages
        return _shown(float(self._metric._compute_score_from_stats(whole).score))

    def _numbers(self, words: list[str]) -> list[float]:
        try:
            numbers = [float(word) for word in words]
        except ValueError:
            numbers = []
        if len(numbers) != self.size or not all(math.isfinite(number) and number >= 0 for number in numbers):
            problem = f"{self.size} {self.name} stats expected, finite and not below 0"
            raise DataError(f"{problem}, got {' '.join(words)[:80]!r}")
        return numbers


def _shown(value: float) -> str:
    """Format a number for a reply."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)


def serve(scorer: Scorer, requests: BinaryIO, replies: BinaryIO) -> bool:
    """Reply to every line of `requests`; return True at their end, or False if `replies` was closed by its reader."""
    while line := requests.readline(LINE_LIMIT + 1):
        if len(line) > LINE_LIMIT:
            while not line.endswith(b"\n") and (line := requests.readline(LINE_LIMIT)):
                pass
            reply = f"Error: a line of more than {LINE_LIMIT} bytes"
        else:
            try:
                reply = scorer.reply(line.decode("utf-8").rstrip("\r\n"))
            except UnicodeDecodeError:
                reply = "Error: a line that is not UTF-8"
        try:
            replies.write(reply.encode() + b"\n")
            replies.flush()
        except BrokenPipeError:
            return False
    return True


def main(metric: str, arguments: Sequence[str] = ()) -> int:
    """Serve a metric on stdin and stdout; METEOR's jar serves itself, with its own arguments."""
    if metric == "meteor":
        return subprocess.call(meteor_command(arguments or DEFAULT_ARGUMENTS))
    if arguments:
        raise ConfigError(f"scorer {metric}: takes no further arguments, got {' '.join(arguments)}")
    if not serve(Scorer(metric), sys.stdin.buffer, sys.stdout.buffer):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # avoids Python's error message at exit
    return 0
