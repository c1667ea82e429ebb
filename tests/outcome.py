"""Run `sqa` commands in tests."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqa.core.paths import ROOT


@dataclass(frozen=True, slots=True)
class Outcome:
    """Exit code, stdout and stderr of a command."""

    code: int
    out: str
    err: str

    @property
    def complaints(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("sqa: ")]


Command = Callable[..., Outcome]


def process(*words: str, cwd: Path, code: str = "", python: str = sys.executable, **environment: str) -> Outcome:
    """Run `sqa`, or the Python code `code`, in a separate process that can import the test doubles."""
    call = [python, *(("-c", code) if code else ("-m", "sqa")), *words]
    around = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])} | environment
    done = subprocess.run(call, cwd=cwd, env=around, capture_output=True, text=True, timeout=300)
    return Outcome(done.returncode, done.stdout, done.stderr)
