"""Defaults of configs equal the reference file, because changes affect users' results. `SQA_RECORD=1` updates it."""

from pathlib import Path

import config_defaults


def test_defaults_are_as_recorded():
    path = Path(__file__).with_name("vectors") / "config_defaults.json"
    config_defaults.check(path, "sqa", "smt", "guessers", "buzzers", "experiments")
