"""The paper's examples (Figure 5, Tables 2 and 5) on a few bundled questions."""

import re

import numpy as np
import pytest
from refusals import refused
from small_ablation import changed, write_small_ablation

import sqa
from experiments.ablation.report import main as ablation
from experiments.paper import examples, figure5
from sqa.core import ROOT, ConfigError, NotComputable
from sqa.diagnose import findings
from sqa.diagnose.alignment import SEEDS, Alignment
from sqa.report.steps import laid_out, red_curve

KS = [3, 6, "full"]
LIMIT = 6


class Diagonal:
    """An aligner that links source word i with target word i, except for every third word and words 3 to 9.

    The first seed decides which third of the words has no links.
    """

    def __init__(self, pair, seeds=SEEDS):
        self.pair, self.shift = pair, seeds[0]

    def align(self, pairs):
        results = []
        for source, target in pairs:
            both = range(min(len(source), len(target)))
            links = tuple((i, i) for i in both if (i + self.shift) % 3 and not 3 <= i <= 9)
            linked = {i for i, _ in links}
            trust = (tuple(float(i in linked) for i in range(len(s))) for s in (source, target))
            results.append(Alignment(links, *trust))
        return results


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write configs with a few bundled questions and one process, and return their folder."""
    folder = tmp_path_factory.mktemp("items")
    write_small_ablation(folder, KS, LIMIT)
    questions = {"a": {"id": "mini-005-es", "k": 3}, "b": {"id": "mini-004-es", "k": 3}}
    changed(ROOT / "configs" / "examples.yaml", folder, translators=["wait-k"], questions=questions)
    return folder


@pytest.fixture(scope="module")
def runs(folder):
    """Return a folder in which the runs of the ablation have finished."""
    ablation(folder / "ablation.yaml", folder / "runs")
    return folder / "runs"


@pytest.fixture(autouse=True)
def diagonal(monkeypatch):
    monkeypatch.setattr(examples, "load_aligner", lambda pair, cache, seeds=SEEDS: Diagonal(pair, seeds))


@pytest.fixture
def selection(folder, runs):
    return examples.load_systems(folder / "examples.yaml", runs)


def test_systems_that_cannot_be_aligned_are_left_out(folder, runs, monkeypatch, capsys):
    def none(pair, cache, seeds=SEEDS):
        raise ConfigError("no aligner here")

    monkeypatch.setattr(examples, "load_aligner", none)
    examples.opened.cache_clear()
    assert not examples.load_systems(folder / "examples.yaml", runs).subjects
    assert "mini-es, k=3: left out, no aligner here" in capsys.readouterr().err
    examples.opened.cache_clear()


def test_mismatched_config_of_examples_is_refused(folder, tmp_path, runs):
    questions = {"a": {"id": "mini-005-es", "k": 7}}
    wrong = {"ablation": str(folder / "ablation.yaml"), "guesser": "gru", "questions": questions}
    path = changed(folder / "examples.yaml", tmp_path, **wrong)
    refused(ConfigError, "(?s)k: 7 is not in .*guesser: 'gru' is not a contestant", examples.load_systems, path, runs)


# -------------------------------------------------------------------------------------------- the paper's own examples


def test_paper_examples_equal_recorded_output(folder, runs, selection, capsys):
    assert [(s.dataset, s.family, s.k) for s in selection.subjects] == [("mini-es", "wait-k", 3)]
    figure5.main(folder / "examples.yaml", runs)
    capsys.readouterr()
    figure5.table5(folder / "examples.yaml", runs)
    assert re.search(r"^Table 5 shows mini-\d+-es \(.*\) by wait-3", capsys.readouterr().out, re.MULTILINE)


def test_named_question_is_shown(folder, runs, tmp_path, capsys):
    questions = {"a": {"id": "mini-005-es", "k": 6}, "b": {"id": "mini-006-es", "k": 3}}
    named = {"name": "named", "ablation": str(folder / "ablation.yaml"), "questions": questions}
    figure5.table5(changed(folder / "examples.yaml", tmp_path, **named), runs)
    printed = capsys.readouterr().out
    assert "Table 5 shows mini-005-es (" in printed and " by wait-6; mini-006-es (" in printed


def test_any_question_of_a_run_is_drawn(runs, monkeypatch):
    monkeypatch.setattr(findings, "load_aligner", lambda pair, *_: Diagonal(pair))
    folder = next(folder for folder in runs.glob("*wait-k-3-*") if folder.is_dir())
    axes = sqa.load(folder).plot_steps("mini-005-es")
    labels = [text.get_text() for text in axes.figure.axes[2].texts]
    marks = [text.get_text() for text in axes.texts]
    assert labels[0] == "Output:" and marks == [f"({n})" for n in range(1, len(marks) + 1)] != []
    assert all(any(label.startswith(f"{mark} ") for label in labels) for mark in marks)


def test_words_stay_within_the_width():
    placed = list(laid_out([("word", False), ("$longer$", True)] * 20, 100))
    assert [word for _, _, word in placed] == [("word", False), ("$longer$", True)] * 20
    assert [line for _, line, _ in placed][-1] > 10 and all(0 <= x < 100 for x, _, _ in placed)


def test_red_curve_is_binary():
    x, y = red_curve(np.array([0.25, 0.5, 0.5, 0.5]), (False, False, True, False))
    assert x.tolist() == [0, 0.25, 0.5, 1] and y.tolist() == [0, 0, 1, 1]
    assert red_curve(np.array([]), ())[1].tolist() == [0, 0]


def test_missing_question_error_names_it(folder, runs, tmp_path):
    other = {"ablation": str(folder / "ablation.yaml"), "questions": {"a": {"id": "other-1", "k": 3}}}
    path = changed(folder / "examples.yaml", tmp_path, **other)
    for item in (figure5.main, figure5.table5):
        refused(NotComputable, "no run of wait-k on mini-es has other-1 at k=3", item, path, runs)
