"""Tags of the board's questions: length, sentences, category, whether the bundled guesser has the page."""

from __future__ import annotations

import pytest
from doubles import question

from sqa.data.datasets import load_questions
from sqa_services.board import tags


def test_tags() -> None:
    q = question(sentences=["uno dos tres cuatro cinco seis"] * 5)
    assert tags.tags_of(q, "History", {"spain"}) == ["category:History", "length:25-49", "sentences:5", "guessable:yes"]
    long = question(sentences=["a " * 30] * 7)
    assert tags.tags_of(long, None, set()) == ["length:125+", "sentences:6+", "guessable:no"]


@pytest.mark.mirror
def test_guessable_questions_and_categories_of_xqb() -> None:
    # 85 of the 147 have a training tossup, one of them without a category; the guesser learned from bonus parts too
    pages, categories = tags.guessable_pages(), tags.page_categories()
    keys = [tags.key(q.page) for q in load_questions("xqb-es")]
    assert sum(key in categories for key in keys) == 84
    assert sum(key in pages for key in keys) == 99
