"""A run's folder: the same bytes each time, read back whole, compared only with its like."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from older_tables import as_older_versions_wrote
from small_runs import small_run

from smt.engines.pretrained import PretrainedConfig
from sqa.core.errors import ConfigError, DataError, NotComputable
from sqa.core.trace import SCORES
from sqa.files.store import read_table
from sqa.run import folder as runs
from sqa.run import paired, saving
from sqa.run.config import ComponentConfig, load_run
from sqa.run.pipeline import RunResult

METRICS = ["ew", "accuracy", "bleu", "al"]


def result(tmp_path: Path, name: str = "t", k: int = 1, n: int = 6, **changes: object) -> RunResult:
    return small_run(tmp_path, n, name=name, translator={"name": "doubles:build_translator", "k": k}, **changes)


def saved(tmp_path: Path, *names: str, **changes: Any) -> runs.RunFolder:
    return runs.read(saving.save(result(tmp_path, *names, **changes), tmp_path / "runs"))


def test_the_report(tmp_path: Path) -> None:
    rows = {row.metric: row for row in saving.report_rows(result(tmp_path))}
    assert list(rows) == [*METRICS, "empty-questions", "empty-sentences", "unknown-pages"]
    accuracy = rows["accuracy"]
    assert accuracy.value == pytest.approx(4 / 6)
    assert accuracy.low is not None and accuracy.high is not None
    assert accuracy.low <= 4 / 6 <= accuracy.high
    assert (rows["bleu"].unit, rows["al"].unit, rows["ew"].unit) == ("0-100", "words", "0-1")
    assert (rows["empty-sentences"].value, rows["empty-sentences"].n) == (0, 12)
    assert rows["unknown-pages"].cells()[:6] == ["unknown-pages", "2", "n/a", "n/a", "6", "questions"]


def test_saving_twice_gives_the_same_bytes_and_it_reads_back(tmp_path: Path) -> None:
    done = result(tmp_path)
    folder = saving.save(done, tmp_path / "runs")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(before) == {"report.tsv", "config.yaml", "run.json", "stats.npz", "times.json"}
    saving.save(result(tmp_path), tmp_path / "runs")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert set(json.loads(before["times.json"])) == set(done.stages)
    again = runs.read(folder)
    assert again.config == done.config == load_run(folder / "config.yaml")
    assert again.questions == tuple(q.id for q in done.questions)
    assert {name: stats.tolist() for name, stats in again.stats.items()} == {
        name: done.stats[name].tolist() for name in METRICS
    }


def test_a_run_says_which_commit_of_a_hub_model_it_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqa.files.hub.commit_of", lambda name, revision: f"{name} at {revision}")
    done = result(tmp_path)
    assert "models" not in json.loads((saving.save(done, tmp_path / "runs") / "run.json").read_text())
    pretrained = ComponentConfig("pretrained", PretrainedConfig("some/model", revision="v1", download=True))
    done = replace(done, config=replace(done.config, translator=pretrained))
    models = json.loads((saving.save(done, tmp_path / "runs") / "run.json").read_text())["models"]
    assert models == {"some/model": "some/model at v1"}


def test_a_refused_metric_has_no_number(tmp_path: Path) -> None:
    done = result(tmp_path, guesser=None, buzzer=None)
    rows = {row.metric: row for row in saving.report_rows(done)}
    assert rows["ew"].cells()[1:4] == ["n/a"] * 3
    assert set(runs.read(saving.save(done, tmp_path / "runs")).stats) == {"bleu", "al"}


def test_comparing_gives_paired_differences(tmp_path: Path) -> None:
    a = saved(tmp_path, "a", k=1)
    b = saved(tmp_path, "b", k=3)
    rows, notes = paired.compare(a, b)
    by_name = {row.metric: row for row in rows}
    assert list(by_name) == METRICS and notes == []
    assert by_name["al"].diff < 0 and by_name["ew"].diff >= 0
    assert by_name["bleu"].diff == 0 and by_name["bleu"].p_bootstrap == 1
    assert all(math.isfinite(x) for row in rows for x in (row.low, row.high, row.p_bootstrap, row.p_randomization))


def test_a_metric_that_only_one_run_has_is_left_out_and_said_so(tmp_path: Path) -> None:
    a = saved(tmp_path, "a")
    b = saved(tmp_path, "b", metrics=["ew", "dal"])
    rows, notes = paired.compare(a, b)
    assert [row.metric for row in rows] == ["ew"]
    assert sorted(note.partition(":")[0] for note in notes) == ["accuracy", "al", "bleu", "dal"]
    other = replace(b, signatures={"ew": "another curve"})
    with pytest.raises(NotComputable, match="signatures differ"):
        paired.compare(a, other)


def test_buzzers_that_learnt_other_rules_at_the_end_are_scored_by_one(tmp_path: Path) -> None:
    """At one threshold, `end` of the buzzer changes no value; a run of when it did so is refused, and why is said."""
    both = {}
    for end in ("answer", "silent"):
        buzzer = {"name": "mlp", "model": "rerank-translated", "threshold": 1.0, "end": end}
        metrics = {"metrics": ["ew", "ew@answer-at-end", "accuracy"], "guesser": {"name": "bm25"}}
        both[end] = saved(tmp_path, end, buzzer=buzzer, **metrics)
    rows, notes = paired.compare(both["answer"], both["silent"])
    assert [row.diff for row in rows] == [0, 0, 0] and notes == []
    signature = both["silent"].signatures["ew"]
    before = replace(
        both["silent"], signatures=both["silent"].signatures | {"ew": signature.replace("|end:silent", "")}
    )
    rows, [note] = paired.compare(both["answer"], before)
    assert [row.metric for row in rows] == ["ew@answer-at-end", "accuracy"]
    assert note.startswith("ew: left out, signatures differ (end:silent and nothing there): ew|curve:")


def test_other_questions_cannot_be_compared(tmp_path: Path) -> None:
    a = saved(tmp_path, "a", n=6)
    b = saved(tmp_path, "b", n=5)
    with pytest.raises(ConfigError, match="not on the same questions"):
        paired.compare(a, b)


def test_what_is_no_run_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"is not the folder of a finished run \(no config.yaml\)"):
        runs.read(tmp_path)
    folder = saving.save(result(tmp_path), tmp_path / "runs")
    stats = folder / "stats.npz"
    stats.write_bytes(stats.read_bytes()[:99])
    with pytest.raises(DataError, match="truncated or damaged"):
        runs.read(folder)
    (folder / "run.json").write_text("{")
    with pytest.raises(DataError, match="damaged"):
        runs.read(folder)


def test_the_statistics_of_an_earlier_version_are_read(tmp_path: Path) -> None:
    folder = saving.save(result(tmp_path), tmp_path / "runs")
    now = runs.read(folder)
    table = read_table(folder / "stats.npz", SCORES, {})
    (folder / "stats.npz").unlink()
    as_older_versions_wrote(folder / "stats.parquet", table, {"dataset": now.dataset, "stage": "run"})
    stats = runs.read(folder).stats
    assert {name: values.tolist() for name, values in stats.items()} == {n: f.tolist() for n, f in now.stats.items()}


def test_a_signature_without_statistics_is_damage(tmp_path: Path) -> None:
    folder = saving.save(result(tmp_path), tmp_path / "runs")
    summary = json.loads((folder / "run.json").read_text())
    summary["signatures"]["bleuu"] = "x"
    (folder / "run.json").write_text(json.dumps(summary))
    with pytest.raises(DataError, match=r"run.json: damaged \(a signature of 'bleuu', of which stats.npz has no"):
        runs.read(folder)
