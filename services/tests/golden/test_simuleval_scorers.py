"""The `simuleval` command gives exactly the expected wins that `sqa run` gives for its log."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from stand_ins.simuleval_command import SCORERS, printed, simuleval, table, write_lines

import sqa
from sqa.core import ROOT
from sqa.data.datasets import load_questions
from sqa.files import json_lines
from sqa.metrics.latency_log import LogOptions
from sqa.questions import measures
from sqa.questions.ask import ask
from sqa.questions.facts_log import judged_log
from sqa.questions.facts_log import table as facts_table
from sqa.questions.make import make, rule_maker
from sqa.questions.rules import Rules
from sqa.questions.texts import of_log
from sqa_services.simuleval.answered import ASKED

pytestmark = [pytest.mark.slow, pytest.mark.needs("simul")]
SET = "{name: mini-es, limit: 5}"
EXAMPLE = ROOT / "docs" / "example" / "instances.log"


@pytest.fixture
def user_dir() -> str:
    command = (sys.executable, "-m", "sqa", "scorer", "simuleval")
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def scoring(user_dir: str, questions: str) -> tuple[str, ...]:
    return ("--user-dir", user_dir, "--latency-metrics", "AL", *SCORERS, "--sqa-questions", questions)


@pytest.fixture
def old(tmp_path: Path) -> tuple[object, ...]:
    """Return options of `simuleval` that score the log in docs/example."""
    shutil.copy(EXAMPLE, tmp_path / "instances.log")
    (tmp_path / "config.yaml").write_text("source_type: text\ntarget_type: text\n", encoding="utf-8")
    return ("--output", tmp_path, "--score-only")


def expected(log: Path, runs: Path) -> dict[str, float]:
    """Return the scores of `sqa run` on a log, rounded as in SimulEval."""
    parts = {"translator": {"name": "recorded", "file": str(log)}, "guesser": "bm25", "buzzer": {"name": "mlp"}}
    run = sqa.run({"name": "ours", "dataset": {"name": "mini-es", "limit": 5}, **parts}, runs=runs, progress=False)
    return {name: round(float(run.metrics[metric]), 3) for name, metric in SCORERS.items()}


def test_scores_of_an_agent_equal_a_run(tmp_path: Path, user_dir: str) -> None:
    questions, out = load_questions("mini-es", 5), tmp_path / "out"
    text = write_lines(tmp_path / "text", [" ".join(words) for question in questions for words in question.sentences])
    agent = ROOT / "services" / "sqa_services" / "simuleval" / "translator_agent.py"
    spec = json.dumps({"name": "waitk", "model": "es-en", "k": 3})
    command = ("--agent", agent, "--translator", spec, "--source", text, "--target", text, "--output", out)
    simuleval(*command, *scoring(user_dir, SET))
    [row] = table(out / "scores.tsv")
    values = expected(out / "instances.log", tmp_path / "runs")
    assert {name: row[name] for name in SCORERS} == values
    stats = sqa.load(tmp_path / "runs" / "ours").read.stats
    for name, metric in SCORERS.items():  # statistics per question: score and count 1
        scores = [round(float(row[0] / row[1]), 3) for row in stats[metric]]
        each = [score for question, score in zip(questions, scores, strict=True) for _ in question.sentences]
        assert [row[name] for row in table(out / "metrics.tsv")] == each


def test_scores_of_an_old_log_equal_a_run(tmp_path: Path, user_dir: str, old: tuple[object, ...]) -> None:
    scores = printed(simuleval(*old, *scoring(user_dir, SET)))
    assert {name: scores[name] for name in SCORERS} == expected(EXAMPLE, tmp_path / "runs")


def test_invalid_questions_give_a_one_line_error(user_dir: str, old: tuple[object, ...]) -> None:
    done = simuleval(*old, *scoring(user_dir, "{name: mini-es, limit: 2}"), check=False)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert last == "sqa: --sqa-questions: has 8 sentences, SimulEval has 20; set its `limit`"


def test_facts_need_no_questions(user_dir: str, old: tuple[object, ...]) -> None:
    """The fact scores equal those of `sqa latency LOG --facts` on the same log."""
    names = {"facts": "SQA_FACTS", "facts@invented": "SQA_FACTS_INVENTED", "facts-lag": "SQA_FACTS_LAG"}
    names["facts@timed"] = "SQA_FACTS_TIMED"
    scorers = ("--user-dir", user_dir, "--latency-metrics", *names.values(), "--sqa-pair", "es-en")
    scores = printed(simuleval(*old, *scorers))
    rows = {row[0]: round(float(row[1]), 3) for row in facts_table(judged_log(str(EXAMPLE), "es-en"), 10)}
    assert {name: scores[shown] for name, shown in names.items()} == {name: rows[name] for name in names}


def test_answered_questions_equal_sqa_ask(tmp_path: Path, user_dir: str, old: tuple[object, ...]) -> None:
    rows = list(json_lines(EXAMPLE))
    references, sources = ([row[side].strip() for row in rows] for side in ("reference", "source"))
    questions = make(rule_maker("es-en", references), references, sources, "es-en", 3)
    questions.write(tmp_path / "asked.jsonl")
    scorers = ("--user-dir", user_dir, "--latency-metrics", *ASKED, "--sqa-asked", tmp_path / "asked.jsonl")
    scores = printed(simuleval(*old, *scorers))
    frame = measures.frame([ask(of_log(str(EXAMPLE), LogOptions()), questions, Rules("en"))], questions, "rules", 10)
    expected_values = {name: round(frame.one(measure, kind="all").value, 3) for name, measure in ASKED.items()}
    assert {name: scores[name] for name in ASKED} == expected_values
    assert 0.5 < scores["SQA_ANSWERED"] < 1
