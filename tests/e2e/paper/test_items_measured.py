"""Items measured on a few bundled questions; all numbers are compared with the recorded output.

The small Transformer is labelled "language model", and two data sets replace XQB, so that the primary claims are
tested.
"""

from dataclasses import replace

import pytest
from refusals import refused
from small_ablation import BUZZER, write_small_ablation
from small_ablation import changed as with_keys

from experiments.grid import AblationConfig
from experiments.outputs import Outputs
from experiments.paper import figure3
from experiments.results_book import pages
from experiments.results_book.item import finished_grid, measure_grid, values_of
from experiments.studies import delay_or_text
from sqa.core import DataError, bootstrap
from sqa.metrics import build
from sqa.pipeline import load
from sqa.results import Frame

LIMIT, KS = 4, (1, 3, 6, "full")
TRANSLATORS = [
    {"label": "language model", "language": language, "translator": {"name": "waitk", "model": f"{language}-en"}}
    for language in ("es", "pl")
]
CONTESTANTS = [{"guesser": {"name": name}, "buzzer": BUZZER} for name in ("rerank", "bm25")]


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    """Write the config of a small ablation in both languages."""
    path = write_small_ablation(tmp_path_factory.mktemp("items"), KS, LIMIT)
    keys = {"datasets": ["mini-es", "mini-pl"], "fallback": ["mini-es", "mini-pl"], "contestants": CONTESTANTS}
    with_keys(path, translators=TRANSLATORS, **keys)
    return path


@pytest.fixture(scope="module")
def runs(config):
    """Return a folder in which the config's runs have finished."""
    finished_grid(config, config.parent / "runs")
    return config.parent / "runs"


@pytest.fixture
def record(tmp_path_factory):
    """Return a function that compares rows with the recorded rows."""
    outputs = Outputs(tmp_path_factory.mktemp("rows") / "items")

    def compare(name, rows):
        outputs.rows(f"{name}.csv", Frame(("cell",), [replace(row, cell=("|".join(row.cell),)) for row in rows]))

    return compare


@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("over-k", measure_grid),
        ("delay-or-text", delay_or_text.measure),
    ],
)
def test_items_of_the_grid_equal_recorded_rows(config, runs, record, name, measure):
    rows = list(measure(config, runs))
    assert rows
    record(name, rows)


def test_question_values_give_the_intervals_of_rows(config, runs, tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "LEDGERS", tmp_path)
    wanted = values_of(figure3.HEADLINE, lambda cell: cell.contestant == figure3.BEST)
    pages.write_values("over-k", wanted(config, runs))
    written = pages.values_path("over-k").read_bytes()
    tables = pages.read_values("over-k")
    rows = [row for row in measure_grid(config, runs) if row.key in tables]
    assert len(rows) == len(tables) == 2 * (len(KS) + 2) * len(figure3.HEADLINE)
    for row in rows:
        interval = bootstrap(tables[row.key], *build([row.metric]), load(config, AblationConfig).resamples)
        assert (interval.value, interval.low, interval.high) == pytest.approx((row.value, row.low, row.high))
    pages.write_values("over-k", tables)
    assert pages.values_path("over-k").read_bytes() == written
    refused(DataError, "gone: no statistics of questions", pages.read_values, "gone")
