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
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest

from sqa.core.paths import ROOT

COPIED = ("sqa", "smt", "guessers", "buzzers", "experiments", "configs", "docs", "services")


@dataclass(frozen=True)
class Recipe:
    """A row of the table in ARCHITECTURE.md, or an addition in CONTRIBUTING.md."""

    new: str  # the row's first cell, or the addition's title
    command: str  # command that uses the new part
    says: str  # regular expression for stdout
    files: dict[str, str] = field(default_factory=dict)
    lines: tuple[tuple[str, str, str], ...] = ()  # (file, preceding line, new line)


PART = """
from dataclasses import dataclass

from sqa.core.types import Buzz, Guess
from sqa.metrics.quality.text_metric import MeanOfSegments


@dataclass(frozen=True)
class MyConfig:
    name: str = "mytexts"


class Mine:
    def translate(self, source):
        yield from source

    def guess(self, texts, n):
        return [[Guess("Peru", 1.0)] for _ in texts]

    def decide(self, history):
        return [Buzz(1.0, True) for _ in history]

    def fingerprint(self):
        return "mine 1"


def build(config: MyConfig):
    return Mine()


def of_texts(config: MyConfig):
    return MeanOfSegments(config.name, "mytexts", "mytexts 1", lambda segments: [0.5 for _ in segments])
"""
METRIC = """
from sqa.metrics.measure import Family


@Family("mywords", "Words", kind="lag", unit="words", digits=1, needs=())
def words(trace):
    return len(trace.emissions), 1
"""
POLICY = """
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from smt.policies.policy import Words, append, without_last


@dataclass(frozen=True, slots=True)
class Mine:
    counts: ClassVar[str] = "words held back"
    least: ClassVar[int] = 0
    usual: ClassVar[int | None] = 1

    n: int
    start: int = 1

    def show(self, shown: Words, translations: Sequence[Words], ended: bool) -> Words:
        return append(shown, translations[-1] if ended else without_last(translations[-1], self.n))
"""
ITEM = """
from experiments.results_book.item import Item
from experiments.results_book.ledger import Row

ITEMS = (Item("mine", "one number", "mini_es_wait6_bm25.yaml", ("k",), lambda config, runs: [Row(("6",), "ew", 0.5)],
            lambda config: {}, {"number": lambda ledger: [f"EW is {ledger.rows[0].value}."]}),)
"""
FIGURE = '"""One word: it is there."""\n\n\ndef main(config_path, runs):\n    print(f"made of {config_path.name}")\n'
RUN = """
dataset: {name: mine, limit: 2}
translator: {name: mytranslator}
guesser: {name: myguesser}
buzzer: {name: mybuzzer}
metrics: [mywords, mylag, al@mine, mylag@char]
quality: [mytexts: {}]
"""
QUESTION = {"id": "q", "language": "es", "source": "Un texto corto.", "reference": "A short text.", "page": "Peru"}
LINE = (json.dumps(QUESTION) + "\n").encode()
ONE = sha256(LINE.rstrip()).hexdigest()
MANIFEST = (
    f"- {{name: mine, path: mine.jsonl, home: null, how: by hand, commit: null, size: {len(LINE)}, licence: CC0, "
    f'sha256: "{sha256(LINE).hexdigest()}", records: 1, first: "{ONE}", last: "{ONE}"}}'
)
HELD = """
dataset: {name: mini-es, limit: 1}
translator: {name: command, command: [cat], policy: mypolicy}
metrics: [al]
"""
RECIPES = (
    Recipe(
        "translator, guesser, buzzer",
        "sqa run run.yaml",
        r"mywords\t3\.0",
        {"smt/engines/mine.py": PART, "guessers/mine.py": PART, "buzzers/mine.py": PART, "run.yaml": RUN},
        (
            ("sqa/core/registry.py", '"waitk": "smt.models', '        "mytranslator": "smt.engines.mine:build",'),
            ("sqa/core/registry.py", '"bm25": "guessers.retr', '        "myguesser": "guessers.mine:build",'),
            ("sqa/core/registry.py", '"threshold": "buzzers', '        "mybuzzer": "buzzers.mine:build",'),
        ),
    ),
    Recipe(
        "policy around full-input systems",
        "sqa run held.yaml n=3",
        r"al\t\d",
        {"smt/policies/mine.py": POLICY, "held.yaml": HELD},
        (("sqa/core/registry.py", '"retranslate": "smt', '        "mypolicy": "smt.policies.mine:Mine",'),),
    ),
    Recipe(
        "metric of traces",
        "sqa run run.yaml",
        r"mywords\t3\.0.*\twords\t",
        {"sqa/metrics/mine.py": METRIC},
        (("sqa/metrics/__init__.py", '"ne": "sqa.metrics.rev', '    "mywords": "sqa.metrics.mine:words",'),),
    ),
    Recipe(
        "metric of texts",
        "sqa run run.yaml",
        r"mytexts\t0\.5",
        {"sqa/metrics/quality/mine.py": PART},
        (("sqa/core/registry.py", '"bleurt": "sqa', '        "mytexts": "sqa.metrics.quality.mine:of_texts",'),),
    ),
    Recipe(
        "latency formula, convention",
        "sqa run run.yaml",
        r"mylag\t3\.0.*\n(.*\n)*al@mine\t",
        {},
        (
            (
                "sqa/metrics/latency.py",
                'Formula("al", "AL", average_lagging)',
                '        Formula("mylag", "MyLag", lambda delays, _: _first_and_last(delays)[1]),',
            ),
            (
                "sqa/metrics/latency.py",
                "c.name: c for c in (SIMULEVAL_1_1,",
                '} | {\n    "mine": Convention("mine", "here", False, False, 1, "length", True, "first", ("al",))',
            ),
        ),
    ),
    Recipe(
        "latency formula, convention",
        "sqa latency log.jsonl",
        r"MyLag\t2\.0",
        {"log.jsonl": '{"delays": [1, 2], "source_length": 2}\n'},
    ),
    Recipe(
        "figure or table of the paper",
        "sqa reproduce fig99",
        r"made of figure99\.yaml",
        {"experiments/paper/figure99.py": FIGURE, "configs/figure99.yaml": "seed: 0  # of nothing\n"},
        (("sqa/cli/evidence.py", "PAPER = {", '    "fig99": ("experiments.paper.figure99:main", "figure99.yaml"),'),),
    ),
    Recipe(
        "number, table or picture of a page",
        "sqa results update mine",
        r"docs/mine\.md",
        {
            "experiments/studies/mine.py": ITEM,
            "docs/mine.md": '# Mine\n\n<!-- [[[cog show("mine", "number") ]]] -->\n<!-- [[[end]]] -->\n',
        },
    ),
    Recipe(
        "data set to download (your own file needs no code: `docs/own_data.md`)",
        "sqa run run.yaml",
        r"mywords\t3\.0\d*\t3\.0\d*\t3\.0\d*\t1\t",
        {"mirror/mine.jsonl": json.dumps(QUESTION) + "\n"},
        (
            (
                "sqa/data/datasets.py",
                "_SETS: Mapping",
                '    "mine": lambda: _own_questions(_path_of("mine")),',
            ),
            ("data/manifest.yaml", "files:", MANIFEST),
        ),
    ),
)
# row or addition without its own recipe -> test that covers it; for an addition, the row that has the same steps
ELSEWHERE = {
    "any component of your own": "tests/e2e/test_own_parts.py",
    "components of your own package": "tests/unit/core/test_plugins.py",
    "perturbation": "tests/unit/data/test_perturb.py",
    "wire format": "services/tests/unit",
    "language": "tests/unit/data/test_language_files.py",
    "command": "tests/unit/core/test_plugins.py",
    "training of a new kind": "tests/unit/training",
    "A guesser": "tests/e2e/test_recipes.py",
    "A policy": "tests/e2e/test_recipes.py",
    "A metric of traces": "tests/e2e/test_recipes.py",
    "A figure or table of the paper": "tests/e2e/test_recipes.py",
}


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
            (home / name).write_text(text, encoding="utf-8")
        for name, after, line in recipe.lines:
            _add(home / name, after, line)
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
    titles = {
        *re.findall(r"^\| ([^|]+) \|", rows, re.MULTILINE),
        *re.findall(r"^\*\*([^*]+)\*\*", walks, re.MULTILINE),
    }
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
