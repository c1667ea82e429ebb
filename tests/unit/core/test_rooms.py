"""The four packages beside `sqa`: importable through it, never in the way of others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sqa.core.paths import ROOT


def fresh(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code in a new interpreter without site-packages, where nothing but `sqa` is on the path."""
    program = f"import sys; sys.path[:] = [p for p in sys.path if 'python3' in p] + [{str(folder)!r}]; {code}"
    return subprocess.run([sys.executable, "-I", "-S", "-c", program], cwd=folder, capture_output=True, text=True)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder like site-packages: `sqa`, the others below it."""
    (tmp_path / "sqa" / "bundled" / "smt").mkdir(parents=True)
    for name in ("__init__.py",):
        (tmp_path / "sqa" / name).write_text((ROOT / "sqa" / name).read_text("utf-8"), encoding="utf-8")
    (tmp_path / "sqa" / "bundled" / "smt" / "__init__.py").write_text("HERE = 1\n", encoding="utf-8")
    return tmp_path


def test_they_are_there_once_sqa_is(installed: Path) -> None:
    assert fresh("import sqa, smt; print(smt.HERE)", installed).stdout == "1\n"
    assert "No module named 'smt'" in fresh("import smt", installed).stderr
    assert "No module named 'guessers'" in fresh("import sqa, guessers", installed).stderr  # not in this package


def test_another_package_of_the_name_is_refused_by_name(installed: Path) -> None:
    (installed / "smt").mkdir()
    (installed / "smt" / "__init__.py").write_text("HERE = 2\n", encoding="utf-8")
    assert fresh("import sqa, smt; print(smt.HERE)", installed).stdout == "1\n"
    assert "another package called 'smt'" in fresh("import smt, sqa", installed).stderr


def test_a_module_runs_as_a_program(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sqa.module", "json.tool", "--help"]
    assert "usage" in subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    done = subprocess.run(command[:3], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "the name of a module is needed" in done.stderr
