"""The recipes in ARCHITECTURE.md ("Where a new thing goes") and CONTRIBUTING.md ("Four additions") work as written.

All recipes are applied to one copy of the repository: the files that they name are written, and lines are added where
the recipes say. Then the commands that use the new parts are run.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest
from tables import tables_of

from sqa.core import ROOT

TABLES = tables_of(__file__)

COPIED = ("sqa", "smt", "guessers", "buzzers", "experiments", "configs", "docs", "services")


@dataclass(frozen=True)
class Recipe:
    """A row of the table in ARCHITECTURE.md, or an addition in CONTRIBUTING.md."""

    new: str  # the row's first cell, or the addition's title
    command: str  # command that uses the new part
    says: str  # regular expression for stdout
    files: dict[str, str] = field(default_factory=dict)  # their texts, or names of TEXTS
    lines: Sequence[Sequence[str]] = ()  # (file, preceding line, new line or a name of TEXTS)


QUESTION = {"id": "q", "language": "es", "source": "Un texto corto.", "reference": "A short text.", "page": "Peru"}
LINE = (json.dumps(QUESTION) + "\n").encode()
ONE = sha256(LINE.rstrip()).hexdigest()
MANIFEST = (
    f"- {{name: mine, path: mine.jsonl, home: null, how: by hand, commit: null, size: {len(LINE)}, licence: CC0, "
    f'sha256: "{sha256(LINE).hexdigest()}", records: 1, first: "{ONE}", last: "{ONE}"}}'
)
TEXTS = {**TABLES["texts"], "QUESTION": LINE.decode(), "MANIFEST": MANIFEST}
RECIPES = [Recipe(**row) for row in TABLES["recipes"]]
# row or addition without its own recipe -> test that covers it; for an addition, the row that has the same steps
ELSEWHERE = TABLES["elsewhere"]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the repository to which all recipes have been applied."""
    home = tmp_path_factory.mktemp("repository")
    for name in COPIED:
        shutil.copytree(ROOT / name, home / name, ignore=shutil.ignore_patterns("__pycache__", "*.png", "bundled"))
    (home / "data").mkdir()
    for path in (ROOT / "data").iterdir():
        if path.is_file():
            shutil.copy(path, home / "data")
        else:
            (home / "data" / path.name).symlink_to(path)
    for recipe in RECIPES:
        for name, text in recipe.files.items():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            assert not (home / name).exists()
            (home / name).write_text(TEXTS.get(text, text), encoding="utf-8")
        for name, after, line in recipe.lines:
            _add(home / name, after, TEXTS.get(line, line))
    return home


def _add(file: Path, after: str, line: str) -> None:
    lines = file.read_text(encoding="utf-8").split("\n")
    at = next((i for i, text in enumerate(lines) if after in text), -1)
    assert at >= 0, f"{file}: no line with {after!r}"
    lines[at + 1 : at + 1] = [line]
    file.write_text("\n".join(lines), encoding="utf-8")


@pytest.mark.parametrize("line", dict.fromkeys(recipe.command for recipe in RECIPES))
def test_recipe_works(copy: Path, line: str) -> None:
    around = {**os.environ, "PYTHONPATH": f"{copy}:{copy / 'services'}", "SQA_MIRROR": str(copy / "mirror")}
    command = [sys.executable, "-m", *line.split()]
    done = subprocess.run(command, cwd=copy, env=around, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for recipe in RECIPES:
        assert recipe.command != line or re.search(recipe.says, done.stdout), (recipe.new, done.stdout)


def test_every_row_and_addition_has_a_recipe() -> None:
    rows = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Where a new thing goes")[2]
    rows = rows.partition("\n## ")[0]
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    walks = contributing.partition("## Four additions")[2].partition("\n## ")[0]
    titles = {*re.findall(r"^\| ([^|]+) \|", rows, re.MULTILINE), *re.findall(r"^\*\*([^*]+)\*\*", walks, re.MULTILINE)}
    assert titles - {"addition"} == {recipe.new for recipe in RECIPES} | ELSEWHERE.keys()
    assert all((ROOT / path).exists() for path in ELSEWHERE.values())


def test_every_name_in_the_recipes_exists() -> None:
    """Every path on the pages exists, and every `NAME` that a page locates in a `path.py` is in this file."""
    pages = [(ROOT / name).read_text(encoding="utf-8") for name in ("ARCHITECTURE.md", "CONTRIBUTING.md")]
    for page in pages:
        for path in re.findall(r"`((?:sqa|smt|guessers|buzzers|experiments|tests|configs|data)/[\w/.]+)`", page):
            assert (ROOT / path).exists() or re.search(r"yours|figureN|bundled", path), path
        for name, path in re.findall(r"`(\w+)`,? (?:of|in) `([\w/]+\.py)`", page):
            assert re.search(rf"\b{name}\b", (ROOT / path).read_text(encoding="utf-8")), (name, path)
