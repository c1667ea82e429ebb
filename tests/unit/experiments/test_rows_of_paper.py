"""Rows of the paper's figures and tables, from results small enough to check by hand."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from experiments.lab.pages import ledger_of
from experiments.paper import error_rates, table4_answers
from experiments.stepwise import errors as stepwise
from experiments.stepwise import examples
from experiments.stepwise.systems import RULES
from experiments.studies import guessers as guesser_items


@pytest.mark.parametrize(
    ("answers", "yes_no"), [(["Yes", "Yes, it is"], True), (["no"], True), (["Norway", "yesterday"], False)]
)
def test_a_question_is_of_yes_or_no_where_an_answer_is(answers: list[str], yes_no: bool) -> None:
    question: Any = SimpleNamespace(answers=answers)
    assert table4_answers.is_yes_no(question) == yes_no


def test_pairs_are_compared_on_guessdev_and_xqb(monkeypatch: pytest.MonkeyPatch) -> None:
    """On complete questions of guessdev, and on every word of XQB."""
    asked = []
    monkeypatch.setattr(guesser_items.paired, "differences", lambda *given: asked.append(given) or [])
    assert not list(guesser_items.in_pairs(Path(), Path()))
    assert [given[2:] for given in asked] == [(("guessdev",), True), (("xqb-es", "xqb-pl"), False)]


@pytest.mark.parametrize(("rounding", "shown"), [(-1e-12, (True, False)), (1e-12, (True, False)), (1e-3, (True, True))])
def test_the_cost_limit_tolerates_rounding(rounding: float, shown: tuple[bool, bool]) -> None:
    """A finding that costs a half is among the worst, for an example in the paper's figure it has to cost more."""
    finding: Any = SimpleNamespace(question="q", words=("a",), loss=RULES.drop + rounding)
    lines = [SimpleNamespace(read=[1], log_mrr=[0.0])]
    question = SimpleNamespace(reference_text="a human translation")
    subject: Any = SimpleNamespace(
        findings=lambda _: [finding],
        cost=lambda finding: finding.loss,
        index_of=lambda _: 0,
        lines=lines,
        human=lines,
        run=SimpleNamespace(questions=[question]),
    )
    assert (stepwise.worst(subject, "hallucination", True) == [finding], examples.tells("a", subject, finding)) == shown


def test_power_is_for_the_documented_difference() -> None:
    """experiments/ledger/error-rates.tsv was measured with these."""
    planted = {row.metric for row in ledger_of("error-rates").rows if row.metric.startswith("found")}
    assert planted == {f"found: a {shape} of {error_rates.DIFFERENCE}" for shape in ("hill", "spike")}
