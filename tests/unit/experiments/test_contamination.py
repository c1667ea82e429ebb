"""What the study of remembered questions measures, beside the transformers package and one text at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from stand_ins.lm_models import make

from experiments.studies import contamination
from smt.lm.base import load_base

TEXTS = [
    "el perro is a big dog",
    "the house of Spanish dog is big of the house a casa perro grande of the Polish",
    "English",
    "a b c the big dog of el house",
    "Polish dog is of the big casa and this is the longest text of them all, by far, el perro grande",
]


@pytest.fixture(scope="module", params=["gemma3_text", "llama"])
def folder(request, tmp_path_factory):
    return make(tmp_path_factory.mktemp(request.param), request.param)


@pytest.fixture(scope="module")
def base(folder):
    return load_base(folder, torch.float32)


@pytest.fixture(scope="module")
def theirs(folder):
    """The transformers package's logits (N, V) of pieces."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.inference_mode():
        yield lambda pieces: model(torch.tensor([pieces])).logits[0]


@pytest.fixture(params=[1, 2, 16])
def rows(request, monkeypatch):
    """Texts read together: the figures may not depend on it."""
    monkeypatch.setattr(contamination, "ROWS", request.param)


@torch.inference_mode()
def test_nats_are_those_of_transformers_however_many_texts_are_read_together(base, theirs, rows, monkeypatch):
    monkeypatch.setattr(contamination, "SLICE", 3)
    results = contamination.nats_per_word(base, TEXTS)
    for text, nats in zip(TEXTS, results, strict=True):
        pieces = [2, *base.tokens.text(text)]
        loss = F.cross_entropy(theirs(pieces)[:-1], torch.tensor(pieces[1:]), reduction="sum")
        assert nats == pytest.approx(float(loss) / len(text.split()), rel=1e-4)
    assert len(np.unique(results.round(2))) == len(TEXTS)


@torch.inference_mode()
def test_texts_are_continued_as_each_by_itself(base, theirs, rows):
    results = contamination.greedy(base, TEXTS, 6)
    for text, continuation in zip(TEXTS, results, strict=True):
        pieces = [2, *base.tokens.text(text)]
        for _ in range(6):
            pieces.append(int(theirs(pieces)[-1].argmax()))
        assert continuation == base.tokens.decode(pieces[-6:])
    assert len(set(results)) > 1


def test_words_are_counted_in_order(base, monkeypatch):
    second = {"one two three": "four x six", "seven": "eight"}
    monkeypatch.setattr(contamination, "greedy", lambda _base, texts, _pieces: [second[text] for text in texts])
    texts = ["one two three four five six", "seven eight"]
    assert contamination.continued(base, texts).tolist() == pytest.approx([2 / 3, 1.0])


@torch.inference_mode()
def test_no_more_logits_are_made_than_a_slice_has(base, monkeypatch):
    made: list[int] = []
    scores = contamination.scores
    monkeypatch.setattr(contamination, "scores", lambda base, states: made.append(len(states)) or scores(base, states))
    monkeypatch.setattr(contamination, "SLICE", 10)
    contamination.nats_per_word(base, TEXTS)
    assert sum(made) == sum(len(base.tokens.text(text)) for text in TEXTS)
    assert max(made) == 10
