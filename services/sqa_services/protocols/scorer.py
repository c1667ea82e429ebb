"""Our metrics for programs that speak the SCORE/EVAL protocol of cdec and METEOR: `sqa scorer bleu`.

    SCORE ||| reference ||| ... ||| hypothesis   ->  sufficient statistics, which add over segments
    EVAL ||| statistics                          ->  the score, or of METEOR 1.5 one line for each group and one for all
    EVAL ||| statistics ||| statistics               together
    SING ||| statistics                          ->  the score on one line, in either dialect

Every line gets its reply at once.  What cannot be answered gets one line that begins with "Error: ", and the next line
is a new one.  Scores are sacrebleu's, 0 to 100 (TER: 0 is best); METEOR's are its own, 0 to 1.
"""

import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import BinaryIO

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from sqa.core.errors import ConfigError, DataError
from sqa_services.protocols import meteor
from sqa_services.protocols.external import HANDSHAKE
from sqa_services.protocols.java import BLANKS

LINE_LIMIT = 1 << 20  # bytes of a request
NO_REFERENCE = "Error: specify hypothesis and at least one reference"
UNKNOWN = "Error: specify SCORE or EVAL or SING"

# cdec of 2011 sent the two sentences of its first line with EVAL; it wants any answer but an empty one
OLD_HANDSHAKE = HANDSHAKE.split("|||")[1:]


class Sacrebleu:
    """A metric of sacrebleu; its statistics are those that sacrebleu itself adds up over a corpus."""

    def __init__(self, name: str, scorer: Metric) -> None:
        self.name, self.scorer = name, scorer
        self.size = len(self.stats(["-"], "-"))

    def stats(self, references: Sequence[str], hypothesis: str) -> list[float]:
        """(size,) of the segment; with several references what sacrebleu makes of them."""
        [stats] = self.scorer._extract_corpus_statistics([hypothesis], [[reference] for reference in references])
        return [float(value) for value in stats]

    def scores(self, groups: Sequence[Sequence[float]]) -> list[float]:
        """Return a score for every group, and one for all of them together."""
        total = [math.fsum(values) for values in zip(*groups, strict=True)]
        return [self._score(group) for group in (*groups, total)]

    def text(self, value: float) -> str:
        """Return a number as it is sent."""
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)

    def close(self) -> None:
        pass

    def _score(self, stats: Sequence[float]) -> float:
        if min(stats) < 0:
            raise DataError(f"{self.name} stats that no segments have: a number below 0")
        whole = [int(value) if value.is_integer() else value for value in stats]  # a tuner may send averages
        return float(self.scorer._compute_score_from_stats(whole).score)


SACREBLEU: Mapping[str, tuple[str, type[Metric]]] = {
    "bleu": ("BLEU", BLEU),
    "chrf": ("chrF", CHRF),
    "ter": ("TER", TER),
}


Backend = Sacrebleu | meteor.Meteor


def backend(metric: str, arguments: Sequence[str] = ()) -> Backend:
    """Return the program behind a metric; METEOR is started, with arguments of its jar.  Raises ConfigError."""
    if metric == "meteor":
        return meteor.Meteor(meteor.start(arguments or meteor.DEFAULT_ARGUMENTS))
    if metric not in SACREBLEU:
        raise ConfigError(f"scorer: no metric {metric!r}; there are {', '.join(SACREBLEU)}, meteor")
    if arguments:
        raise ConfigError(f"scorer {metric}: takes no further arguments, got {' '.join(arguments)}")
    name, scorer = SACREBLEU[metric]
    return Sacrebleu(name, scorer())


class Scorer:
    """Answers lines, one at a time; keeps nothing from one to the next."""

    def __init__(self, answers: Backend, each: bool) -> None:
        self.backend, self.each = answers, each

    def reply(self, line: str) -> str:
        """The reply to a line, without its last line end."""
        fields = line.split("|||")[1:]
        for command, answer in (("SCORE", self._stats), ("EVAL", self._scores), ("SING", self._single)):
            if line.startswith((command, command.lower())):
                try:
                    return answer(fields)
                except DataError as error:
                    return f"Error: {error}"
        return UNKNOWN

    def _stats(self, fields: list[str]) -> str:
        if len(fields) < 2:
            return NO_REFERENCE
        *references, hypothesis = (field.strip(BLANKS) for field in fields)
        return " ".join(map(self.backend.text, self.backend.stats(references, hypothesis)))

    def _scores(self, fields: list[str]) -> str:
        words = [field.split() for field in fields if field.strip()]
        if not words:
            return f"Error: specify {self.backend.name} stats"
        if fields == OLD_HANDSHAKE:
            return self._stats(fields)
        scores = self.backend.scores(list(map(self._numbers, words)))
        return "\n".join(map(self.backend.text, scores)) if self.each else self.backend.text(scores[-1])

    def _single(self, fields: list[str]) -> str:
        if len(fields) != 1 or not fields[0].strip():
            return f"Error: specify {self.backend.name} stats"
        return self.backend.text(self.backend.scores([self._numbers(fields[0].split())])[0])

    def _numbers(self, words: list[str]) -> list[float]:
        try:
            numbers = [float(word) for word in words]
        except ValueError:
            numbers = []
        if len(numbers) != self.backend.size or not all(map(math.isfinite, numbers)):
            raise DataError(f"{self.backend.size} {self.backend.name} stats expected, got {' '.join(words)[:80]!r}")
        return numbers


def serve(scorer: Scorer, requests: BinaryIO, replies: BinaryIO) -> bool:
    """Answers every line of `requests` until they end (True), or until the replies' reader is gone (False)."""
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


def main(metric: str, arguments: Sequence[str] = ()) -> None:
    """Serves a metric on stdin and stdout."""
    answers = backend(metric, arguments)
    try:
        was_read = serve(Scorer(answers, metric == "meteor"), sys.stdin.buffer, sys.stdout.buffer)
    finally:
        answers.close()
    if not was_read:  # or Python would complain at its end about what it could not write
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
