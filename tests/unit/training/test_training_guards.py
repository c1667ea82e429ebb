"""Trainings are not mixed, stay in their folder, and neither go on nor are used once their numbers are not finite."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import yaml
from refusals import refused
from safetensors.numpy import load_file, save_file

from smt.models.bundle import load_model, save_model
from smt.train import main as train_main
from smt.training.config import TrainConfig
from smt.training.prepare import main as clean
from smt.training.sweep import main as sweep_main
from smt.training.train import train
from sqa.core.errors import ConfigError, DataError
from sqa.core.paths import ROOT
from sqa.run.config import to_mapping
from sqa.training.checkpoints import Checkpoints
from tests.smt_models import random_model, vocabulary
from tests.sweep_process import config


def test_checkpoints_of_another_config_are_refused_by_the_keys_that_differ(runs, capsys):
    train(config(), runs)
    folder = runs / "smt" / "tiny"
    weights = (folder / "model" / "model.safetensors").read_bytes()
    other = config(learning_rate=3e-3, clip=2.0)
    refused(ConfigError, r"tiny: trained with another train.clip, train.learning_rate; .*--fresh", train, other, runs)
    assert (folder / "model" / "model.safetensors").read_bytes() == weights and len(Checkpoints(folder).complete()) == 2
    train(config(threads=2), runs)  # does not matter
    train(other, runs, fresh=True)
    assert load_model(folder / "model")[2]["training"]["train"]["clip"] == 2.0
    (folder / "run.json").unlink()
    train(config(), runs)
    assert "no run.json says what its checkpoints were trained with" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["../../../evil", "/tmp/evil", "..", "new\nline"])
def test_no_name_leads_out_of_the_runs(tmp_path, name):
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump({**to_mapping(config()), "name": name}), encoding="utf-8")
    for command in (train_main, sweep_main, clean):
        refused(ConfigError, "name: must be a plain folder name", command, path, tmp_path / "runs")
    refused(ConfigError, "name: must be a plain folder name", train, replace(config(), name=name), tmp_path / "runs")
    refused(ConfigError, "data: must be a plain folder name", replace, config(), data=name)
    assert not (tmp_path / "runs").exists()


HOLDER = """
import sys
from pathlib import Path
from sqa.files.atomic import claimed
with claimed(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_training_is_refused_by_the_name_of_the_first_and_a_killed_one_holds_nothing(runs):
    folder = runs / "smt" / "tiny"
    command = [sys.executable, "-c", HOLDER, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=environment, **pipes) as first:
        assert first.stdout is not None and first.stdout.readline() == "held\n"
        for fresh in (False, True):
            refused(ConfigError, rf"tiny: process {first.pid} on \S+ is working in it", train, config(), runs, fresh)
        first.kill()
    assert train(config(), runs) == folder / "model"


# ------------------------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("clip", {"clip": 0.0}),
        ("label_smoothing", {"label_smoothing": 1.0}),
        ("alignment_weight", {"alignment_weight": float("inf")}),
        ("emission_rate", {"emission_rate": 1.2}),
        ("k_weights", {"k": (2, 3), "k_weights": (0.0, 0.0)}),
    ],
)
def test_settings_that_no_training_can_use_are_refused(key, wrong):
    refused(ConfigError, rf"{key}: must be", TrainConfig, **wrong)


def test_a_translator_with_numbers_that_are_not_finite_is_refused(tmp_path):
    folder = save_model(random_model(), vocabulary(), tmp_path / "model", {})
    tensors = load_file(folder / "model.safetensors")
    name = next(key for key, array in tensors.items() if array.dtype.kind == "f")
    tensors[name] = np.full_like(tensors[name], np.nan)
    save_file(tensors, folder / "model.safetensors")
    refused(DataError, "holds numbers that are not finite", load_model, folder)
