"""Items measured on a few bundled questions; all numbers are compared with the recorded output.

The small Transformer is labelled "language model", and two data sets replace XQB, so that the primary claims are
tested.
"""

from dataclasses import replace
from itertools import islice

import pytest
from refusals import refused
from small_ablation import BUZZER, write_small_ablation
from small_ablation import changed as with_keys

from experiments.grid import AblationConfig
from experiments.lab import grid_rows, pages, values
from experiments.outputs import Outputs
from experiments.paper import claims, error_rates, figure3
from experiments.studies import buzzers, delay_or_text, facts, training, which_metric
from sqa.core.errors import DataError
from sqa.core.paths import ROOT
from sqa.core.significance import bootstrap
from sqa.data.datasets import load_questions
from sqa.metrics import build
from sqa.pipeline.config import load
from tests.e2e.paper.test_ablation_seeds import finish

LIMIT, KS = 8, (1, 3, 6, "full")
TRANSLATORS = [
    {"label": "language model", "language": language, "translator": {"name": "waitk", "model": f"{language}-en"}}
    for language in ("es", "pl")
]
CONTESTANTS = [{"guesser": {"name": name}, "buzzer": BUZZER} for name in ("rerank", "bm25")]


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """Write the config of a small ablation in both languages, and the configs of the items, in its folder."""
    path = write_small_ablation(tmp_path_factory.mktemp("items"), KS, LIMIT)
    keys = {"datasets": ["mini-es", "mini-pl"], "fallback": ["mini-es", "mini-pl"], "contestants": CONTESTANTS}
    with_keys(path, translators=TRANSLATORS, **keys)
    with_keys(ROOT / "configs" / "correlation.yaml", path.parent, resamples=50)
    gone = {"scores": {"file": "gone/{run}.txt", "name": "prism"}}
    with_keys(ROOT / "configs" / "figure9.yaml", path.parent, labels=["Prism"], quality=[gone])
    return path


@pytest.fixture(scope="module")
def runs(config):
    """Return a folder in which the config's runs have finished."""
    grid_rows.finished(config, config.parent / "runs")
    return config.parent / "runs"


@pytest.fixture
def record(tmp_path_factory):
    """Return a function that compares rows with the recorded rows."""
    outputs = Outputs(tmp_path_factory.mktemp("rows") / "items")

    def compare(name, rows):
        outputs.rows(f"{name}.csv", ("cell",), [replace(row, cell=("|".join(row.cell),)) for row in rows])

    return compare


@pytest.mark.parametrize(
    ("name", "measure", "config_of"),
    [
        ("over-k", grid_rows.measure, "ablation"),
        ("claims", claims.measure, "ablation"),
        ("delay-or-text", delay_or_text.measure, "ablation"),
        ("reading-or-buzzing", buzzers.contestants_compared, "ablation"),
        ("correlation", which_metric.agreement, "correlation"),
    ],
)
def test_items_of_the_grid_equal_recorded_rows(config, runs, record, name, measure, config_of):
    rows = list(measure(config.with_name(f"{config_of}.yaml"), runs))
    assert rows
    record(name, rows)


def test_error_rates_of_claims_equal_recorded_rows(config, runs, record, monkeypatch):
    monkeypatch.setattr(error_rates, "SETS", 20)
    monkeypatch.setattr(error_rates, "PLANTED", 10)
    record("error-rates", error_rates.measure(config, runs))


@pytest.mark.filterwarnings("ignore:Mean of empty slice:RuntimeWarning")  # resamples of few questions
def test_lost_questions_equal_recorded_rows(config, runs, record, monkeypatch):
    monkeypatch.setattr(which_metric, "LEAST", 1)
    monkeypatch.setattr(which_metric, "RESAMPLES", 40)
    rows = list(which_metric.measure(config.with_name("figure9.yaml"), runs))
    assert {row.cell[1] for row in rows} >= {which_metric.MEAN, "facts minus bleu"}
    record("lost-questions", rows)


def test_question_values_give_the_intervals_of_rows(config, runs, tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "LEDGERS", tmp_path)
    values.write("over-k", values.of_grid(figure3.HEADLINE, lambda cell: cell.contestant == figure3.BEST)(config, runs))
    written = values.path_of("over-k").read_bytes()
    tables = values.read("over-k")
    rows = [row for row in grid_rows.measure(config, runs) if row.key in tables]
    assert len(rows) == len(tables) == 2 * (len(KS) + 2) * len(figure3.HEADLINE)
    for row in rows:
        interval = bootstrap(tables[row.key], *build([row.metric]), load(config, AblationConfig).resamples)
        assert (interval.value, interval.low, interval.high) == pytest.approx((row.value, row.low, row.high))
    values.write("over-k", tables)
    assert values.path_of("over-k").read_bytes() == written
    refused(DataError, "gone: no statistics of questions", values.read, "gone")


def test_fact_items_equal_recorded_rows(record):
    questions = load_questions("mini-es", LIMIT)
    human = [question.reference_text.split() for question in questions]
    gold = next(path for path in facts.GOLD.glob("facts-*.tsv") if path.stem == "facts-mini")
    record("facts", [*facts.reading(gold), *facts.contrast(facts.HUMAN, questions, human)])


def test_development_scores_equal_recorded_rows(record, tmp_path):
    for seed, scores in enumerate(({"2": 1.0, "full": 3.5}, {"2": 2.0, "full": 3.0})):
        finish(tmp_path, f"multi-seed{seed}", "multi", seed, scores)
        finish(tmp_path, f"k2-seed{seed}", 2, seed, dict(islice(scores.items(), 1)))
    record("sweep-flores", training.development(tmp_path, tmp_path))
