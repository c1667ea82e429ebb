"""Default values of the services' configs, compared as in tests/golden/test_config_defaults.py."""

from pathlib import Path

import config_defaults


def test_defaults_are_as_recorded():
    config_defaults.check(Path(__file__).with_name("vectors") / "config_defaults.json", "sqa_services")
