"""Rows of the paper's figures and tables, from results small enough to check by hand."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from experiments.ablation import report
from experiments.items import claims
from experiments.items import guessers as guesser_items
from experiments.lab import grid_rows
from experiments.lab.pages import ledger_of
from experiments.paper import examples, table4, table4_answers
from experiments.stepwise import errors as stepwise
from experiments.stepwise.systems import RULES
from sqa.core.types import Question
from sqa.results import Frame


def test_unknown_pages_are_named_where_the_guesser_says_them() -> None:
    def row(guesser: str, unknown: int | None) -> Any:
        cell = SimpleNamespace(dataset="d", guesser=guesser, translator="t", k=3)
        return SimpleNamespace(n=5, cell=cell, unknown_pages=unknown, empty_sentences=2)

    ledger = Frame(grid_rows.COLUMNS, ())
    notes = list(report.tables(ledger, [row("bm25", 2), row("silent", None)]))
    assert "2 of the answer pages are unknown to bm25; those questions count as wrong." in notes
    assert not any("unknown to silent" in note for note in notes)
    assert notes[-1] == "Sentences with an empty translation: t k=3: 2."


def test_bleu_of_a_system_is_of_its_longest_list_of_questions() -> None:
    def answered(reader: str, texts: list[str]) -> Any:
        reference = [("the castle of the king fell", "the river runs to the sea")[i % 2] for i in range(len(texts))]
        questions = [
            SimpleNamespace(
                translation=text,
                as_question=lambda i=i, text=text: Question(f"q{i}", "x", "fi", (("a", "b"),), (text,), "Lima"),
            )
            for i, text in enumerate(reference)
        ]
        return SimpleNamespace(set="dev", language="fi", system="pbmt", reader=reader, questions=questions, texts=texts)

    config: Any = SimpleNamespace(systems=[], resamples=20, seed=0)
    whole = answered("title", ["the castle of the king fell", "the river runs to the sea"])
    sample = answered("typed", ["nothing of it is right here"])
    rows = [list(table4._bleu(results, config)) for results in ([whole, sample], [sample, whole])]
    assert [[round(row.value) for row in values] for values in rows] == [[100], [100]]


@pytest.mark.parametrize(
    ("answers", "yes_no"), [(["Yes", "Yes, it is"], True), (["no"], True), (["Norway", "yesterday"], False)]
)
def test_a_question_is_of_yes_or_no_where_an_answer_is(answers: list[str], yes_no: bool) -> None:
    question: Any = SimpleNamespace(answers=answers)
    assert table4_answers.is_yes_no(question) == yes_no


def test_guessers_are_compared_on_complete_guessdev_questions_and_on_every_word_of_xqb(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    monkeypatch.setattr(guesser_items.paired, "differences", lambda *given: asked.append(given) or [])
    assert not list(guesser_items.in_pairs(Path(), Path()))
    assert [given[2:] for given in asked] == [(("guessdev",), True), (("xqb-es", "xqb-pl"), False)]


@pytest.mark.parametrize(("rounding", "shown"), [(-1e-12, (True, False)), (1e-12, (True, False)), (1e-3, (True, True))])
def test_half_the_reciprocal_rank_is_costly_and_tells_nothing(rounding: float, shown: tuple[bool, bool]) -> None:
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


def test_the_power_of_claims_is_for_the_difference_that_the_page_names() -> None:
    """experiments/ledger/error-rates.tsv was measured with these."""
    planted = {row.metric for row in ledger_of("error-rates").rows if row.metric.startswith("found")}
    assert planted == {f"found: a {shape} of {claims.DIFFERENCE}" for shape in ("hill", "spike")}
