"""The yes-no questions of table 4 and the planted difference of the power analysis."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from refusals import refused

from experiments.paper import error_rates, table4_answers, xor_translator
from experiments.results_book.pages import ledger_of
from sqa.core.errors import ConfigError


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


def test_missing_babel_leaves_out_a_row_of_table4(tmp_path, monkeypatch):
    pytest.importorskip("thot")
    monkeypatch.setitem(sys.modules, "babel", None)
    training = xor_translator.XorTraining("fi-en")
    refused(ConfigError, "babel", xor_translator.train, training, [], "key", tmp_path / "model")
