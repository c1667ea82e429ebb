"""Expected wins, accuracy and reciprocal rank on handmade questions."""

import pytest
from refusals import refused

from sqa.core import Buzz, Emission, Guess, NotComputable, Question, QuestionTrace
from sqa.metrics import build, qa

WORDS = ("aaaa", "bbbb", "cccc", "dddd")  # words end at characters 4, 9, 14 and 19
EW = qa.CURVES["qanta2018"]


def trace_of(tops, buzzes, sentences=(WORDS[:2], WORDS[2:])):
    """Return a trace with one target word per source word; `tops` holds the answer's rank per step (0: absent)."""
    question = Question("q", "made", "es", sentences, ("a",), "Right")
    steps = [(s, g) for s, words in enumerate(sentences) for g in range(1, len(words) + 1)][: len(tops)]
    emissions = tuple(Emission(s, "t", g, False) for s, g in steps)
    pages = ([f"Wrong {n}" if n != rank else "Right" for n in range(1, 60)] for rank in tops)
    guesses = tuple(tuple(Guess(page, -float(n)) for n, page in enumerate(row)) for row in pages)
    return QuestionTrace(question, emissions, guesses, tuple(Buzz(float(b), bool(b)) for b in buzzes))


def score(name, trace):
    [metric] = build([name])
    return metric.score(metric.stats(trace))


NEVER, ALWAYS = [0] * 4, [1] * 4
CASES = [  # metric, rank of the answer at each step (0: absent), buzzes, value
    ("ew", [2, 1, 1, 1], [0, 1, 1, 0], EW(9 / 19)),  # only the first buzz counts
    ("ew", [2, 1, 1, 1], ALWAYS, 0),
    ("ew", ALWAYS, NEVER, 0),
    ("ew", ALWAYS, [0, 0, 0, 1], 0.3803757071078009),  # a buzz at the end still has some expected wins
    ("ew@xqb-interface", ALWAYS, [0, 1, 0, 0], qa.CURVES["xqb-interface"](9 / 19)),
    ("ew", [2, 2, 2, 1], NEVER, 0),
    ("ew@answer-at-end", [2, 2, 2, 1], NEVER, EW(1.0)),
    ("ew@answer-at-end", [1, 1, 1, 2], NEVER, 0),
    ("ew@answer-at-end", [2, 1, 1, 1], [0, 1, 0, 0], EW(9 / 19)),
    ("ew@answer-at-end", [1, 1, 1], [0, 0, 0], 0),  # no word follows the last source word, so the end is unknown
    ("ew@answer-at-end", [1, 1], [0, 0], 0),  # the end of another sentence is not the end of the question
    ("oracle-ew", [0, 1, 2, 1], NEVER, EW(9 / 19)),
    ("stable-ew", [0, 1, 2, 1], NEVER, EW(1.0)),
    ("stable-ew@last-wrong", [0, 1, 2, 1], NEVER, EW(14 / 19)),
    ("stable-ew", ALWAYS, NEVER, EW(4 / 19)),
    ("stable-ew@last-wrong", ALWAYS, NEVER, EW(1.0)),
    ("oracle-ew", [0, 2, 0, 3], ALWAYS, 0),
    ("oracle-ew@curve-end", [0, 2, 0, 3], ALWAYS, EW(1.0)),
    ("stable-ew", [0, 2, 0, 3], ALWAYS, 0),
    *(
        (name, [1, 1, 1, rank], NEVER, value)
        for rank, *values in [
            *[(1, 1, 1, 1), (2, 0, 1, 0.5), (10, 0, 1, 0.1), (11, 0, 0, 1 / 11)],
            *[(50, 0, 0, 0.02), (51, 0, 0, 0), (0, 0, 0, 0)],
        ]
        for name, value in zip(("accuracy", "accuracy@10", "mrr"), values, strict=True)
    ),
    # without target words the answer is wrong
    *((name, [], [], 0) for name in ("ew", "ew@answer-at-end", "oracle-ew", "stable-ew", "accuracy", "mrr")),
    ("oracle-ew@curve-end", [], [], EW(1.0)),
]


@pytest.mark.parametrize(("name", "ranks", "buzzes", "expected"), CASES, ids=str)
def test_scores_equal_hand_computed_values(name, ranks, buzzes, expected):
    assert score(name, trace_of(ranks, buzzes)) == pytest.approx(expected)


def test_answer_at_end_wins_nothing_without_guesses():
    trace = trace_of(NEVER, NEVER)
    assert score("ew@answer-at-end", QuestionTrace(trace.question, trace.emissions, ((),) * 4, trace.buzzes)) == 0
    silent, answer = build(["ew", "ew@answer-at-end"])
    assert "|end:silent|" in silent.signature() and "|end:answer|" in answer.signature()


def test_metrics_are_undefined_without_guesser_or_buzzer():
    question = Question("q", "made", "es", (WORDS,), ("a",), "Right")
    bare = QuestionTrace(question, (Emission(0, "t", 1, False),))
    for name in ("ew", "oracle-ew", "stable-ew", "accuracy", "mrr"):
        refused(NotComputable, "no guesser ran on q", score, name, bare)
    guessed = QuestionTrace(question, (Emission(0, "t", 1, False),), ((Guess("Right", 1.0),),))
    refused(NotComputable, "no buzzer ran on q", score, "ew", guessed)
    assert score("oracle-ew", guessed) == pytest.approx(EW(4 / 19))
