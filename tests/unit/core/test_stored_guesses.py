"""Guesses as columns: the tuples they stand for, and the ranks that a loop over them finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqa.core.answers import is_right
from sqa.core.errors import TraceError
from sqa.core.trace import QuestionTrace, guesses_rows, guesses_table
from sqa.core.types import Emission, Guess, Question

PAGES = ["Lima", "lima", "Lima_(Peru)", "La  Paz", "la_paz", "Cusco", "Óbidos", "O\u0301bidos"]
GUESSES = st.lists(st.lists(st.sampled_from(PAGES), unique=True, max_size=5), min_size=1, max_size=6)


def steps_of(pages: list[list[str]]) -> tuple[tuple[Guess, ...], ...]:
    return tuple(tuple(Guess(page, 1.0 / place) for place, page in enumerate(row, start=1)) for row in pages)


@given(
    st.dictionaries(st.sampled_from(["q1", "q2", "q3"]), GUESSES, min_size=1), st.sampled_from([*PAGES, "", " ", "x"])
)
def test_ranks_are_those_of_a_loop(rows, answer):
    written = {id: steps_of(pages) for id, pages in rows.items()}
    for id, stored in guesses_rows(guesses_table(written)).items():
        assert stored == written[id] and list(stored) == list(written[id]) and stored[-1] == written[id][-1]
        assert stored[1:] == list(written[id][1:]) and len(stored) == len(written[id])
        expected = [
            next((place for place, guess in enumerate(step, start=1) if is_right(guess.page, answer)), 0)
            for step in written[id]
        ]
        assert stored.rank(answer).tolist() == expected


def test_a_trace_ranks_both_kinds_alike():
    question = Question("q", "made", "es", (("a", "b"),), ("a b",), "Lima")
    emissions = (Emission(0, "a", 1, False), Emission(0, "b", 2, True))
    plain = steps_of([["Cusco"], ["Cusco", "lima"]])
    stored = guesses_rows(guesses_table({"q": plain}))["q"]
    for guesses in (plain, stored):
        trace = QuestionTrace(question, emissions, guesses)
        assert trace.rank.tolist() == [0, 2] and not trace.rank.flags.writeable
    with pytest.raises(IndexError):
        stored[2]


@pytest.mark.parametrize(
    ("guessed", "answer", "expected"),
    [("Linear momentum", "Momentum", [0, 2]), ("Momentum", "Linear momentum", [0, 0])],
)
def test_a_rule_of_ones_own_is_given_the_guess_first(guessed, answer, expected):
    """One page for another goes one way, and no rule is answered with the ranks of another."""

    def right(guess: str, page: str) -> bool:
        return (guess, page) == ("Linear momentum", "Momentum")

    question = Question("q", "made", "es", (("a", "b"),), ("a b",), answer)
    emissions = (Emission(0, "a", 1, False), Emission(0, "b", 2, True))
    plain = steps_of([["Cusco"], ["Cusco", guessed]])
    for guesses in (plain, guesses_rows(guesses_table({"q": plain}))["q"]):
        trace = QuestionTrace(question, emissions, guesses)
        assert trace.judged("one way", right).rank.tolist() == expected
        assert trace.judged("strict", is_right).rank.tolist() == trace.rank.tolist() == [0, 0]


def test_steps_that_do_not_stand_together_are_refused():
    table = guesses_table({"q": steps_of([["Lima"]]), "p": steps_of([["Lima"]]), "r": steps_of([["Cusco"], ["Lima"]])})
    with pytest.raises(TraceError, match="do not stand together"):
        guesses_rows(table.take(np.array([2, 0, 3, 1])))
