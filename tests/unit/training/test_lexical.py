"""Rough Polish from a lexicon: the endings of foreign names."""

from __future__ import annotations

import pytest

from smt.training import lexical


@pytest.mark.parametrize(
    ("name", "case", "declined"),
    [
        ("Kant", "gen", {"Kant", "Kanta"}),
        ("Kant", "loc", {"Kant", "Kantie"}),
        ("Lima", "acc", {"Lima", "Limę"}),
        ("Kant", "nom", {"Kant"}),
        ("Goethe", "gen", {"Goethe"}),  # ends in a vowel
        ("Lee", "gen", {"Lee"}),
    ],
)
def test_a_foreign_name_is_declined_now_and_then(name: str, case: str, declined: set[str]) -> None:
    writer = lexical._Writer({}, 0)
    assert {writer.decline(name, case) for _ in range(40)} == declined
