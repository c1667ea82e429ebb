"""A seed decides all random choices: equal seeds give equal results, and different seeds give different results.

Each entry of DRAWN is a function with a seed. Other tests compare the numbers of resampling with fixed values.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from needs import require

from buzzers import fit as buzzer_fit
from buzzers.histories import GuessHistory
from buzzers.learnt import N_FEATURES, N_SHAPE
from guessers import noise
from guessers.rerank import train as fitting
from smt.lm.adapter import adapt, factors
from smt.lm.network import CausalLM
from smt.training.lexical_lines import back_translate_lexically
from sqa.core import bootstrap_band, mean_curve, means, permuted_sums
from sqa.data.texts import Tossup
from sqa.files import Arithmetic

VALUES = np.random.default_rng(7).random((20, 3))
TOSSUPS = [Tossup(f"made-{i}", f"one two three four {i}", "Oslo", "", "Oslo", "made", None) for i in range(60)]
LEXICON = [(polish, "castle", "made") for polish in ("zamek", "twierdza", "gród", "warownia")]


def trained_reranker(seed: int) -> Any:
    """Return the weights of a reranker that is trained on generated lessons."""
    rng = np.random.default_rng(0)
    texts = [(rng.normal(size=(5, 3)), np.zeros(4, np.int64), np.arange(4) == rng.integers(4)) for _ in range(24)]
    sizes = {"hidden": 3, "learning_rate": 0.01, "weight_decay": 0.0, "epochs": 2, "batch": 8}
    config: Any = SimpleNamespace(seed=seed, **sizes, device="cpu", dtype="float32", ARITHMETIC=Arithmetic())
    return list(fitting.fitted(config, [fitting.lesson_of(*text) for text in texts]).tensors.values())


def trained_buzzer(seed: int) -> Any:
    rng = np.random.default_rng(3)
    steps, at = np.eye(5)[:2] > 0, np.arange(1, 6) / 5
    rows = rng.normal(size=(16, 5, N_FEATURES + N_SHAPE)).astype(np.float32)
    histories = [GuessHistory(of_one, np.zeros((5, 3)), *steps, at) for of_one in rows]
    config = buzzer_fit.FitConfig("all", "label", 1.0, 4, 2, 0.01, 0.0, seed)
    made = buzzer_fit.fit(config, lambda width: buzzer_fit.StepNetwork(width, 3), histories[:12], histories[12:])
    return list(made.tensors.values())


def adapter(seed: int) -> Any:
    require("peft")
    from transformers import LlamaConfig, LlamaForCausalLM

    network = CausalLM(LlamaForCausalLM(LlamaConfig(9, 8, 8, num_hidden_layers=1, num_attention_heads=2)))
    adapt(network, 4, 1.0, seed)
    return list(factors(network).values())


DRAWN: dict[str, Callable[[int], Any]] = {
    "permuted sums": lambda seed: list(permuted_sums(VALUES[..., None], 9, seed)),
    "a band": lambda seed: [[point.low for point in bootstrap_band(means(VALUES), mean_curve, 50, seed)]],
    "tossups to translate": lambda seed: [[tossup.id for tossup in noise.choose(TOSSUPS, 9, seed)]],
    "steps that a reranker learns from": lambda seed: [fitting.drawn_ends(50, 3, seed, number) for number in range(5)],
    "weights of a reranker": trained_reranker,
    "weights of a buzzer": trained_buzzer,
    "an adapter": adapter,
    "rough Polish": lambda seed: [
        back_translate_lexically(["the castle of the castle near the castle"], LEXICON, seed)
    ],
}


def same(a: Any, b: Any) -> bool:
    return len(a) == len(b) and all(np.array_equal(np.asarray(x), np.asarray(y)) for x, y in zip(a, b, strict=True))


MORFEUSZ = pytest.mark.needs("morfeusz2")


@pytest.mark.parametrize("what", [pytest.param(what, marks=MORFEUSZ) if "Polish" in what else what for what in DRAWN])
def test_seed_decides_the_result(what: str) -> None:
    first, again, *others = (DRAWN[what](seed) for seed in (3, 3, 4, 5, 6))
    assert same(first, again)
    assert any(not same(first, other) for other in others)


def test_noise_command_passes_on_its_seed(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    seeds: list[int] = []
    monkeypatch.setattr(noise.RoundTrip, "of", lambda *_: None)
    monkeypatch.setattr(noise, "tossups_of", lambda folds: TOSSUPS)
    monkeypatch.setattr(noise, "choose", lambda tossups, n, seed: seeds.append(seed) or tossups)
    monkeypatch.setattr(noise, "write", lambda output, tossups, trip, seed: seeds.append(seed))
    assert noise.main(["--output", str(tmp_path / "x.jsonl"), "--seed", "5"]) == 0
    assert seeds == [5, 5]
