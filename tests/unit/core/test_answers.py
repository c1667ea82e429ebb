"""The rule for right answers, case by case."""

import pytest

from sqa.core import answers


@pytest.mark.parametrize(
    ("guess", "page"),
    [
        ("Texas annexation", "Texas_annexation"),
        ("Emily Brontë", "Emily Bronte\u0308"),  # composed and decomposed
        ("dna", "DNA"),
        (" New   York_City ", "New York City"),
        ("STRASSE", "Straße"),
    ],
)
def test_same_answer(guess: str, page: str) -> None:
    assert answers.is_right(guess, page)
    assert answers.is_right(page, guess)


@pytest.mark.parametrize(
    ("guess", "page"),
    [
        ("Paris", "Paris (mythology)"),
        ("Exoplanet", "Exoplanets"),
        ("Emily Bronte", "Emily Brontë"),
        ("Jean Paul Sartre", "Jean-Paul Sartre"),
        ("a", "Alaska"),
        ("", "Alaska"),
        ("Alaska", ""),
        ("", ""),
        ("_", " "),
    ],
)
def test_other_answer(guess: str, page: str) -> None:
    assert not answers.is_right(guess, page)


def test_aliases_apply_to_both_sides() -> None:
    aliases = {"Holland": "Netherlands"}
    assert answers.is_right("Netherlands", "holland", aliases)
    assert answers.is_right("Holland", "Netherlands", aliases)
    assert not answers.is_right("Holland", "Netherlands")
    assert answers.resolve("HOLLAND", aliases) == "Netherlands"
    assert answers.resolve("New_Holland", aliases) == "New Holland"


def test_canonical_keeps_letter_case() -> None:
    assert answers.canonical("Texas_annexation ") == "Texas annexation"
