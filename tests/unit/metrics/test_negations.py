"""Negations of a translation compared with those of the human translation."""

import pytest
from refusals import refused
from tables import tables_of

from sqa.core import Emission, NotComputable, Question, QuestionTrace
from sqa.metrics import build
from sqa.metrics.quality.names import negations

TABLES = tables_of(__file__)


@pytest.mark.parametrize(("text", "count"), TABLES["negations_are_counted"])
def test_negations_are_counted(text: str, count: int) -> None:
    assert negations(text) == count


def trace(written: list[str], reference: tuple[str, ...]) -> QuestionTrace:
    question = Question("q", "d", "es", (("a",), ("b",)), reference, "P")
    words = [Emission(i, word, 1, True) for i, line in enumerate(written) for word in line.split()]
    return QuestionTrace(question, words)


def test_negation_score_equals_hand_computed_value() -> None:
    [metric] = build(["negations"])
    human = ("He did not come.", "She never left.")
    assert metric.stats(trace(["He did not come.", "She left."], human)).tolist() == [2, 3]
    moved = ["He came.", "She has never not left."]
    assert metric.stats(trace(moved, human)).tolist() == [2, 4]  # computed per sentence
    assert metric.stats(trace(moved, (" ".join(human),))).tolist() == [4, 4]
    assert metric.score(metric.stats(trace(["He did not come.", "She never left."], human))) == 1
    refused(NotComputable, "", metric.score, metric.stats(trace(["He came.", "She left."], ("Yes.", "Yes."))))
