"""The table of translators on bundled questions and a few made-up sentences: its files and its numbers."""

import contextlib
import io
import sys
from itertools import product

import pytest
import yaml
from refusals import refused
from small_ablation import changed
from small_ablation import rows as read_rows
from tables import tables_of

from experiments.studies.translation_table import (
    COLUMNS,
    main,
    quality_over_lag,
    shares,
)
from sqa.core import ConfigError, DataError
from sqa.pipeline import engine
from sqa.results import Frame, Row

TABLES = tables_of(__file__)

SENTENCES = TABLES["sentences"]
# Writes one line for each input line, without every fifth word; repeats the last word of a long line five times.
PROGRAM = TABLES["program"]
FOOLISH = [sys.executable, "-c", PROGRAM]


def written(tmp_path):
    """Write a config with available and missing translators and test sets, and return its path."""
    lines = [("source", "reference", "language", "page"), *((*pair, "es", "none") for pair in SENTENCES)]
    (tmp_path / "made.tsv").write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")
    foolish = {"name": "command", "command": FOOLISH, "blank_lines": 0}
    human = {"name": "fixed", "reveal": "full"}
    absent = {"name": "command", "command": ["no-such-program"]}
    folder = str(tmp_path / "nowhere")
    untrained = {"name": "pbmt", "model": folder}
    translators = [
        {"label": "foolish", "pair": "es-en", "k": [2, "full"], "translator": foolish},
        {"label": "human", "pair": "es-en", "translator": human},
        {"label": "absent", "pair": "es-en", "needs": {"program": "no-such-program"}, "translator": absent},
        {"label": "untrained", "pair": "es-en", "needs": {"folder": folder}, "translator": untrained},
        {"label": "Polish", "pair": "pl-en", "translator": foolish},
    ]
    sets = [{"name": name, "pair": "es-en"} for name in ("mini-es", str(tmp_path / "made.tsv"), "gone.tsv")]
    mapping = {"name": "few", "sets": sets, "translators": translators, "resamples": 50, "limit": 4}
    path = tmp_path / "few.yaml"
    path.write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return path


@pytest.fixture
def config(tmp_path):
    return written(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return the folder in which the table has been made, and the text on stdout and stderr."""
    folder = tmp_path_factory.mktemp("table")
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        main(written(folder), folder / "runs")
    return folder, out.getvalue(), err.getvalue()


def test_table_names_missing_translators_and_sets(finished):
    tmp_path, out, err = finished
    folder = tmp_path / "runs" / "few"
    header = (folder / "table.csv").read_text(encoding="utf-8").partition("\n")[0]
    assert out.startswith(header.replace(",", "\t"))
    left_out = {row["guesser"]: row["note"] for row in read_rows(folder / "differences.tsv")}
    assert left_out["absent, es-en"] == "the program no-such-program is not installed"
    assert left_out["untrained, es-en"] == f"there is no folder {tmp_path / 'nowhere'}"
    assert left_out["gone.tsv"].startswith("gone.tsv") and len(left_out) == 3
    assert "absent, es-en: left out, the program" in err


def test_second_run_reuses_all_translations(finished, monkeypatch):
    folder, _, _ = finished
    before = {path: path.read_bytes() for path in (folder / "runs" / "few").iterdir()}
    monkeypatch.chdir(folder)
    monkeypatch.setattr(engine, "translate", None)
    main(folder / "few.yaml", folder / "runs")
    assert {path: path.read_bytes() for path in (folder / "runs" / "few").iterdir()} == before


def test_single_set_works_and_empty_set_is_refused(config, tmp_path, monkeypatch):
    alone = {name: [{"name": name, "pair": "es-en"}] for name in ("mini-es", "mini-e", "gone.tsv")}
    main(changed(config, sets=alone["mini-es"]), tmp_path / "runs")
    assert {row["test"] for row in read_rows(tmp_path / "runs" / "few" / "table.csv")} == {"mini-es"}
    refused(ConfigError, "did you mean 'mini-es'", main, changed(config, sets=alone["mini-e"]), tmp_path / "runs")
    other = changed(config, sets=[{"name": "mini-pl", "pair": "es-en"}])
    refused(ConfigError, "mini-pl is in pl, but its pair is es-en", main, other, tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"(?s)nothing to measure\n.*gone.tsv"):
        main(changed(config, sets=alone["gone.tsv"]), tmp_path / "runs")


def test_figure8_draws_bleu_over_dal():
    """Translator a has two values of k, b has one, and c has no lag."""
    values = [("a", "1", 20.0, 2.0), ("a", "3", 25.0, 4.0), ("b", "1", 15.0, 3.0), ("c", "1", 30.0, None)]
    rows = []
    for test, (name, k, bleu, lag) in product(("flores", "xqb", "news"), values):
        measured = {"bleu": bleu} | ({} if lag is None else {"dal": lag})
        rows += [Row(("es-en", test, name, k), metric, value, n=9) for metric, value in measured.items()]
    [axes, *more] = [axes for axes in quality_over_lag(Frame(COLUMNS, rows)).axes if axes.lines]
    assert [each.get_title(loc="left") for each in more] == ["BLEU, xqb, 9", "BLEU, news, 9"]
    drawn = [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines]
    assert axes.get_title(loc="left") + axes.get_title() == "BLEU, flores, 9"
    assert drawn == [([2.0, 4.0], [20.0, 25.0]), ([3.0], [15.0])]


def test_empty_copied_and_looping_shares_are_counted():
    pairs = [("a b c d", "a b c d"), ("a", "a"), ("x y z w", ""), ("e f g h", "no no no no")]
    assert shares(pairs) == (1 / 4, 1 / 3, 1 / 4)
