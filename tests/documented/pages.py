"""README.md and the pages of docs/, split into prose, blocks and commands."""

import itertools
import re
import shlex
from collections.abc import Iterator
from typing import Any

from sqa import cli
from sqa.core import ROOT

PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))
HEADS = ("sqa", "make", "python")  # first words of the project's commands
_COMMAND = re.compile(r"(?:^|[|;&] *)(?:[A-Z_]+=\S+ )*(?:sqa|make|python -m) ")
_SETTING = re.compile(r"[A-Z_]+=.*")  # an environment variable before a command


def blocks(text: str) -> tuple[str, list[str]]:
    """Return the prose of a page and the lines of its indented and fenced blocks."""
    prose, code, fenced, before = [], [], False, ""
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced or (line.startswith("    ") and (before == "" or before.startswith("    "))):
            code.append(line.strip())
        else:
            prose.append(line)
        before = line
    return "\n".join(prose), code


def commands(text: str) -> Iterator[tuple[list[str], bool]]:
    """Yield the words of every command of the project on a page, and whether it can be typed as it is."""
    prose, code = blocks(text)
    for line in code:
        typed, two_blanks, _ = re.sub(r"\s+#.*", "", line.removeprefix("$ ")).partition("  ")
        complete = not two_blanks and "..." not in typed
        for part in typed.split(", sqa "):
            yield from _spelled(part if part.startswith("sqa ") or part is typed else f"sqa {part}", complete)
    for inline in re.findall(r"`([^`]+)`", prose):
        yield from _spelled(" ".join(inline.split()), complete=False)


def _spelled(line: str, complete: bool) -> Iterator[tuple[list[str], bool]]:
    """Yield the commands of one shell line; `a|b` without spaces stands for two commands with `a` and `b`."""
    if not _COMMAND.search(line):
        return
    spread = [word.split("|") if re.fullmatch(r"[\w.-]+(\|[\w.-]+)+", word) else [word] for word in line.split(" ")]
    for words in itertools.product(*spread):
        lexer = shlex.shlex(" ".join(words), posix=True, punctuation_chars="|;&>")
        lexer.whitespace_split = True
        for operator, group in itertools.groupby(lexer, lambda token: set(token) <= set("|;&>")):
            command = list(itertools.dropwhile(_SETTING.fullmatch, group))
            if not operator and command and command[0] in HEADS:
                yield [word for word in command if word != "..."], complete


# ------------------------------------------------------------------------------------- commands against the program


def program() -> Any:
    """Return the `sqa` command with the commands of plugins."""
    command = cli.program()
    command.list_commands(None)
    return command


def complaint(words: list[str], complete: bool) -> str:
    """Return how a command violates the program's declared options and arguments, or "" if it is valid."""
    command, rest = program(), list(words)
    while True:
        context = command.context_class(command, info_name=command.name or "sqa", **command.context_settings)
        try:
            given, rest, _ = command.make_parser(context).parse_args(rest)
        except Exception as error:  # raised by a package's own copy of click
            return f"{context.info_name}: {error.format_message()}"  # type: ignore[attr-defined]
        if not hasattr(command, "commands") or not rest:
            break
        name, *rest = rest
        if name not in command.commands:
            return f"{context.info_name} has no command {name}"
        command = command.commands[name]
    if rest and not context.allow_extra_args:
        return f"{command.name} takes no {' '.join(rest)}"
    missing = [param.name for param in command.params if param.required and given.get(param.name) in (None, ())]
    return f"{command.name} needs {', '.join(missing)}" if complete and missing else ""
