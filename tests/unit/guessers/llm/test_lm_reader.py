"""The language model as reader: what it is shown, that its answer is the likeliest line, what its fingerprint tells."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from refusals import refused
from stand_ins.lm_models import make

from guessers.open_qa.lm_reader import LONGEST, SOLVED, LmReader, LmReaderConfig, evidence, prompt
from guessers.open_qa.passages import Passage
from smt.lm.base import load_base
from smt.lm.network import mask_of
from sqa.core.errors import ConfigError

PASSAGES = [
    Passage("1", "Old_Rome", "It lies on a river. Romulus founded the city of Rome. Its roads were long!"),
    Passage("2", "Lima", "word " * 200),
    Passage("3", "Oslo", "Cold."),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make(tmp_path_factory.mktemp("base"), "llama", seed=6)


def test_the_sentence_that_shares_most_with_the_question_is_shown():
    lines = evidence("Who founded the city of Rome?", PASSAGES)
    assert lines[0] == "Old Rome: Romulus founded the city of Rome."
    assert lines[1].split() == ["Lima:", *["word"] * LONGEST]
    assert evidence("Nothing alike", PASSAGES)[0] == "Old Rome: It lies on a river."


def likeliest(folder, text, most):
    """The line after a prompt by a forward pass over all of it for every piece, no memory."""
    base = load_base(folder, torch.float32)
    tokens = base.tokens
    pieces = [tokens.bos, *tokens.text(SOLVED), *tokens.text(text)]
    written = []
    while len(written) < most:
        n = len(pieces)
        own = mask_of(torch.ones(1, n, n, dtype=torch.bool).tril(), torch.float32)
        with torch.inference_mode():
            states, _ = base.network(torch.tensor([pieces]), torch.arange(n)[None], own)
        piece = int((states[0, -1] @ base.network.output_rows().T).argmax())
        if [piece] == tokens.text("\n"):
            break
        written.append(piece)
        pieces.append(piece)
    return tokens.decode(written).partition("\n")[0].strip()


def test_an_answer_is_the_likeliest_line_whatever_is_asked_along(folder):
    reader = LmReader(LmReaderConfig(base=str(folder), passages=2, max_tokens=4, precision="float32"))
    questions = ["is the house big ?", " ", "  the   dog", "el perro grande la casa mañana ?"]
    passages = [PASSAGES, PASSAGES, PASSAGES[2:], []]
    actual = reader.answers(questions, passages)
    expected = [
        likeliest(folder, prompt(question, read[:2]), 4) if question.strip() else ""
        for question, read in zip(questions, passages, strict=True)
    ]
    assert actual == expected
    assert len({answer for answer in actual if answer}) > 1
    assert [reader.answers([q], [p])[0] for q, p in zip(questions, passages, strict=True)] == actual
    assert reader.answers([], []) == []


def test_the_fingerprint_tells_what_decides_an_answer(folder, tmp_path):
    other = str(make(tmp_path, "gemma3_text", seed=6))
    changes = [{}, {"precision": "bfloat16"}, {"passages": 1}, {"max_tokens": 5}, {"base": other}, {}]
    plain = LmReaderConfig(base=str(folder), precision="float32")
    prints = [LmReader(replace(plain, **change)).fingerprint() for change in changes]
    assert len(set(prints)) == 5 and prints[0] == prints[-1]


def test_what_is_not_there_or_out_of_range_is_refused(tmp_path):
    refused(ConfigError, "not found", LmReader, LmReaderConfig(base=str(tmp_path / "nowhere.gguf")))
