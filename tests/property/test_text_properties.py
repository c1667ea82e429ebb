"""Properties of sentence splitting on generated text."""

from hypothesis import example, given
from hypothesis import strategies as st

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
@example("A ² . A A", "es")  # "²" is not a letter
def test_sentence_splitting_keeps_words_and_is_stable(text: str, language: str) -> None:
    parts = sentences.split(text, language)
    assert [word for part in parts for word in part] == text.split() and all(parts)
    if len(parts) > 1:
        assert all(sum(any(c.isalpha() for c in word) for word in part) >= 2 for part in parts)
    for part in parts[:1]:
        assert sentences.split(" ".join(part), language) == (part,)
