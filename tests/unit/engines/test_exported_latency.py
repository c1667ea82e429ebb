"""Latencies of a run and of its exported log are equal if their labels are equal."""

from pathlib import Path
from typing import Any

import pytest
from tables import tables_of

from sqa.files import Store
from sqa.metrics import build
from sqa.metrics.latency import FORMULAS, SIMULEVAL_1_1
from sqa.metrics.latency_log import LogOptions, score
from sqa.pipeline import run, run_from_mapping, save
from sqa.pipeline.export import write_instances

TABLES = tables_of(__file__)

NAMES = [name for name in SIMULEVAL_1_1.formulas if FORMULAS[name].of_runs]
RUNS: list[tuple[str, dict[str, Any]]] = TABLES["runs"]


@pytest.mark.parametrize("unit", ["sentence", "question"])
@pytest.mark.parametrize(("dataset", "translator"), RUNS)
def test_equal_labels_have_equal_values(dataset: str, translator: dict[str, Any], unit: Any, tmp_path: Path) -> None:
    """A label states the formula, the convention, the unit of a sequence, and the length |y*|."""
    variant = "" if unit == "sentence" else "@question"
    mapping = {"name": "x", "dataset": {"name": dataset, "limit": 3}, "translator": translator}
    config = run_from_mapping(mapping | {"metrics": [f"{name}{variant}" for name in NAMES]})
    result = run(config, Store(tmp_path), progress=False)
    rows = [line.split("\t") for line in (save(result, tmp_path) / "report.tsv").read_text().splitlines()[1:]]
    of_run = {}
    for metric in build(config.metrics):
        value = next(row[1] for row in rows if row[0] == metric.name)
        parts = dict(part.split(":") for part in metric.signature().split("|")[1:])
        assert parts["conv"] == SIMULEVAL_1_1.name and parts["mean"] == unit
        of_run[metric.name.removesuffix(variant), parts["ref"]] = float(value)
    log = str(write_instances(result.traces, tmp_path / "log", unit))
    equal = set()
    for use_reference in (True, False):
        scored = score(log, LogOptions(use_reference=use_reference))
        for name in NAMES:
            label = FORMULAS[name].label
            key = name, scored.references[label]
            if key in of_run:
                assert scored.means()[label][0] == pytest.approx(of_run[key], abs=1e-6), key
                equal.add(name)
    assert equal == set(NAMES) - {"laal"}  # a run's LAAL divides the question's reference length among its sentences
