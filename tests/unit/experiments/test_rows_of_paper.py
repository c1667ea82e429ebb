"""Rows of the paper's figures and tables, from results small enough to check by hand."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from experiments.ablation import report
from experiments.items import buzzers, claims
from experiments.items import guessers as guesser_items
from experiments.lab import grid_rows
from experiments.lab.ledger import Ledger, Row
from experiments.lab.pages import ledger_of
from experiments.paper import contestants_over_k, examples, table4, table4_answers
from experiments.stepwise import errors as stepwise
from experiments.stepwise.systems import RULES
from experiments.studies import guesser_report
from sqa.core.types import Question
from sqa.report import plots


def test_unknown_pages_are_named_where_the_guesser_says_them() -> None:
    def row(guesser: str, unknown: int | None) -> Any:
        cell = SimpleNamespace(dataset="d", guesser=guesser, translator="t", k=3)
        return SimpleNamespace(n=5, cell=cell, unknown_pages=unknown, empty_sentences=2)

    ledger = Ledger("over-k", "", "", "", {}, grid_rows.COLUMNS)
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


@pytest.mark.parametrize("bins", [4, 5])
def test_the_first_half_is_half_of_the_bins(bins: int) -> None:
    """Bins after the first half differ in the other direction: one more of them would change the difference."""
    half = bins // 2
    small, full = np.zeros((6, bins)), np.zeros((6, bins))
    small[:, :half], full[:, half:] = 1.0, 9.0
    results: Any = SimpleNamespace(labels={"g": "g"}, config=SimpleNamespace(resamples=20, seed=0))
    rows = list(contestants_over_k.of_lines(results, {("xqb", "g"): {3: small, "full": full}}))
    [early] = [row for row in rows if "in the first half" in str(row)]
    assert "1.0" in str(early) or early.value == 1.0


def test_figure_6_is_over_shares_of_the_source_with_bands_at_the_ends() -> None:
    """Bin b of n ends where 100 b / n percent have been read; of k = 3, 6 and full two have bands."""
    numbers = [
        Row(("xqb", "g", k, str(number)), "log MRR", -1.0, -2.0, 0.0, 9)
        for k in ("3", "6", "full")
        for number in (1, 4)
    ]
    config: Any = SimpleNamespace(questions="all", bins=4)
    [axes, *_] = contestants_over_k.over_source(numbers, config).axes
    assert {tuple(line.get_xdata()) for line in axes.lines} == {(25.0, 100.0)}
    assert (len(axes.lines), len(axes.collections)) == (3, 2)


def test_accuracy_of_guessers_is_over_percent_of_the_question() -> None:
    rows = [
        Row(("xqb", group, "bm25", share), metric, 0.5, 0.4, 0.6, 9)
        for group in (guesser_report.ALL, "history")
        for share in ("0.25", "1.0")
        for metric in ("acc@1", "mrr")
    ]
    [axes] = guesser_report.accuracy_over_question(rows, ["bm25"]).axes
    assert [tuple(line.get_xdata()) for line in axes.lines] == [(25.0, 100.0)]


def test_the_primary_claims_are_marked_in_the_forest(monkeypatch: pytest.MonkeyPatch) -> None:
    panels: dict[str, list[plots.Dot]] = {}
    monkeypatch.setattr(plots, "forest", lambda drawn, *_: panels.update(drawn))
    claims.forest(ledger_of("claims"))
    marked = {(*dot.row.cell[:2], kind) for kind, dots in panels.items() for dot in dots if dot.number}
    assert marked == {("both", "language model", "rise"), ("both", "language model", "fall")}


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
    assert [given[2:] for given in asked] == [(("guessdev",), True), (("xqb-es", "xqb-pl"), False)] * 2


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


def test_the_buzzers_that_are_compared_are_those_of_the_config(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(buzzers.grid_rows, "finished", lambda *given: asked.append(given) or [])
    assert list(buzzers.contestants_compared(Path("config"), Path("runs"))) == []
    assert asked == [(Path("config"), Path("runs"))]


def test_the_power_of_claims_is_for_the_difference_that_the_page_names() -> None:
    """experiments/ledger/error-rates.tsv was measured with these."""
    planted = {row.metric for row in ledger_of("error-rates").rows if row.metric.startswith("found")}
    assert planted == {f"found: a {shape} of {claims.DIFFERENCE}" for shape in ("hill", "spike")}
