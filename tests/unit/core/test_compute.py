"""Thread counts that the program sets itself, and bars that move."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sqa.core import compute, progress
from sqa.core.compute import OURS, VARIABLES, set_for, usable
from sqa.core.paths import ROOT
from sqa.core.registry import BUZZERS, GUESSERS, QUALITY, TRANSLATORS


def test_small_models_get_one_thread_and_large_ones_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(compute, "usable", lambda: 6)
    environment: dict[str, str] = {}
    assert set_for(["waitk", "bm25", "mlp"], environment) == 1
    assert {environment[variable] for variable in VARIABLES} == {"1"}
    for large in ("causal-lm", "bert", "comet", "mine.py:build"):
        assert set_for(["waitk", large], environment) == 6  # what was set here may be set anew
    assert environment["OMP_NUM_THREADS"] == "6"


def test_whoever_sets_them_has_decided() -> None:
    environment = {"OMP_NUM_THREADS": "3"}
    assert set_for(["waitk"], environment) is None and environment == {"OMP_NUM_THREADS": "3"}
    environment = {"OPENBLAS_NUM_THREADS": "5"}
    set_for(["waitk"], environment)
    assert environment["OPENBLAS_NUM_THREADS"] == "5" and environment["OMP_NUM_THREADS"] == environment[OURS] == "1"


def test_large_parts_are_parts_that_exist() -> None:
    registered = {*TRANSLATORS.names(), *GUESSERS.names(), *BUZZERS.names(), *QUALITY.names()}
    assert registered >= compute.LARGE


def test_a_share_of_the_processors_counts(tmp_path: Path) -> None:
    quota = tmp_path / "cpu.max"
    quota.write_text("100000 100000\n")
    assert usable(quota) == 1
    quota.write_text("max 100000\n")
    assert usable(quota) == usable(tmp_path / "none") >= 1


def test_a_run_sets_them_before_torch_is_loaded(tmp_path: Path) -> None:
    code = (
        "import os, sys; sys.argv = ['sqa', 'run', 'mini_es_wait6_bm25', 'k=0']\n"
        "from sqa.cli import main\n"
        "assert 'numpy' not in sys.modules\n"
        "try: main()\n"
        "except SystemExit: import torch; print(os.environ['OMP_NUM_THREADS'], torch.get_num_threads())\n"
    )
    kept = {"PATH": "/usr/bin", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=kept, capture_output=True, text=True)
    assert done.stdout == "1 1\n", done.stderr


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal_moves_while_nothing_is_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    assert progress.BEAT <= 5
    monkeypatch.setattr(progress, "BEAT", 0.05)
    written = Terminal()
    monkeypatch.setattr(sys, "stderr", written)
    with progress.bar("translate", 3, 1) as bar:
        time.sleep(0.5)
        still = written.getvalue().count("1/3")
        bar.update()
    assert still >= 3 and "2/3" in written.getvalue()


def test_in_a_log_file_it_is_a_line_now_and_then_with_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    with progress.bar("ablation", 1000, unit="run") as bar:
        progress.report_to(lambda text: bar.set_postfix_str(text, refresh=False))
        progress.under_way("xqb-pl language model 3: translate 32/511")
        for _ in range(1000):
            bar.update()
    progress.report_to(None)
    lines = written.getvalue().splitlines()
    assert 1 <= len(lines) <= 2 and "\r" not in written.getvalue()
    assert lines[-1].startswith("ablation: 1000/1000 run") and lines[-1].endswith(
        "xqb-pl language model 3: translate 32/511"
    )
