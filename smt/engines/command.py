"""Any command-line translator (one line in, one line out) as a simultaneous system, by a policy of `smt.policies`.

    translator: {name: command, command: [apertium, -u, spa-eng], k: 6}
    translator: {name: command, command: [apertium, -u, spa-eng], policy: local-agreement, n: 2}

After every source word the prefix read so far is translated anew; the policy says what of that is written.
"""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from smt.policies.chosen import PolicyConfig, policy_of, simultaneous
from smt.policies.prefixes import PolicyTranslator
from sqa.core.errors import ConfigError, DataError, Whole, checked
from sqa.data.languages import Pair, certain_pair
from sqa.files.atomic import file_digest

VERSION = 2  # raise when the words that come from the same program change
MAX_PROGRAM = 1 << 20  # bytes of a program given by its path that are read for the fingerprint
TIMEOUT = 600  # seconds for one call of the command


@dataclass(frozen=True, slots=True)
@checked
class CommandConfig:
    """The program and the policy around it."""

    command: tuple[str, ...]  # program and arguments; reads lines on stdin, writes as many on stdout
    k: int | str = "full"  # wait-k: source WORDS read before the first target word, or "full"
    blank_lines: Whole = 1  # put between sentences and expected back, so that the program sees them apart
    separator: str = ""  # a line translated between sentences and dropped, for a program that remembers the last one
    policy: PolicyConfig = "wait-k"  # when to write what: see smt/policies/prefixes.py
    n: int | None = None  # local-agreement: translations that must agree (2); hold, retranslate: words held back

    def problems(self) -> list[str]:
        """Beside the bounds."""
        policy_of(self)
        if not self.command:
            return ["command: a program is needed, e.g. [apertium, -u, spa-eng]"]
        if self.separator != " ".join(self.separator.split()):
            return [f"separator: must be one line of words with single blanks, got {self.separator!r}"]
        return []


class Engine:
    """The program as a full-input system."""

    def __init__(self, config: CommandConfig) -> None:
        self.command, self.gap, self.separator = config.command, config.blank_lines + 1, config.separator
        self.languages = _languages(self.command)
        if shutil.which(self.command[0]) is None:
            raise ConfigError(f"command: {self.command[0]!r} is not installed or not on PATH")

    def words(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Target words of each text, from one call of the program."""
        return [tuple(line.split()) for line in self._run(texts)] if texts else []

    def fingerprint(self) -> str:
        """Hash of the command and of the files named in it: a program given by its path, scripts, models.

        The version of a program that is looked up on the PATH is not visible from here.
        """
        text = f"{VERSION} {self.command} {self.gap}" + f" {self.separator!r}" * bool(self.separator)
        for index, path in named_files(self.command):
            text += f" {index}:{file_digest(path)}"
        return hashlib.sha256(text.encode()).hexdigest()

    def _run(self, texts: Sequence[str]) -> list[str]:
        between, lines_each = "\n" * self.gap, self.gap
        if self.separator:
            between, lines_each = f"{between}{self.separator}{between}", 2 * self.gap
        text = between.join(texts) + "\n"
        try:
            done = subprocess.run(self.command, input=text.encode(), capture_output=True, timeout=TIMEOUT, check=True)
            lines = done.stdout.decode("utf-8").rstrip("\n").split("\n")[::lines_each]
        except (OSError, subprocess.SubprocessError, UnicodeDecodeError) as error:
            words = (getattr(error, "stderr", None) or b"").decode("utf-8", "replace").split()
            printed = f"; it printed: {' '.join(words)[-300:]}" if words else ""
            raise DataError(f"command {' '.join(self.command)}: {error}{printed}") from error
        missing = len(texts) - len(lines)
        if missing > 0 and all(not text.strip() for text in texts[len(lines) :]):
            lines.extend([""] * missing)
        if len(lines) != len(texts):
            raise DataError(f"command {' '.join(self.command)}: {len(lines)} lines came back for {len(texts)}")
        return lines


def _languages(command: Sequence[str]) -> Pair | None:
    """The pair of Apertium by the name of its mode, spa-eng; no other program's command says it for certain."""
    if Path(command[0]).name != "apertium":
        return None
    options = ("-d", "-f", "-m")  # that have a value
    modes = (part for option, part in pairwise(command) if option not in options and not part.startswith("-"))
    pair = next(modes, "").split("-")
    return certain_pair(*pair) if len(pair) == 2 else None


def named_files(command: Sequence[str]) -> Iterator[tuple[int, Path]]:
    """(index, file) of every part of a command that names a file: PROGRAM if given by its path, FILE, --option=FILE.

    A program of MAX_PROGRAM bytes or more is an interpreter, which is identified by its path.
    """
    for index, part in enumerate(command):
        path = Path(part if index == 0 or not part.startswith("-") else part.partition("=")[2])
        on_the_path = index == 0 and os.sep not in part
        if not on_the_path and _is_file(path) and (index or path.stat().st_size < MAX_PROGRAM):
            yield index, path


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a piece of code, say, longer than any name of a file
        return False


def build(config: CommandConfig) -> PolicyTranslator:
    """The translator of a config."""
    return simultaneous(Engine, config)
