"""Every extra of the project can be installed, alone and all together."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
FOR_TESTS = {"all", "browser", "ci", "test"}


def test_all_names_every_extra_of_the_program() -> None:
    [everything] = EXTRAS["all"]
    assert set(everything.removeprefix("sqa[").removesuffix("]").split(",")) == set(EXTRAS) - FOR_TESTS


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("SQA_PIP_DRY_RUN") != "1", reason="asks a package index: set SQA_PIP_DRY_RUN=1")
@pytest.mark.parametrize("extra", sorted(EXTRAS))
def test_extra_resolves(extra: str) -> None:
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet", f"{ROOT}[{extra}]"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert found.returncode == 0, found.stderr[-3000:]
