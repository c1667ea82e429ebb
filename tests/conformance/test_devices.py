"""Every registered part with weights computes on the device of its config and gives equal results on all devices.

tests/stand_ins/second_device.py simulates a second device, which refuses tensors of other devices.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from needs import require
from stand_ins import quality_models
from stand_ins.declarations import TABLE
from stand_ins.second_device import as_cuda

from sqa.core import Question
from sqa.metrics.quality.text_metric import Segment
from sqa.pipeline import stream
from tests.conformance.test_keys import PARTS, class_of, config_of, flat, part_of, places, surroundings

__all__ = ["places", "surroundings"]  # fixtures

WEIGHED = [part for part in PARTS if part[0] != "policy" and TABLE[part].weights]
ELSEWHERE = {"pretrained"}  # not tested, because its package creates the tensors
CASES = [(*part, {}) for part in WEIGHED if part[1] not in ELSEWHERE | {"llm"}]
CASES += [
    ("translator", "causal-lm", {"policy": "hold", "n": 1, "bidirectional": True}),
    ("translator", "waitk", {"k": 2, "dtype": "bfloat16"}),
    (
        "guesser",
        "llm",
        {"endpoint": None, "local": {"base": "@lm", "dtype": "float32", "max_tokens": 4}, "api": "completions"}
        | {"reply": "title"},
    ),
]
QUESTION = Question(
    "q",
    "mini-es",
    "es",
    (("el", "río"), ("la", "costa", "peruana")),
    ("the coast", "Lima"),
    "Lima",
)
TEXTS = ["this capital of Peru lies at the coast", "this fjord of Norway lies at the coast near Lima and Oslo"]


def results(kind: str, part: Any) -> Any:
    """Return a part's output for a question: words with g, guesses, buzzes, or a score."""
    if kind == "translator":
        batched = part.translate_batch([QUESTION]) if hasattr(part, "translate_batch") else None
        return [stream(part, QUESTION), batched]
    if hasattr(part, "answer"):
        return part.answer("Which capital is it?", TEXTS, 1)
    if kind == "guesser":
        return [[(guess.page, round(guess.score, 3)) for guess in guesses] for guesses in part.guess(TEXTS, 2)]
    if kind == "buzzer":
        return part.decide([[]])
    return [round(float(score), 3) for score in part.scores([Segment("q", "la costa", "the coast", "a coast")])]


def quality_model(name: str, encoder: Path) -> Path:
    """Return the folder of a tiny model for a quality metric."""
    folder = encoder.with_name(f"scoring-{name}")
    makers = {"comet": quality_models.save_comet, "bleurt": quality_models.save_bleurt}
    return makers[name](folder, encoder) if name in makers else encoder


def on(options: Mapping[str, Any], device: str) -> dict[str, Any]:
    """Return the options with `device` set, within `local` if it is given."""
    inner = [key for key in ("local",) if isinstance(options.get(key), Mapping)]
    return {**options, inner[0]: {**options[inner[0]], "device": device}} if inner else {**options, "device": device}


@pytest.mark.parametrize(("kind", "name", "options"), CASES)
def test_part_computes_on_its_device(kind, name, options, places, monkeypatch):
    as_cuda(monkeypatch)
    options = {**TABLE[kind, name].made, **options}
    if (
        not hasattr(class_of(kind, name), "ARITHMETIC") and name != "llm"
    ):  # computes with numpy, so the key is only accepted
        config_of(kind, name, on(options, "auto"), places)
        return
    if kind == "quality metric":
        require({"bertscore": "bert-score"}.get(name, name))
        options["model"] = str(quality_model(name, Path(places.path("encoder"))))
    expected = results(kind, part_of(kind, name, config_of(kind, name, on(options, "cpu"), places)))
    assert results(kind, part_of(kind, name, config_of(kind, name, on(options, "cuda"), places))) == expected


def test_every_part_with_weights_has_a_device_key() -> None:
    assert {part for part in WEIGHED if not any(key.endswith("device") for key in flat(class_of(*part)))} == set()
