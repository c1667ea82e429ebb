"""YiSi-1 compared with a straightforward computation, and Figure 9 with missing metrics and stored scores."""

import math

import numpy as np
import pytest
import yaml
from refusals import refused
from small_ablation import write_small_ablation
from tables import tables_of

from experiments.ablation.report import main
from guessers.bert.yisi import YisiConfig, build, rarity, yisi
from sqa.core import ConfigError
from sqa.files import read_yaml

TABLES = tables_of(__file__)


def test_yisi_equals_hand_computed_value():
    rng = np.random.default_rng(0)
    drawn = [rng.normal(size=(n, 3)) ** 2 for n in (4, 5)]
    a, b = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in drawn)
    wa, wb = rng.random(4), rng.random(5)
    precision = sum(w * max(float(x @ y) for y in b) for w, x in zip(wa, a, strict=True)) / wa.sum()
    recall = sum(w * max(float(x @ y) for x in a) for w, y in zip(wb, b, strict=True)) / wb.sum()
    expected = precision * recall / (0.8 * precision + 0.2 * recall)
    assert yisi(a, wa, b, wb, 0.8) == pytest.approx(expected)
    assert yisi(a, wa, a, wa, 0.8) == pytest.approx(1)
    assert yisi(a, wa, b, wb, 1.0) == pytest.approx(recall)  # alpha is the weight of recall
    assert yisi(a[:0], wa[:0], b, wb, 0.8) == 0
    assert rarity(0, 9) == pytest.approx(math.log(11)) and rarity(9, 9) == pytest.approx(math.log(2))


@pytest.mark.needs("bert")
def test_unavailable_question_sets_are_named():
    refused(ConfigError, "yisi1: idf: none of ", build, YisiConfig(idf=()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("figure9")
    write_small_ablation(folder, [3, 6, "full"], 4)
    (folder / "length.py").write_text(LENGTH, encoding="utf-8")
    quality = [{f"{folder}/length.py:build": {}}, {"scores": {"file": "gone/{run}.txt", "name": "prism"}}]
    texts = {"name": "figure9", "contestants": [], "metrics": ["bleu", "dal"], "panels": ["length", "prism"]}
    mapping = read_yaml(folder / "ablation.yaml") | texts | {"quality": quality}
    (folder / "figure9.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return folder


LENGTH = TABLES["length"]


def test_figure9_draws_the_available_points(folder, capsys):
    runs = folder / "runs"
    main(folder / "figure9.yaml", runs)
    assert "Not in the figure: prism of every run" in capsys.readouterr().err
    assert "length grows" in (runs / "figure9" / "differences.tsv").read_text(encoding="utf-8")
    scored = (folder / "calls").read_text(encoding="utf-8")
    main(folder / "figure9.yaml", runs)  # texts are not scored again
    assert (folder / "calls").read_text(encoding="utf-8") == scored and len(scored) <= 3 * 4
