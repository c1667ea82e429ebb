"""The buzzers' own numbers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from buzzers.features import N_FEATURES, features, share
from buzzers.mlp import MlpBuzzer
from buzzers.oracle import OracleBuzzer
from buzzers.threshold import ThresholdBuzzer, ThresholdConfig
from sqa.errors import ConfigError, DataError
from sqa.types import Guess

# {input: steps of [page, score], output: steps of 22 numbers}: the original's vector_converter_0 on made-up guesses
VECTORS = Path(__file__).parents[1] / "golden" / "vectors" / "buzzer_features.json"


def test_features_are_those_of_qanta():
    vectors = json.loads(VECTORS.read_text(encoding="utf-8"))
    history = [[Guess(page, score) for page, score in step] for step in vectors["input"]]
    rows = features(history)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, np.array(vectors["output"], np.float32), rtol=1e-6, atol=1e-8)


def test_features_use_ten_guesses_and_stand_none():
    many = [Guess(f"p{i}", 1.0 / (i + 1)) for i in range(50)]
    np.testing.assert_array_equal(features([many]), features([many[:10]]))
    assert features([]).shape == (0, N_FEATURES)
    np.testing.assert_array_equal(features([[]]), np.zeros((1, N_FEATURES)))


def test_share_is_of_the_best_ten():
    assert share([]) == share([Guess("a", 0.0)]) == 0.0
    assert share([Guess("a", 3.0), Guess("b", 1.0)]) == 0.75
    assert share([Guess(str(i), 1.0) for i in range(50)]) == 0.1


def test_threshold_waits_for_ten_guesses():
    ten = [Guess("a", 4.0), *(Guess(f"p{i}", 1.0) for i in range(9))]
    buzzes = ThresholdBuzzer(ThresholdConfig(threshold=0.3)).decide([ten[:3], ten])
    assert [buzz.buzz for buzz in buzzes] == [False, True]
    assert buzzes[1].score == 4 / 13
    assert not ThresholdBuzzer(ThresholdConfig(threshold=0.4)).decide([ten])[0].buzz


@pytest.mark.parametrize("threshold", [0, -0.1, 1.1])
def test_threshold_must_be_a_share(threshold):
    with pytest.raises(ConfigError, match="threshold: must be"):
        ThresholdConfig(threshold=threshold)


def test_oracle_buzzes_where_the_top_guess_is_right():
    history = [[], [Guess("Lima", 1.0)], [Guess("Oslo", 2.0), Guess("Lima", 1.0)], [Guess("lima", 1.0)]]
    oracle = OracleBuzzer()
    assert oracle.oracle
    assert [buzz.buzz for buzz in oracle.decide_with_answer(history, "Lima")] == [False, True, False, True]
    with pytest.raises(ConfigError, match="needs the answer"):
        oracle.decide(history)


def tensors(hidden: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {
        "mean": (N_FEATURES,),
        "deviation": (N_FEATURES,),
        "hidden.weight": (hidden, N_FEATURES),
        "hidden.bias": (hidden,),
        "output.weight": (hidden,),
        "output.bias": (1,),
    }
    return {name: (rng.random(shape) + 0.5).astype(np.float32) for name, shape in shapes.items()}


def test_mlp_is_one_hidden_layer_and_a_sigmoid():
    t = tensors()
    row = np.linspace(-1, 1, N_FEATURES, dtype=np.float32)[None]
    hidden = np.maximum(t["hidden.weight"] @ ((row[0] - t["mean"]) / t["deviation"]) + t["hidden.bias"], 0)
    expected = 1 / (1 + np.exp(-(t["output.weight"] @ hidden + t["output.bias"][0])))
    assert MlpBuzzer(t, 0.5).chances(row)[0] == pytest.approx(expected, rel=1e-5)


def test_mlp_files_come_back_and_broken_ones_are_refused(tmp_path):
    buzzer = MlpBuzzer(tensors(), 0.5)
    buzzer.save(tmp_path, "bm25")
    history = [[Guess("a", 0.2)], [Guess("a", 0.9), Guess("b", 0.1)]]
    assert MlpBuzzer.load(tmp_path).decide(history) == buzzer.decide(history)
    assert MlpBuzzer.load(tmp_path, 0.123).threshold == 0.123
    MlpBuzzer({name: array for name, array in tensors().items() if name != "mean"}, 0.5).save(tmp_path, "bm25")
    with pytest.raises(DataError, match="not an MLP buzzer"):
        MlpBuzzer.load(tmp_path)
