"""The contract of every registered translator."""

from __future__ import annotations

import sys

import pytest

from sqa.datasets import load_questions
from sqa.pipeline import stream
from sqa.registry import TRANSLATORS
from sqa.trace import check_emissions

UPPER = [sys.executable, "-c", "import sys\nfor line in sys.stdin: print(line.rstrip().upper())"]
CONFIGS = [
    ("waitk", {"model": "es-en", "k": 1}),
    ("waitk", {"model": "es-en", "k": 6}),
    ("waitk", {"model": "es-en", "k": "full"}),
    ("command", {"command": tuple(UPPER), "k": 3}),
    ("fixed", {"text": "reference"}),
    ("fixed", {"text": "reference", "reveal": "diagonal"}),
]
STREAMING = [(name, options) for name, options in CONFIGS if name != "fixed"]


def make(name, options):
    return TRANSLATORS.build(name, TRANSLATORS.config_class(name)(**options))


@pytest.fixture(scope="module")
def questions():
    return load_questions("mini-es", limit=3)


def test_every_registered_translator_is_here():
    assert {name for name, _ in CONFIGS} == set(TRANSLATORS.names())


@pytest.mark.parametrize(("name", "options"), CONFIGS)
def test_emissions_are_valid_in_order_and_repeatable(name, options, questions):
    first, second = make(name, options), make(name, options)
    batch = first.translate_batch(questions)
    assert len(batch) == len(questions)
    for question, emissions in zip(questions, batch, strict=True):
        check_emissions(question, emissions)
        assert {e.sentence for e in emissions} == set(range(len(question.sentences)))
    assert second.translate_batch(questions) == batch
    assert first.fingerprint() == second.fingerprint()


@pytest.mark.parametrize(("name", "options"), CONFIGS)
def test_a_question_is_translated_alike_alone_and_among_others(name, options, questions):
    translator = make(name, options)
    together = translator.translate_batch(questions)
    assert [translator.translate_batch([question])[0] for question in questions] == together


@pytest.mark.parametrize(("name", "options"), STREAMING)
def test_streaming_equals_batched(name, options, questions):
    translator = make(name, options)
    for question, emissions in zip(questions, translator.translate_batch(questions), strict=True):
        assert stream(translator, question) == emissions


def test_fingerprints_tell_configs_apart():
    assert len({make(name, options).fingerprint() for name, options in CONFIGS}) == len(CONFIGS)
