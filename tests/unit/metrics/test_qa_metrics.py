"""Expected wins, accuracy and reciprocal rank on hand-made questions."""

from __future__ import annotations

import pytest

from sqa.core.errors import ConfigError, NotComputable
from sqa.core.trace import QuestionTrace
from sqa.core.types import Buzz, Emission, Guess, Question
from sqa.metrics import build, qa

WORDS = ("aaaa", "bbbb", "cccc", "dddd")  # 19 characters; after n words 4, 9, 14, 19
EW = qa.CURVES["qanta2018"]


def trace_of(tops, buzzes, sentences=(WORDS[:2], WORDS[2:])):
    """One target word per source word; `tops` holds the rank of the answer at each step (0: absent)."""
    question = Question("q", "made", "es", sentences, ("a",), "Right")
    places = [(s, g) for s, words in enumerate(sentences) for g in range(1, len(words) + 1)][: len(tops)]
    emissions = tuple(Emission(s, "t", g, False) for s, g in places)
    guesses = tuple(
        tuple(Guess("Right" if place == rank else f"Wrong {place}", -float(place)) for place in range(1, 60))
        for rank in tops
    )
    return QuestionTrace(question, emissions, guesses, tuple(Buzz(float(b), bool(b)) for b in buzzes))


def score(name, trace):
    [metric] = build([name])
    return metric.score(metric.stats(trace))


def test_only_the_first_buzz_counts():
    assert score("ew", trace_of([2, 1, 1, 1], [0, 1, 1, 0])) == pytest.approx(EW(9 / 19))
    assert score("ew", trace_of([2, 1, 1, 1], [1, 1, 1, 1])) == 0
    assert score("ew", trace_of([1, 1, 1, 1], [0, 0, 0, 0])) == 0


def test_a_buzz_at_the_very_end_still_wins_some():
    assert score("ew", trace_of([1, 1, 1, 1], [0, 0, 0, 1])) == pytest.approx(0.3803757071078009)


def test_a_question_that_ends_unanswered_wins_by_the_rule_of_the_metric_alone():
    unanswered = trace_of([2, 2, 2, 1], [0, 0, 0, 0])
    assert score("ew", unanswered) == 0 and score("ew@answer-at-end", unanswered) == pytest.approx(EW(1.0))
    assert score("ew@answer-at-end", trace_of([1, 1, 1, 2], [0, 0, 0, 0])) == 0
    buzzed = trace_of([2, 1, 1, 1], [0, 1, 0, 0])
    assert score("ew@answer-at-end", buzzed) == score("ew", buzzed) > 0
    early = trace_of([1, 1, 1], [0, 0, 0])  # no word is written after the last source word: nobody knew of the end
    assert score("ew@answer-at-end", early) == 0
    nothing = QuestionTrace(unanswered.question, unanswered.emissions, ((), (), (), ()), unanswered.buzzes)
    assert score("ew@answer-at-end", nothing) == score("ew@answer-at-end", trace_of([], [])) == 0
    silent, answer = build(["ew", "ew@answer-at-end"])
    assert "|end:silent|" in silent.signature() and "|end:answer|" in answer.signature()
    with pytest.raises(ConfigError, match=r"metrics.ew.end: must be one of silent, answer, got 'perhaps'"):
        qa.ExpectedWins(end="perhaps")


def test_oracle_and_stable():
    trace = trace_of([0, 1, 2, 1], [0, 0, 0, 0])
    assert score("oracle-ew", trace) == pytest.approx(EW(9 / 19))
    assert score("stable-ew", trace) == pytest.approx(EW(1.0))
    assert score("stable-ew@last-wrong", trace) == pytest.approx(EW(14 / 19))
    always = trace_of([1, 1, 1, 1], [0, 0, 0, 0])
    assert score("stable-ew", always) == pytest.approx(EW(4 / 19))
    assert score("stable-ew@last-wrong", always) == pytest.approx(EW(1.0))


def test_never_right():
    trace = trace_of([0, 2, 0, 3], [1, 1, 1, 1])
    assert score("oracle-ew", trace) == 0
    assert score("oracle-ew@curve-end", trace) == pytest.approx(EW(1.0))
    assert score("stable-ew", trace) == 0


def test_second_curve():
    trace = trace_of([1, 1, 1, 1], [0, 1, 0, 0])
    assert score("ew@xqb-interface", trace) == pytest.approx(qa.CURVES["xqb-interface"](9 / 19))


@pytest.mark.parametrize(
    "rank,at1,at10,mrr",
    [(1, 1, 1, 1), (2, 0, 1, 0.5), (10, 0, 1, 0.1), (11, 0, 0, 1 / 11), (50, 0, 0, 0.02), (51, 0, 0, 0), (0, 0, 0, 0)],
)
def test_full_input(rank, at1, at10, mrr):
    trace = trace_of([1, 1, 1, rank], [0, 0, 0, 0])
    assert score("accuracy", trace) == at1
    assert score("accuracy@10", trace) == at10
    assert score("mrr", trace) == pytest.approx(mrr)


def test_a_question_without_target_words_is_wrong():
    trace = trace_of([], [])
    for name in ("ew", "oracle-ew", "stable-ew", "accuracy", "accuracy@10", "mrr"):
        assert score(name, trace) == 0
    assert score("oracle-ew@curve-end", trace) == pytest.approx(EW(1.0))


def test_without_guesser_or_buzzer_there_is_no_number():
    question = Question("q", "made", "es", (WORDS,), ("a",), "Right")
    bare = QuestionTrace(question, (Emission(0, "t", 1, False),))
    for name in ("ew", "oracle-ew", "stable-ew", "accuracy", "mrr"):
        with pytest.raises(NotComputable, match="no guesser ran on q"):
            score(name, bare)
    guessed = QuestionTrace(question, (Emission(0, "t", 1, False),), ((Guess("Right", 1.0),),))
    with pytest.raises(NotComputable, match="no buzzer ran on q"):
        score("ew", guessed)
    assert score("oracle-ew", guessed) == pytest.approx(EW(4 / 19))


@pytest.mark.parametrize(
    "build_one", [lambda: qa.ExpectedWins("qanta"), lambda: qa.OracleExpectedWins(never="1"), lambda: qa.Accuracy(0)]
)
def test_bad_settings(build_one):
    with pytest.raises(ConfigError, match="must be"):
        build_one()
