"""The core without torch, numba and scipy gives exactly the same numbers."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from outcome import Command, process

from sqa.core import ROOT

HEAVY = "torch numba scipy sentencepiece matplotlib transformers starlette uvicorn pandas pyarrow".split()
UNPACKS = "zstandard"  # unpacks models; required by the phrase-based translator
WITHOUT = "import sys; sys.modules.update(dict.fromkeys({})); import sqa.cli; sqa.cli.main()"
CORE = WITHOUT.format([*HEAVY, UNPACKS])
LOG = f"{{name: recorded, file: {ROOT / 'docs' / 'example' / 'instances.log'}}}"


def written(folder: Path, guesser: str, buzzer: str, dataset: str = "mini-es, limit: 2", translator: str = LOG) -> str:
    """Write a config with the given parts and return its path."""
    parts = f"translator: {translator}\nguesser: {guesser}\nbuzzer: {{name: mlp, model: {buzzer}}}\n"
    (folder / "mine.yaml").write_text(f"dataset: {{name: {dataset}}}\n{parts}", encoding="utf-8")
    return str(folder / "mine.yaml")


def run(code: str, config: str, runs: Path, **where: str) -> str:
    """Run `sqa run` in a separate process and return its output on stdout."""
    outcome = process("run", config, "--runs", str(runs), cwd=ROOT, code=code, **where)
    assert outcome.code == 0, outcome.err
    return outcome.out


@pytest.mark.parametrize(("guesser", "buzzer"), [("bm25", "bm25"), ("{name: rerank}", "rerank")])
def test_log_to_expected_wins_without_heavy_packages(
    tmp_path: Path, command: Command, guesser: str, buzzer: str
) -> None:
    config = written(tmp_path, guesser, buzzer)
    full = command("run", config, "--runs", str(tmp_path / "full")).out
    assert run(CORE, config, tmp_path / "light") == full and "\new\t" in full
    if guesser == "bm25":  # the report has no figures, and names the required package
        outcome = process("report", str(tmp_path / "light" / "mine"), cwd=ROOT, code=CORE)
        report = (tmp_path / "light" / "mine" / "report" / "report.md").read_text(encoding="utf-8")
        assert outcome.code == 0, outcome.err
        assert "`figures`: drawing needs the Python package matplotlib: pip" in report


@pytest.mark.needs("statistical")
def test_bundled_translator_without_heavy_packages(tmp_path: Path, command: Command) -> None:
    question = {"id": "q", "language": "es", "source": "Es Lima.", "reference": "Lima.", "page": "Peru"}
    (tmp_path / "q.jsonl").write_text(json.dumps(question), encoding="utf-8")  # each word takes a second
    translator = "{name: pbmt, model: pbmt-es-en, k: 3}"
    config = written(tmp_path, "bm25", "bm25", str(tmp_path / "q.jsonl"), translator)
    full = command("run", config, "--runs", str(tmp_path / "full")).out
    assert run(WITHOUT.format(HEAVY), config, tmp_path / "light") == full and "\new\t" in full


def test_missing_package_error_names_the_extra(tmp_path: Path) -> None:
    config = written(tmp_path, "bm25", "bm25", translator="{name: waitk, model: es-en, k: 3}")
    outcome = process("run", config, "--runs", str(tmp_path / "runs"), cwd=ROOT, code=CORE)
    assert outcome.code == 2 and "pip install 'sqa[models]'" in outcome.err, outcome.err


@pytest.mark.slow
@pytest.mark.needs("SQA_PIP_DRY_RUN")
@pytest.mark.parametrize("end", ["lowest", "newest"])
def test_lowest_and_highest_versions_give_equal_numbers(tmp_path: Path, command: Command, end: str) -> None:
    """The environment has only `pip install sqa`. Only the version of sacrebleu in the signatures may differ."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins = [re.sub(r">=([\d.]+).*", r"==\1", each) for each in project["dependencies"]] if end == "lowest" else []
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    python = str(tmp_path / "env" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", *pins, str(ROOT)], check=True, timeout=900)
    config = written(tmp_path, "rerank", "rerank")
    here = command("run", config, "--runs", str(tmp_path / "here")).out
    there = run("import sqa.cli; sqa.cli.main()", config, tmp_path / "there", python=python, PYTHONPATH="")
    assert re.sub(r"version:[\d.]+", "", there) == re.sub(r"version:[\d.]+", "", here) != ""
