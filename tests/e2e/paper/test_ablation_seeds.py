"""The ablation over k with separately trained models: rows per seed, their mean and deviation, a figure."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from statistics import fmean, stdev

import pytest
import yaml

from experiments.ablation.over_k import main
from experiments.grid import trained
from smt.models.bundle import save_model
from sqa.core.paths import ROOT
from sqa.run.config import read_yaml
from tests.smt_models import random_model, vocabulary

METRICS = ("bleu", "ew", "accuracy")


def finish(runs: Path, label: str, k: int | str, seed: int, bleu: dict[str, float]) -> None:
    """A run of a sweep that has ended, with random weights."""
    folder = runs / "smt" / "sweep-es-en" / label
    save_model(random_model(seed=seed + 1), vocabulary(), folder / "model", {})
    (folder / "done.json").write_text(json.dumps({"k": k, "seed": seed, "bleu": bleu, "minutes": 1.0}))


def test_seeds_have_rows_means_and_deviations(tmp_path, capsys):
    for seed in (0, 1):
        finish(tmp_path, f"k2-seed{seed}", 2, seed, {"2": 1.0})
        finish(tmp_path, f"kfull-seed{seed}", "full", seed, {"full": 1.0})
    finish(tmp_path, "multi-seed0", "multi", 0, {"2": 1.0, "full": 1.0})
    finish(tmp_path, "k7-seed0", 7, 0, {"7": 1.0})  # not asked for
    mapping = read_yaml(ROOT / "configs" / "studies.yaml:sweep")
    mapping |= {"datasets": ["mini-es"], "fallback": ["mini-es"], "k": [2, "full"], "resamples": 20, "limit": 2}
    mapping |= {"contestants": mapping["contestants"][1:2], "workers": 1}
    config = tmp_path / "ablation.yaml"
    config.write_text(yaml.safe_dump(mapping), encoding="utf-8")
    main(config, tmp_path)
    printed = capsys.readouterr()
    assert "sweep-es-en: 5 trained models" in printed.err and "sweep-pl-en: 0 trained models; train them" in printed.err

    folder = tmp_path / "ablation-sweep"
    files = {Path(line).name for line in printed.out.splitlines() if line.startswith(str(folder))}
    assert {"table.tsv", "seeds.tsv", "seeds_differences.tsv"} <= files
    table, seeds = (_rows(folder / name) for name in ("table.tsv", "seeds.tsv"))
    assert [row["translator"] for row in table if row["k"] == "2"] == [
        "wait-k", "separate wait-k, seed 0", "separate wait-k, seed 1", "multi-path wait-k, seed 0",
    ]  # fmt: skip
    for k in ("2", "full"):
        both = [row for row in table if row["k"] == k and row["translator"].startswith("separate")]
        mean = next(row for row in seeds if row["k"] == k and row["translator"] == "separate wait-k")
        assert mean["seeds"] == "2"
        for name in METRICS:
            values = [float(row[name]) for row in both]
            assert float(mean[name]) == pytest.approx(fmean(values), abs=2e-6)
            assert float(mean[f"{name}.sd"]) == pytest.approx(stdev(values), abs=2e-6)
            assert float(mean[f"{name}.questions"]) >= 0
    shipped = next(row for row in seeds if row["translator"] == "wait-k")
    assert float(shipped["bleu.questions"]) > 0  # of two questions that differ
    alone = [row for row in seeds if row["translator"] in ("wait-k", "multi-path wait-k")]
    assert len(alone) == 4 and {(row["seeds"], row["bleu.sd"]) for row in alone} == {("1", "n/a")}
    gains = {(row["claim"], row["between"]): row for row in _rows(folder / "seeds_differences.tsv")}
    assert ("bleu", "separate wait-k minus multi-path wait-k, k = 2") in gains
    row = gains["bleu", "separate wait-k minus the shipped model, k = 2"]
    value, low, high = (float(row[name]) for name in ("difference", "low", "high"))
    assert low <= value <= high < 0 and 0 < float(row["note"].removeprefix("p=")) <= 1  # random weights lose


def test_any_translator_may_have_been_trained_several_times(tmp_path, capsys):
    entries = []
    for seed in (4, 7):
        folder = save_model(random_model(seed=seed), vocabulary(), tmp_path / f"seed{seed}", {})
        entries.append({"label": "mine", "language": "es", "seed": seed,
                        "translator": {"name": "waitk", "model": str(folder)}})  # fmt: skip
    mapping = read_yaml(ROOT / "configs" / "studies.yaml:sweep")
    mapping |= {"datasets": ["mini-es"], "fallback": ["mini-es"], "k": [1, 3, "full"], "resamples": 20, "limit": 3}
    mapping |= {"contestants": mapping["contestants"][1:2], "workers": 1, "sweeps": {}}
    config = tmp_path / "ablation.yaml"
    config.write_text(yaml.safe_dump({**mapping, "translators": entries}), encoding="utf-8")
    main(config, tmp_path)
    capsys.readouterr()

    table, seeds = (_rows(tmp_path / "ablation-sweep" / name) for name in ("table.tsv", "seeds.tsv"))
    assert {row["translator"] for row in table} == {"mine, seed 4", "mine, seed 7", "reference"}
    chrf = {k: [float(row["chrf"]) for row in table if row["k"] == k and "mine" in row["translator"]] for k in "13"}
    for row in seeds[:2]:
        assert (row["translator"], row["seeds"]) == ("mine", "2")
        assert float(row["chrf"]) == pytest.approx(fmean(chrf[row["k"]]), abs=2e-6)
        assert float(row["chrf.sd"]) == pytest.approx(stdev(chrf[row["k"]]), abs=2e-6)
    gaps = _rows(tmp_path / "ablation-sweep" / "seeds_differences.tsv")
    bleu = {k: [float(row["bleu"]) for row in table if row["k"] == k and "mine" in row["translator"]]
            for k in ("1", "full")}  # fmt: skip
    [row] = [gap for gap in gaps if (gap["translator"], gap["claim"]) == ("mine", "bleu")]
    assert row["between"] == "k = full minus k = 1"
    assert float(row["difference"]) == pytest.approx(fmean(bleu["full"]) - fmean(bleu["1"]), abs=2e-6)
    assert float(row["low"]) <= float(row["difference"]) <= float(row["high"])


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_without_sweeps_there_is_nothing_to_report(tmp_path):
    assert trained(tmp_path, {}, [3]) == {}
