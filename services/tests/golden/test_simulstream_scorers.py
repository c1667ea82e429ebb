"""The command `scorer simulstream` gives exactly the expected wins that `sqa run` gives for the same log.

The tests need simulstream and mweralign in this environment, or in another environment whose Python is named by
SQA_SIMULSTREAM_PYTHON. That environment also needs the packages of the light core.
"""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from needs import reason
from stand_ins.simuleval_command import SCORERS

import sqa
from smt.engines.speech_logs import read as recordings
from sqa.core import ROOT
from sqa.metrics.latency_log import LogOptions
from sqa.questions import measures
from sqa.questions.ask import ask
from sqa.questions.make import make, rule_maker
from sqa.questions.rules import Rules
from sqa.questions.texts import translated

PYTHON = os.environ.get("SQA_SIMULSTREAM_PYTHON") or (find_spec("simulstream") and sys.executable)
needs_simulstream = pytest.mark.skipif(not PYTHON, reason=reason("SQA_SIMULSTREAM_PYTHON"))
QUESTIONS = ROOT / "docs" / "example" / "heard.jsonl"
REVISED = ROOT / "docs" / "example" / "simulstream.jsonl"
APPENDED = ROOT / "tests" / "golden" / "vectors" / "speech" / "simulstream.append.jsonl"
BUZZER = {"name": "threshold", "threshold": 0.17}  # answers within these short questions
COMMAND = "import sqa_services.parts; from sqa.cli import main; main()"  # works without installing SQA


def simulstream(folder: Path, log: Path, scorer: str, *more: str) -> subprocess.CompletedProcess[str]:
    (folder / "eval.yaml").write_text("detokenizer_type: simuleval\nlatency_unit: spm\n", encoding="utf-8")
    words = ("scorer", "simulstream", "--scorer", scorer, "--log-file", log, "--eval-config", folder / "eval.yaml")
    asked = [str(word) for word in (PYTHON, "-c", COMMAND, *words, "--audio-definition", "none", *more)]
    paths = {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "services")])}
    return subprocess.run(asked, capture_output=True, text=True, env={**os.environ, **paths})


@needs_simulstream
@pytest.mark.slow
@pytest.mark.parametrize("log", [APPENDED, REVISED])
def test_scores_of_a_log_equal_a_run(log: Path, tmp_path: Path) -> None:
    parts = {
        "translator": {"name": "recorded", "file": str(log), "pieces": "sentencepiece"},
        "guesser": "bm25",
        "buzzer": BUZZER,
    }
    config = {"name": "ours", "dataset": {"name": str(QUESTIONS)}, **parts}
    ours = sqa.run(config, runs=tmp_path / "runs", progress=False).metrics
    for scorer, metric in SCORERS.items():
        options = ("--sqa-questions", str(QUESTIONS), "--sqa-buzzer", json.dumps(BUZZER))
        done = simulstream(tmp_path, log, scorer, *options)
        assert done.returncode == 0, done.stderr[-3000:]
        printed = re.findall(
            r"LatencyScores\(ideal_latency=([\d.e-]+), computational_aware_latency=None\)", done.stdout
        )
        assert [float(value) for value in printed] == [ours[metric]] and ours[metric] > 0


@pytest.fixture
def spoken(tmp_path: Path) -> tuple[str, ...]:
    """Return options of `scorer simulstream` for recordings of one segment each, with their human translations."""
    questions = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    ends = [(question["id"] + ".wav", question["word_times"][-1]) for question in questions]
    segments = "".join(f"- {{wav: {name}, offset: 0.0, duration: {end + 1}}}\n" for name, end in ends)
    texts = {
        "audio.yaml": segments,
        "reference": "".join(" ".join(question["reference"]) + "\n" for question in questions),
        "sources": "".join(question["source"] + "\n" for question in questions),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return ("--audio-definition", str(tmp_path / "audio.yaml"), "--reference", str(tmp_path / "reference"))


@needs_simulstream
@pytest.mark.slow
def test_facts_need_only_references(spoken: tuple[str, ...], tmp_path: Path) -> None:
    translator = {"name": "recorded", "file": str(APPENDED), "pieces": "sentencepiece"}
    config = {"dataset": {"name": str(QUESTIONS)}, "translator": translator}
    expected = sqa.run({"name": "facts", **config, "metrics": ["facts"]}, runs=tmp_path / "runs", progress=False)
    done = simulstream(tmp_path, APPENDED, "SQA_FACTS", *spoken, "--sqa-pair", "es-en")
    [printed] = re.findall(r"ideal_latency=([\d.e-]+)", done.stdout)
    assert 0 < float(printed) == float(expected.metrics["facts"])
    lag = ("SQA_FACTS_LAG", *spoken, "--sqa-pair", "es-en")
    done = simulstream(tmp_path, APPENDED, *lag, "--sqa-sources", str(tmp_path / "sources"))
    [printed] = re.findall(r"ideal_latency=([\d.e-]+)", done.stdout)
    assert 0 < float(printed) < 10  # seconds
    done = simulstream(tmp_path, APPENDED, *lag)
    assert done.returncode and done.stderr.splitlines()[-1].startswith("sqa: facts-lag: needs --sqa-sources")


@needs_simulstream
@pytest.mark.needs("omnisteval")
@pytest.mark.slow
def test_answered_questions_equal_sqa_ask(spoken: tuple[str, ...], tmp_path: Path) -> None:
    references = (tmp_path / "reference").read_text("utf-8").splitlines()
    questions = make(rule_maker("es-en", references), references, [], "es-en", 0)
    questions.write(tmp_path / "asked.jsonl")
    texts = LogOptions(references=tmp_path / "reference", segments=tmp_path / "audio.yaml")
    system = translated(str(APPENDED), texts, lambda path: recordings(path, "sentencepiece"))
    frame = measures.frame([ask(system, questions, Rules("en"))], questions, "rules", 10)
    done = simulstream(tmp_path, APPENDED, "SQA_ANSWERED", *spoken, "--sqa-asked", str(tmp_path / "asked.jsonl"))
    [printed] = re.findall(r"ideal_latency=([\d.e-]+)", done.stdout)
    assert 0 < float(printed) == frame.one("answered", kind="all").value


def test_missing_simulstream_error_names_the_package(tmp_path: Path) -> None:
    missing = "raise ModuleNotFoundError(\"No module named 'simulstream'\", name='simulstream')\n"
    (tmp_path / "simulstream.py").write_text(missing, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    command = [sys.executable, "-c", COMMAND, "scorer", "simulstream"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})
    assert (
        done.returncode and done.stderr == "sqa: this needs the Python package simulstream: pip install 'simulstream'\n"
    )
