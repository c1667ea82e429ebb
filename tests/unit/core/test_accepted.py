"""Right answers as Quizbowl matches them, case by case; and never fewer than the strict rule takes."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sqa.core.answers import Accepted, bare, is_right, spelling

RULE = Accepted(
    titles={"momentum": {"linear momentum"}, "istanbul": {"constantinople"}},
    forms={"vitamin a": {"retinol"}, "dna": {"deoxyribonucleic acid"}},
    shared=frozenset({"spin", "symphony no 5"}),
    name="made",
)


@pytest.mark.parametrize(
    ("guess", "page"),
    [
        ("Emily Bronte", "Emily Brontë"),  # accents
        ("Wislawa Szymborska", "Wisława_Szymborska"),  # letters that no decomposition takes apart
        ("Jean Paul Sartre", "Jean-Paul Sartre"),
        ("H.G. Wells", "H. G. Wells"),
        ("A Midsummer Nights Dream", "A Midsummer Night’s Dream"),
        ("Crime & Punishment", "Crime and Punishment"),
        ("New Deal", "New Deal (disambiguation)"),
        ("Alcohol", "Alcohol (chemistry)"),
        ("Paris (mythology)", "Paris"),
        ("Artery", "arteries"),
        ("Exoplanets", "Exoplanet"),
        ("Great Gatsby", "The Great Gatsby"),
        ("Dubai", "Emirate of Dubai"),
        ("Linear Momentum", "Momentum"),
        ("Vitamin A", "Retinol"),
        ("Retinol", "Vitamin A"),
        ("Deoxyribonucleic acid", "DNA"),
        ("Spin (physics)", "spin (Physics)"),  # the strict rule, however many share the bare form
    ],
)
def test_accepted(guess: str, page: str) -> None:
    assert RULE.is_right(guess, page)


@pytest.mark.parametrize(
    ("guess", "page"),
    [
        ("Momentum", "Linear Momentum"),  # one page for another goes one way
        ("Istanbul", "Constantinople"),
        ("Spins", "Spin (physics)"),  # two pages share the form
        ("Symphony No. 5 (Mahler)", "Symphony No. 5 (Beethoven)"),
        ("a", "Alaska"),
        ("Alaska (film), the", "Texas"),
        ("", "Alaska"),
        ("Alaska", ""),
        ("", ""),
        ("()", "(film)"),  # nothing is left of either
        ("Republic of China", "China"),
    ],
)
def test_refused(guess: str, page: str) -> None:
    assert not RULE.is_right(guess, page)


def test_the_forms_of_a_title() -> None:
    assert spelling("The Žižek_(film) &  U.S.A.") == "the zizek (film) and u s a"
    assert bare("The Žižek_(film)") == "zizek"
    words = "glass virus axis Ares cities the gas".split()
    assert [bare(word) for word in words] == "glass virus axis are city the gas".split()


@given(st.text(max_size=12), st.text(max_size=12))
@example("\u33d7", "\uff3f")  # made of capitals, made of an underscore
def test_what_is_strictly_right_is_accepted_and_forms_are_idempotent(guess: str, page: str) -> None:
    assert RULE.is_right(guess, page) or not is_right(guess, page)
    assert RULE.is_right(guess, guess) == is_right(guess, guess)
    assert spelling(spelling(guess)) == spelling(guess)
