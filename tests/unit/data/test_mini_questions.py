"""The bundled question set: its shape, its languages, and that every sentence is one sentence."""

import json
import re
from collections import Counter

import pytest
from sentence_splitter import SentenceSplitter

from sqa.core.paths import DATA

LANGUAGES = ("en", "es", "pl")
FUNCTION_WORDS = {
    "en": frozenset("the of and in this that which with was its his her for name whose who were from".split()),
    "es": frozenset("el la los las de del y en este esta que con un una por su al fue cuyo cuya se lo para".split()),
    "pl": frozenset(
        "i w z na tego tej ten się do jest który która której którego jego jej nazwę podaj że od za tę pod by".split()
    ),
}
POLISH_LETTERS = frozenset("ąćęłńśźż")
SPANISH_LETTERS = frozenset("áéíóúñ")

FILE = json.loads((DATA / "mini" / "questions.json").read_text(encoding="utf-8"))
QUESTIONS = FILE["questions"]
each_question = pytest.mark.parametrize("question", QUESTIONS, ids=[q["id"] for q in QUESTIONS])


def text(question: dict, language: str) -> str:
    return " ".join(question[language])


def share_of(letters: frozenset[str], sentences: str) -> float:
    """The share of `letters` among all letters of the text, in [0, 1]."""
    found = [char for char in sentences.lower() if char.isalpha()]
    return sum(char in letters for char in found) / len(found)


def test_file() -> None:
    assert sorted(FILE) == ["licence", "questions", "version"]
    assert (FILE["version"], FILE["licence"]) == (1, "CC0-1.0")
    assert len(QUESTIONS) == 45


def test_ids_count_up_and_pages_differ() -> None:
    assert [q["id"] for q in QUESTIONS] == [f"mini-{i:03d}" for i in range(1, len(QUESTIONS) + 1)]
    assert [page for page, n in Counter(q["page"] for q in QUESTIONS).items() if n > 1] == []
    for question in QUESTIONS:
        assert question["page"] == question["page"].strip() != ""
        assert "_" not in question["page"]


def test_answers_are_spread_over_categories() -> None:
    counts = Counter(q["category"] for q in QUESTIONS)
    assert len(counts) >= 6
    assert max(counts.values()) <= len(QUESTIONS) // 3


@each_question
def test_fields(question: dict) -> None:
    assert sorted(question) == ["category", "en", "es", "id", "page", "pl"]


@each_question
def test_sentences_are_parallel(question: dict) -> None:
    assert {len(question[language]) for language in LANGUAGES} in ({3}, {4})


@each_question
@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_are_well_formed(question: dict, language: str) -> None:
    for sentence in question[language]:
        assert sentence == " ".join(sentence.split())
        assert sentence[0].isupper()
        assert re.search(r"\w[»”\"]?\.$", sentence), sentence
        assert not re.search(r"[.!?…] ", sentence), sentence  # nothing that a splitter could take for an end
        assert 12 <= len(sentence.split()) <= 40
    assert 70 <= len(text(question, language).split()) <= 120


@each_question
@pytest.mark.parametrize(
    ("language", "opening"),
    [("en", "For 10 points, name "), ("es", "Por 10 puntos, nombre "), ("pl", "Za 10 punktów podaj ")],
)
def test_only_the_last_sentence_asks(question: dict, language: str, opening: str) -> None:
    assert question[language][-1].startswith(opening)
    assert not any(opening in sentence for sentence in question[language][:-1])


@each_question
@pytest.mark.parametrize("language", LANGUAGES)
def test_language_by_its_function_words(question: dict, language: str) -> None:
    for sentence in question[language]:
        words = re.findall(r"\w+", sentence.lower())
        votes = {name: sum(word in listed for word in words) for name, listed in FUNCTION_WORDS.items()}
        assert votes[language] == max(votes.values()) > 0, (sentence, votes)


@each_question
def test_language_by_its_letters(question: dict) -> None:
    assert share_of(POLISH_LETTERS, text(question, "pl")) > 0.02
    assert share_of(SPANISH_LETTERS, text(question, "es")) > 0.01
    for language in ("en", "es"):
        assert share_of(POLISH_LETTERS, text(question, language)) < 0.01
    assert share_of(SPANISH_LETTERS - {"ó"}, text(question, "pl")) < 0.02


def test_no_sentence_twice() -> None:
    every = Counter(sentence for q in QUESTIONS for language in LANGUAGES for sentence in q[language])
    assert [sentence for sentence, n in every.items() if n > 1] == []


@each_question
def test_question_does_not_name_its_answer(question: dict) -> None:
    answer = re.sub(r" \(.*\)", "", question["page"]).lower()
    assert answer not in text(question, "en").lower()


@pytest.mark.parametrize("language", LANGUAGES)
def test_splits_where_it_was_written(language: str) -> None:
    splitter = SentenceSplitter(language=language)
    for question in QUESTIONS:
        assert splitter.split(text(question, language)) == question[language]
