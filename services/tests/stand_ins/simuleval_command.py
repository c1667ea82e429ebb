"""Run the `simuleval` command (PyPI 1.1.4), read its tables, and name our scorers in it."""

import csv
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from stand_ins.processes import ENVIRONMENT

from sqa.core import ROOT

# name of our metric in other programs -> name in a run
SCORERS = {"SQA_EW": "ew", "SQA_ORACLE_EW": "oracle-ew", "SQA_STABLE_EW": "stable-ew", "SQA_ACCURACY": "accuracy"}


def simuleval(*arguments: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run `simuleval` and return the finished process; fail on a nonzero exit status if `check` is set."""
    command = [sys.executable, "-W", "ignore", "-m", "simuleval.cli", "--no-progress-bar", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0 or not check, done.stderr[-2000:]
    return done


def printed(done: subprocess.CompletedProcess[str]) -> dict[str, float]:
    """Return the scores that `simuleval --score-only` printed, which are rounded to three decimals."""
    names, values = (line.split() for line in done.stdout.strip().splitlines()[-2:])
    return dict(zip(names, map(float, values[-len(names) :]), strict=True))


def table(path: Path) -> list[dict[str, float]]:
    """Return the rows of scores.tsv or metrics.tsv."""
    rows = csv.DictReader(path.read_text(encoding="utf-8").splitlines(), delimiter="\t")
    return [{name: float(value) for name, value in row.items() if value and name} for row in rows]


def write_lines(path: Path, lines: Iterable[str]) -> Path:
    """Write lines to a file for --source or --target and return its path."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path
