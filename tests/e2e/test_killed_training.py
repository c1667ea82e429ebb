"""A training run killed with SIGKILL at any moment resumes with the losses and weights of an uninterrupted run."""

import signal
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
