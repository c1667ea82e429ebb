"""A training run killed with SIGKILL at any moment resumes with the losses and weights of an uninterrupted run."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from smt.models.bundle import folder_fingerprint
from smt.training.sweep import finished
from smt.training.transformer_training import train_in
from sqa.core.paths import ROOT
from tests.sweep_process import config, prepared

STEPS = 16


def start(runs: Path, ks: str, seeds: int) -> subprocess.Popen:
    """Start the sweep in a separate process."""
    command = [sys.executable, "-m", "tests.sweep_process", str(runs), ks, str(seeds), str(STEPS)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def steps(folder: Path) -> list[list[str]]:
    """Return step, loss, number of pieces and learning rate of every logged step, without times."""
    file = folder / "steps.tsv"
    return [line.split("\t")[:4] for line in file.read_text().splitlines()[1:]] if file.exists() else []


def kill_after(process: subprocess.Popen, folder: Path, step: int) -> None:
    """Wait for `step` logged steps, and kill the process at a random moment of the next step."""
    deadline = time.monotonic() + 120
    while len(steps(folder)) < step and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.002)
    time.sleep(random.random() * 0.02)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL, "it ended before it could be killed"


@pytest.mark.slow
def test_killed_training_gives_equal_losses_and_weights(tmp_path):
    data = prepared(tmp_path)
    whole = tmp_path / "whole"
    one = config(STEPS, k=(2,))
    train_in(whole, one, data)
    folder = tmp_path / "smt" / "tiny" / "k2-seed0"
    for step in (2, 8):
        kill_after(start(tmp_path, "k=2", 1), folder, step)
        assert not (folder / "done.json").exists()
    last = start(tmp_path, "k=2", 1)
    printed = last.communicate(timeout=300)[0].decode()
    assert last.returncode == 0 and printed.startswith("separate\t2\t1\t")
    assert len(steps(folder)) == STEPS and steps(folder) == steps(whole)
    weights = [(path / "model" / "model.safetensors").read_bytes() for path in (folder, whole)]
    assert weights[0] == weights[1] and folder_fingerprint(folder / "model")


@pytest.mark.slow
def test_sweep_finishes_if_one_process_is_killed(tmp_path):
    prepared(tmp_path)
    folder = tmp_path / "smt" / "tiny"
    first = start(tmp_path, "k=2,full", 2)
    while not steps(folder / "k2-seed0"):
        time.sleep(0.01)
        assert first.poll() is None
    second = start(tmp_path, "k=2,full", 2)
    while not steps(folder / "kfull-seed0"):
        time.sleep(0.01)
        assert second.poll() is None
    first.kill()
    first.communicate()
    printed = second.communicate(timeout=300)[0].decode()
    assert second.returncode == 0
    assert [line.split("\t")[:3] for line in printed.splitlines()] == [
        ["separate", "2", "2"],
        ["separate", "full", "2"],
    ]
    assert [(run.k, run.seed) for run in finished(folder)] == [(2, 0), (2, 1), ("full", 0), ("full", 1)]
    for run in finished(folder):
        assert [row[0] for row in steps(run.model.parent)] == [str(i + 1) for i in range(STEPS)]
