"""Damaged texts, texts at equal pace, the script that recomputes the headline table, and components of variance."""

import random
import subprocess
import sys

import numpy as np
import pytest

from experiments.lab.ledger import Row
from experiments.paper.figure3 import STORY
from experiments.studies import known_groups
from experiments.validity import damage, generalisability, seeds_and_buzzers, text_at_pace
from sqa.core.paths import ROOT
from sqa.data.datasets import load_questions
from sqa.metrics import build

WORDS = damage.Words(frozenset("the a in of king".split()), ("Rome", "Paris"))
SENTENCE = "In 1804 the king of Rome did not see Paris in two days.".split()


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("roles swapped", "In 1804 the king of Paris did not see Rome in two days."),
        ("negated", "In 1804 the king of Rome did see Paris in two days."),
        ("names only", "Rome Paris"),
        ("names removed", "In 1804 the king of did not see in two days."),
        ("lower case, no punctuation", "in 1804 the king of rome did not see paris in two days"),
        ("function words removed", "1804 king Rome see Paris two days."),
    ],
)
def test_change_damages_only_its_target(group, expected):
    assert " ".join(damage.EACH[group](SENTENCE, random.Random(0), WORDS)) == expected


def test_changed_numbers_keep_their_form():
    changed = damage.numbers_changed(SENTENCE, random.Random(0), WORDS)
    assert [i for i, word in enumerate(changed) if word != SENTENCE[i]] == [1, 11]
    assert changed[1].isdigit() and len(changed[1]) == 4 and changed[11] in damage.NUMBERS


def test_groups_keep_the_sentences_of_the_source():
    questions = load_questions("mini-es", 6)
    groups = damage.texts(questions)
    intact = groups[damage.INTACT]
    for group, texts in groups.items():
        assert [len(text) for text in texts] == [len(q.sentences) for q in questions], group
    shuffled = groups["shuffled within sentences"]
    assert [[sorted(s) for s in t] for t in shuffled] == [[sorted(s) for s in t] for t in intact] and shuffled != intact
    assert all(a != b for a, b in zip(groups[damage.OTHER], intact, strict=True))


def test_drop_is_0_for_the_intact_text_and_1_at_worst():
    [ew] = build(["ew"])
    won = np.stack([np.r_[np.ones(30), np.zeros(10)], np.ones(40)], axis=1)
    half, lost = won * [[0.5, 1]], won * [[0.25, 1]]
    drops = [known_groups.drop((), ew, won, group, lost).value for group in (won, half, lost)]
    assert drops == pytest.approx([0, 2 / 3, 1])


@pytest.mark.parametrize(("effect", "found"), [(0, False), (0.1, True)])
def test_pace_alone_is_not_an_effect_of_the_text(effect, found):
    """Every text wins less at a later pace, and the last of four texts wins `effect` more at each pace."""
    drawn, table = np.random.default_rng(3).random(300), np.ones((300, 4, 4, 2))
    for text, pace in np.ndindex(4, 4):
        table[:, text, pace, 0] = (drawn < 0.5 + effect * (text == 3)) * (0.6 - 0.05 * pace)
    texts = text_at_pace.Texts("xqb-es", "wait-k", (2, 3, 6, "full"), table)
    [p] = text_at_pace.p_value(text_at_pace.observed(table), text_at_pace.null(texts, 999))
    assert (p <= text_at_pace.ALPHA) == found


def test_script_recomputes_the_headline_table():
    script = ROOT / "experiments" / "ledger" / "recompute.py"
    printed = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in printed.splitlines() if " p = " not in line and "off by" not in line]
    shown = sum(len(ks) for *_, ks in STORY)
    assert len(rows) == shown + 6 and all(float(row[-1]) < 1e-6 for row in rows)


def test_variance_components_are_recovered():
    rng, shape, deviations = np.random.default_rng(0), (60, 40, 80), (0.7, 0.5, 1.0, 0.3, 0.6, 0.4, 0.8)
    x = np.zeros(shape)
    for effect, deviation in zip(generalisability.EFFECTS, deviations, strict=True):
        x = x + deviation * rng.normal(size=[size if c in effect else 1 for c, size in zip("sgq", shape, strict=True)])
    assert generalisability.components(x) == pytest.approx(np.square(deviations), rel=0.35)
    needed = generalisability.questions_for(np.square(deviations), 2)
    reliability = generalisability.reliability(np.square(deviations), 2, needed)
    assert generalisability.tau(reliability) == pytest.approx(generalisability.TAU)


def test_sd_over_training_runs_is_pooled_over_k():
    """Three training runs shared by all k give two degrees of freedom, and separate runs give two for each k."""
    over_k = [Row(("xqb-es", "ours", k, "bm25"), "ew sd", sd, n=3) for k, sd in (("3", 0.01), ("full", 0.02))]
    shared, separate = (seeds_and_buzzers.pooled((), over_k, shared) for shared in (True, False))
    assert shared.value == separate.value == pytest.approx(np.sqrt(0.00025))
    assert (shared.n, separate.n) == (3, 6)
    assert shared.low == pytest.approx(shared.value * 0.5207, abs=1e-5)  # sqrt(2 / chi2(.975, 2))
    assert shared.high > separate.high > separate.value > separate.low > shared.low


@pytest.mark.parametrize("effect", [0.0, 0.1])
def test_sd_between_buzzers_is_recovered(effect):
    """Every second buzzer wins `effect` more on every question."""
    rng, moved = np.random.default_rng(1), np.array([0, effect, 0, effect])[:, None, None]
    x = moved + rng.normal(size=(1, 2, 400)) + 0.01 * rng.normal(size=(4, 2, 400))
    measured = {row.key: row for row in seeds_and_buzzers.rows("xqb-es", x)}
    sd = measured["xqb-es", "buzzer", "small Transformer, k = 3", "sd"]
    assert sd.value == pytest.approx(np.std(moved, ddof=1), abs=0.001)
    gap = measured["xqb-es", "mlp", "gru", "ew"].value - measured["xqb-es", "recurrent", "gru", "ew"].value
    assert gap == pytest.approx(effect, abs=0.003)


def test_sd_between_curves_is_the_sd_of_their_means():
    wins = np.random.default_rng(2).random(300)
    row = seeds_and_buzzers.between_curves("xqb-es", np.stack([wins, 0.8 * wins]))
    assert row.value == pytest.approx(0.2 * wins.mean() / np.sqrt(2)) and row.low < row.value < row.high
