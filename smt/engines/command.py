"""Any command-line translator (one line in, one line out), made simultaneous by a policy of `smt.policies`.

    translator: {name: command, command: [apertium, -u, spa-eng], k: 6}
    translator: {name: command, command: [apertium, -u, spa-eng], policy: local-agreement, n: 2}

After every source word, the command retranslates the prefix read so far.  The policy decides which words are written.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from smt.policies.prefixes import PolicyConfig, PolicyK, PolicyN, PolicyTranslator, policy_of, simultaneous
from sqa.core import SOUGHT, ConfigError, DataError, File, Pair, Whole, certain_pair, checked, child_environment
from sqa.files import Cleaner, digest, file_digest

VERSION = 4  # increase when the same command yields different words
MAX_PROGRAM = 1 << 20  # bytes; only a smaller program, given by its path, is hashed for the fingerprint
TIMEOUT = 600  # seconds for one call of the command


@dataclass(frozen=True, slots=True)
@checked
class CommandConfig:
    """The program and the policy around it."""

    command: Annotated[tuple[File, ...], "program and arguments; must write one line to stdout per line of stdin"]
    k: PolicyK = "full"
    blank_lines: Annotated[Whole, "number of blank lines between sentences, which the program must return"] = 1
    separator: Annotated[str, "dummy line between sentences that resets the program; empty: none"] = ""
    policy: Annotated[PolicyConfig, "policy, see smt/policies/prefixes.py"] = "wait-k"
    n: PolicyN = None
    files: Annotated[tuple[File, ...] | None, "other files and folders that the program reads; [] = none"] = None

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        policy_of(self)
        if not self.command:
            return ["command: a program is needed, e.g. [apertium, -u, spa-eng]"]
        if self.separator != " ".join(self.separator.split()):
            return [f"separator: must be one line of words with single spaces, got {self.separator!r}"]
        return []


class Engine:
    """The command as a full-input system."""

    def __init__(self, config: CommandConfig) -> None:
        self.command, self.gap, self.separator = config.command, config.blank_lines + 1, config.separator
        self.languages = _languages(self.command)
        program = self.command[0]
        if shutil.which(program) is None:
            if not os.path.isfile(program):  # noqa: PTH113  # no OSError for long names
                raise ConfigError(f"command: {program!r} is not installed or not on PATH")
            if not os.access(program, os.X_OK):
                raise ConfigError(f"command: {program!r} is not executable; run `chmod +x {program}`")
            self.command = (f"./{program}", *self.command[1:])  # a file beside the config
        self.files = config.files or ()
        self._cleaner, self._told = Cleaner(f"command {' '.join(self.command)}"), False

    def words(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the target words of each text, from one call of the program."""
        name = f"command {' '.join(self.command)}: line"
        lines = [self._cleaner.line(f"{name} {n}", line) for n, line in enumerate(self._run(texts) if texts else (), 1)]
        if not self._told and self._cleaner.changed:  # once, since a run calls the program for each prefix
            self._told = True
            self._cleaner.report()
        return [tuple(line.split()) for line in lines]

    def fingerprint(self) -> str:
        """Return a hash of the command, the files it names (program path, scripts, models) and `files`.

        The hash does not cover the version of a program found through PATH.
        """
        named = [[index, file_digest(path)] for index, path in named_files(self.command)]
        files = [_digest_of(Path(file)) for file in self.files]
        return digest(["command", VERSION, self.command, self.gap, self.separator, named, files])

    def _run(self, texts: Sequence[str]) -> list[str]:
        between, lines_each = "\n" * self.gap, self.gap
        if self.separator:
            between, lines_each = f"{between}{self.separator}{between}", 2 * self.gap
        text = between.join(texts) + "\n"
        try:
            done = subprocess.run(
                self.command,
                input=text.encode(),
                capture_output=True,
                timeout=TIMEOUT,
                check=True,
                env=child_environment(),
            )
            printed_lines = done.stdout.decode("utf-8").rstrip("\n").split("\n")
        except (OSError, subprocess.SubprocessError, UnicodeDecodeError) as error:
            words = (getattr(error, "stderr", None) or b"").decode("utf-8", "replace").split()
            printed = f"; it printed: {' '.join(words)[-300:]}" if words else ""
            raise DataError(f"command {' '.join(self.command)}: {error}{printed}") from error
        lines, sent = printed_lines[::lines_each], lines_each * (len(texts) - 1) + 1
        if len(printed_lines) > sent:
            problem = f"printed {len(printed_lines)} lines for {sent}, among them {printed_lines[0][:40]!r}"
            raise DataError(f"command {' '.join(self.command)}: {problem}; print one line for each line read")
        missing = len(texts) - len(lines)
        if missing > 0 and all(not text.strip() for text in texts[len(lines) :]):
            lines.extend([""] * missing)
        if len(lines) != len(texts):
            raise DataError(f"command {' '.join(self.command)}: expected {len(texts)} lines, got {len(lines)}")
        return lines


def _languages(command: Sequence[str]) -> Pair | None:
    """Return the pair in an Apertium mode name (spa-eng), or None for other programs."""
    if Path(command[0]).name != "apertium":
        return None
    options = ("-d", "-f", "-m")  # options that take a value
    modes = (part for option, part in pairwise(command) if option not in options and not part.startswith("-"))
    pair = next(modes, "").split("-")
    return certain_pair(*pair) if len(pair) == 2 else None


def _digest_of(path: Path) -> object:
    """Return the digest of a file, or of each file in a folder by relative path.  Raises DataError if it is missing."""
    try:
        if path.is_dir():
            inside = sorted(file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
            return [[file.relative_to(path).as_posix(), file_digest(file)] for file in inside]
        return file_digest(path)
    except OSError as error:
        raise DataError(f"command: files: {path}: {error.strerror or error}; {SOUGHT}") from error


def named_files(command: Sequence[str]) -> Iterator[tuple[int, Path]]:
    """Yield (index, file) for each part of a command that names a file: PROGRAM by its path, FILE, --option=FILE.

    A program of at least MAX_PROGRAM bytes is treated as an interpreter and identified by its path.
    """
    for index, part in enumerate(command):
        path = Path(part if index == 0 or not part.startswith("-") else part.partition("=")[2])
        on_the_path = index == 0 and os.sep not in part
        is_file = not on_the_path and os.path.isfile(path)  # noqa: PTH113  # inline code may be longer than any name
        if is_file and (index or path.stat().st_size < MAX_PROGRAM):
            yield index, path


def build(config: CommandConfig) -> PolicyTranslator:
    """Return the translator of a config."""
    return simultaneous(Engine, config)
