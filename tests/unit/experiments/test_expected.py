"""README.md and docs/ show the figures of experiments/expected/*.yaml, all of them and no others."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml

from experiments.expected import __main__ as command
from experiments.expected.collect import collect
from experiments.expected.tables import ABLATION, HERE, REGION, Ablation, differing, filled, pages, render
from sqa.core.errors import ConfigError, DataError
from sqa.core.paths import ROOT
from sqa.run.config import load, read_yaml

MEASURED = re.compile(r"(?<![\w.-])[-+]?\d*\.\d+(?![\w.]| MB)")  # a figure: no version, no size of a file
BLOCK = re.compile(r"^<!-- \[\[\[cog.*?^<!-- \[\[\[end", re.MULTILINE | re.DOTALL)
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the YAML files."""
    return Path(shutil.copytree(HERE, tmp_path / "expected", ignore=shutil.ignore_patterns("*.py", "__pycache__")))


def test_the_pages_show_what_the_files_hold(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["check"]) == 0, capsys.readouterr().err


def test_every_table_stands_on_a_page() -> None:
    shown = [name for path in pages() for name, _ in REGION.findall(path.read_text("utf-8"))]
    assert set(shown) == set(render())  # some on more than one: the cards of models show rows of the results


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_figure_in_a_table_has_its_file(path: Path) -> None:
    outside = BLOCK.sub("", REGION.sub("", path.read_text("utf-8")))
    rows = [re.sub(r"`[^`]*`", "", line) for line in outside.splitlines() if line.startswith("|")]
    assert [row for row in rows if MEASURED.search(row)] == []


def test_a_changed_number_is_seen_in_every_table_that_shows_it(folder: Path) -> None:
    mapping = read_yaml(folder / ABLATION)
    shown = ("xqb-es", "wait-k", 6, "rerank")
    row = next(r for r in mapping["rows"] if (r["dataset"], r["translator"], r["k"], r["guesser"]) == shown)
    row["values"]["ew"] = [0.5, 0.4, 0.6]
    (folder / ABLATION).write_text(yaml.safe_dump(mapping), encoding="utf-8")
    changed = render(folder)
    assert differing(ROOT / "README.md", changed) == ["readme"]
    assert "ablation-es" in differing(ROOT / "docs" / "results.md", changed)
    assert "0.500 [0.400, 0.600]" in filled(ROOT / "README.md", changed)


def test_cells_are_written_as_their_table_says(folder: Path) -> None:
    text = """
tables:
  t:
    command: c
    head: [what, a, b]
    point: true
    rows:
    - [x, .5, [.25, .125, .5]]
    - {cells: [y, [12.0, 1.25], null], format: .1f}
    - [z, {text: "{:+.2f} of {}", numbers: [[-0.5, -1.0, .25], 3]}, 7]
"""
    (folder / "t.yaml").write_text(text, encoding="utf-8")
    assert render(folder)["t"].splitlines() == [
        "| what | a | b |",
        "|---|---|---|",
        "| x | .500 | .250 [.125, .500] |",
        "| y | 12.0 ± 1.2 | |",
        "| z | -.50 [-1.00, +.25] of 3 | 7 |",
    ]


def test_a_page_of_an_unknown_table_and_wrong_cells_are_refused(folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- expected: readmee -->\n<!-- end -->\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"page\.md: no table is called 'readmee'.*readme"):
        filled(page, render(folder))
    (folder / "wrong.yaml").write_text("tables: {t: {command: c, head: [a, b], rows: [[1]]}}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"rows\[0\]: expected 2 cells as in `head`, got 1"):
        render(folder)


def test_rows_that_are_not_measured_are_named(folder: Path) -> None:
    mapping = read_yaml(folder / ABLATION)
    mapping["rows"] = [row for row in mapping["rows"] if row["translator"] != "language model"]
    (folder / ABLATION).write_text(yaml.safe_dump(mapping), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"readme: ablation\.yaml has no row xqb-es, language model, 3, rerank"):
        render(folder)


def test_finished_runs_are_collected_in_the_place_of_what_they_measure_anew(folder: Path, tmp_path: Path) -> None:
    before = load(folder / ABLATION, Ablation)
    head = "dataset\ttranslator\tk\tguesser\tquestions\tunknown_pages\tempty_sentences\tew\tew.low\tew.high\n"
    lines = "xqb-es\twait-k\t6\tbm25\t147\t0\t0\t0.5\t0.4\t0.6\nxqb-es\tnew\tfull\tbm25\t147\t0\t0\tn/a\tn/a\tn/a\n"
    (tmp_path / "table.tsv").write_text(head + lines, encoding="utf-8")
    assert collect([tmp_path], folder / ABLATION) == 2
    after = load(folder / ABLATION, Ablation)
    assert [row.key for row in after.rows] == [*(row.key for row in before.rows), ("xqb-es", "new", "full", "bm25")]
    [row] = [row for row in after.rows if row.key == ("xqb-es", "wait-k", 6, "bm25")]
    assert row.values == {"ew": (0.5, 0.4, 0.6)} and after.rows[-1].values == {}
    assert after.claims == before.claims
    (tmp_path / "verdicts.tsv").write_text("data\tverdict\nxqb-es\theld\n", encoding="utf-8")
    collect([tmp_path], folder / ABLATION)
    assert load(folder / ABLATION, Ablation).claims == (("xqb-es", "held"),)
    (tmp_path / "table.tsv").write_text("a\tb\n1\t2\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"table\.tsv: not a table of `sqa ablation`"):
        collect([tmp_path], folder / ABLATION)
