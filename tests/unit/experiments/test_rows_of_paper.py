"""The yes-no questions and the missing packages of table 4."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from refusals import refused

from experiments.paper import table4_answers, xor_translator
from sqa.core import ConfigError


@pytest.mark.parametrize(
    ("answers", "yes_no"), [(["Yes", "Yes, it is"], True), (["no"], True), (["Norway", "yesterday"], False)]
)
def test_yes_no_questions_have_yes_no_answers(answers: list[str], yes_no: bool) -> None:
    question: Any = SimpleNamespace(answers=answers)
    assert table4_answers.is_yes_no(question) == yes_no


def test_missing_babel_leaves_out_a_row_of_table4(tmp_path, monkeypatch):
    pytest.importorskip("thot")
    monkeypatch.setitem(sys.modules, "babel", None)
    training = xor_translator.XorTraining("fi-en")
    refused(ConfigError, "babel", xor_translator.train, training, [], "key", tmp_path / "model")
