"""The core alone (no torch, numba, scipy) prints the same numbers, to the last digit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sqa.cli import app
from sqa.core.paths import ROOT

HEAVY = "torch numba scipy sentencepiece matplotlib transformers starlette uvicorn pandas pyarrow".split()
UNPACKS = "zstandard"  # what the phrase-based translator needs, too
WITHOUT = "import sys; sys.modules.update(dict.fromkeys({})); import sqa.cli; sqa.cli.main()"
CORE = WITHOUT.format([*HEAVY, UNPACKS])
CONFIG = """
dataset: {{name: mini-es, limit: 2}}
translator: {{name: recorded, file: {log}}}
guesser: {guesser}
buzzer: {{name: mlp, model: {buzzer}}}
"""


def full_report(config: Path, runs: Path) -> str:
    """What `sqa run` prints here, with every package."""
    done = CliRunner().invoke(app, ["run", str(config), "--runs", str(runs)])
    assert done.exit_code == 0, done.output
    return done.stdout


def report(code: str, config: Path, runs: Path, python: str = sys.executable, cwd: Path = ROOT) -> str:
    call = [python, "-c", code, "run", str(config), "--runs", str(runs)]
    done = subprocess.run(call, cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("guesser", "buzzer"), [("bm25", "bm25"), ("{name: tfidf}", "bm25"), ("{name: rerank}", "rerank")]
)
def test_a_log_to_expected_wins_without_the_heavy_packages(tmp_path: Path, guesser: str, buzzer: str) -> None:
    config = tmp_path / "mine.yaml"
    log = ROOT / "docs" / "example" / "instances.log"
    config.write_text(CONFIG.format(log=log, guesser=guesser, buzzer=buzzer), encoding="utf-8")
    full = full_report(config, tmp_path / "full")
    light = report(CORE, config, tmp_path / "light")
    assert light == full and "\new\t" in full


def test_a_bundled_translator_without_the_heavy_packages(tmp_path: Path) -> None:
    pytest.importorskip("thot")
    config = tmp_path / "mine.yaml"
    question = {"id": "q", "language": "es", "source": "Su capital es Lima.", "reference": "Lima.", "page": "Peru"}
    (tmp_path / "q.jsonl").write_text(json.dumps(question), encoding="utf-8")  # each word takes a second
    text = CONFIG.format(log="-", guesser="bm25", buzzer="bm25").replace("mini-es, limit: 2", f"{tmp_path / 'q.jsonl'}")
    config.write_text(text.replace("{name: recorded, file: -}", "{name: pbmt, model: pbmt-es-en, k: 3}"), "utf-8")
    full = full_report(config, tmp_path / "full")
    assert report(WITHOUT.format(HEAVY), config, tmp_path / "light") == full and "\new\t" in full


def test_a_report_without_the_heavy_packages_says_that_figures_need_one(tmp_path: Path) -> None:
    config = tmp_path / "mine.yaml"
    text = CONFIG.format(log=ROOT / "docs" / "example" / "instances.log", guesser="bm25", buzzer="bm25")
    config.write_text(text.replace("limit: 2", "limit: 1"), encoding="utf-8")
    report(CORE, config, tmp_path)
    call = [sys.executable, "-c", CORE, "report", str(tmp_path / "mine")]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=300)
    written = (tmp_path / "mine" / "report" / "report.md").read_text(encoding="utf-8")
    assert done.returncode == 0, done.stderr
    assert "`figures`: drawing needs the Python package matplotlib: pip" in written


def test_what_needs_more_names_the_extra(tmp_path: Path) -> None:
    config = tmp_path / "mine.yaml"
    config.write_text("dataset: mini-es\ntranslator: {name: waitk, model: es-en, k: 3}\n", encoding="utf-8")
    call = [sys.executable, "-c", CORE, "run", str(config), "--runs", str(tmp_path / "runs")]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2 and "pip install 'sqa[models]'" in done.stderr, done.stderr


@pytest.mark.slow
@pytest.mark.skipif(os.environ.get("SQA_PIP_DRY_RUN") != "1", reason="asks a package index: set SQA_PIP_DRY_RUN=1")
@pytest.mark.parametrize("end", ["lowest", "newest"])
def test_both_ends_of_the_ranges_print_the_same_numbers(tmp_path: Path, end: str) -> None:
    """An empty environment with nothing but `pip install sqa`; the signatures alone name another sacrebleu."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = [re.sub(r">=([\d.]+).*", r"==\1", each) for each in project["dependencies"]] if end == "lowest" else []
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    python = str(tmp_path / "env" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", *pins, str(ROOT)], check=True, timeout=900)
    config = tmp_path / "mine.yaml"
    log = ROOT / "docs" / "example" / "instances.log"
    config.write_text(CONFIG.format(log=log, guesser="rerank", buzzer="rerank"), encoding="utf-8")
    here = full_report(config, tmp_path / "here")
    there = report("import sqa.cli; sqa.cli.main()", config, tmp_path / "there", python=python, cwd=tmp_path)
    assert re.sub(r"version:[\d.]+", "", there) == re.sub(r"version:[\d.]+", "", here) != ""
