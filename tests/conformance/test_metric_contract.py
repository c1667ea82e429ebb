"""Every registered metric fulfils the contract of `sqa.core.types.Metric`, and invalid names are reported."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import tables_of

from sqa.core import Asked, Buzz, ConfigError, Emission, Guess, Kind, NotComputable, Question, QuestionTrace
from sqa.metrics import DEFAULT, PRINTED, TARGETS, all_names, build, family, parse, problems
from sqa.metrics.measure import KEPT, NEEDS, Measure

TABLES = tables_of(__file__)
ALL = all_names()


def test_metrics_have_names_signatures_and_display():
    metrics = build(ALL)
    assert len({metric.signature() for metric in metrics}) == len(ALL)
    for name, metric, again in zip(ALL, metrics, build(ALL), strict=True):
        signature, measure = metric.signature(), parse(name)
        assert str(measure) == metric.name == name and metric.described == measure and signature == again.signature()
        assert (metric.label, metric.unit, metric.kind) == (measure.label, measure.unit, measure.family.kind)
        assert metric.higher_is_better is measure.higher_is_better
        assert signature.startswith(f"{measure.base}|") and re.search(r"\|v(ersion)?:[\d.]+$", signature)
        assert metric.kind in get_args(Kind) and metric.label and 0 <= metric.digits <= 6
        assert metric.unit in ("0-1", "0-100", "words", "seconds", "per word", "per 100 words", "points")
    assert set(DEFAULT) <= set(ALL) and [metric.name for metric in build()] == list(DEFAULT)


def test_wrong_name_error_suggests_the_nearest():
    with pytest.raises(ConfigError) as caught:
        build(["ew", "acuracy", "blue", "ew"])
    assert caught.value.problems == (
        "metrics[1]: no metric 'acuracy'; nearest is 'accuracy'",
        "metrics[2]: no metric 'blue'; nearest is 'bleu'",
        "metrics[3]: 'ew' is listed twice",
    )
    assert problems(ALL) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        *TABLES["wrong_name_error_gives_the_correct_form"],
        *((name, ": every run prints it by default; omit it") for name in PRINTED),
    ],
)
def test_wrong_name_error_gives_the_correct_form(name, said):
    assert problems([name]) == [f"metrics[0]: no metric {name!r}{said}"]


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
def test_metric_refuses_only_traces_without_its_inputs(name, need):
    [metric] = build([name])
    metric.stats(QuestionTrace(QUESTION, EMISSIONS, GUESSES, BUZZES))
    if need in parse(name).needs:
        with pytest.raises(NotComputable, match="q"):
            metric.stats(WITHOUT[need])
    elif need != "guesses" or "buzzes" not in parse(name).needs:
        metric.stats(WITHOUT[need])


@pytest.mark.parametrize("name", ["al", "atd", "yaal@char", "long-yaal", "start-offset", "end-offset@question"])
def test_unit_of_lags_is_words(name):
    [metric] = build([name])
    assert (metric.unit, metric.digits, metric.kind) == ("words", 2, "lag")


# ------------------------------------------------------------------------------------------- names as values

NUMBERS = st.integers(1, KEPT).map(str)


@st.composite
def names(draw: st.DrawFn) -> str:
    """Draw a metric name: a base, optional parameters, and for answer metrics an optional "aliases"."""
    drawn = draw(st.sampled_from([family(base) for base in TARGETS]))
    parts = [drawn.base]
    for parameter in drawn.parameters:
        texts = st.sampled_from(["", *parameter.choices])
        if file := re.search(r"\.jsonl?$", parameter.pattern):
            texts |= st.text("ab@:/. ", min_size=1).map(lambda path, end=file[0]: path + end)
        elif parameter.pattern:
            texts |= NUMBERS
        parts += filter(None, [draw(texts)])
    return "@".join([*parts, *(["aliases"] * (drawn.kind == "answers" and draw(st.booleans())))])


@given(names())
def test_name_round_trips(name):
    usual = {"accuracy@1", "accuracy@1@aliases", "mrr@50", "mrr@50@aliases"}  # default options, which metric names omit
    if name in usual:
        assert problems([name])
    else:
        assert str(parse(name)) == name and parse(str(parse(name))) == parse(name)


@pytest.mark.parametrize("name", ["ew@{}@answer-at-end@aliases", "accuracy@5", "mrr@7@aliases", "al@char@question"])
def test_names_with_parameters_are_built(tmp_path: Path, name):
    curve = tmp_path / "a@b.json"
    curve.write_text(
        json.dumps({"kind": "expected-wins curve", "version": 1, "method": "cubic", "coefficients": [1, 0, 0, 0]})
    )
    name = name.format(curve)
    [metric] = build([name])
    assert metric.name == name and metric.described == parse(name)


@pytest.mark.parametrize(
    "name",
    (
        " @ ew@ atd@ ew@@aliases ew@qanta2018 ew@answer-at-end@xqb-interface ew@aliases@aliases bleu@aliases "
        "accuracy@0 accuracy@01 accuracy@1 mrr@50 mrr@none.json laal@iwslt-2020-final facts-lag@timed"
    ).split(" "),
)
def test_other_spellings_are_not_names(name):
    assert problems([name])[0].startswith(f"metrics[0]: no metric {name!r}; nearest is ")
    with pytest.raises(ConfigError):
        parse(name)


def test_measure_states_unit_range_and_direction():
    seconds = parse("facts-lag@seconds")
    assert (seconds.base, seconds.parameters) == ("facts-lag", {"side": "seconds"})
    assert (seconds.unit, seconds.label) == ("seconds", "Lag of facts, s")
    assert not parse("names@invented").higher_is_better
    assert parse("ew@aliases") == Measure(family("ew"), aliases=True)
