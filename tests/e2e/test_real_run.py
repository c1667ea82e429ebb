"""Whole runs with the project's own components: on the bundled questions, and on real ones where there are any."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sqa.core.paths import ROOT
from sqa.files.store import Store
from sqa.run import saving
from sqa.run.config import RunConfig, load_run, run_from_mapping, with_limit
from sqa.run.pipeline import RunResult, run


def reference(dataset: str, reveal: str = "full") -> RunConfig:
    """The human translation, guessed by BM25 and answered by the MLP."""
    return run_from_mapping(
        {
            "name": f"{dataset}-{reveal}",
            "dataset": {"name": dataset},
            "translator": {"name": "fixed", "reveal": reveal},
            "guesser": {"name": "bm25"},
            "buzzer": {"name": "mlp", "model": "bm25"},
        }
    )


def mean(result: RunResult, metric: str) -> float:
    total, n = result.stats[metric].sum(axis=0)
    return float(total / n)


def test_the_bundled_questions_are_answered_from_their_human_translation(tmp_path: Path) -> None:
    result = run(reference("mini-es", "diagonal"), Store(tmp_path), progress=False)
    assert not result.refusals
    assert len(result.questions) >= 40
    assert mean(result, "accuracy") > 0.9
    assert 0 < mean(result, "ew") <= mean(result, "oracle-ew") < 1
    assert result.stats["bleu"].shape[0] == len(result.questions)
    for trace in result.traces[:5]:
        assert np.all(np.diff(trace.fraction) >= 0) and trace.fraction[-1] == 1


def test_the_shipped_example_runs_twice_to_the_same_bytes(tmp_path: Path) -> None:
    config = with_limit(load_run(ROOT / "configs" / "mini_es_wait6_bm25.yaml"), 4)
    seen = []
    for name in ("first", "second"):
        folder = saving.save(run(config, Store(tmp_path / name), progress=False), tmp_path / name)
        seen.append(
            {
                p.relative_to(tmp_path / name): p.read_bytes()
                for p in folder.parent.rglob("*")
                if p.is_file() and p.name != "times.json"
            }
        )
    assert seen[0] == seen[1]
    rows = {
        row.split("\t")[0]: row.split("\t") for row in seen[0][Path(config.name, "report.tsv")].decode().splitlines()
    }
    assert rows["empty-questions"][1] == "0"
    assert 0 < float(rows["dal"][1]) < 20


@pytest.mark.mirror
def test_real_questions_from_their_human_translation(tmp_path: Path) -> None:
    result = run(reference("xqb-es"), Store(tmp_path), progress=False)
    assert len(result.questions) == 147
    assert mean(result, "accuracy") >= 0.34 and mean(result, "accuracy@10") >= 0.49
