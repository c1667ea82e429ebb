"""Sentence splitting: sentence ends, exceptions, and no lost word."""

import pytest
from tables import tables_of

from sqa.data import sentences

TABLES = tables_of(__file__)

SENTENCES = TABLES["sentences"]


@pytest.mark.parametrize(("language", "expected"), [(language, expected) for language, *expected in SENTENCES])
def test_sentences_end_as_listed(language: str, expected: list[str]) -> None:
    assert [" ".join(words) for words in sentences.split(" ".join(expected), language)] == expected


def test_spaces_collapse_and_empty_text_is_empty() -> None:
    text = "  One\u00a0word \n and\tmore.  Then  another one. "
    assert sentences.split(text, "en") == (("One", "word", "and", "more."), ("Then", "another", "one."))
    assert sentences.split(" \n ", "en") == ()


def test_half_width_voicing_mark_is_no_word() -> None:
    assert sentences.split("ｶﾞｲﾄﾞ ﾊﾟﾝ", "ja") == (("ｶﾞ", "ｲ", "ﾄﾞ", "ﾊﾟ", "ﾝ"),)


def test_each_piece_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression test: the words merged so far were counted again for each one-letter sentence."""
    counted: list[int] = []
    monkeypatch.setattr(sentences, "_lettered", lambda words: counted.append(len(words)) or 1)
    assert [*map(len, sentences.split("A. " * 400, "es"))] == [400]
    assert sum(counted) == 400
