"""Target words from a language model's reply, without a model."""

import pytest
from tables import tables_of

from smt.engines.llm_replies import Asked, translation, unlooped

TABLES = tables_of(__file__)
CLOSED = TABLES["closed"]
ORDER = "Translate a Spanish text into English and write the translation only, on one line."
CASES = TABLES["reply_yields_the_listed_words_and_kinds"]


@pytest.mark.parametrize("case", CASES)
def test_reply_yields_the_listed_words_and_kinds(case):
    source, target, reply, words, kinds = CASES[case]
    asked = Asked(source, tuple(target.split()), ORDER, ("es", "en"), joined=True)
    assert translation(reply, asked) == (tuple(words.split()), tuple(kinds.split()))


def test_chat_reply_of_two_lines_is_an_explanation():
    asked = Asked(CLOSED, (), ORDER, ("es", "en"), joined=False)
    assert translation("The Danube rises.\n\nNote that", asked) == ((), ("explanation",))


def test_truncated_reply_loses_its_last_word():
    asked = Asked(CLOSED, (), ORDER, ("es", "en"), joined=True, cut=True)
    assert translation(" The Danube ri", asked)[0] == ("The", "Danube")


@pytest.mark.parametrize("phrase", ["a b", "a b c d e f g h"])
def test_phrase_is_not_written_twice_in_a_row(phrase):
    words = tuple(phrase.split())
    assert unlooped(("x",), words + words) == words
    assert unlooped(("x", *words), words) == ()
    assert unlooped(("x", *words), words[:-1]) == words[:-1]
    assert unlooped(("x", *words, "1"), (*words, "1")) == (*words, "1")  # words with digits may repeat


def test_word_may_be_doubled_but_not_tripled():
    assert unlooped((), ("Humbert", "Humbert", "left")) == ("Humbert", "Humbert", "left")
    assert unlooped(("so", "very"), ("very", "very", "far")) == ("very",)
