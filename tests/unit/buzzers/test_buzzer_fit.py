"""The training objective, threshold tuning, calibration and the table of buzzers."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from stand_ins.second_device import as_cuda
from tables import tables_of

from buzzers import learnt, train, wins
from buzzers.fit import FitConfig, StateNetwork, StepNetwork, batch_of, fit, loss, soft_wins
from buzzers.histories import DataChoice, GuessHistory
from buzzers.learnt import WIDTHS
from buzzers.recurrent import RECURRENT
from buzzers.threshold import SIGNALS
from sqa.metrics.qa import expected_wins

TABLES = tables_of(__file__)

CONFIG = FitConfig("all", "wins", label_weight=0.1, batch=4, epochs=4, learning_rate=0.01, weight_decay=0.0, seed=0)
WIDTH = WIDTHS["all"]
SCALE = (np.zeros(WIDTH, np.float32), np.ones(WIDTH, np.float32))


def made_up(n_questions: int = 24, seed: int = 0) -> list[GuessHistory]:
    """Return guess histories whose first feature is a noisy indicator of a correct top guess."""
    rng = np.random.default_rng(seed)
    actual = []
    for _ in range(n_questions):
        n = int(rng.integers(3, 9))
        right = np.arange(n) >= rng.integers(0, n + 2)
        rows = rng.normal(size=(n, WIDTH)).astype(np.float32)
        rows[:, 0] += 3 * right
        rows[:, 1] = 5.0  # an uninformative feature
        guessed = np.arange(n) > 0
        actual.append(GuessHistory(rows, np.zeros((n, 3)), right & guessed, guessed, np.arange(1, n + 1) / n))
    return actual


def won(history: GuessHistory, buzz: np.ndarray) -> float:
    """Return the expected wins of a history, as computed by the metric; `buzz` marks the steps with a buzz."""
    return expected_wins(wins.CURVE, history.fraction, history.right, history.guessed & buzz)


def test_wins_at_thresholds_match_the_metric():
    histories, rng = made_up(), np.random.default_rng(1)
    scores = [rng.random(len(one.right)) for one in histories]
    thresholds = np.array([0.0, 0.3, *scores[0][:3], *scores[1][:3], 0.95, 2.0])  # an equal score buzzes
    expected = [[won(o, s >= t) for t in thresholds] for o, s in zip(histories, scores, strict=True)]
    np.testing.assert_allclose(wins.wins(histories, scores, thresholds), expected, rtol=1e-12)
    threshold, reached = wins.best_threshold(histories, scores)
    assert reached == wins.wins(histories, scores, wins.grid(scores)).mean(0).max()
    assert wins.wins(histories, scores, np.array([threshold])).mean() == pytest.approx(reached)


def test_fit_gives_similar_weights_on_another_device(monkeypatch):
    as_cuda(monkeypatch)
    configs = [replace(CONFIG, device=device) for device in ("cpu", "cuda")]
    fitted = [fit(config, lambda width: StepNetwork(width, 4), made_up(), made_up(8, 1)) for config in configs]
    for name, tensor in fitted[0].tensors.items():
        np.testing.assert_allclose(tensor, fitted[1].tensors[name], rtol=1e-3, atol=1e-5)


def test_soft_wins_average_over_all_buzz_patterns():
    [one] = made_up(1, seed=3)
    logits = torch.linspace(-1, 1, len(one.right))
    chance = torch.sigmoid(logits).numpy()
    ways = map(np.array, itertools.product((False, True), repeat=len(one.right)))
    total = sum(np.prod(np.where(buzz, chance, 1 - chance)) * won(one, buzz) for buzz in ways)
    assert soft_wins(logits[None], batch_of([one], SCALE)).item() == pytest.approx(total, rel=1e-5)


def test_remaining_probability_goes_to_a_final_answer():
    for seed in range(6):
        [one] = made_up(1, seed=seed)
        logits = torch.linspace(-2, 0, len(one.right))
        chance = torch.sigmoid(logits).numpy()
        left = np.prod(np.where(one.guessed, 1 - chance, 1))
        last = float(wins.CURVE(1.0)) * left * one.right[-1]
        plain, ended = (soft_wins(logits[None], batch_of([one], SCALE, at_end)).item() for at_end in (False, True))
        assert ended - plain == pytest.approx(last, rel=1e-4, abs=1e-7)
        never, scores = np.array([9.0]), [np.zeros(len(one.right))]
        assert wins.wins([one], scores, never).item() == 0
        assert wins.wins([one], scores, never, True).item() == pytest.approx(float(wins.CURVE(1.0)) * one.right[-1])


def test_padding_does_not_change_the_loss():
    short, long = sorted(made_up(2, seed=5), key=lambda one: len(one.right))
    network = StepNetwork(WIDTH, 3)
    alone, together = batch_of([short], SCALE), batch_of([short, long], SCALE)
    torch.testing.assert_close(soft_wins(network(together.rows), together)[0], soft_wins(network(alone.rows), alone)[0])
    n = len(short.right)
    first = type(together)(*(tensor[:1] for tensor in together))
    assert first.guessed[:, n:].sum() == 0
    torch.testing.assert_close(loss(network(first.rows), first, CONFIG), loss(network(alone.rows), alone, CONFIG))


@pytest.mark.parametrize("skip", [False, True])
def test_numpy_recurrent_network_equals_torch(skip):
    torch.manual_seed(0)
    network = StateNetwork(7, 5, dropout=0.4, skip=skip).eval()
    rows = torch.randn(2, 30, 7)
    with torch.no_grad():
        expected = network(rows).numpy()
    tensors = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
    assert RECURRENT.shapes(7, tensors) == {name: array.shape for name, array in tensors.items()}
    for question, logits in zip(rows.numpy(), expected, strict=True):
        np.testing.assert_allclose(RECURRENT.logits(tensors, question), logits, atol=1e-5)


@pytest.mark.parametrize(("objective", "units"), [("wins", 4), ("label", 0)])
def test_fit_finds_the_informative_feature(objective, units):
    learnt, kept = made_up(96), made_up(32, seed=9)
    config = replace(CONFIG, objective=objective, batch=8, epochs=15, learning_rate=0.02, weight_decay=0.01)
    fitted = fit(config, lambda width: StepNetwork(width, units), learnt, kept)
    _, reached = wins.best_threshold(kept, fitted.logits(kept))
    _, by_chance = wins.best_threshold(kept, [np.zeros(len(one.right)) for one in kept])
    assert reached > by_chance + 0.1 and 1 <= fitted.epoch <= config.epochs
    assert (fitted.tensors["mean"][1], fitted.tensors["deviation"][1]) == (5.0, 1.0)


@pytest.mark.parametrize("end", ["silent", "answer"])
def test_trained_buzzer_gets_its_best_threshold(end):
    learnt, kept, tuning = made_up(96), made_up(32, seed=9), made_up(40, seed=7)
    data = DataChoice("bm25", "bm25", None, 0.0, Path())
    config = train.Learning("logistic", Path(), data, CONFIG, end=end)
    buzzer, _ = train.learn(config, learnt, kept, tuning)
    chances = [buzzer.chances(one.rows) for one in tuning]
    best = {each: wins.best_threshold(tuning, chances, each == "answer")[0] for each in ("answer", "silent")}
    assert best["answer"] != best["silent"]
    assert buzzer.threshold == best[end] and buzzer.card.thresholds == (best if end == "answer" else {})


def test_tuning_selects_best_signal_and_threshold():
    noise = np.random.default_rng(3)
    histories = [
        replace(one, signals=noise.random((len(one.right), 3)) + 9 * np.outer(one.right, [0, 1, 0]) + [0, 5, 0])
        for one in made_up(60)
    ]
    buzzer, column = train.tune(histories)
    assert (buzzer.signal, column) == (SIGNALS[1], 1)
    assert buzzer.threshold == wins.best_threshold(histories, [one.signals[:, 1] for one in histories])[0] > 5


# -------------------------------------------------------------------------------------------------- calibration


def test_calibration_inverts_a_distortion():
    rng = np.random.default_rng(0)
    true = rng.normal(0, 2, 60_000)
    chance = 1 / (1 + np.exp(-true))
    right = rng.random(len(true)) < chance
    bent = np.where(true > 0, 5 * true, true / 5)  # increasing, but not linear
    actual = learnt.calibrated(train.calibration_of(bent, right), bent)
    assert np.abs(actual - chance).mean() < 0.01
    logits = np.linspace(-3, 3, 200)  # calibration is increasing even if the observed shares decrease
    actual = learnt.calibrated(train.calibration_of(logits, logits < 0), np.linspace(-9, 9, 50))
    assert (np.diff(actual) > 0).all()


@pytest.mark.parametrize(("logits", "right", "at", "chance"), TABLES["bins_with_decreasing_shares_are_merged"])
def test_bins_with_decreasing_shares_are_merged(logits, right, at, chance):
    knots, odds = train.calibration_of(np.array(logits), np.array(right)), np.array(chance) / (1 - np.array(chance))
    assert knots == pytest.approx(np.stack([np.array(at), np.log(odds) - learnt.SLOPE * np.array(at)]))
