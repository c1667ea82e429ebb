"""The trace: validation, positions counted by hand, and the round trip of its tables."""

from dataclasses import replace

import pytest
from doubles import echo, question
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused
from tables import tables_of

from sqa.core import Buzz, Emission, Guess, TraceError, is_right
from sqa.core import trace as tr
from sqa.core.trace import (
    QuestionTrace,
    Score,
    check_buzzes,
    check_emissions,
    check_guesses,
    hypotheses,
    prefixes,
    table_of,
)

TABLES = tables_of(__file__)

Q = question()  # "uno dos" + "tres cuatro cinco": words end at characters 3, 7, 12, 19 and 25


@pytest.mark.parametrize(("emissions", "message"), TABLES["broken_rule_error_names_question_and_step"])
def test_broken_rule_error_names_question_and_step(emissions, message):
    refused(TraceError, message, QuestionTrace, Q, tuple(Emission(*row) for row in emissions))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: QuestionTrace(Q, echo(Q), guesses=((),)), "1 guesses for 5"),
        (lambda: QuestionTrace(Q, echo(Q), ((),) * 5, (Buzz(0.0, False),)), "1 buzzes for 5"),
        (lambda: QuestionTrace(replace(Q, sentences=()), ()), "no words"),
        (lambda: QuestionTrace(Q, echo(Q)).rank, "no guesser ran"),
        (lambda: check_guesses(Q, 2, [[]], 2), "1 of 2 prefixes"),
        (lambda: check_guesses(Q, 2, [[], [Guess("A", 1.0), Guess("A", 0.5)]], 2), "q step 1: .* distinct"),
        (lambda: check_guesses(Q, 1, [[Guess("A", 3.0), Guess("B", 2.0)]], 1), "at most 1"),
        (lambda: check_guesses(Q, 1, [[Guess("A", 1.0), Guess("B", 2.0)]], 2), "sorted"),
        (lambda: check_guesses(Q, 1, [[Guess("A", float("nan"))]], 2), "finite"),
        (lambda: check_emissions(replace(Q, sentences=(("uno",),) * 2**15), ()), "the maximum is 32767"),
        (lambda: check_buzzes(Q, 1, []), "0 of 1 steps"),
        (lambda: check_buzzes(Q, 1, [Buzz(float("inf"), True)]), "q step 0: .* finite"),
    ],
)
def test_mismatched_parts_are_refused(call, message):
    refused(TraceError, message, call)


def test_guesses_may_have_equal_scores():
    check_guesses(Q, 1, [[Guess("A", 1.0), Guess("B", 1.0)]], 2)


def test_positions_include_finished_sentences():
    # The second sentence starts when only one of the first sentence's two words has been read, but Equation 1 counts
    # both words.
    words = [("a", 0, 0, False), ("b", 0, 1, False), ("c", 1, 0, False), ("d", 1, 3, True)]
    steps = prefixes(Q, tuple(Emission(s, token, g, ended) for token, s, g, ended in words))
    assert steps.source_words.tolist() == [0, 1, 2, 5] and steps.source_chars.tolist() == [0, 3, 7, 25]
    assert steps.fraction.tolist() == [0, 3 / 25, 7 / 25, 1.0] and steps.append_only
    assert steps.texts == ("a", "a b", "a b c", "a b c d")


@pytest.mark.parametrize(
    ("writes", "texts", "final"),  # (sentence, token, erase)
    TABLES["retraction_updates_prefixes_and_hypotheses"],
)
def test_retraction_updates_prefixes_and_hypotheses(writes, texts, final):
    emissions = tuple(Emission(s, token, 1, False, erase) for s, token, erase in writes)
    steps = prefixes(Q, emissions)
    assert not steps.append_only and list(steps.texts) == texts.split("|") and hypotheses(Q, emissions) == final


def test_question_without_output_has_no_steps():
    trace = QuestionTrace(Q, (), (), ())
    assert trace.hypotheses == ["", ""] and trace.prefixes.texts == ()
    assert len(trace.fraction) == len(trace.rank) == len(trace.source_words) == 0


WORD = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=6)


@st.composite
def revised(draw):
    """Draw a question and the emissions of a translator that retracts words."""
    sentences = draw(st.lists(st.lists(WORD, min_size=1, max_size=5), min_size=1, max_size=4))
    emissions = []
    for i, sentence in enumerate(sentences):
        written, g, ended = 0, 0, False
        for token in draw(st.lists(WORD, max_size=6)):
            g = draw(st.integers(g, len(sentence)))
            ended = ended or (g == len(sentence) and draw(st.booleans()))
            erase = draw(st.integers(0, written))
            token = "" if erase and draw(st.booleans()) else token
            emissions.append(Emission(i, token, g, ended, erase))
            written += bool(token) - erase
    return question(sentences=[" ".join(sentence) for sentence in sentences]), tuple(emissions)


@given(revised())
def test_revised_emissions_keep_positions_and_text(case):
    q, emissions = case
    check_emissions(q, emissions)
    steps = prefixes(q, emissions)
    for chars, words in zip(steps.source_chars, steps.source_words, strict=True):
        assert chars == len(" ".join(q.words[:words]))
    assert not emissions or steps.texts[-1] == " ".join(filter(None, hypotheses(q, emissions)))
    assert tr.emissions_rows(tr.emissions_table({q.id: emissions})) == ({q.id: emissions} if emissions else {})


# ------------------------------------------------------------------------------------------------------- tables


def rows_of(table):
    return list(zip(*(column.to_list() for column in table.values()), strict=True))


@pytest.mark.parametrize(
    ("there", "back", "rows"),
    [
        (tr.emissions_table, tr.emissions_rows, {"a": echo(Q), "b": (Emission(0, "ż", 2, True),)}),
        (tr.guesses_table, tr.guesses_rows, {"a": ((), (Guess("Spain", 2.0), Guess("Peru", 1.5))), "b": ((),)}),
        (tr.guesses_table, tr.guesses_rows, {}),
        (tr.buzzes_table, tr.buzzes_rows, {"a": (Buzz(0.25, False), Buzz(0.75, True))}),
        (tr.scores_table, tr.scores_rows, {"a": {"ew": Score((0.5, 1.0)), "al": Score(None, "no")}}),
    ],
)
def test_tables_round_trip(there, back, rows):
    assert back(there(rows)) == rows


def test_missing_and_scattered_steps_are_refused():
    rows = rows_of(tr.emissions_table({"a": echo(Q)}))
    refused(TraceError, "a step 2: expected step 1", tr.emissions_rows, table_of(tr.EMISSIONS, rows[:1] + rows[2:]))
    table = tr.guesses_table({id: steps_of([["Lima"]] * n) for id, n in (("q", 1), ("p", 1), ("r", 2))})
    with pytest.raises(TraceError, match="are not adjacent"):
        tr.guesses_rows(table_of(tr.GUESSES, [rows_of(table)[at] for at in (2, 0, 3, 1)]))


PAGES = ["Lima", "lima", "Lima_(Peru)", "La  Paz", "la_paz", "Cusco", "Óbidos", "O\u0301bidos"]
GUESSES = st.lists(st.lists(st.sampled_from(PAGES), unique=True, max_size=5), min_size=1, max_size=6)


def steps_of(pages):
    return tuple(tuple(Guess(page, 1.0 / rank) for rank, page in enumerate(row, start=1)) for row in pages)


@given(st.dictionaries(st.sampled_from(["q1", "q2"]), GUESSES, min_size=1), st.sampled_from([*PAGES, "", "x"]))
def test_stored_guesses_and_ranks_match_a_plain_loop(rows, answer):
    written = {id: steps_of(pages) for id, pages in rows.items()}
    for id, stored in tr.guesses_rows(tr.guesses_table(written)).items():
        steps = written[id]
        assert stored == steps and stored[-1] == steps[-1] and stored[1:] == list(steps[1:])
        ranks = [next((i for i, guess in enumerate(s, 1) if is_right(guess.page, answer)), 0) for s in steps]
        assert stored.rank_where(lambda title: is_right(title, answer)).tolist() == ranks
        trace = QuestionTrace(replace(Q, page=answer), (Emission(0, "a", 1, False),) * len(steps), steps)
        assert trace.rank.tolist() == ranks and trace.correct.tolist() == [rank == 1 for rank in ranks]
        with pytest.raises(ValueError, match="read-only"):
            trace.rank[0] = 0


@pytest.mark.parametrize(
    ("guessed", "answer", "expected"),
    [("Linear momentum", "Momentum", [0, 1]), ("Momentum", "Linear momentum", [0, 0])],
)
def test_rules_receive_the_guess_first(guessed, answer, expected):
    """Ranks of one rule are not reused for another rule."""

    def right(guess, page):
        return (guess, page) == ("Linear momentum", "Momentum")

    plain = steps_of([["Cusco"], [guessed]])
    for guesses in (plain, tr.guesses_rows(tr.guesses_table({"q": plain}))["q"]):
        trace = QuestionTrace(replace(Q, page=answer), echo(Q)[:2], guesses)
        assert trace.correct.tolist() == [False, False]
        other = trace.judged("one way", right)
        assert other.rank.tolist() == expected and other.correct.tolist() == [rank == 1 for rank in expected]
        assert trace.judged("strict", is_right).rank.tolist() == trace.rank.tolist() == [0, 0]
