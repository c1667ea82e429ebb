"""Any command-line translator (one line in, one line out) as a simultaneous system, by a policy of `smt.policies`.

    translator: {name: command, command: [apertium, -u, spa-eng], k: 6}
    translator: {name: command, command: [apertium, -u, spa-eng], policy: local-agreement, n: 2}

After every source word the prefix read so far is translated anew; the policy says what of that is written.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from smt.policies.chosen import PolicyConfig, policy_of, simultaneous
from smt.policies.prefixes import PolicyTranslator
from sqa.core.errors import ConfigError, DataError, Whole, checked
from sqa.core.paths import SOUGHT, File
from sqa.data.languages import Pair, certain_pair
from sqa.files.atomic import file_digest
from sqa.files.store import digest

VERSION = 2  # raise when the words that come from the same program change
MAX_PROGRAM = 1 << 20  # bytes of a program given by its path that are read for the fingerprint
_INTERPRETER = re.compile(r"(python|pypy|perl|ruby|node|deno|java|php|lua|Rscript|julia|bash|dash|zsh|sh|env)[\d.]*$")
TIMEOUT = 600  # seconds for one call of the command


@dataclass(frozen=True, slots=True)
@checked
class CommandConfig:
    """The program and the policy around it."""

    command: tuple[File, ...]  # program and arguments; reads lines on stdin, writes as many on stdout
    k: int | str = "full"  # wait-k: source WORDS read before the first target word, or "full"
    blank_lines: Whole = 1  # put between sentences and expected back, so that the program sees them apart
    separator: str = ""  # a line translated between sentences and dropped, for a program that remembers the last one
    policy: PolicyConfig = "wait-k"  # when to write what: see smt/policies/prefixes.py
    n: int | None = None  # local-agreement: translations that must agree (2); hold, retranslate: words held back
    files: tuple[File, ...] | None = None  # what else the program reads: modules, models, folders; [] = nothing

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
        self.files = config.files or ()

    def words(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Target words of each text, from one call of the program."""
        return [tuple(line.split()) for line in self._run(texts)] if texts else []

    def fingerprint(self) -> str:
        """Hash of the command, of the files named in it (a program given by its path, scripts, models) and of `files`.

        The version of a program that is looked up on the PATH is not visible from here.
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


def _digest_of(path: Path) -> object:
    """The digest of a file, or of each file of a folder by its path in it.  Missing: DataError."""
    try:
        if path.is_dir():
            inside = sorted(file for file in path.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
            return [[file.relative_to(path).as_posix(), file_digest(file)] for file in inside]
        return file_digest(path)
    except OSError as error:
        raise DataError(f"command: files: {path}: {error.strerror or error}; {SOUGHT}") from error


def _is_interpreted(program: str) -> bool:
    """Return whether a program is an interpreter, or a script that is given by its path."""
    if _INTERPRETER.match(Path(program).name) or os.sep not in program:
        return _INTERPRETER.match(Path(program).name) is not None
    with Path(program).open("rb") as file:
        return file.read(2) == b"#!"


def named_files(command: Sequence[str]) -> Iterator[tuple[int, Path]]:
    """Yield (index, file) of each part of a command that names a file: PROGRAM by its path, FILE, --option=FILE.

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
    """The translator of a config.  A program that may import more than its command names: a line on stderr."""
    if config.files is None and config.command and _is_interpreted(config.command[0]):
        unseen = "results are kept under the files that it names, not under what these import or load"
        print(f"sqa: command {' '.join(config.command)}: {unseen}; say that in `files` ([]: nothing)", file=sys.stderr)
    return simultaneous(Engine, config)
