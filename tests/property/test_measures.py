"""A metric's name is a value: parsed and printed it is the same, with all that may be written behind a base."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqa.core.errors import ConfigError
from sqa.metrics import ALL, FAMILIES, build, parse, problems
from sqa.metrics.measure import Measure

NUMBERS = st.integers(1, 9999).map(str)


@st.composite
def names(draw: st.DrawFn) -> str:
    """A base, for each of its parameters nothing or one of its texts, and perhaps other names of answers."""
    family = draw(st.sampled_from([*FAMILIES.values()]))
    parts = [family.base]
    for parameter in family.parameters:
        texts = st.sampled_from(["", *parameter.choices])
        if parameter.pattern.endswith("json"):
            texts |= st.text("ab@:/. ", min_size=1).map(lambda path: f"{path}.json")
        elif parameter.pattern:
            texts |= NUMBERS
        parts += filter(None, [draw(texts)])
    return "@".join([*parts, *(["aliases"] * (family.kind == "answers" and draw(st.booleans())))])


@given(names())
def test_a_name_is_parsed_and_printed(name):
    usual = {"accuracy@1", "accuracy@1@aliases", "mrr@50", "mrr@50@aliases"}  # which nothing is written for
    if name in usual:
        assert problems([name])
    else:
        assert str(parse(name)) == name and parse(str(parse(name))) == parse(name)


def test_a_built_metric_prints_the_name_it_was_parsed_from():
    for name, metric in zip(ALL, build(ALL), strict=True):
        measure = parse(name)
        assert str(measure) == metric.name == name and metric.described == measure
        assert (metric.label, metric.unit, metric.kind) == (measure.label, measure.unit, measure.family.kind)
        assert measure.higher_is_better == metric.higher_is_better
        assert (measure.range is not None) == (measure.unit in ("0-1", "0-100"))


@pytest.mark.parametrize("name", ["ew@{}@answer-at-end@aliases", "accuracy@5", "mrr@7@aliases", "al@char@question"])
def test_any_parameters_are_built(tmp_path: Path, name):
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
def test_what_is_written_otherwise_is_no_name(name):
    assert problems([name])[0].startswith(f"metrics[0]: no metric {name!r}; nearest is ")
    with pytest.raises(ConfigError):
        parse(name)


def test_a_value_says_what_its_number_means():
    seconds = parse("facts-lag@seconds")
    assert (seconds.base, seconds.parameters) == ("facts-lag", {"side": "seconds"})
    assert (seconds.unit, seconds.label) == ("seconds", "Lag of facts, s")
    assert not parse("names@invented").higher_is_better and parse("names").range == (0.0, 1.0)
    assert parse("ew@aliases") == Measure(FAMILIES["ew"], aliases=True)
