"""Run `sqa` commands in tests."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from sqa import cli
from sqa.core import ROOT

PROCESSES = get_context("forkserver")  # processes that share the imports of one process
PROCESSES.set_forkserver_preload(["tests.sweep_process", "sqa.cli.runs", "sqa.pipeline.runner", "sqa.pipeline.saving"])


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


def silent(folder: Path, *words: str) -> None:
    """Run `sqa` in a folder and a session of its own, without output; for processes that tests kill."""
    os.setsid()
    os.chdir(folder)
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    sys.argv = ["sqa", *words]
    cli.main()
