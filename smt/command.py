"""Any command-line translator (one line in, one line out) as a simultaneous system, by prefix wait-k.

    translator: {name: command, command: [apertium, -u, spa-eng], k: 6}

After every source word the prefix read so far is translated anew; target word j is committed from the translation of
the first k + j - 1 words, and never revised.  At the end of the sentence the rest of the full translation follows.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from smt.waitk import FULL, parse_k
from sqa.errors import ConfigError, DataError
from sqa.types import Emission, Question

VERSION = 1  # raise when the policy changes its output
TIMEOUT = 600  # seconds for one call of the command


@dataclass(frozen=True, slots=True)
class CommandConfig:
    """The program and the policy around it."""

    command: tuple[str, ...]  # program and arguments; reads lines on stdin, writes as many on stdout
    k: int | str = "full"  # source WORDS read before the first target word, or "full"
    blank_lines: int = 1  # put between sentences and expected back, so that the program sees them apart

    def __post_init__(self) -> None:
        parse_k(self.k)
        if not self.command:
            raise ConfigError("command: a program is needed, e.g. [apertium, -u, spa-eng]")
        if self.blank_lines < 0:
            raise ConfigError(f"blank_lines: must be >= 0, got {self.blank_lines}")


class Engine:
    """The program; remembers what it translated, for prefixes recur between sentences and values of k."""

    def __init__(self, command: tuple[str, ...], blank_lines: int) -> None:
        self.command, self.gap = command, blank_lines + 1
        self._known: dict[str, tuple[str, ...]] = {}
        if shutil.which(command[0]) is None:
            raise ConfigError(f"command: {command[0]!r} is not installed or not on PATH")

    def words(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Target words of each text, from one call of the program for all that are new."""
        new = list(dict.fromkeys(text for text in texts if text not in self._known))
        if new:
            for text, line in zip(new, self._run(new), strict=True):
                self._known[text] = tuple(line.split())
        return [self._known[text] for text in texts]

    def _run(self, texts: Sequence[str]) -> list[str]:
        text = ("\n" * self.gap).join(texts) + "\n"
        try:
            done = subprocess.run(self.command, input=text.encode(), capture_output=True, timeout=TIMEOUT, check=True)
            lines = done.stdout.decode("utf-8").rstrip("\n").split("\n")[:: self.gap]
        except (OSError, subprocess.SubprocessError, UnicodeDecodeError) as error:
            raise DataError(f"command {' '.join(self.command)}: {error}") from error
        missing = len(texts) - len(lines)
        if missing > 0 and all(not text.strip() for text in texts[len(lines) :]):
            lines.extend([""] * missing)
        if len(lines) != len(texts):
            raise DataError(f"command {' '.join(self.command)}: {len(lines)} lines came back for {len(texts)}")
        return lines


@lru_cache(maxsize=8)
def engine(command: tuple[str, ...], blank_lines: int) -> Engine:
    """One engine per command, so that runs with different k share its memory."""
    return Engine(command, blank_lines)


class CommandTranslator:
    """Prefix wait-k around an `Engine`."""

    def __init__(self, config: CommandConfig) -> None:
        self.config, self.k = config, parse_k(config.k)
        self.engine = engine(config.command, config.blank_lines)

    def translate(self, source: Iterator[str]) -> Iterator[str]:
        """Words of one sentence, written while `source` is read."""
        read: list[str] = []
        written = 0
        for word in source:
            read.append(word)
            if len(read) >= self.k:
                hypothesis = self.engine.words([" ".join(read)])[0]
                if len(hypothesis) > written:
                    yield hypothesis[written]
                    written += 1
        if read:
            yield from self.engine.words([" ".join(read)])[0][written:]

    def translate_batch(self, questions: Sequence[Question]) -> list[list[Emission]]:
        """Emissions of whole questions, all prefixes in one call of the program."""
        sentences = [sentence for question in questions for sentence in question.sentences]
        texts = [
            " ".join(sentence[:n])
            for sentence in sentences
            for n in range(min(self.k, len(sentence)), len(sentence) + 1)
        ]
        known = dict(zip(texts, self.engine.words(texts), strict=True))
        return [
            [emission for i, sentence in enumerate(question.sentences) for emission in self._policy(i, sentence, known)]
            for question in questions
        ]

    def _policy(self, index: int, sentence: Sequence[str], known: dict[str, tuple[str, ...]]) -> list[Emission]:
        emissions: list[Emission] = []
        for n in range(min(self.k, len(sentence)), len(sentence) + 1):
            hypothesis = known[" ".join(sentence[:n])]
            if n >= self.k and len(hypothesis) > len(emissions):
                emissions.append(Emission(index, hypothesis[len(emissions)], n, False))
        rest = known[" ".join(sentence)][len(emissions) :]
        return emissions + [Emission(index, word, len(sentence), True) for word in rest]

    def fingerprint(self) -> str:
        """Hash of the command and the policy (the program's own version is not visible from here)."""
        key = f"{VERSION} {self.config.command} {self.config.blank_lines} {min(self.k, FULL)}"
        return hashlib.sha256(key.encode()).hexdigest()


def build(config: CommandConfig) -> CommandTranslator:
    """The translator of a config."""
    return CommandTranslator(config)
