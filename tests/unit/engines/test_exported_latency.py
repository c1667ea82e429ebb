"""Latencies of a run and of its exported log are equal if their labels are equal."""

from pathlib import Path
from typing import Any

import pytest

from smt.engines.instances import write_instances
from sqa.files.store import Store
from sqa.metrics import build
from sqa.metrics.latency import FORMULAS, SIMULEVAL_1_1
from sqa.metrics.latency_log import LogOptions, main, score
from sqa.pipeline.config import run_from_mapping
from sqa.pipeline.engine import run
from sqa.pipeline.saving import save

NAMES = [name for name in SIMULEVAL_1_1.formulas if FORMULAS[name].of_runs]
RUNS: list[tuple[str, dict[str, Any]]] = [
    ("mini-es", {"name": "waitk", "model": "es-en", "k": 3}),
    ("mini-pl", {"name": "prefix", "model": "pl-en", "policy": "local-agreement"}),
    ("mini-es", {"name": "fixed", "text": "reference", "reveal": "diagonal"}),
]


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


@pytest.mark.parametrize(
    ("options", "sources"),
    [
        ({}, {"AL": "log", "LAAL": "log", "AP": "log", "DAL": "none", "StartOffset": "none", "RTF": "none"}),
        ({"use_reference": False}, {"AL": "none", "LAAL": "none"}),
        ({"references": "ref"}, {"LAAL": "file"}),
        ({"convention": "iwslt-2020-first"}, {"AL": "none"}),
        ({"convention": "simuleval-1.0"}, {"AL": "none"}),  # counting the end of text excludes the reference
        ({"convention": "simuleval-1.0", "source": "speech"}, {"AL": "log"}),
    ],
)
def test_table_names_the_references(
    options: dict[str, Any], sources: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.log").write_text('{"delays": [1, 2], "source_length": 2, "reference": "a b c"}\n')
    (tmp_path / "ref").write_text("a b\n")
    options = {key: tmp_path / "ref" if key == "references" else value for key, value in options.items()}
    main(str(tmp_path / "x.log"), LogOptions(**options), as_json=False)
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert rows[0][-1] == "reference" and sources.items() <= {row[0]: row[-1] for row in rows}.items()
