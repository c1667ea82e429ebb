"""Thread counts that fit the model, and groups of rows of similar length."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import tables_of

from sqa.core import BUZZERS, GUESSERS, QUALITY, ROOT, TRANSLATORS, buckets, part_names, process, set_for, usable
from sqa.core.process import KERNELS, VARIABLES

TABLES = tables_of(__file__)


def test_thread_count_fits_the_model_unless_user_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(process, "usable", lambda: 6)
    environment = {"OPENBLAS_NUM_THREADS": "5"}
    assert set_for(["waitk", "bm25", "mlp"], environment) == 1
    assert [environment[variable] for variable in VARIABLES] == ["1", "5", "1"]
    for large in ("causal-lm", "mine.py:build"):
        assert set_for(["waitk", large], environment) == 6  # a value set by the program itself may change
    assert environment["OMP_NUM_THREADS"] == "6" and environment["OPENBLAS_NUM_THREADS"] == "5"
    given = {"OMP_NUM_THREADS": "3", KERNELS: "9"}
    assert set_for(["waitk"], given) is None and given == {"OMP_NUM_THREADS": "3", KERNELS: "9"}
    assert environment[KERNELS] == "64"
    assert all(set(registry.sizes) <= set(registry.names()) for registry in (TRANSLATORS, GUESSERS, BUZZERS, QUALITY))


@pytest.mark.parametrize(("config", "names"), TABLES["parts_of_a_config_are_named"])
def test_parts_of_a_config_are_named(config: dict[str, object], names: list[str]) -> None:
    assert set(part_names(config)) == set(names)


def test_cpu_quota_limits_the_threads(tmp_path: Path) -> None:
    quota = tmp_path / "cpu.max"
    quota.write_text("100000 100000\n")
    assert usable(quota) == 1
    for unlimited in ("max 100000\n", "99900000000 100000\n"):
        quota.write_text(unlimited)
        assert usable(quota) == usable(tmp_path / "none") >= 1


def test_run_sets_threads_before_loading_numpy(tmp_path: Path) -> None:
    code = (
        f"import os, sys; sys.argv = ['sqa', 'run', '{ROOT}/docs/example/mine.yaml', 'limit=0']\n"
        "from sqa.cli import main\n"
        "assert 'numpy' not in sys.modules\n"
        "try: main()\n"
        "except SystemExit: print(os.environ['OMP_NUM_THREADS'])\n"
    )
    kept = {"PATH": "/usr/bin", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=kept, capture_output=True, text=True)
    assert done.stdout == "1\n", done.stderr


@given(st.lists(st.integers(1, 90), max_size=60), st.integers(1, 300))
def test_buckets_hold_each_row_once_at_requested_size(lengths: list[int], tokens: int) -> None:
    groups = list(buckets(lengths, tokens))
    assert sorted(i for group in groups for i in group) == list(range(len(lengths)))
    longest = [max(lengths[i] for i in group) for group in groups]
    for group, most in zip(groups, longest, strict=True):
        assert len(group) == max(1, tokens // most) or (group is groups[-1] and len(group) * most <= tokens)
