"""Every registered metric keeps the contract of `sqa.core.types.Metric`; every wrong name is caught."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import get_args

import pytest

from sqa.core.errors import ConfigError, NotComputable
from sqa.core.trace import QuestionTrace
from sqa.core.types import Asked, Buzz, Emission, Guess, Kind, Question
from sqa.metrics import ALL, DEFAULT, build, parse, problems
from sqa.metrics.measure import NEEDS


def test_names_signatures_and_how_metrics_are_shown():
    metrics = build(ALL)
    assert len({metric.signature() for metric in metrics}) == len(ALL)
    for name, metric, again in zip(ALL, metrics, build(ALL), strict=True):
        signature = metric.signature()
        assert metric.name == name and signature == again.signature() and isinstance(metric.higher_is_better, bool)
        assert signature.startswith(f"{parse(name).base}|") and re.search(r"\|v(ersion)?:[\d.]+$", signature)
        assert metric.kind in get_args(Kind) and metric.label and 0 <= metric.digits <= 6
        assert metric.unit in ("0-1", "0-100", "words", "seconds", "per word", "per 100 words")
    assert set(DEFAULT) <= set(ALL) and [metric.name for metric in build()] == list(DEFAULT)


def test_every_wrong_name_is_reported_with_the_nearest():
    with pytest.raises(ConfigError) as caught:
        build(["ew", "acuracy", "blue", "ew"])
    assert caught.value.problems == (
        "metrics[1]: no metric 'acuracy'; nearest is 'accuracy'",
        "metrics[2]: no metric 'blue'; nearest is 'bleu'",
        "metrics[3]: 'ew' is listed twice",
    )
    assert problems(ALL) == []


QUESTION = Question("q", "d", "es", (("uno", "dos"),), ("one two",), "Peru", asked=Asked("Who?", ("Peru",), 1))
EMISSIONS = (Emission(0, "one", 1, False), Emission(0, "two", 2, True))
GUESSES, BUZZES = ((Guess("Peru", 1.0),),) * 2, (Buzz(1.0, True),) * 2
WITHOUT = {
    "guesses": QuestionTrace(QUESTION, EMISSIONS, None, None),
    "buzzes": QuestionTrace(QUESTION, EMISSIONS, GUESSES, None),
    "reference": QuestionTrace(replace(QUESTION, reference=("",)), EMISSIONS, GUESSES, BUZZES),
    "answerable": QuestionTrace(replace(QUESTION, asked=None), EMISSIONS, GUESSES, BUZZES),
}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("need", NEEDS)
def test_a_metric_refuses_a_trace_without_what_it_needs_and_no_other(name, need):
    [metric] = build([name])
    metric.stats(QuestionTrace(QUESTION, EMISSIONS, GUESSES, BUZZES))
    if need in parse(name).family.needs:
        with pytest.raises(NotComputable, match="q"):
            metric.stats(WITHOUT[need])
    elif need != "guesses" or "buzzes" not in parse(name).family.needs:
        metric.stats(WITHOUT[need])


@pytest.mark.parametrize("name", ["al", "atd", "yaal@char", "long-yaal", "start-offset", "end-offset@question"])
def test_lags_are_words(name):
    [metric] = build([name])
    assert (metric.unit, metric.digits, metric.kind) == ("words", 2, "lag")
