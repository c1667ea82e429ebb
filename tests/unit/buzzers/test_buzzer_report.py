"""The table of buzzers: its numbers against direct computation, on made-up questions and models."""

from __future__ import annotations

import numpy as np
import pytest
from refusals import refused

from buzzers import learnt, wins
from buzzers.histories import GuessHistory
from buzzers.learnt import LOGISTIC, Card, LearntBuzzer
from buzzers.threshold import SIGNALS, ThresholdBuzzer
from experiments.items import buzzers as report
from sqa.core.errors import ConfigError
from sqa.metrics.qa import expected_wins

WIDTH = learnt.WIDTHS["all"]


@pytest.fixture(scope="module")
def histories() -> list[GuessHistory]:
    """Sixty questions whose first feature is the chance's logit, and whose signals are noise."""
    rng = np.random.default_rng(0)
    actual = []
    for _ in range(60):
        n = int(rng.integers(2, 12))
        rows = np.zeros((n, WIDTH), np.float32)
        rows[:, 0] = np.sort(rng.normal(0, 3, n))
        right = rng.random(n) < 1 / (1 + np.exp(-rows[:, 0]))
        signals = rng.random((n, len(SIGNALS)))
        actual.append(GuessHistory(rows, signals, right, np.ones(n, bool), np.arange(1, n + 1) / n))
    return actual


@pytest.fixture
def models(tmp_path):
    """A logistic buzzer that reads the first feature, and a tuned threshold."""
    weight = np.zeros((1, WIDTH), np.float32)
    weight[0, 0] = 1
    tensors = {
        "mean": np.zeros(WIDTH, np.float32),
        "deviation": np.ones(WIDTH, np.float32),
        "calibration": np.array([[-1, 1], [-1, 1]], np.float32) * 0.99,
        "output.weight": weight,
        "output.bias": np.zeros(1, np.float32),
    }
    buzzer = LearntBuzzer(LOGISTIC, tensors, Card("made", "all", 0.6, {}))
    buzzer.save(tmp_path / "buzzer-logistic-made")
    ThresholdBuzzer(0.5, "margin").save(tmp_path / "buzzer-threshold-made", "made")
    return tmp_path


def numbers(actual, histories):
    """Buzzer -> metric -> row."""
    lines = {}
    for row in report.rows(("made", "made"), actual, histories, resamples=50):
        lines.setdefault(row.cell[2], {})[row.metric] = row
    return lines


def test_every_buzzer_has_its_line_and_its_own_numbers(histories, models):
    actual = report.outcomes("made", histories, models)
    names = [outcome.name for outcome in actual]
    assert names[:2] == ["logistic", "threshold (margin)"]
    assert names[2:] == [*(f"best {signal} threshold here" for signal in SIGNALS), "stable oracle", "oracle"]
    buzz = [one.signals[:, 2] >= 0.5 for one in histories]
    direct = [expected_wins(wins.CURVE, o.fraction, o.right, b) for o, b in zip(histories, buzz, strict=True)]
    np.testing.assert_allclose(actual[1].won, direct, rtol=1e-12)
    line = numbers(actual, histories)["threshold (margin)"]
    answered = [(o.right[b][0], o.fraction[b][0]) for o, b in zip(histories, buzz, strict=True) if b.any()]
    assert line["right at answer"].value == pytest.approx(np.mean([hit for hit, _ in answered]))
    assert line["position"].value == pytest.approx(np.mean([place for _, place in answered]))
    assert line["never"].value == pytest.approx(1 - len(answered) / len(histories))
    assert line["ew"].low <= np.mean(direct) <= line["ew"].high
    assert line["ew"].value == pytest.approx(np.mean(direct))
    assert line["of oracle"].value == pytest.approx(np.mean(direct) / actual[-1].won.mean())
    assert not {"ece", "brier"} & line.keys()
    best, lines = max(actual[2:5], key=lambda outcome: outcome.won.mean()), numbers(actual, histories)
    assert report.AGAINST not in lines[best.name]
    assert line[report.AGAINST].value == pytest.approx(actual[1].won.mean() - best.won.mean())


def test_a_buzzer_that_learnt_to_answer_at_the_end_has_a_line_by_the_papers_rule_and_one_by_its_own(histories, models):
    plain = learnt.load(LOGISTIC, models / "buzzer-logistic-made")
    card = Card("made", "all", 0.9, {}, "answer", {"answer": 0.9, "silent": 0.6})
    LearntBuzzer(plain.network, plain.tensors, card).save(models / "buzzer-logistic-made-translated")
    actual = {outcome.name: outcome for outcome in report.outcomes("made", histories, models)}
    names = ("", "-translated", "-translated, silent")
    old, answer, silent = (actual[f"logistic{name}"] for name in names)
    np.testing.assert_array_equal(silent.won, old.won)
    buzz = [plain.chances(one.rows) >= 0.9 for one in histories]
    for at_once in buzz:
        at_once[-1] = True
    direct = [expected_wins(wins.CURVE, o.fraction, o.right, b) for o, b in zip(histories, buzz, strict=True)]
    np.testing.assert_allclose(answer.won, direct, rtol=1e-12)
    lines = numbers(list(actual.values()), histories)
    assert lines["logistic-translated"]["never"].value == 0 < lines["logistic-translated, silent"]["never"].value
    assert "ece" in lines["logistic-translated"]


def test_the_oracles_answer_where_they_win(histories):
    stable, oracle = report.oracles(histories)
    for outcome in (stable, oracle):
        for one, step, won in zip(histories, outcome.steps, outcome.won, strict=True):
            assert won == (0.0 if step == len(one.right) else pytest.approx(float(wins.CURVE(one.fraction[step]))))
    assert all(one.right[step:].all() for one, step in zip(histories, stable.steps, strict=True))
    assert all(not one.right[:step].any() for one, step in zip(histories, oracle.steps, strict=True))
    assert (stable.won <= oracle.won + 1e-12).all()


def test_a_guesser_without_a_buzzer_is_said(histories, tmp_path):
    refused(ConfigError, "made: no trained buzzer", report.outcomes, "made", histories, tmp_path)
