"""The preregistered test on unseen questions: number of questions, p-value and texts."""

import json

import numpy as np
import pytest

from experiments.studies.preregistered import unseen
from sqa.core.errors import DataError
from sqa.data.datasets import load_questions


def program(folder, monkeypatch, script):
    """Make `apertium` run the given shell script."""
    file = folder / "apertium"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_number_of_questions_follows_from_power():
    assert unseen.needed() == unseen.QUESTIONS


def test_p_is_small_only_if_full_input_wins():
    rng = np.random.default_rng(0)
    own = np.stack([rng.random(100), np.ones(100)], axis=1)
    better = own + np.array([0.2, 0])
    assert unseen.p_of(better, own) < 0.001
    assert unseen.p_of(own, better) > 0.999
    assert unseen.p_of(own, own) == 1


def test_sentences_of_both_languages_stay_aligned(tmp_path, monkeypatch):
    program(tmp_path, monkeypatch, "cat")
    unseen.write_questions(load_questions("mini-en")[:3], tmp_path / "made.jsonl")
    for record in map(json.loads, (tmp_path / "made.jsonl").read_text().splitlines()):
        assert record["language"] == "es"
        assert record["reference"] == record["source"]
    assert len(load_questions(str(tmp_path / "made.jsonl"))) == 3


@pytest.mark.parametrize("script", ["head -n 1", "tr -d a-zA-Z.", "exit 1"])
def test_lost_sentence_is_an_error(tmp_path, monkeypatch, script):
    program(tmp_path, monkeypatch, script)
    with pytest.raises(DataError, match="apertium"):
        unseen.in_spanish(["one.", "two."])
