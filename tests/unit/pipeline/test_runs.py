"""A run's folder: reproducible bytes, a lossless round trip, and comparison only with compatible runs."""

import json
from dataclasses import replace

import numpy as np
import pytest
from refusals import refused
from small_runs import small_run

from guessers.retrieval.bm25 import Bm25Config
from smt.engines.pretrained import PretrainedConfig
from sqa.core import ConfigError, DataError, NotComputable
from sqa.pipeline import ComponentConfig, load_run, paired, run_from_mapping, saving
from sqa.pipeline import folder as runs

METRICS = ["ew", "accuracy", "bleu", "al"]


def result(tmp_path, name="t", k=1, n=6, **changes):
    return small_run(tmp_path, n, name=name, translator={"name": "doubles:build_translator", "k": k}, **changes)


def saved(tmp_path, *names, **changes):
    return runs.read(saving.save(result(tmp_path, *names, **changes), tmp_path / "runs"))


def values(stats):
    return {name: rows.tolist() for name, rows in stats.items()}


def test_saved_run_has_stable_bytes_and_round_trips(tmp_path):
    """A transfer to another process by `pack` and `unpack` also keeps the bytes."""
    done = result(tmp_path)
    folder = saving.save(done, tmp_path / "runs")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(before) == {"report.tsv", "config.yaml", "run.json", "stats.npz"}
    saving.save(result(tmp_path), tmp_path / "runs")
    saving.unpack(saving.pack(result(tmp_path)), folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    saving.unpack(saving.pack(done), tmp_path / "there")
    assert {path.name: path.read_bytes() for path in (tmp_path / "there").iterdir()} == before
    again = runs.read(folder)
    assert again.config == done.config == load_run(folder / "config.yaml")
    assert again.ids == tuple(q.id for q in done.questions)
    assert values(again.stats) == {name: done.stats[name].tolist() for name in METRICS}
    (folder / "stats.npz").unlink()
    refused(ConfigError, r"finished run \(no stats.npz\)", runs.read, folder)


def test_run_records_the_commit_of_a_hub_model(tmp_path, monkeypatch):
    monkeypatch.setattr("sqa.files.hub.commit_of", lambda name, revision: f"{name} at {revision}")
    done = result(tmp_path)
    assert "models" not in json.loads((saving.save(done, tmp_path / "runs") / "run.json").read_text())
    pretrained = ComponentConfig("pretrained", PretrainedConfig("some/model", revision="v1", download=True))
    done = replace(done, config=replace(done.config, translator=pretrained))
    models = json.loads((saving.save(done, tmp_path / "runs") / "run.json").read_text())["models"]
    assert models == {"some/model": "some/model at v1"}


def test_comparison_gives_paired_differences(tmp_path):
    a, b = (saved(tmp_path, name, k=k) for name, k in (("a", 1), ("b", 3)))
    rows, notes = paired.compare(a, b)
    by_name = {row.metric: row for row in rows}
    assert list(by_name) == METRICS and notes == []
    assert by_name["al"].diff < 0 <= by_name["ew"].diff
    assert by_name["bleu"].diff == 0 and by_name["bleu"].p == 1
    assert all((row.p <= 0.05) == (row.low is not None and not row.low <= 0 <= row.high) for row in rows)
    assert by_name["bleu"].low is by_name["bleu"].high is None  # no question differs


def member(run, k, model, shift):
    """Return a copy of `run` that belongs to `model` at wait-k, with EW shifted by `shift`."""
    options = {"name": "waitk", "model": model, "k": k}
    config = run_from_mapping({"name": run.config.name, "dataset": "mini-es", "translator": options})
    moved = run.stats["ew"] + np.array([shift, 0])
    signatures = {"ew": run.signatures["ew"]}
    return replace(run, config=config, folder=f"{k}-{model}", stats={"ew": moved}, signatures=signatures)


def test_comparison_covers_training_runs(tmp_path):
    run = saved(tmp_path)
    shifts = {"a": -0.2, "b": 0.0, "c": 0.2}
    full, early = ([member(run, k, m, s + up) for m, s in shifts.items()] for k, up in (("full", 0.1), (3, 0.0)))
    [[_, diff, low, high, p, n, runs, _]] = paired.compare_over([*full, *early], "questions,training", 200).rows
    assert diff == pytest.approx(0.1) and high - low < 1e-9 and (p, n, runs) == (0, 6, 6)  # matched training runs
    others = [member(run, 3, m + "2", s) for m, s in shifts.items()]
    [[_, diff, low, high, *_]] = paired.compare_over([*full, *others], "training", 200).rows
    assert diff == pytest.approx(0.1) and low < 0 < high


def test_any_key_may_be_the_training_run(tmp_path):
    run = saved(tmp_path)
    moved = [
        (k, seed, replace(member(run, k, "m", up + 0.1 * seed), folder=f"{k}-{seed}"))
        for k, up in (("full", 0.1), (3, 0.0))
        for seed in (0, 1, 2)
    ]
    runs = [
        replace(each, config=replace(each.config, guesser=ComponentConfig("bm25", Bm25Config(b=seed / 10))))
        for _, seed, each in moved
    ]
    [[_, diff, *_, count, _]] = paired.compare_over(runs, "questions,guesser.b", 200).rows
    assert diff == pytest.approx(0.1) and count == 6
    refused(ConfigError, "did you mean 'guesser.k1'", paired.compare_over, runs, "guesser.k2")


def test_levels_need_two_complete_systems(tmp_path):
    run = saved(tmp_path)
    runs = [member(run, k, m, 0) for k in (3, "full") for m in "ab"]
    refused(ConfigError, "got 2 members", paired.compare_over, runs[:2], "training")
    refused(ConfigError, "got 1 and 1 and 1 and 1 members", paired.compare_over, runs, "guesser")
    refused(ConfigError, "'buzer' is not a level", paired.compare_over, runs, "questions,buzer")
    refused(ConfigError, "--metric: no run has 'al'", paired.compare_over, runs, "training", 200, ["al"])


def test_incomparable_values_are_skipped_with_a_note(tmp_path):
    a, b = saved(tmp_path, "a"), saved(tmp_path, "b", metrics=["ew", "dal"])
    rows, notes = paired.compare(a, b)
    assert [row.metric for row in rows] == ["ew"]
    assert sorted(note.partition(":")[0] for note in notes) == ["accuracy", "al", "bleu", "dal"]
    signature = a.signatures["ew"]
    other = replace(a, signatures={"ew": f"{signature}|of:another"})
    with pytest.raises(NotComputable, match=r"signatures differ \(nothing there and of:another\)"):
        paired.compare(a, other)
    refused(ConfigError, "not on the same questions", paired.compare, a, saved(tmp_path, "c", n=5))


def test_damaged_and_other_folders_are_refused(tmp_path):
    refused(ConfigError, r"is not the folder of a finished run \(no config.yaml\)", runs.read, tmp_path)
    folder = saving.save(result(tmp_path), tmp_path / "runs")
    summary = json.loads((folder / "run.json").read_text())
    for change, says in (
        ({"signatures": summary["signatures"] | {"bleuu": "x"}}, "stats.npz has no statistics of 'bleuu'"),
        ({"signatures": {"ew": 3}}, "signatures"),
        ({"dataset": None}, "dataset"),
        ({"stages": {"guess": "../x"}}, "stages"),
        ({"files": {"../x": "0"}}, "files"),
    ):
        (folder / "run.json").write_text(json.dumps(summary | change))
        refused(DataError, rf"run.json: damaged \(.*{says}", runs.read, folder)
    (folder / "run.json").write_text(json.dumps(summary))
    stats = folder / "stats.npz"
    stats.write_bytes(stats.read_bytes()[:99])
    refused(DataError, "stats.npz: damaged, changed", runs.read, folder)
