"""A decorated function is a metric: its statistics, score, signature and requirements."""

import pytest
from refusals import refused

from sqa.core import Emission, NotComputable, Question, QuestionTrace
from sqa.metrics import build
from sqa.metrics.measure import Family


@Family("share", "Share", "unit:word", version=3, kind="lag", needs=("guesses",))
def share(trace: QuestionTrace) -> tuple[float, float]:
    return len(trace.emissions), len(trace.question.words)


def trace_of(n: int, guessed: bool = True) -> QuestionTrace:
    question = Question("q", "d", "es", (("uno", "dos", "tres", "cuatro"),), ("one",), "Peru")
    emissions = tuple(Emission(0, "one", 1, False) for _ in range(n))
    return QuestionTrace(question, emissions, ((),) * n if guessed else None)


def test_decorated_function_is_pooled_over_questions():
    total = share.stats(trace_of(1)) + share.stats(trace_of(2))
    assert total.tolist() == [3, 8] and share.score(total) == pytest.approx(0.375)
    assert share.score_many(total[None]).tolist() == [share.score(total)]


def test_declaration_gives_signature_and_display():
    assert share.signature() == "share|unit:word|version:3" and share().name == "share"
    assert (share.label, share.unit, share.kind, share.higher_is_better) == ("Share", "0-1", "lag", False)


def test_decorated_function_requires_its_inputs():
    refused(NotComputable, "share: no guesser ran on q", share.stats, trace_of(1, guessed=False))


def test_function_in_a_users_file_is_a_metric(tmp_path):
    declared = "from sqa.metrics.measure import Family\n\n@Family('mine', 'Mine', needs=())\ndef mine(trace):\n"
    (tmp_path / "mine.py").write_text(f"{declared}    return len(trace.emissions), 1\n")
    [metric] = build([f"{tmp_path / 'mine.py'}:mine"])
    assert metric.name == "mine" and metric.signature().startswith("mine||version:1|source:")
    assert metric.stats(trace_of(2)).tolist() == [2, 1]
