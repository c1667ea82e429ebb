"""What guessers see of a word."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guessers import text


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("Saint-Exupéry's", ("saint", "exupery")),
        ("“Łódź”,", ("lodz",)),
        ("Kraków’s", ("krakow",)),
        ("Æneid", ("aeneid",)),
        ("1492.", ("1492",)),
        ("(*)", ()),
        ("東京", ()),
        ("its", ("its",)),
        ("'s", ()),
    ],
)
def test_tokens(word, expected):
    assert text.tokens(word) == expected


def test_stems_join_forms_of_a_word():
    assert text.stems("nations") == text.stems("nation's") == ("nation",)


def test_boilerplate_carries_nothing():
    assert [text.content_stems(word) for word in "For 10 points, name this".split()] == [()] * 5


@given(st.text(max_size=20))
def test_tokens_are_lower_case_ascii_and_stable(word):
    for token in text.tokens(word):
        assert token and token.isascii() and token == token.lower() and text.tokens(token) == (token,)
