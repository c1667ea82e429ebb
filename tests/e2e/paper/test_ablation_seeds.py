"""The ablation over k with models trained with several seeds: rows per seed, means and standard deviations."""

import json
from pathlib import Path

import yaml

from experiments.ablation.report import main
from experiments.grid import trained
from smt.models.bundle import save_model
from sqa.core import ROOT
from sqa.files import read_yaml
from tests.smt_models import random_model, vocabulary


def finish(runs: Path, label: str, k: int | str, seed: int, bleu: dict[str, float]) -> None:
    """Write a finished training run of a sweep, with a randomly initialized model."""
    folder = runs / "smt" / "sweep-es-en" / label
    save_model(random_model(seed=seed + 1), vocabulary(), folder / "model", {})
    (folder / "done.json").write_text(json.dumps({"k": k, "seed": seed, "bleu": bleu, "minutes": 1.0}))


def cut(folder: Path, **keys: object) -> Path:
    """Write configs/studies.yaml:sweep with bundled questions, one contestant and one process; return its path."""
    mapping = read_yaml(ROOT / "configs" / "studies.yaml:sweep")
    mapping |= {"datasets": ["mini-es"], "fallback": ["mini-es"], "resamples": 20, "workers": 1, **keys}
    path = folder / "ablation.yaml"
    path.write_text(yaml.safe_dump(mapping | {"contestants": mapping["contestants"][1:2]}), encoding="utf-8")
    return path


def test_seeds_have_rows_means_and_standard_deviations(tmp_path, capsys):
    for seed in (0, 1):
        finish(tmp_path, f"k2-seed{seed}", 2, seed, {"2": 1.0})
        finish(tmp_path, f"kfull-seed{seed}", "full", seed, {"full": 1.0})
    finish(tmp_path, "multi-seed0", "multi", 0, {"2": 1.0, "full": 1.0})
    finish(tmp_path, "k7-seed0", 7, 0, {"7": 1.0})  # k = 7 is not requested
    main(cut(tmp_path, k=[2, "full"], limit=2), tmp_path)
    printed = capsys.readouterr().err
    assert "sweep-es-en: 5 trained models" in printed and "sweep-pl-en: 0 trained models; train them" in printed


def test_no_rows_without_sweeps(tmp_path):
    assert trained(tmp_path, {}, [3]) == []
