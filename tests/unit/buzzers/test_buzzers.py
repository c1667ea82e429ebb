"""The features, files and decisions of the buzzers."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from buzzers import learnt
from buzzers.fit import StateNetwork, StepNetwork
from buzzers.learnt import LOGISTIC, MLP, N_FEATURES, Card, LearntBuzzer, features, shape
from buzzers.oracle import OracleBuzzer
from buzzers.recurrent import RECURRENT
from buzzers.threshold import ThresholdBuzzer, ThresholdConfig, build, signals
from sqa.core import Buzz, ConfigError, DataError, Guess

# output of QANTA's vector_converter_0 for made-up guesses: "input" lists the [page, score] pairs of each step,
# "output" the 22 features of each step
VECTORS = Path(__file__).parents[2] / "golden" / "vectors" / "buzzer_features.json"
TEN = [Guess("a", 4.0), *(Guess(f"p{i}", 1.0) for i in range(9))]


def test_features_match_qanta():
    vectors = json.loads(VECTORS.read_text(encoding="utf-8"))
    history = [[Guess(page, score) for page, score in step] for step in vectors["input"]]
    rows = features(history)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, np.array(vectors["output"], np.float32), rtol=1e-6, atol=1e-8)


def test_shape_features_match_hand_computed_values():
    history = [[Guess("b", 2.0)], TEN, TEN[:1], [Guess("b", 5.0), Guess("a", 3.0)]]
    rows = shape(history).astype(np.float64)
    np.testing.assert_allclose(rows[:, 0], np.log([1, 2, 3, 4]), rtol=1e-6)
    np.testing.assert_allclose(rows[:, 1], [0.01, 0.02, 0.03, 0.04], rtol=1e-6)
    np.testing.assert_allclose(rows[1, 2:5], np.array([4, 1, 1]) / 13, rtol=1e-5)
    assert rows[1, 5] == pytest.approx(math.log(13) - 4 / 13 * math.log(4), rel=1e-5)  # entropy of 4/13, 1/13, ...
    assert rows[1, 7] == pytest.approx(math.log(1 + 9 * math.exp(-1)), rel=1e-5)
    np.testing.assert_allclose(rows[3, [8, 9, 22]], np.log([5.0001, 2.001, 0.999 / 0.001]), rtol=1e-5)
    assert rows[1, 6] == pytest.approx(math.log(1 + 9 * math.exp(-3)), rel=1e-5)
    assert rows[1, 10] == pytest.approx(0.75, rel=1e-5)  # the lead (3) divided by the best score (4)
    np.testing.assert_allclose(np.expm1(rows[:, 11]), [1, 1, 2, 1], rtol=1e-5)  # "a" is the top guess twice in a row
    np.testing.assert_allclose(np.expm1(rows[:, 12]), [1, 2, 2, 2], rtol=1e-5)
    np.testing.assert_allclose(rows[:, 13], [1, 1 / 2, 2 / 3, 2 / 4], rtol=1e-6)
    np.testing.assert_allclose(np.expm1(rows[:, 14]), [0, 0, 1, 3], atol=1e-5)
    np.testing.assert_allclose(rows[3, [15, 16]], [5 / 4, 2 / 2], rtol=1e-6)
    np.testing.assert_allclose(rows[:, 21], [0.1, 1.0, 0.1, 0.2], rtol=1e-6)


def test_shape_includes_changes_over_5_and_15_steps():
    rows = shape([[Guess("a", float(t))] for t in range(20)])
    np.testing.assert_array_equal(rows[:, 17], [0, 1, 2, 3, 4, *[5] * 15])
    np.testing.assert_array_equal(rows[[14, 15, 19], 18], [14, 15, 15])


@pytest.mark.parametrize(
    ("guesses", "expected"),
    [
        ([], (-np.inf, -np.inf, -np.inf)),
        ([Guess("a", 3.0)], (-np.inf, 3.0, -np.inf)),
        (TEN, (4 / 13, 4.0, 3.0)),
        ([Guess(str(i), 1.0) for i in range(50)], (0.1, 1.0, 0.0)),  # the share is computed over the ten best guesses
        ([Guess(str(i), 0.0) for i in range(10)], (0.0, 0.0, 0.0)),
    ],
)
def test_undefined_signals_are_neutral(guesses, expected):
    assert signals(guesses) == expected


# ---------------------------------------------------------------------------------------------------- threshold


@pytest.mark.parametrize(("signal", "value"), [("share", 4 / 13), ("score", 4.0), ("margin", 3.0)])
def test_buzz_when_the_signal_reaches_the_threshold(signal, value):
    for threshold, buzz in ((value, True), (value + 0.1, False)):
        assert ThresholdBuzzer(threshold, signal).decide([[], TEN]) == [Buzz(0.0, False), Buzz(value, buzz)]
    assert not ThresholdBuzzer(0.1, "share").decide([TEN[:3]])[0].buzz  # fewer than ten guesses


def test_tuned_threshold_is_restored(tmp_path):
    ThresholdBuzzer(7.5, "margin").save(tmp_path, "bm25")
    buzzer = build(ThresholdConfig(model=str(tmp_path)))
    assert (buzzer.threshold, buzzer.signal, buzzer.trained_for) == (7.5, "margin", "bm25")
    assert build(ThresholdConfig(model=str(tmp_path), threshold=9.0)).threshold == 9.0
    assert (build(ThresholdConfig()).threshold, build(ThresholdConfig()).signal) == (0.17, "share")
    assert build(ThresholdConfig(threshold=40.0, signal="score")).threshold == 40.0


def test_oracle_buzzes_at_a_correct_top_guess():
    history = [[], [Guess("Lima", 1.0)], [Guess("Oslo", 2.0), Guess("Lima", 1.0)], [Guess("lima", 1.0)]]
    oracle = OracleBuzzer()
    assert oracle.oracle
    assert [buzz.buzz for buzz in oracle.decide_with_answer(history, "Lima")] == [False, True, False, True]
    refused(ConfigError, "needs the answer", oracle.decide, history)


# --------------------------------------------------------------------------------------------- trained buzzers

NETWORKS = {"logistic": LOGISTIC, "mlp": MLP, "gru": RECURRENT}


def make(name: str, features: str = "all", threshold: float = 0.5) -> LearntBuzzer:
    """Return a randomly initialized buzzer; all but the logistic buzzer have three hidden units."""
    rng, width = np.random.default_rng(0), learnt.WIDTHS[features]
    network = StateNetwork(width, 3, 0.0, False) if name == "gru" else StepNetwork(width, 3 * (name == "mlp"))
    shapes = {key: tuple(tensor.shape) for key, tensor in network.state_dict().items()}
    shapes |= {"mean": (width,), "deviation": (width,), "calibration": (2, 4)}
    tensors = {key: rng.normal(0, 0.3, size).astype(np.float32) for key, size in shapes.items()}
    tensors["deviation"] = np.abs(tensors["deviation"]) + 1
    tensors["calibration"].sort(axis=1)
    return LearntBuzzer(NETWORKS[name], tensors, Card("bm25", features, threshold, {"seed": 0}))


def history(steps: int = 40) -> list[list[Guess]]:
    rng = np.random.default_rng(1)
    actual = []
    for step in range(steps):
        scores = np.sort(rng.random(int(rng.integers(0, 13))))[::-1] * (step + 1)
        actual.append([Guess(f"p{page}", float(s)) for page, s in zip(rng.permutation(20), scores, strict=False)])
    return actual


@pytest.mark.parametrize("features", learnt.WIDTHS)
@pytest.mark.parametrize("name", NETWORKS)
def test_decision_does_not_depend_on_later_steps(name, features):
    buzzer, steps = make(name, features, threshold=0.0), history()
    whole = buzzer.decide(steps)
    assert len({buzz.score for buzz in whole}) > 20
    assert all(buzz.buzz if guesses else buzz == Buzz(0.0, False) for buzz, guesses in zip(whole, steps, strict=True))
    for end in range(len(steps) + 1):
        assert buzzer.decide(steps[:end]) == whole[:end]


def test_mlp_applies_a_hidden_layer_and_calibration():
    buzzer = make("mlp", "qanta")
    t = {name: array.astype(np.float64) for name, array in buzzer.tensors.items()}
    row = np.array([1e9, -1e9, *np.linspace(-1, 1, N_FEATURES - 2)])  # clipped at eight standard deviations
    standard = np.clip((row - t["mean"]) / t["deviation"], -8, 8)
    hidden = np.maximum(t["hidden.weight"] @ standard + t["hidden.bias"], 0)
    logit = t["output.weight"][0] @ hidden + t["output.bias"][0]
    expected = learnt.calibrated(buzzer.tensors["calibration"], np.array([logit]))[0]
    assert buzzer.chances(row.astype(np.float32)[None])[0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", NETWORKS)
def test_files_round_trip_and_invalid_shape_is_refused(name, tmp_path):
    buzzer, network = make(name), NETWORKS[name]
    buzzer.save(tmp_path)
    again = learnt.load(network, tmp_path)
    assert again.decide(history()) == buzzer.decide(history()) and again.card == buzzer.card
    tensors, config = dict(buzzer.tensors), json.loads((tmp_path / "config.json").read_text())
    tensors["output.weight"] = np.zeros((1, 2), np.float32)
    learnt.write_tensors(tmp_path, tensors, config)
    refused(DataError, f"not a {network.kind} buzzer", learnt.load, network, tmp_path)


def test_end_rule_selects_the_threshold(tmp_path):
    plain = make("mlp")
    card = replace(plain.card, end="answer", thresholds={"answer": 0.5, "silent": 0.3})
    LearntBuzzer(plain.network, plain.tensors, card).save(tmp_path)
    answer, silent, unsaid = (learnt.load(MLP, tmp_path, end=end) for end in ("answer", "silent", None))
    assert answer.card == card and (answer.threshold, silent.threshold, unsaid.threshold) == (0.5, 0.3, 0.3)
    assert learnt.load(MLP, tmp_path, 0.7, "answer").threshold == 0.7
    at_03 = learnt.load(MLP, tmp_path, 0.3)
    assert silent.fingerprint() == unsaid.fingerprint() == at_03.fingerprint() != answer.fingerprint()
    unsaid.save(tmp_path / "again")
    assert learnt.load(MLP, tmp_path / "again", end="answer").threshold == 0.5
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"end": "perhaps"}))
    refused(DataError, "at `\\$.end`", learnt.load, MLP, tmp_path)
