"""Whole runs with the project's own components: on the bundled questions, and on real ones where there are any."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from sqa.files.store import Store
from sqa.run.config import RunConfig, run_from_mapping
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


@pytest.mark.mirror
def test_real_questions_from_their_human_translation(tmp_path: Path) -> None:
    result = run(reference("xqb-es"), Store(tmp_path), progress=False)
    assert len(result.questions) == 147
    assert mean(result, "accuracy") >= 0.34 and mean(result, "accuracy@10") >= 0.49
