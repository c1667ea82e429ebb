"""The yes-no questions of table 4 and the planted difference of the power analysis."""

from types import SimpleNamespace
from typing import Any

import pytest

from experiments.lab.pages import ledger_of
from experiments.paper import error_rates, table4_answers


@pytest.mark.parametrize(
    ("answers", "yes_no"), [(["Yes", "Yes, it is"], True), (["no"], True), (["Norway", "yesterday"], False)]
)
def test_yes_no_questions_have_yes_no_answers(answers: list[str], yes_no: bool) -> None:
    question: Any = SimpleNamespace(answers=answers)
    assert table4_answers.is_yes_no(question) == yes_no


def test_power_uses_the_documented_difference() -> None:
    """The rows of experiments/ledger/error-rates.tsv name the difference that the code plants."""
    planted = {row.metric for row in ledger_of("error-rates").rows if row.metric.startswith("found")}
    assert planted == {f"found: a {shape} of {error_rates.DIFFERENCE}" for shape in ("hill", "spike")}
