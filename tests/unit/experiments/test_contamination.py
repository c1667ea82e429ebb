"""The measures of the study of memorised questions, compared with the transformers package."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from stand_ins.lm_models import make

from experiments.studies import contamination
from smt.lm.base import load_base

TEXTS = [
    "the house of Spanish dog is big of the house a casa perro grande of the Polish",
    "English",
    "a b c the big dog",
]


@pytest.mark.parametrize("kind", ["gemma3_text", "llama"])
@torch.inference_mode()
def test_nats_and_continuations_equal_transformers(kind, tmp_path):
    from transformers import AutoModelForCausalLM

    folder = make(tmp_path, kind)
    base, theirs = load_base(folder), AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    for text, nats in zip(TEXTS, contamination.nats_per_word(base, TEXTS), strict=True):
        pieces = [2, *base.tokens.text(text)]
        loss = F.cross_entropy(theirs(torch.tensor([pieces])).logits[0, :-1], torch.tensor(pieces[1:]), reduction="sum")
        assert nats == pytest.approx(float(loss) / len(text.split()), rel=1e-4)
        for _ in range(6):
            pieces.append(int(theirs(torch.tensor([pieces])).logits[0, -1].argmax()))
        assert contamination.greedy(base, text, 6) == base.tokens.decode(pieces[-6:])


def test_words_are_compared_position_by_position(monkeypatch):
    second = {"one two three": "four x six", "seven": "eight"}
    monkeypatch.setattr(contamination, "greedy", lambda _base, text, _pieces: second[text])
    texts = ["one two three four five six", "seven eight"]
    assert contamination.continued(None, texts).tolist() == pytest.approx([2 / 3, 1.0])
    mean, low, high = contamination.interval(np.array([0.0, 1.0] * 50))
    assert low < mean == 0.5 < high and contamination.spread(list("abcde"), 3) == ["a", "c", "e"]


def test_synonyms_keep_the_number_of_words():
    text = "In this novel, a man wrote many novels near the river."
    changed = contamination.paraphrased(text)
    assert changed == "In this book, a fellow penned numerous novels beside the stream."
    assert contamination.differing(text, changed) == 6
    assert not any(" " in word for word in contamination.SYNONYMS.values())
