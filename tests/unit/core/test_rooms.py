"""The four packages beside `sqa`: importable through it, never in the way of others."""

import subprocess
import sys
from pathlib import Path

import pytest

from sqa.core.paths import ROOT


@pytest.mark.parametrize(
    ("code", "other", "says"),
    [
        ("import sqa, smt; print(smt.HERE)", False, "1\n"),
        ("import smt", False, "No module named 'smt'"),
        ("import sqa, guessers", False, "No module named 'guessers'"),  # not in this package
        ("import sqa, smt; print(smt.HERE)", True, "1\n"),
        ("import smt, sqa", True, "another package called 'smt'"),
    ],
)
def test_they_are_there_once_sqa_is(tmp_path: Path, code: str, other: bool, says: str) -> None:
    """In a new interpreter with a folder like site-packages: `sqa`, another below it; `other`: a stranger's `smt`."""
    files = {"sqa": (ROOT / "sqa" / "__init__.py").read_text("utf-8"), "sqa/bundled/smt": "HERE = 1\n"}
    for name, text in (files | ({"smt": "HERE = 2\n"} if other else {})).items():
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "__init__.py").write_text(text, encoding="utf-8")
    program = f"import sys; sys.path[:] = [p for p in sys.path if 'python3' in p] + [{str(tmp_path)!r}]; {code}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert says in done.stdout + done.stderr


def test_a_module_runs_as_a_program() -> None:
    command = [sys.executable, "-m", "sqa.module", "json.tool", "--help"]
    assert "usage" in subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    done = subprocess.run(command[:3], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and "the name of a module is needed" in done.stderr
