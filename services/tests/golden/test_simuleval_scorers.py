"""Expected wins printed by the real `simuleval` command are those of `sqa run` on its log, to the last digit."""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

pytest.importorskip("simuleval", reason="needs the extra: pip install 'sqa[simul]'")

import sqa
from sqa.core.paths import ROOT
from sqa.data.datasets import load_questions
from sqa.metrics.facts_log import FactOptions, judged_lines
from sqa.metrics.facts_log import table as facts_table

pytestmark = pytest.mark.slow
NAMES = {"SQA_EW": "ew", "SQA_ORACLE_EW": "oracle-ew", "SQA_STABLE_EW": "stable-ew", "SQA_ACCURACY": "accuracy"}
SET = "{name: mini-es, limit: 5}"
EXAMPLE = ROOT / "docs" / "example" / "instances.log"


@cache
def user_dir() -> str:
    asked = [sys.executable, "-m", "sqa", "simuleval-dir"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def simuleval(folder: Path, questions: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "ignore", "-m", "simuleval.cli", "--no-progress-bar", "--output", folder]
    scorers = ["--user-dir", user_dir(), "--latency-metrics", "AL", *NAMES, "--sqa-questions", questions]
    return subprocess.run([str(each) for each in (*command, *scorers, *arguments)], capture_output=True, text=True)


def old(folder: Path, questions: str) -> subprocess.CompletedProcess[str]:
    """The example's log, scored again."""
    shutil.copy(EXAMPLE, folder / "instances.log")
    (folder / "config.yaml").write_text("source_type: text\ntarget_type: text\n", encoding="utf-8")
    return simuleval(folder, questions, "--score-only")


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
    questions = load_questions("mini-es", 5)
    sentences = [" ".join(words) for question in questions for words in question.sentences]
    for name in ("source", "target"):
        (tmp_path / name).write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
    agent = ("--agent", ROOT / "services" / "sqa_services" / "simuleval" / "translator_agent.py")
    spec = json.dumps({"name": "waitk", "model": "es-en", "k": 3})
    inputs = ("--source", tmp_path / "source", "--target", tmp_path / "target")
    done = simuleval(tmp_path / "out", SET, *agent, "--translator", spec, *inputs)
    assert done.returncode == 0, done.stderr[-3000:]
    [row] = table(tmp_path / "out" / "scores.tsv")
    expected = ours(tmp_path / "out" / "instances.log", tmp_path / "runs")
    assert {name: float(row[name]) for name in NAMES} == {
        name: round(float(expected[metric]), 3) for name, metric in NAMES.items()
    }
    rows = table(tmp_path / "out" / "metrics.tsv")
    stats = sqa.load(tmp_path / "runs" / "ours").read.stats
    for name, metric in NAMES.items():  # stats of a question: its score and 1
        scores = [round(float(row[0] / row[1]), 3) for row in stats[metric]]
        each = [score for question, score in zip(questions, scores, strict=True) for _ in question.sentences]
        assert [float(row[name]) for row in rows] == each


def test_an_old_log(tmp_path: Path) -> None:
    header, row = old(tmp_path, SET).stdout.splitlines()[-2:]
    printed = dict(zip(header.split(), row.split()[-len(header.split()) :], strict=True))
    expected = ours(EXAMPLE, tmp_path / "runs")
    assert {name: float(printed[name]) for name in NAMES} == {
        name: round(float(expected[metric]), 3) for name, metric in NAMES.items()
    }


@pytest.mark.parametrize(
    ("questions", "said"),
    [
        ("mini-es", "ends after 20 of 180 sentences"),
        ("{name: mini-es, limit: 2}", "has 8 sentences, SimulEval 20; set its `limit`"),
        ("mini-se", "unknown question set 'mini-se', did you mean 'mini-es'"),
    ],
)
def test_other_questions_are_one_line(tmp_path: Path, questions: str, said: str) -> None:
    done = old(tmp_path, questions)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and last.startswith("sqa: ") and said in last and "Traceback" not in done.stderr


def test_facts_need_no_questions(tmp_path: Path) -> None:
    """Those of `sqa latency LOG --facts` on the same log; a sentence without a fact has no score."""
    shutil.copy(EXAMPLE, tmp_path / "instances.log")
    (tmp_path / "config.yaml").write_text("source_type: text\ntarget_type: text\n", encoding="utf-8")
    names = ("SQA_FACTS", "SQA_FACTS_INVENTED", "SQA_FACTS_LAG", "SQA_FACTS_TIMED")
    command = [sys.executable, "-W", "ignore", "-m", "simuleval.cli", "--no-progress-bar", "--output", str(tmp_path)]
    scorers = ["--user-dir", user_dir(), "--latency-metrics", *names, "--sqa-pair", "es-en", "--score-only"]
    done = subprocess.run([*command, *scorers], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    header, row = done.stdout.splitlines()[-2:]
    printed = dict(zip(header.split(), row.split()[-len(header.split()) :], strict=True))
    lines = judged_lines(str(EXAMPLE), FactOptions("es-en"))
    expected = {row[0]: round(float(row[1]), 3) for row in facts_table(lines, 10)}
    assert {name: float(printed[name]) for name in names} == {
        name: expected[name.removeprefix("SQA_").lower().replace("facts_lag", "facts-lag").replace("facts_", "facts@")]
        for name in names
    }
