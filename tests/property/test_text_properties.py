"""Invariants of splitting and of the answer rule, on generated text."""

from hypothesis import example, given
from hypothesis import strategies as st

from sqa.core import answers
from sqa.data import sentences

WORDS = st.one_of(
    st.text(min_size=1, max_size=8),
    st.sampled_from(
        ["m.in.", "EE.", "UU.", "Mt.", "90.", "XX", "w.", "r.", "Sr.", ".", '"', "¿Qué?", "End.", "The", "[[X]]"]
    ),
)
TEXTS = st.lists(WORDS, max_size=30).map(" ".join)
LANGUAGES = st.sampled_from(["es", "pl", "en", "fi", "ru"])


@given(TEXTS, LANGUAGES)
def test_splitting_keeps_every_word_in_order(text: str, language: str) -> None:
    parts = sentences.split(text, language)
    assert [word for part in parts for word in part] == text.split()
    assert all(parts)


@given(TEXTS, LANGUAGES)
@example("A ² . A A", "es")  # "²" is no letter
def test_no_sentence_is_a_crumb(text: str, language: str) -> None:
    parts = sentences.split(text, language)
    if len(parts) > 1:
        assert all(sum(any(c.isalpha() for c in word) for word in part) >= 2 for part in parts)


@given(TEXTS, LANGUAGES)
def test_a_sentence_splits_into_itself(text: str, language: str) -> None:
    for part in sentences.split(text, language)[:1]:
        assert sentences.split(" ".join(part), language) == (part,)


@given(st.text())
def test_canonical_and_key_are_idempotent(page: str) -> None:
    assert answers.canonical(answers.canonical(page)) == answers.canonical(page)
    assert answers.key(answers.key(page)) == answers.key(page)
    assert answers.key(answers.canonical(page)) == answers.key(page)


@given(st.text(), st.text())
def test_right_is_symmetric_and_reflexive(a: str, b: str) -> None:
    assert answers.is_right(a, b) == answers.is_right(b, a)
    assert answers.is_right(a, a) == bool(answers.canonical(a))
