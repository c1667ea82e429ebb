"""Correct answers under the strict rule and under Quizbowl's rule, which accepts more answers."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tables import tables_of

from sqa.core import bundled, canonical, is_right, key, takes
from sqa.core.quizbowl import Accepted, bare, spelling

TABLES = tables_of(__file__)

RULE = Accepted(
    titles={"momentum": {"linear momentum"}, "istanbul": {"constantinople"}},
    forms={"vitamin a": {"retinol"}, "dna": {"deoxyribonucleic acid"}},
    shared=frozenset({"spin", "symphony no 5"}),
    name="made",
)
STRICT = TABLES["strict"]
ACCEPTED = TABLES["accepted"]
REFUSED = TABLES["refused"]
CASES = [(*p, True, True) for p in STRICT] + [(*p, False, True) for p in ACCEPTED]


@pytest.mark.parametrize(("guess", "page", "strict", "accepted"), CASES + [(*p, False, False) for p in REFUSED])
def test_rules_accept_and_refuse_the_listed_answers(guess, page, strict, accepted):
    assert is_right(guess, page) == is_right(page, guess) == strict and RULE.is_right(guess, page) == accepted


def test_titles_are_normalised():
    assert canonical("New_Holland ") == "New Holland" and key("HOLLAND") == key("Holland")
    assert spelling("The Žižek_(film) &  U.S.A.") == "the zizek (film) and u s a"
    assert bare("The Žižek_(film)") == "zizek"
    words = "glass virus axis Ares cities the gas".split()
    assert [bare(word) for word in words] == "glass virus axis are city the gas".split()


@given(st.text(max_size=12), st.text(max_size=12))
@example("\u33d7", "\uff3f")  # compatibility characters for capitals and for an underscore
def test_rules_are_nested_and_forms_are_idempotent(guess, page):
    assert is_right(guess, page) == is_right(page, guess) and is_right(guess, guess) == bool(canonical(guess))
    assert RULE.is_right(guess, page) or not is_right(guess, page)
    assert RULE.is_right(guess, guess) == is_right(guess, guess)
    for form in (canonical, key, spelling):
        assert form(form(guess)) == form(guess)


def test_short_answers_compare_by_value():
    for a, b in TABLES["equal_short_answers"]:
        assert takes(a, [b]) and takes(b, [a]), (a, b)
    for a, b in TABLES["different_short_answers"]:
        assert not takes(a, [b]) and not takes(b, [a])


@pytest.mark.parametrize(("guess", "page", "right"), TABLES["bundled_tables_judge_the_listed_answers"])
def test_bundled_tables_judge_the_listed_answers(guess: str, page: str, right: bool) -> None:
    assert bundled().is_right(guess, page) is right
