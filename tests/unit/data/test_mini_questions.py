"""The bundled question set: its shape, its languages, and that every sentence is one sentence."""

import json
import re
from collections import Counter

import pytest
from sentence_splitter import SentenceSplitter

from sqa.core.paths import DATA

LANGUAGES = {"en": "For 10 points, name ", "es": "Por 10 puntos, nombre ", "pl": "Za 10 punktów podaj "}
FILE = json.loads((DATA / "mini" / "questions.json").read_text(encoding="utf-8"))
QUESTIONS = FILE["questions"]


def text(question: dict, language: str) -> str:
    return " ".join(question[language])


def test_file() -> None:
    assert sorted(FILE) == ["licence", "questions", "version"]
    assert (FILE["version"], FILE["licence"]) == (1, "CC0-1.0")
    assert [q["id"] for q in QUESTIONS] == [f"mini-{i:03d}" for i in range(1, 46)]
    categories = Counter(q["category"] for q in QUESTIONS)
    assert len(categories) >= 6 and max(categories.values()) <= len(QUESTIONS) // 3
    assert len({q["page"] for q in QUESTIONS}) == len(QUESTIONS)
    every = Counter(sentence for q in QUESTIONS for language in LANGUAGES for sentence in q[language])
    assert [sentence for sentence, n in every.items() if n > 1] == []


def test_questions_are_parallel_and_do_not_name_their_answer() -> None:
    for question in QUESTIONS:
        assert sorted(question) == ["category", "en", "es", "id", "page", "pl"]
        assert question["page"] == question["page"].strip() != "" and "_" not in question["page"]
        assert {len(question[language]) for language in LANGUAGES} in ({3}, {4})
        assert re.sub(r" \(.*\)", "", question["page"]).lower() not in text(question, "en").lower()


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_are_well_formed_and_only_the_last_one_asks(language: str) -> None:
    for question in QUESTIONS:
        for sentence in question[language]:
            assert sentence == " ".join(sentence.split()) and sentence[0].isupper()
            assert re.search(r"\w[»”\"]?\.$", sentence), sentence
            assert not re.search(r"[.!?…] ", sentence), sentence  # nothing that a splitter could take for an end
            assert 12 <= len(sentence.split()) <= 40
        asks = [LANGUAGES[language] in sentence for sentence in question[language]]
        assert asks == [False] * (len(asks) - 1) + [True] and question[language][-1].startswith(LANGUAGES[language])


@pytest.mark.parametrize("language", LANGUAGES)
def test_splits_where_it_was_written(language: str) -> None:
    splitter = SentenceSplitter(language=language)
    for question in QUESTIONS:
        assert splitter.split(text(question, language)) == question[language]
