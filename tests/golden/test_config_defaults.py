"""Recorded config defaults, which are part of every number of a config without the key. `SQA_RECORD=1` records them."""

from pathlib import Path

import config_defaults


def test_defaults_are_as_recorded():
    path = Path(__file__).with_name("vectors") / "config_defaults.json"
    config_defaults.check(path, "sqa", "smt", "guessers", "buzzers", "experiments")
