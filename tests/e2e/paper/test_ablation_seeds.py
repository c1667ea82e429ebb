"""The ablation over k with separately trained models: rows per seed, their mean and deviation, a figure."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from statistics import fmean, stdev

import pytest
import yaml
from small_ablation import rows

from experiments.ablation.report import main
from experiments.grid import trained
from smt.models.bundle import save_model
from sqa.core.paths import ROOT
from sqa.files.yaml_reader import read_yaml
from tests.smt_models import random_model, vocabulary

ENTRY = {"label": "mine", "language": "es"}
METRICS = ("bleu", "ew", "accuracy")


def finish(runs: Path, label: str, k: int | str, seed: int, bleu: dict[str, float]) -> None:
    """A run of a sweep that has ended, with random weights."""
    folder = runs / "smt" / "sweep-es-en" / label
    save_model(random_model(seed=seed + 1), vocabulary(), folder / "model", {})
    (folder / "done.json").write_text(json.dumps({"k": k, "seed": seed, "bleu": bleu, "minutes": 1.0}))


def cut(folder: Path, **keys: object) -> Path:
    """configs/studies.yaml:sweep on some bundled questions, one contestant and one process."""
    mapping = read_yaml(ROOT / "configs" / "studies.yaml:sweep")
    mapping |= {"datasets": ["mini-es"], "fallback": ["mini-es"], "resamples": 20, "workers": 1, **keys}
    path = folder / "ablation.yaml"
    path.write_text(yaml.safe_dump(mapping | {"contestants": mapping["contestants"][1:2]}), encoding="utf-8")
    return path


def test_seeds_have_rows_means_and_deviations(tmp_path, capsys):
    for seed in (0, 1):
        finish(tmp_path, f"k2-seed{seed}", 2, seed, {"2": 1.0})
        finish(tmp_path, f"kfull-seed{seed}", "full", seed, {"full": 1.0})
    finish(tmp_path, "multi-seed0", "multi", 0, {"2": 1.0, "full": 1.0})
    finish(tmp_path, "k7-seed0", 7, 0, {"7": 1.0})  # not asked for
    main(cut(tmp_path, k=[2, "full"], limit=2), tmp_path)
    printed = capsys.readouterr()
    assert "sweep-es-en: 5 trained models" in printed.err and "sweep-pl-en: 0 trained models; train them" in printed.err

    folder = tmp_path / "ablation-sweep"
    files = {Path(line).name for line in printed.out.splitlines() if line.startswith(str(folder))}
    assert {"table.csv", "seeds.csv"} <= files
    table, seeds = (by_cell(folder / name) for name in ("table.csv", "seeds.csv"))
    assert list(dict.fromkeys(translator for translator, k, _ in table if k == "2")) == [
        "wait-k",
        "separate wait-k, seed 0",
        "separate wait-k, seed 1",
        "multi-path wait-k, seed 0",
    ]
    for k, name in product(("2", "full"), METRICS):
        values = [float(table[f"separate wait-k, seed {seed}", k, name]["value"]) for seed in (0, 1)]
        mean, deviation = seeds["separate wait-k", k, name], seeds["separate wait-k", k, f"{name} sd"]
        assert mean["n"] == deviation["n"] == "2"
        assert float(mean["value"]) == pytest.approx(fmean(values), abs=2e-6)
        assert float(deviation["value"]) == pytest.approx(stdev(values), abs=2e-6)
    alone = [row for (name, _, _), row in seeds.items() if name in ("wait-k", "multi-path wait-k")]
    assert {row["n"] for row in alone} == {"1"} and not any(row["metric"].endswith(" sd") for row in alone)
    assert ("separate wait-k minus multi-path wait-k", "2", "bleu") in seeds
    row = seeds["separate wait-k minus wait-k", "2", "bleu"]
    assert float(row["low"]) <= float(row["value"]) <= float(row["high"]) < 0  # random weights lose


def test_any_translator_may_have_been_trained_several_times(tmp_path):
    entries = []
    for seed in (4, 7):
        folder = save_model(random_model(seed=seed), vocabulary(), tmp_path / f"seed{seed}", {})
        entries.append(ENTRY | {"seed": seed, "translator": {"name": "waitk", "model": str(folder)}})
    main(cut(tmp_path, k=[1, 3, "full"], limit=3, sweeps={}, translators=entries), tmp_path)

    table, seeds = (by_cell(tmp_path / "ablation-sweep" / name) for name in ("table.csv", "seeds.csv"))
    assert {translator for translator, _, _ in table} == {"mine, seed 4", "mine, seed 7", "reference"}
    bleu = {k: [float(table[f"mine, seed {seed}", k, "bleu"]["value"]) for seed in (4, 7)] for k in ("1", "3", "full")}
    for k, values in bleu.items():
        assert float(seeds["mine", k, "bleu"]["value"]) == pytest.approx(fmean(values), abs=2e-6)
        assert float(seeds["mine", k, "bleu sd"]["value"]) == pytest.approx(stdev(values), abs=2e-6)
    row = seeds["mine", "full minus 1", "bleu"]
    assert float(row["value"]) == pytest.approx(fmean(bleu["full"]) - fmean(bleu["1"]), abs=2e-6)
    assert float(row["low"]) <= float(row["value"]) <= float(row["high"])


def by_cell(path: Path) -> dict[tuple[str, str, str], dict[str, str]]:
    return {(row["translator"], row["k"], row["metric"]): row for row in rows(path)}


def test_without_sweeps_there_is_nothing_to_report(tmp_path):
    assert trained(tmp_path, {}, [3]) == {}
