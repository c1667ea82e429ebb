"""Damage of single words, which the table of kinds by damages compares."""

import pytest

from experiments.studies.question_validity import CHANGED, damaged, pools

TEXT = "In June the 20 men of Rome defeated Carthage but Rome destroyed Carthage and did not rest near the sea"
POOLS = pools([TEXT, "July 30 Paris house"])


@pytest.mark.parametrize("damage", CHANGED)
def test_one_place_of_the_kind_is_damaged(damage):
    words, left = TEXT.split(), damaged(0, TEXT, damage, POOLS.get(damage, ())).split()
    if damage in ("negation", "function words"):
        assert len(left) == len(words) - 1 and set(left) <= set(words)
    else:
        changed = [word for word, new in zip(words, left, strict=True) if word != new]
        assert len(changed) == (2 if damage in ("roles", "order") else 1)
    expected = {"names": "Rome Carthage", "numbers": "20", "dates": "June", "negation": "not", "roles": "Rome Carthage"}
    if damage in expected:
        assert {word for word in words if word not in left} <= set(expected[damage].split()), left


def test_a_text_without_the_kind_stays():
    assert damaged(0, "The sea is wide", "names", POOLS["names"]) == "The sea is wide"
