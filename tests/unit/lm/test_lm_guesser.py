"""A base language model as a guesser, with a small network and a small BM25 index."""

import json
import math
from collections import namedtuple
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refused

from guessers.llm.base import BaseChat, BaseConfig, Candidate, Weights, confidences, weighed
from guessers.llm.fit import Step, fitted, hits, steps_of
from guessers.llm.guesser import LlmConfig, LlmGuesser, build
from guessers.llm.reply import Titles, parse_title
from guessers.retrieval.counting import fit
from sqa.core.errors import ConfigError, DataError
from sqa.core.types import Guess, Question, guesses_per_word
from sqa.net.chat import Budget

Lesson = namedtuple("Lesson", "id text page")
PROMPT = "the dog is big\nAnswer: perro\n\nQuestion: {text}\nAnswer:"
LESSONS = [
    ("House", "the big house of the Spanish king"),
    ("Dog", "the big dog is a dog of the house"),
    ("English_language", "English is the language of the big island"),
]
TEXT = "the big dog of the house is a perro grande".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    from stand_ins.lm_models import make

    return make(tmp_path_factory.mktemp("gemma"), "gemma3_text")


@pytest.fixture(scope="module")
def index(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    fit([Lesson(str(i), text, page) for i, (page, text) in enumerate(LESSONS)], 1).save(folder)
    return folder


@pytest.fixture
def guesser_of(folder, index, tmp_path):
    def of(every: int = 2, max_requests: int = 100, kept: str = "kept", prompt: str = PROMPT, **keys) -> LlmGuesser:
        base = BaseConfig(base=str(folder), retrieval=str(index), dtype="float32", **keys)
        return build(LlmConfig(base=base, every=every, prompt=prompt, max_requests=max_requests, cache=tmp_path / kept))

    return of


def original(folder: Path):
    from transformers import Gemma3ForCausalLM

    return Gemma3ForCausalLM.from_pretrained(folder).eval()


def pieces_of(folder: Path, *texts: str) -> list[int]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return [2, *(piece for text in texts for piece in tokenizer.encode(text, add_special_tokens=False).ids)]


@torch.inference_mode()
def test_likelihoods_equal_the_original_network(folder, guesser_of):
    """Compare with Gemma 3 of transformers, given the whole prompt and restricted to the pieces of titles."""
    titles = [page.replace("_", " ") for page, _ in LESSONS]
    allowed = sorted({piece for title in titles for piece in pieces_of(folder, f" {title}\n")[1:]})
    model, text = original(folder), " ".join(TEXT[:6])
    for candidate in guesser_of().chat.chat.candidates(text):
        for shown, score in ((text, candidate.likelihood), ("", candidate.prior)):
            before = pieces_of(folder, "the dog is big\nAnswer: perro\n\nQuestion:", f" {shown}" * bool(shown))
            before += pieces_of(folder, "\nAnswer:")[1:]
            title = pieces_of(folder, f" {candidate.page.replace('_', ' ')}\n")[1:]
            logits = model(torch.tensor([before + title])).logits[0, len(before) - 1 : -1, allowed]
            columns = [allowed.index(piece) for piece in title]
            expected = logits.log_softmax(-1)[torch.arange(len(title)), columns].sum()
            assert score == pytest.approx(float(expected), abs=1e-4)


@torch.inference_mode()
def test_free_answer_is_the_most_likely_line(folder, guesser_of):
    chat = guesser_of(answers="free", max_tokens=5).chat.chat
    reply = json.loads(chat.complete(PROMPT.replace("{text}", "the big dog")).text)
    pieces = pieces_of(folder, "the dog is big\nAnswer: perro\n\nQuestion:", " the big dog", "\nAnswer:")
    model, total, [_, end] = original(folder), 0.0, pieces_of(folder, "\n")
    written: list[int] = []
    while len(written) < 5:
        chances = model(torch.tensor([pieces + written])).logits[0, -1].log_softmax(-1)
        total += float(chances.max())
        if int(chances.argmax()) == end:
            break
        written.append(int(chances.argmax()))
    from tokenizers import Tokenizer

    line = Tokenizer.from_file(str(folder / "tokenizer.json")).decode(written).partition("\n")[0].strip()
    found = [] if not line else [{"page": line, "confidence": pytest.approx(math.exp(total), rel=1e-3)}]
    assert reply["guesses"] == found


def test_shared_prefix_of_prompts_is_read_once(guesser_of):
    """The candidates equal those of a new guesser bit for bit."""
    chat = guesser_of().chat.chat
    grown = [chat.candidates(" ".join(TEXT[:n])) for n in (2, 4, 6, 8)]
    before = chat._reader.pieces_run
    again = chat.candidates(" ".join(TEXT[:8]))
    cost = chat._reader.pieces_run - before
    assert again == grown[-1]
    assert chat.candidates(" ".join(TEXT[:4])) == grown[1]
    other = guesser_of(kept="other").chat.chat
    assert other.candidates(" ".join(TEXT[:8])) == grown[-1]
    assert cost < other._reader.pieces_run / 2


def test_prefixes_are_guessed_like_texts_and_cached(guesser_of):
    guesser = guesser_of()
    steps = guesses_per_word(guesser, TEXT, 50)
    assert guesser.chat.chat.budget.spent == 5 and steps[0] == [] and steps[1] == steps[2] != steps[3]
    assert steps == guesser_of(kept="other").guess([" ".join(TEXT[: n + 1]) for n in range(len(TEXT))], 50)
    assert {guess.page for guesses in steps for guess in guesses} <= {page for page, _ in LESSONS}
    assert all(0 < sum(guess.score for guess in guesses) < 1 for guesses in steps[1:])
    resumed = guesser_of(max_requests=1)
    assert guesses_per_word(resumed, TEXT, 50) == steps and resumed.chat.chat.budget.spent == 0
    assert resumed.estimate([[" ".join(TEXT)]]).requests == 0


def test_confidences_leave_probability_for_no_page() -> None:
    candidates = [Candidate("A", 2.0, -1.0, -3.0), Candidate("B", 1.0, -2.0, -2.0)]
    weights = Weights(1.0, 0.5, -0.25, 1.0)
    logits = [2.0 - 0.5 + 0.75, 1.0 - 1.0 + 0.5, 1.0]
    total = sum(map(math.exp, logits))
    assert confidences(candidates, weights) == pytest.approx([math.exp(logit) / total for logit in logits[:2]])
    assert confidences([], weights) == []
    assert weighed("[]", weights).problem == weighed("no", weights).problem == "no candidates"


def test_fit_recovers_the_weights_of_the_data() -> None:
    rng, true = np.random.default_rng(3), Weights(0.5, 0.8, -0.6, 1.0)
    steps = []
    for number in range(1500):
        features = rng.normal(0, 2, (5, 3))
        logits = np.append(features @ np.array(astuple(true)[:3]), true.none)
        picked = rng.choice(6, p=np.exp(logits) / np.exp(logits).sum())
        steps.append(Step(number, features, np.arange(5) == picked))
    assert np.allclose(astuple(fitted(steps)), astuple(true), atol=0.15)
    assert hits([Step(0, np.array([[1.0, 0, 0], [0, 0, 0]]), np.array([True, False]))], true) == [True]
    refused(DataError, "nothing to fit", fitted, [Step(0, np.ones((2, 3)), np.zeros(2, bool))])


def test_title_replies_are_parsed(guesser_of) -> None:
    titles = Titles(["Lima", "Peru"])
    assert parse_title(" Peru\n\nQuestion: it", titles).guesses == (Guess("Peru", 1.0),)
    assert parse_title("Cusco", titles) == ((), 1, "")
    assert parse_title("  \n", None).problem == "no title on its first line"
    steps = steps_of(guesser_of(), [Question("1", "own", "en", (tuple(TEXT),), (" ".join(TEXT),), "Dog")])
    assert len(steps) == 4 and all(step.features.shape[1] == 3 and step.right.sum() == 1 for step in steps)


def test_invalid_configs_are_refused(guesser_of) -> None:
    refused(ConfigError, "max_requests: 5 more are needed", guesses_per_word, guesser_of(max_requests=4), TEXT, 5)
    refused(ConfigError, "candidates: ", BaseConfig, candidates=0)
    refused(ConfigError, "max_tokens: ", BaseConfig, max_tokens=601)
    refused(ConfigError, "weights: expected four numbers, got", Weights, math.nan, 1, 1, 1)
    refused(ConfigError, "did you mean 'gemma3-270m'", BaseChat, BaseConfig(base="gemma3-270"), Budget(1), PROMPT, 5)
    refused(ConfigError, "reply: base has its own format", LlmConfig, base=BaseConfig(), reply="title")
