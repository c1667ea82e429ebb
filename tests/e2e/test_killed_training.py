"""A training run killed with SIGKILL at any moment resumes with the losses and weights of an uninterrupted run."""

import signal
import time
from pathlib import Path

import pytest
from outcome import PROCESSES

from smt.models.bundle import folder_fingerprint
from smt.training.sweep import finished, table
from smt.training.transformer_training import train_in
from tests.sweep_process import config, prepared, swept

STEPS = 16


def start(runs, ks, seeds, killed_in=None):
    """Start the sweep in a separate process."""
    process = PROCESSES.Process(target=swept, args=(runs, ks, seeds, STEPS, killed_in))
    process.start()
    return process


def ended(process):
    """Wait for the end of a process, and return its exit code."""
    process.join(300)
    return process.exitcode


def steps(folder: Path) -> list[list[str]]:
    """Return step, loss, number of pieces and learning rate of every logged step, without times."""
    file = folder / "steps.tsv"
    return [line.split("\t")[:4] for line in file.read_text().splitlines()[1:]] if file.exists() else []


def wait_for_steps(folder, process):
    """Wait until a step of the training run in `folder` is logged."""
    while not steps(folder):
        assert process.is_alive()
        time.sleep(0.01)


@pytest.mark.slow
def test_killed_training_gives_equal_losses_and_weights(tmp_path):
    data = prepared(tmp_path)
    whole = tmp_path / "whole"
    train_in(whole, config(STEPS, k=(2,)), data)
    folder = tmp_path / "smt" / "tiny" / "k2-seed0"
    for step in (2, 8):
        assert ended(start(tmp_path, "k=2", 1, killed_in=step)) == -signal.SIGKILL
        assert not (folder / "done.json").exists()
    assert ended(start(tmp_path, "k=2", 1)) == 0
    assert table(finished(folder.parent))[0][:3] == ("separate", "2", "1")
    assert len(steps(folder)) == STEPS and steps(folder) == steps(whole)
    weights = [(path / "model" / "model.safetensors").read_bytes() for path in (folder, whole)]
    assert weights[0] == weights[1] and folder_fingerprint(folder / "model")


@pytest.mark.slow
def test_sweep_finishes_if_one_process_is_killed(tmp_path):
    prepared(tmp_path)
    folder = tmp_path / "smt" / "tiny"
    first = start(tmp_path, "k=2,full", 2)
    wait_for_steps(folder / "k2-seed0", first)
    second = start(tmp_path, "k=2,full", 2)
    wait_for_steps(folder / "kfull-seed0", second)
    first.kill()
    assert ended(first) in (-signal.SIGKILL, 0) and ended(second) == 0  # a slow machine may kill too late
    assert [row[:3] for row in table(finished(folder))] == [("separate", "2", "2"), ("separate", "full", "2")]
    assert [(run.k, run.seed) for run in finished(folder)] == [(2, 0), (2, 1), ("full", 0), ("full", 1)]
    for run in finished(folder):
        assert [row[0] for row in steps(run.model.parent)] == [str(i + 1) for i in range(STEPS)]
