"""The bundled question set: its shape, its languages, and one sentence per entry."""

import json
import re

import pytest
from sentence_splitter import SentenceSplitter

from sqa.core import DATA

LANGUAGES = {"en": "For 10 points, name ", "es": "Por 10 puntos, nombre ", "pl": "Za 10 punktów podaj "}
FILE = json.loads((DATA / "mini" / "questions.json").read_text(encoding="utf-8"))
QUESTIONS = FILE["questions"]


def text(question: dict, language: str) -> str:
    return " ".join(question[language])


def test_questions_are_parallel_and_hide_their_answer() -> None:
    for question in QUESTIONS:
        assert sorted(question) == ["category", "en", "es", "id", "page", "pl"]
        assert question["page"] == question["page"].strip() != "" and "_" not in question["page"]
        assert {len(question[language]) for language in LANGUAGES} in ({3}, {4})
        assert re.sub(r" \(.*\)", "", question["page"]).lower() not in text(question, "en").lower()


@pytest.mark.parametrize("language", LANGUAGES)
def test_splitter_recovers_the_original_sentences(language: str) -> None:
    splitter = SentenceSplitter(language=language)
    for question in QUESTIONS:
        assert splitter.split(text(question, language)) == question[language]
