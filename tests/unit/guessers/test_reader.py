"""Passages, short answers by rule, and a tiny extractive reader."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from stand_ins.quality_models import save_bert
from tables import tables_of

from guessers.open_qa.passages import Passage, PassageIndex
from guessers.open_qa.reader import Reader, ReaderConfig, best_span
from guessers.open_qa.short_answers import typed_answer
from sqa.core import ConfigError, DataError

TABLES = tables_of(__file__)
PASSAGES = [Passage(*row) for row in TABLES["passages"]]


# ------------------------------------------------------------------------------------------------------ passages


@pytest.fixture
def index():
    return PassageIndex(PASSAGES)


def test_equal_scores_keep_the_order_of_passages(index):
    assert index.search("", 3) == index.search("Кто написал это?", 3) == index.search("the of", 3) == []
    assert [passage.id for passage in index.search("Corsica", 1)] == ["d"]
    same = PassageIndex([Passage(str(i), "t", "rome rome") for i in range(12)])
    assert [passage.id for passage in same.search("rome", 3)] == ["0", "1", "2"]


# ------------------------------------------------------------------------------------------------------ by rule


ANSWERS = [  # question, answer, passages
    (question, answer, PASSAGES if rows is None else [Passage(*row) for row in rows])
    for question, answer, rows in TABLES["answers"]
]
DATES = ("15 August 1769", "August 1769", "19th century", "300 BC", "1960s")
NUMBERS = ("8,680", "3.5", "1.2 million", "twelve")
ANSWERS += [("When was it?", date, [Passage("x", "t", f"It was the {date}.")]) for date in DATES]
ANSWERS += [("How many are there?", number, [Passage("x", "t", f"There are {number} of them.")]) for number in NUMBERS]


@pytest.mark.parametrize(("question", "answer", "passages"), ANSWERS)
def test_rules_yield_the_listed_answers(question, answer, passages):
    assert typed_answer(question, passages) == answer


# ------------------------------------------------------------------------------------------------------ the reader


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of a small, randomly initialized BERT with a question-answering head."""
    words = [*"war peace napoleon corsica tolstoy the of in novel wrote who when".split(), *";:!?()'"]
    path = tmp_path_factory.mktemp("reader") / "bert"
    return save_bert(path, words, "BertForQuestionAnswering", longest=128, seed=3, deviation=0.4)


def config(folder, **changes):
    return replace(ReaderConfig(str(folder), max_length=128, stride=32, device="cpu"), **changes)


def plain(reader, question, passages, longest):
    """Return the best span of passages that fit one window, by plain loops over the model's logits."""
    best = (float("-inf"), "")
    for passage in passages:
        text = f"{passage.title}. {passage.text}"
        encoded = reader.tokenizer(question, text, return_offsets_mapping=True, return_tensors="pt")
        offsets, sides = encoded.pop("offset_mapping")[0].tolist(), encoded.sequence_ids(0)
        with torch.inference_mode():
            output = reader.model(**encoded)
        start, end = (x[0].double() for x in (output.start_logits, output.end_logits))
        for i, side in enumerate(sides):
            for j in range(i, min(i + longest, len(sides))):
                if side == sides[j] == 1:
                    score = float(start[i] + end[j] - start[0] - end[0])
                    best = max(best, (score, text[offsets[i][0] : offsets[j][1]]), key=lambda pair: pair[0])
    return best[1]


def test_answers_match_plain_loops(folder):
    reader = Reader(config(folder, max_answer=7, batch=2))
    questions = ("who wrote war and peace", "when?", "Napoleon", "Кто")
    answers = [reader.answer(question, PASSAGES) for question in questions]
    assert answers == [plain(reader, question, PASSAGES, 7) for question in questions]
    assert len(set(answers)) > 1
    assert reader.answer("who", []) == reader.answer(" ", PASSAGES) == ""


def test_answers_do_not_depend_on_the_batch_size(folder):
    long = [Passage("x", "t", "the novel of corsica " * 40 + "a tolstoy in war " * 40)]
    answers = {Reader(config(folder, batch=batch)).answer("who wrote the novel", long) for batch in (1, 3, 16)}
    assert len(answers) == 1 and answers.pop()
    assert Reader(config(folder)).answer("who " * 300, PASSAGES)  # a question longer than a window is cut
    same, again, other = (Reader(config(folder, max_answer=n)).fingerprint() for n in (30, 30, 5))
    assert same == again != other


@given(st.integers(0, 2**32), st.integers(3, 12), st.integers(1, 6))
def test_best_span_equals_an_exhaustive_search(seed, length, longest):
    rng = np.random.default_rng(seed)
    start, end = rng.integers(-3, 4, (2, length)).astype(np.float32)
    inside = rng.random(length) < 0.7
    places = [(i, j) for i in range(length) for j in range(i, min(i + longest, length)) if inside[i] and inside[j]]
    spans = [(float(start[i] + end[j] - start[0] - end[0]), i, j) for i, j in places]
    assert best_span(start, end, inside, longest) == max(spans, key=lambda span: span[0], default=None)


def test_invalid_readers_are_refused(folder, tmp_path):
    refused(ConfigError, r"model models/nowhere not found: .*download: true", Reader, config("models/nowhere"))
    refused(DataError, "no config.json", Reader, config(tmp_path))
    refused(ConfigError, "reads at most 128 pieces, got 150", Reader, config(folder, max_length=150))
    refused(ConfigError, "max_length: must be >= 32", config, folder, max_length=8)

    shutil.copytree(folder, tmp_path / "cut")
    weights = tmp_path / "cut" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    refused(DataError, "cannot be loaded as a trained reader", Reader, config(tmp_path / "cut"))
