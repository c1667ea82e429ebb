"""The README and the pages of docs/: links lead somewhere, commands exist, the example prints what the README says."""

from __future__ import annotations

import itertools
import re
import shlex
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sqa import __version__
from sqa.cli import app as cli
from sqa.core.paths import ROOT

PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))
README = PAGES[0].read_text(encoding="utf-8")
LONGEST = 1_500  # words of the README, code and tables included
PICTURE = 200_000  # bytes of the screenshot
SCREEN = 25  # lines of the README that are seen first
MADE = ("runs", "models", "yours", "figureN", "sqa/bundled")  # what a reader's own work and an installation make

every_page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)


# ---------------------------------------------------------------------------------------------------- reading pages


def blocks(text: str) -> tuple[str, list[str]]:
    """The prose of a page, and the lines of its indented and fenced blocks."""
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


def anchors(text: str) -> set[str]:
    """What a heading is linked by: small letters, blanks as dashes, no punctuation."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(text: str) -> Iterator[tuple[list[str], bool]]:
    """The words after `sqa` of every command of a page, and whether it is complete (a line that can be typed)."""
    prose, code = blocks(text)
    for line in code:
        typed, two_blanks, _ = re.sub(r"\s+#.*", "", line.removeprefix("$ ")).partition("  ")
        complete = not two_blanks and "..." not in typed
        for part in typed.split(", sqa "):
            yield from _spelled(part if part.startswith("sqa ") or part is typed else f"sqa {part}", complete)
    for inline in re.findall(r"`([^`]+)`", prose):
        yield from _spelled(" ".join(inline.split()), complete=False)


def _spelled(line: str, complete: bool) -> Iterator[tuple[list[str], bool]]:
    """The `sqa` commands of one line of a shell, `a|b` without blanks written out."""
    if not re.search(r"(^|[|;&] *)sqa ", line):
        return
    spread = [word.split("|") if re.fullmatch(r"[\w.-]+(\|[\w.-]+)+", word) else [word] for word in line.split(" ")]
    for words in itertools.product(*spread):
        lexer = shlex.shlex(" ".join(words), posix=True, punctuation_chars="|;&>")
        lexer.whitespace_split = True
        for operator, group in itertools.groupby(lexer, lambda token: set(token) <= set("|;&>")):
            found = list(group)
            if not operator and found[0] == "sqa":
                yield [word for word in found[1:] if word != "..."], complete


# ------------------------------------------------------------------------------------- commands against the program


def complaint(words: list[str], complete: bool) -> str:
    """What is wrong with a command by the options and arguments that the program declares; "" when nothing is."""
    command, rest, given, values = cli.program(), list(words), set(), 0
    while rest:
        word = rest.pop(0)
        if word == "--":
            break
        if word.startswith("-") and word != "-":
            option = _option(command, word)
            if option is None:
                if not command.context_settings.get("ignore_unknown_options"):
                    return f"{command.name} has no option {word}"
                continue
            given.add(option.name)
            if not option.is_flag and not rest:
                return f"{word} needs a value"
            if not option.is_flag:
                rest.pop(0)
        elif hasattr(command, "commands"):
            if word not in command.commands:
                return f"{command.name or 'sqa'} has no command {word}"
            command, given, values = command.commands[word], set(), 0
        else:
            values += 1
    return _counted(command, given, values, complete)


def _option(command: Any, word: str) -> Any:
    if word == "--help":
        return next(param for param in cli.program().params if param.is_flag)
    named = (p for p in command.params if word.partition("=")[0] in (*p.opts, *p.secondary_opts))
    return next(named, None)


def _counted(command: Any, given: set[str], values: int, complete: bool) -> str:
    places = [param for param in command.params if param.param_type_name == "argument"]
    free = any(param.nargs == -1 for param in places) or command.context_settings.get("allow_extra_args")
    if values > len(places) and not free and not hasattr(command, "commands"):
        return f"{command.name} takes {len(places)} arguments, not {values}"
    if complete and values < sum(param.required for param in places):
        return f"{command.name} needs more arguments than {values}"
    missing = {p.name for p in command.params if p.required and p not in places} - given
    return f"{command.name} needs {', '.join(sorted(missing))}" if complete and missing else ""


@every_page
def test_every_command_exists_with_its_options(path: Path) -> None:
    found = [(" ".join(words), complaint(words, complete)) for words, complete in commands(path.read_text("utf-8"))]
    assert not [pair for pair in found if pair[1]]


def test_commands_are_found_and_judged() -> None:
    typed = "    $ sqa run|guess a.yaml | cut -f 1   what for\n    sqa client iwslt, sqa scorer bleu\n"
    text = f"Say `sqa view RUN --output p.html`.\n\n{typed}"
    assert [" ".join(words) for words, _ in commands(text)] == [
        "run a.yaml",
        "guess a.yaml",
        "client iwslt",
        "scorer bleu",
        "view RUN --output p.html",
    ]
    assert sum(len(list(commands(path.read_text("utf-8")))) for path in PAGES) > 100
    for words, wrong in {
        "walk": "sqa has no command walk",
        "view RUN --colour": "view has no option --colour",
        "compare A B C": "",
        "clean A B": "clean takes 1 arguments, not 2",
        "convert ctranslate2 A": "ctranslate2 needs more arguments than 1",
        "curve fit x --output": "--output needs a value",
        "curve fit human-buzzes": "fit needs output",
        "board serve --board x": "serve has no option --board",
        "board --board x serve": "",
        "scorer meteor -l en -norm": "",
    }.items():
        assert complaint(words.split(), complete=True) == wrong


# --------------------------------------------------------------------------------------------------------- the pages


@every_page
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", blocks(path.read_text("utf-8"))[0]):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        linked = (path.parent / name).resolve() if name else path
        assert linked.exists(), f"{path.name}: {target}"
        assert not anchor or anchor in anchors(linked.read_text("utf-8")), f"{path.name}: {target}"


@every_page
def test_files_that_are_named_exist(path: Path) -> None:
    prose, _ = blocks(path.read_text("utf-8"))
    rooms = "sqa|smt|guessers|buzzers|experiments|configs|data|tests|docs|notebooks"
    named = re.findall(rf"`((?:{rooms})/[\w/.-]+)`", prose)
    missing = [name for name in named if not (ROOT / name).exists() and not (ROOT / f"{name}.py").exists()]
    assert [name for name in missing if not any(made in name for made in MADE)] == []


def test_every_page_of_docs_is_in_its_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert {name for name in pages if f"]({name})" in index} == pages


def test_the_readme_is_short_and_begins_with_a_picture() -> None:
    assert len(README.split()) <= LONGEST
    assert "](docs/view.png)" in "\n".join(README.splitlines()[:SCREEN])
    picture = (ROOT / "docs" / "view.png").read_bytes()
    width, height = struct.unpack(">II", picture[16:24])
    assert picture[:8] == b"\x89PNG\r\n\x1a\n" and len(picture) < PICTURE and width >= 1200 and height >= 800


def test_the_example_prints_what_the_readme_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [config] = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    assert config == (ROOT / "docs/example/mine.yaml").read_text("utf-8") and len(config.splitlines()) == 4
    [shown] = re.findall(r"^    \$ sqa run docs/example/mine.yaml \| cut -f 1-6\n((?:    .*\n)+)", README, re.MULTILINE)
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", ["sqa", "run", "docs/example/mine.yaml", "--runs", str(tmp_path)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    assert not stopped.value.code
    printed = [line.split("\t")[:6] for line in capsys.readouterr().out.splitlines()]
    assert printed == [line.removeprefix("    ").split("\t") for line in shown.splitlines()]


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == __version__ and citation["authors"] == [{"name": "SQA maintainers"}]
    assert citation["preferred-citation"]["url"] in README
