"""A setting that changes a value changes its signature: guesser, buzzer, questions and parameters of the metric."""

import pytest
from tables import tables_of

from sqa.files import Store
from sqa.pipeline import Parts, engine, paired, run_from_mapping, saving
from sqa.pipeline import folder as folders

TABLES = tables_of(__file__)

METRICS = ["ew", "ew@answer-at-end", "oracle-ew", "stable-ew", "accuracy", "accuracy@10", "mrr", "bleu", "al"]
BASE = TABLES["base"]
CHANGES = TABLES["changes"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    root, parts = tmp_path_factory.mktemp("runs"), Parts()

    def run(name: str, change: dict) -> folders.RunFolder:
        config = run_from_mapping({**BASE, **change, "name": name})
        made = engine.run(config, Store(root), parts=parts, progress=False)
        return folders.read(saving.save(made, root))

    return run


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_no_setting_changes_a_value_alone(run, change):
    before, after = run("base", {}).report, run("changed", change).report
    changed = [name for name in METRICS if before[name].value != after[name].value]
    alone = [name for name in changed if before[name].signature == after[name].signature]
    assert not alone


def test_some_settings_change_values(run):
    """Without such settings the test above would compare nothing."""
    values = {name: run("base", {}).report[name].value for name in ("ew", "oracle-ew", "accuracy", "mrr", "al")}
    moved = [run(f"moved{i}", change).report for i, change in enumerate(CHANGES)]
    assert all(any(report[name].value != value for report in moved) for name, value in values.items())


def test_other_translator_keeps_all_signatures(run):
    before, after = run("base", {}).report, run("late", {"translator": {"name": "fixed", "text": "reference"}}).report
    assert before["ew"].value != after["ew"].value
    assert {name: before[name].signature for name in METRICS} == {name: after[name].signature for name in METRICS}


def test_signature_names_only_what_a_metric_depends_on(run):
    rows = run("base", {}).report
    named = {
        name: [part for part in ("guesser", "buzzer", "questions") if f"|{part}:" in rows[name].signature]
        for name in METRICS
    }
    assert named["ew"] == ["guesser", "buzzer", "questions"] and named["mrr"] == ["guesser", "questions"]
    assert named["bleu"] == named["al"] == ["questions"]


def test_comparison_names_both_guessers(run):
    rows, notes = paired.compare(run("base", {}), run("tfidf", {"guesser": {"name": "tfidf"}}))
    signatures = {row.metric: row.signature for row in rows}
    assert notes == [] and " and tfidf-" in signatures["ew"] and " and " not in signatures["bleu"]


def test_report_says_how_many_questions_are_answered(run):
    rows = run("base", {}).report
    assert 0 < rows["answered-questions"].value <= rows["answered-questions"].n == 4
    silent = run("silent", {"buzzer": {"name": "mlp", "threshold": 1.0}}).report["answered-questions"]
    assert silent.value == 0 and "is below its threshold" in silent.signature
