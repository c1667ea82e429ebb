"""YiSi-1 compared with a straightforward computation, and Figure 9 with missing metrics and stored scores."""

import math

import numpy as np
import pytest
import yaml
from matplotlib import pyplot
from refusals import refused
from small_ablation import write_small_ablation

from experiments.paper import figure9
from guessers.bert.yisi import YisiConfig, build, rarity, yisi
from sqa.core.errors import ConfigError, NotComputable
from sqa.files.yaml_reader import read_yaml
from sqa.pipeline.config import load
from sqa.results import Frame, Row


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
    write_small_ablation(folder, [3, "full"], 4)
    (folder / "length.py").write_text(LENGTH, encoding="utf-8")
    quality = [{f"{folder}/length.py:build": {}}, {"scores": {"file": "gone/{run}.txt", "name": "prism"}}]
    mapping = {"name": "figure9", "ablation": "ablation.yaml", "labels": ["Length", "Prism"], "quality": quality}
    (folder / "figure9.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return folder


LENGTH = """
from dataclasses import dataclass
from pathlib import Path
from sqa.metrics.quality.text_metric import MeanOfSegments

@dataclass(frozen=True)
class Length:
    name: str = "length"

def scores(segments):
    with Path(__file__).with_name("calls").open("a") as file:
        file.write("x" * len(segments))
    return [len(s.hypothesis.split()) / len(s.reference.split()) for s in segments]

def build(config: Length) -> MeanOfSegments:
    return MeanOfSegments(config.name, "length", "length 1", scores)
"""


def test_figure9_draws_the_available_points(folder, capsys):
    runs = folder / "runs"
    figure9.main(folder / "figure9.yaml", runs)
    printed = capsys.readouterr()
    assert "Prism: not computed" in printed.err
    scored = (folder / "calls").read_text(encoding="utf-8")
    figure9.main(folder / "figure9.yaml", runs)  # texts are not scored again
    assert (folder / "calls").read_text(encoding="utf-8") == scored and len(scored) <= 2 * 4


def test_dots_are_beside_lines_and_all_have_labels():
    """A translator with full input only is drawn next to the lines, and one without the first metric has a label."""

    def row(family, k, metric, value):
        return Row(("mini-es", family, str(k)), metric, value, value - 0.1, value + 0.1, 9)

    values = {("line", 3): 0.5, ("line", "full"): 0.6, ("dot", "full"): 0.6}
    given = [row(*cell, metric, value) for cell, value in values.items() for metric in "ab"]
    given += [row("late", k, "b", 0.4) for k in (3, "full")]
    figure = figure9.drawn(Frame(figure9.COLUMNS, given).rows, {"a": "A", "b": "B"}, ["line", "dot", "late"])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["line", "dot", "late"]
    for axes in figure.axes:
        ends = {line.get_xdata()[-1] for line in axes.get_lines() if len(line.get_xdata()) in (1, 2)}
        assert 1.0 in ends and any(1 < end < 1.5 for end in ends)
    pyplot.close(figure)


def test_figure9_without_metrics_names_the_missing_ones(folder, tmp_path):
    mapping = read_yaml(folder / "figure9.yaml")
    mapping |= {"ablation": str(folder / "ablation.yaml"), "quality": mapping["quality"][1:], "labels": ["Prism"]}
    path = tmp_path / "figure9.yaml"
    path.write_text(yaml.safe_dump(mapping), encoding="utf-8")
    refused(NotComputable, "figure 9: Prism: ", figure9.main, path, folder / "runs")
    path.write_text(yaml.safe_dump(mapping | {"labels": []}), encoding="utf-8")
    refused(ConfigError, "labels: one for each of the 1 entries", load, path, figure9.Figure9Config)
