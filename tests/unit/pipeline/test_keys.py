"""Constants and config keys that change the keys of stages. tests/conformance/test_keys.py covers the components."""

import json

import pytest
from small_runs import small_run
from tables import tables_of

from sqa.pipeline import STAGES, engine

TABLES = tables_of(__file__)


def keys(tmp_path, **changes):
    """Return a dict that maps each stage of a small run to its key."""
    return small_run(tmp_path, 3, **changes).keys


@pytest.mark.parametrize("constant", ["N_GUESSES", "VERSION", "BLOCK_SIZE"])
def test_stage_constants_are_in_their_keys(tmp_path, monkeypatch, constant):
    before = keys(tmp_path)
    monkeypatch.setattr(engine, constant, getattr(engine, constant) - 1)
    after = keys(tmp_path)
    assert all(before[stage] != after[stage] for stage in STAGES)


@pytest.mark.parametrize(("change", "stages"), TABLES["run_key_changes_the_stages_that_it_affects"])
def test_run_key_changes_the_stages_that_it_affects(tmp_path, change, stages):
    (tmp_path / "scores").write_text("1\n2\n3\n", encoding="utf-8")
    change = json.loads(json.dumps(change).replace("DIR", str(tmp_path)))
    before, after = keys(tmp_path), keys(tmp_path, **change)
    assert [stage for stage in STAGES if before[stage] != after[stage]] == stages


METRICS = TABLES["metrics"]


@pytest.mark.parametrize("kind", ["metrics", "quality"])
def test_two_metrics_in_one_file_share_no_results(tmp_path, kind):
    (tmp_path / "lengths.py").write_text(METRICS, encoding="utf-8")
    values = []
    for name in ("Words", "Twice", "Renamed"):
        target = f"{tmp_path}/lengths.py:{name}"
        change = {"metrics": [target]} if kind == "metrics" else {"quality": [{target: {}}]}
        result = small_run(tmp_path, 3, **change)
        [metric] = [metric for metric in result.metrics if metric.name in ("length", "renamed")]
        values.append(metric.score(result.stats[metric.name].sum(axis=0)))
    assert values[1] == 2 * values[0] and values[2] == values[0] > 0
