"""Expected wins printed by the real `simuleval` command are those of `sqa run` on its log, to the last digit."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("simuleval", reason="needs the extra: pip install 'sqa[simul]'")

import sqa
from sqa.core.paths import ROOT
from sqa.data.datasets import load_questions

pytestmark = pytest.mark.slow
NAMES = {"SQA_EW": "ew", "SQA_ORACLE_EW": "oracle-ew", "SQA_STABLE_EW": "stable-ew", "SQA_ACCURACY": "accuracy"}
SET = "{name: mini-es, limit: 5}"


def simuleval(folder: Path, *arguments: object) -> str:
    """What the command prints."""
    user_dir = subprocess.run(
        [sys.executable, "-m", "sqa", "simuleval-dir"], capture_output=True, text=True, check=True
    )
    command = [sys.executable, "-W", "ignore", "-m", "simuleval.cli", "--no-progress-bar", "--output", folder]
    scorers = ["--user-dir", user_dir.stdout.strip(), "--latency-metrics", "AL", *NAMES, "--sqa-questions", SET]
    done = subprocess.run([str(each) for each in (*command, *scorers, *arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines(), delimiter="\t"))


def ours(log: Path, runs: Path) -> dict[str, float]:
    config = {
        "name": "ours",
        "dataset": {"name": "mini-es", "limit": 5},
        "translator": {"name": "recorded", "file": str(log)},
        "guesser": "bm25",
        "buzzer": {"name": "mlp"},
    }
    return sqa.run(config, runs=runs, progress=False).metrics


def test_while_it_evaluates_an_agent(tmp_path: Path) -> None:
    sentences = [" ".join(words) for question in load_questions("mini-es", 5) for words in question.sentences]
    for name in ("source", "target"):
        (tmp_path / name).write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
    agent = ("--agent", ROOT / "services" / "sqa_services" / "simuleval" / "translator_agent.py")
    spec = json.dumps({"name": "waitk", "model": "es-en", "k": 3})
    inputs = ("--source", tmp_path / "source", "--target", tmp_path / "target")
    simuleval(tmp_path / "out", *agent, "--translator", spec, *inputs)
    [row] = table(tmp_path / "out" / "scores.tsv")
    expected = ours(tmp_path / "out" / "instances.log", tmp_path / "runs")
    assert {name: float(row[name]) for name in NAMES} == {
        name: round(float(expected[metric]), 3) for name, metric in NAMES.items()
    }
    rows = table(tmp_path / "out" / "metrics.tsv")
    assert len(rows) == len(sentences) and {float(each["SQA_ACCURACY"]) for each in rows} <= {0.0, 1.0}


def test_an_old_log(tmp_path: Path) -> None:
    log = ROOT / "docs" / "example" / "instances.log"
    shutil.copy(log, tmp_path / "instances.log")
    (tmp_path / "config.yaml").write_text("source_type: text\ntarget_type: text\n", encoding="utf-8")
    header, row = simuleval(tmp_path, "--score-only").splitlines()[-2:]
    printed = dict(zip(header.split(), row.split()[-len(header.split()) :], strict=True))
    expected = ours(log, tmp_path / "runs")
    assert {name: float(printed[name]) for name in NAMES} == {
        name: round(float(expected[metric]), 3) for name, metric in NAMES.items()
    }
