"""The metrics `answered` and `answered-lag` of runs."""

import pytest
from refusals import refused
from tables import tables_of

from sqa.core import Emission, NotComputable, Question, QuestionTrace
from sqa.metrics import build, parse
from sqa.questions.make import make, rule_maker
from sqa.questions.measures import summary_of

TABLES = tables_of(__file__)

SOURCE = "En 1830 Bolívar dejó Londres . Londres dormía .".split()
REFERENCE = "In 1830 Bolívar left London. London slept."


def trace(*written: tuple[str, int], reference: str = REFERENCE) -> QuestionTrace:
    question = Question("1", "set", "es", (tuple(SOURCE),), (reference,) if reference else (), "")
    return QuestionTrace(question, tuple(Emission(0, word, g, False) for word, g in written))


TRACE = trace(("1830", 4), ("London", 6), ("slept", 9))


@pytest.mark.parametrize(("name", "stats"), TABLES["metrics_equal_hand_computed_values"])
def test_metrics_equal_hand_computed_values(name, stats):
    [metric] = build([name])
    assert metric.stats(TRACE).tolist() == stats and str(parse(name)) == metric.name == name
    refused(NotComputable, "has no human translation", metric.stats, trace(reference=""))


def test_questions_of_a_file_are_found_by_reference(tmp_path):
    questions = make(
        rule_maker("es-en", [REFERENCE], ["name"]), ["Other.", REFERENCE], ["", " ".join(SOURCE)], "es-en", 3
    )
    questions.write(path := tmp_path / "asked.jsonl")
    [metric, other] = build([f"answered@{path}", "answered"])
    assert metric.stats(TRACE).tolist() == [1, 2] and questions.digest in metric.signature()
    assert metric.signature() != other.signature()
    assert metric.stats(trace(("1830", 4), reference="He left.")).tolist() == [0, 0]


def test_viewer_shows_when_questions_are_answerable():
    assert (
        summary_of(TRACE) == "Answerable: 1830 (number) from word 4, Bolívar (name) never, London (name) from word 6."
    )
    assert summary_of(trace(("x", 1), reference="")) == ""
