"""Tokens, stems and passages that guessers see."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import tables_of

from guessers import text
from guessers.retrieval import lucene

TABLES = tables_of(__file__)


@pytest.mark.parametrize(("word", "expected"), TABLES["words_yield_the_listed_tokens"])
def test_words_yield_the_listed_tokens(word, expected):
    assert text.tokens(word) == tuple(expected)


def test_stems_join_forms_of_a_word():
    assert text.stems("nations") == text.stems("nation's") == ("nation",)
    assert [lucene.stem(word) for word in ("us", "possibly", "nations")] == ["us", "possibl", "nation"]
    # "logi" becomes "log" if the rest has Porter's m > 0: this holds for "anal", but not for "bio" and "theo"
    assert [lucene.stem(word) for word in ("analogy", "biology", "theology")] == ["analog", "biologi", "theologi"]


@given(
    words=st.lists(st.sampled_from(["word", "end.", "“why?”", "J.", "x"]), max_size=300),
    cut=st.integers(0, 300),
    sizes=st.sampled_from([(8, 48), (12, 64), (1, 3)]),
)
def test_prefix_passages_equal_those_of_the_text(words, cut, sizes):
    whole, prefix = text.spans(words, *sizes), text.spans(words[:cut], *sizes)
    assert prefix[:-1] == whole[: max(0, len(prefix) - 1)]
    assert [word for start, end in whole for word in words[start:end]] == words
    assert all(0 < end - start <= sizes[1] for start, end in whole)


def test_passages_end_at_sentences_or_at_the_limit():
    words = ("a b c d e f g h. " + "i " * 100 + 'j k."').split()
    assert text.spans(words, 8, 48) == [(0, 8), (8, 56), (56, 104), (104, 110)] and text.spans([], 8, 48) == []
    short = ("a b c d e f g h. " + "i j k. " + "l m n o p q.").split()  # the second sentence alone has too few words
    assert text.spans(short, 8, 48) == [(0, 8), (8, 17)]
