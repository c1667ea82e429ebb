"""The trace checks itself once; its tables give back what was put in, and the ranks that a loop over guesses finds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from doubles import echo, question
from hypothesis import given
from hypothesis import strategies as st

from sqa.core import trace as tr
from sqa.core.answers import is_right
from sqa.core.errors import TraceError
from sqa.core.trace import (
    EMISSIONS,
    QuestionTrace,
    Score,
    buzzes_rows,
    buzzes_table,
    check_buzzes,
    check_guesses,
    emissions_rows,
    emissions_table,
    guesses_rows,
    guesses_table,
    scores_rows,
    scores_table,
    table_of,
)
from sqa.core.types import Buzz, Emission, Guess, Question

Q = question()  # "uno dos" + "tres cuatro cinco"


@pytest.mark.parametrize(
    ("emissions", "message"),
    [
        ([Emission(2, "a", 1, False)], r"q step 0: sentence must be in 0\.\.1, got 2"),
        ([Emission(1, "a", 1, False), Emission(0, "b", 1, False)], r"q step 1: sentence must be in 1\.\.1"),
        ([Emission(0, "a", 3, False)], r"g must be in 0\.\.2 .* got 3"),
        ([Emission(0, "a", -1, False)], r"g must be in 0\.\.2 .* got -1"),
        ([Emission(0, "a", 2, False), Emission(0, "b", 1, False)], r"q step 1: g must be in 2\.\.2"),
        ([Emission(0, "a", 1, True)], "sentence 0 has ended but only 1 of its 2 words were read"),
        ([Emission(0, "a", 2, True), Emission(0, "b", 2, False)], "sentence 0 had ended before this step"),
        ([Emission(0, "", 1, False)], "a token must be one word without blanks, got ''"),
        ([Emission(0, "a b", 1, False)], "a token must be one word without blanks, got 'a b'"),
        ([Emission(0, "a\u00a0b", 1, False)], "one word without blanks"),
        ([Emission(0, "a", 1, False, erase=1)], r"erase must be in 0\.\.0"),
        ([Emission(0, "a", 1, False), Emission(1, "b", 1, False, erase=1)], r"q step 1: erase must be in 0\.\.0"),
        ([Emission(0, "", 1, False, erase=1)], r"erase must be in 0\.\.0"),
        (
            [Emission(0, "a", 1, False), Emission(0, "", 1, False, 1), Emission(0, "b", 1, False, 1)],
            r"step 2: erase .* 0\.\.0",
        ),
    ],
)
def test_a_broken_rule_is_named_with_question_and_step(emissions: list[Emission], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        QuestionTrace(Q, tuple(emissions))


def test_the_fewer_guesses_than_emissions_are_refused() -> None:
    with pytest.raises(TraceError, match="1 guesses for 5 emissions"):
        QuestionTrace(Q, echo(Q), guesses=((),))
    with pytest.raises(TraceError, match="1 buzzes for 5 emissions"):
        QuestionTrace(Q, echo(Q), guesses=((),) * 5, buzzes=(Buzz(0.0, False),))


def test_a_question_without_words_is_refused() -> None:
    with pytest.raises(TraceError, match="the question has no words"):
        QuestionTrace(replace(Q, sentences=()), ())


def test_rank_and_correct_follow_the_answer_rule() -> None:
    right, wrong = Guess("SPAIN", 1.0), Guess("France", 2.0)
    trace = QuestionTrace(Q, echo(Q), ((), (right,), (wrong, right), (wrong,), (right, wrong)))
    assert trace.rank.tolist() == [0, 1, 2, 0, 1]
    assert trace.correct.tolist() == [False, True, False, False, True]


def test_rank_without_a_guesser_is_an_error_not_a_number() -> None:
    with pytest.raises(TraceError, match="no guesser ran"):
        _ = QuestionTrace(Q, echo(Q)).rank


def test_a_question_without_output_has_no_steps_and_empty_hypotheses() -> None:
    trace = QuestionTrace(Q, (), (), ())
    assert trace.hypotheses == ["", ""]
    assert len(trace.fraction) == len(trace.rank) == len(trace.source_words) == 0


def test_arrays_cannot_be_changed() -> None:
    trace = QuestionTrace(Q, echo(Q), ((),) * 5)
    for array in (trace.fraction, trace.source_words, trace.rank, trace.correct):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0


@pytest.mark.parametrize(
    ("guesses", "message"),
    [
        ([[]], "answered 1 of 2 prefixes"),
        ([[], [Guess("A", 1.0), Guess("A", 0.5)]], "q step 1: expected at most 2 guesses on distinct pages"),
        ([[Guess("A", 3.0), Guess("B", 2.0), Guess("C", 1.0)], []], "q step 0: expected at most 2 guesses"),
        ([[Guess("A", 1.0), Guess("B", 2.0)], []], "sorted by finite scores"),
        ([[Guess("A", float("nan"))], []], "sorted by finite scores"),
    ],
)
def test_guesses_are_checked(guesses: list[list[Guess]], message: str) -> None:
    with pytest.raises(TraceError, match=message):
        check_guesses(Q, 2, guesses, n=2)


def test_buzzes_are_checked() -> None:
    with pytest.raises(TraceError, match="answered 0 of 1 steps"):
        check_buzzes(Q, 1, [])
    with pytest.raises(TraceError, match="q step 0: a buzz score must be finite"):
        check_buzzes(Q, 1, [Buzz(float("inf"), True)])


def test_tables_give_back_their_rows() -> None:
    emissions = {"a": echo(Q), "b": (Emission(0, "ż", 2, True),)}
    guesses = {"a": ((), (Guess("Spain", 2.0), Guess("France", 1.5))), "b": ((Guess("Spain", 0.1),),)}
    buzzes = {"a": (Buzz(0.25, False), Buzz(0.75, True))}
    scores = {"a": {"ew": Score((0.5, 1.0)), "al": Score(None, "no")}}
    assert emissions_rows(emissions_table(emissions)) == emissions
    assert guesses_rows(guesses_table(guesses)) == guesses
    assert buzzes_rows(buzzes_table(buzzes)) == buzzes
    assert scores_rows(scores_table(scores)) == scores


def test_tables_without_rows() -> None:
    assert emissions_rows(emissions_table({"a": ()})) == {}
    assert guesses_rows(guesses_table({})) == {}
    assert buzzes_rows(buzzes_table({})) == {}


def test_a_missing_step_is_found() -> None:
    rows = list(zip(*(column.to_list() for column in emissions_table({"a": echo(Q)}).values()), strict=True))
    kept = table_of(EMISSIONS, rows[:1] + rows[2:])
    with pytest.raises(TraceError, match="a step 2: expected step 1, got 2"):
        emissions_rows(kept)


# ------------------------------------------------------------------------------------------- guesses as columns

PAGES = ["Lima", "lima", "Lima_(Peru)", "La  Paz", "la_paz", "Cusco", "Óbidos", "O\u0301bidos"]
GUESSES = st.lists(st.lists(st.sampled_from(PAGES), unique=True, max_size=5), min_size=1, max_size=6)


def steps_of(pages: list[list[str]]) -> tuple[tuple[Guess, ...], ...]:
    return tuple(tuple(Guess(page, 1.0 / rank) for rank, page in enumerate(row, start=1)) for row in pages)


@given(
    st.dictionaries(st.sampled_from(["q1", "q2", "q3"]), GUESSES, min_size=1), st.sampled_from([*PAGES, "", " ", "x"])
)
def test_ranks_are_those_of_a_loop(rows, answer):
    written = {id: steps_of(pages) for id, pages in rows.items()}
    for id, stored in guesses_rows(guesses_table(written)).items():
        assert stored == written[id] and list(stored) == list(written[id]) and stored[-1] == written[id][-1]
        assert stored[1:] == list(written[id][1:]) and len(stored) == len(written[id])
        expected = [
            next((rank for rank, guess in enumerate(step, start=1) if is_right(guess.page, answer)), 0)
            for step in written[id]
        ]
        assert stored.rank_where(lambda title: is_right(title, answer)).tolist() == expected


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
    rows = list(zip(*(column.to_list() for column in table.values()), strict=True))
    with pytest.raises(TraceError, match="do not stand together"):
        guesses_rows(table_of(tr.GUESSES, [rows[at] for at in (2, 0, 3, 1)]))
