"""The preregistered test on unseen questions: number of questions, p-value, texts and repeated questions."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from doubles import question
from refusals import refused

from experiments.results_book.ledger import Ledger
from experiments.studies import text_at_pace
from experiments.studies.preregistered import questions, second, unseen
from experiments.studies.preregistered.questions import repeated
from sqa.core import DataError
from sqa.data.datasets import load_questions


def program(folder, monkeypatch, script):
    """Make `apertium` run the given shell script."""
    file = folder / "apertium"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_number_of_questions_follows_from_power():
    assert unseen.needed(unseen.LEVEL, unseen.DEVIATION) == unseen.QUESTIONS


def test_p_is_small_only_if_full_input_wins():
    rng = np.random.default_rng(0)
    own = np.stack([rng.random(100), np.ones(100)], axis=1)
    better = own + np.array([0.2, 0])
    assert unseen.p_of(better, own) < 0.001
    assert unseen.p_of(own, better) > 0.999
    assert unseen.p_of(own, own) == 1


def test_sentences_of_both_languages_stay_aligned(tmp_path, monkeypatch):
    program(tmp_path, monkeypatch, "cat")
    questions.write_questions(load_questions("mini-en")[:3], tmp_path / "made.jsonl")
    for record in map(json.loads, (tmp_path / "made.jsonl").read_text().splitlines()):
        assert record["language"] == "es"
        assert record["reference"] == record["source"]
    assert len(load_questions(str(tmp_path / "made.jsonl"))) == 3


@pytest.mark.parametrize("script", ["head -n 1", "tr -d a-zA-Z.", "exit 1"])
def test_lost_sentence_is_an_error(tmp_path, monkeypatch, script):
    program(tmp_path, monkeypatch, script)
    with pytest.raises(DataError, match="apertium"):
        questions.in_spanish(["one.", "two."])


TEXT = "this river flows through cracow and warsaw before it reaches the baltic sea near gdansk in the north"


def training(path: Path, *texts: str) -> str:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return str(path)


def test_repeated_question_is_found(tmp_path: Path) -> None:
    asked = [question("a", [TEXT]), question("b", ["an entirely other text about some mountains of the far south"])]
    changed = TEXT.upper().replace(" AND ", ", and ") + " for ten points name this river"
    source = training(tmp_path / "t.jsonl", "nothing in common with any of them at all", changed)
    assert repeated(asked, [source]) == {"a"}
    quoted = training(tmp_path / "q.jsonl", "it reaches the baltic sea near gdansk " + " ".join(map(str, range(40))))
    assert repeated(asked, [quoted]) == set()
    (tmp_path / "bad.jsonl").write_text('{"title": "x"}\n')
    refused(DataError, "record 0: has no text", repeated, asked, [str(tmp_path / "bad.jsonl")])


NAMES = ("oracle-ew, p", "oracle-ew, p after Holm", "accuracy, p")


def test_second_test_has_enough_questions():
    assert unseen.needed(second.LEVEL, second.DEVIATION) <= second.QUESTIONS


def test_second_test_finds_planted_differences():
    rng = np.random.default_rng(1)
    own = np.stack([rng.random(200), np.ones(200)], axis=1)
    shift = {"1": 0.1, "2": 0.0, "3": -0.1}
    changed = {k: own + np.stack([rng.normal(by, 0.2, 200), np.zeros(200)], axis=1) for k, by in shift.items()}
    tables = {
        (guesser, text, k, name): changed[k] if text == "full" else own
        for guesser, k, name in product(second.BUZZERS, shift, second.OUTCOMES)
        for text in (k, "full", text_at_pace.HUMAN)
    }
    rows = tuple(second.rows(tables))
    of = {metric: [r.value for r in rows if r.cell[0] == "gru" and r.metric == metric] for metric in NAMES}
    assert min(of[NAMES[1]]) == pytest.approx(6 * min(of[NAMES[0]] + of[NAMES[2]])), (
        "Holm multiplies the least p by six"
    )
    ledger = Ledger(("guesser", "k", "part"), rows, item="unseen-second", command="", version="", date="", inputs={})
    verdicts = [line.split("|")[-2].strip() for line in second.block(ledger, "gru")[2:]]
    assert verdicts == ["held"] * 2 + ["secondary"] + ["not held"] * 2 + ["secondary"] + ["reversed"] * 2 + [
        "secondary"
    ]
