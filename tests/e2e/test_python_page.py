"""The code in docs/python.md runs as written; errors, data frames and means of the Python interface."""

import doctest
import re
from pathlib import Path

import pytest
from doubles import write_questions
from refusals import refused

from sqa.api.experiment import Cell, Result
from sqa.core import ROOT, ConfigError

PAGE = ROOT / "docs" / "python.md"


def test_python_page_runs_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = re.sub(r"^```.*$", "", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    page = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    assert len(page.examples) > 15
    printed: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(page, out=printed.append)
    assert not result.failed, "".join(printed)
    assert (tmp_path / "ew_over_k.png").stat().st_size > 5_000


def test_unknown_questions_and_baselines_are_refused(tmp_path: Path) -> None:
    import sqa

    run = sqa.run("mini_es_wait6_bm25", limit=2, runs=tmp_path, progress=False)
    for method in (run.view, run.plot_question):
        refused(ConfigError, "did you mean 'mini-002-es'", method, "mini-02-es")
    cells = (Cell("mini-es", label, k, "bm25", run.config) for label, k in (("a", 6), ("b", "-")))
    results = sqa.Results(Result(cell, run.read) for cell in cells)
    refused(ConfigError, "no result has that k or translator", results.compare, to="full")
    assert results.compare(to="b")["diff"].tolist() == [0.0]
    refused(ConfigError, "expected guesser, seed", results.over, "questions")
    refused(ConfigError, "'EW' is not a metric .* did you mean 'ew'", results.over, "guesser", "EW")


def test_over_averages_and_refuses_missing_runs(tmp_path: Path) -> None:
    import sqa

    config = {"dataset": "mini-es", "translator": {"name": "waitk", "model": "es-en", "k": 6}, "buzzer": "oracle"}
    runs = {
        name: sqa.run({**config, "name": name, "guesser": name}, limit=2, runs=tmp_path, progress=False)
        for name in ("bm25", "gru")
    }
    grid = [(guesser, seed) for guesser in runs for seed in (0, 1)]
    results = [Result(Cell("mini-es", "a", 6, name, runs[name].config, seed), runs[name].read) for name, seed in grid]
    [row] = sqa.Results(results).over("guesser,training").rows
    bm25, gru = (run.metrics["ew"] for run in runs.values())
    assert bm25 != gru and row.value == pytest.approx((bm25 + gru) / 2)
    assert row.cell == ("mini-es", "a", "6", "every guesser")
    seeds = sqa.Results(results).over("guesser").rows
    assert [row["translator"] for row in seeds] == ["a, seed 0", "a, seed 1"]
    assert len(sqa.Results(results).over("training").rows) == 2
    refused(ConfigError, "no run of gru, seed 1", sqa.Results(results[:3]).over, "guesser,training")


def test_translators_are_compared_over_seeds(tmp_path: Path) -> None:
    import sqa

    config = {"dataset": "mini-es", "translator": {"name": "waitk", "model": "es-en"}, "guesser": "bm25"}
    runs = {
        k: sqa.run({**config, "name": f"k{k}", "translator": {**config["translator"], "k": k}}, limit=3, runs=tmp_path)
        for k in (1, 6)
    }
    made = [
        Result(Cell("mini-es", family, 3, "bm25", runs[k].config, seed), runs[k].read)
        for family, ks in (("a", (6, 6)), ("b", (1, 1)))
        for seed, k in enumerate(ks)
    ]
    results = sqa.Results(made)
    [row] = results.difference("a", "b", "mrr").to_dict("records")
    assert row["diff"] == pytest.approx(runs[6].metrics["mrr"] - runs[1].metrics["mrr"])
    assert row["low"] <= row["diff"] <= row["high"] and 0 < row["p"] <= 1
    refused(ConfigError, "'a' and 'c' have no data set, k and guesser in common", results.difference, "a", "c")
    axes = results.plot("mrr")
    assert [line.get_text() for line in axes.get_legend().get_texts()] == [
        "a, bm25, 2 trainings",
        "b, bm25, 2 trainings",
    ]
    axes.figure.canvas.draw()
    assert axes.get_legend().get_window_extent().y0 >= axes.bbox.y1  # above the data


def test_columns_of_data_frames_have_fixed_types(tmp_path: Path) -> None:
    """The types are the same without a guesser, without buzzes, and for a metric without a value."""
    import sqa

    questions = write_questions(tmp_path / "questions.jsonl", 3)
    base = {"dataset": {"name": str(questions)}, "translator": {"name": "doubles:build_translator"}}
    silent = {"name": "threshold", "signal": "margin", "threshold": 1.0}
    plain = sqa.run({"name": "plain", **base}, runs=tmp_path, progress=False)
    quiet = sqa.run({"name": "quiet", **base, "guesser": "doubles:build_guesser", "buzzer": silent}, runs=tmp_path)
    bare = sqa.run({"name": "bare", **base, "metrics": ["ew"]}, runs=tmp_path, progress=False)  # no interval
    for run in (plain, quiet, bare):
        assert {str(run.intervals[name].dtype) for name in ("value", "low", "high")} == {"float64"}
        assert run.questions.dtypes.astype(str).to_dict() == {
            **dict.fromkeys(("source", "text", "answer"), "str"),
            "rank": "Int64",
            "buzz": "Int64",
            "ew": "float64",
        }
    assert plain.questions["rank"].isna().all() and plain.questions["ew"].isna().all()
    assert quiet.questions["rank"].notna().all() and quiet.questions["buzz"].isna().all()
    assert quiet.questions["ew"].sum() == 0 and list(quiet.questions.index) == ["q0", "q1", "q2"]
    compared = sqa.compare(quiet, tmp_path / "plain")
    assert any(note.startswith("ew: left out") for note in compared.attrs["left out"])
    assert {str(compared[name].dtype) for name in ("diff", "low", "high")} == {"float64"}


def test_baseline_must_be_of_the_same_data_set() -> None:
    full, early, elsewhere = (
        Result(Cell(dataset, "wait-k", k, "bm25", config=None), saved=None)
        for dataset, k in (("mini-es", "full"), ("mini-es", 3), ("mini-pl", 3))
    )
    assert full.is_baseline_of(early, to="full") and not full.is_baseline_of(elsewhere, to="full")


def test_returned_run_keeps_its_values(tmp_path: Path) -> None:
    """Regression test: a run in the same folder changed the metrics and traces of an earlier returned run."""
    import sqa

    config = {"name": "mine", "dataset": "mini-es", "translator": {"name": "fixed"}, "guesser": "bm25"}
    a = sqa.run(config, runs=tmp_path, limit=2, progress=False)
    loaded = sqa.load(a.folder)
    folder = a.folder
    b = sqa.run(
        {**config, "name": folder.name, "dataset": {"name": "mini-es", "limit": 3}}, runs=tmp_path, progress=False
    )
    assert b.folder == folder
    for run in (a, loaded):
        assert len(run.traces) == len(run.questions) == 2 and int(run.rows["bleu"].n) == 2
    assert len(b.traces) == 3
