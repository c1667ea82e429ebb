"""An ablation of doubles that takes seconds: questions, a copying translator at some k, guesser and buzzer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml
from doubles import write_questions

from sqa.core.paths import ROOT
from sqa.run.config import read_yaml

QUESTIONS = 200  # four blocks


def prepare(folder: Path, ks: Sequence[int] = (1, 2, 3), delay: float = 0.0) -> None:
    """folder/ablation.yaml and the questions that it names."""
    folder.mkdir(parents=True)
    write_questions(folder / "questions.jsonl", QUESTIONS)
    mapping = read_yaml(ROOT / "configs" / "ablation.yaml") | {
        "datasets": ["questions.jsonl"],
        "fallback": [],
        "k": list(ks),
        "models": {},
        "commands": {},
        "translators": [
            {"label": "copy", "language": "nl", "translator": {"name": "doubles:build_translator", "delay": delay}}
        ],
        "contestants": [{"guesser": {"name": "doubles:build_guesser"}, "buzzer": {"name": "doubles:build_buzzer"}}],
        "metrics": ["ew", "oracle-ew", "accuracy", "mrr", "bleu", "dal"],
        "resamples": 20,
        "workers": 2,
    }
    (folder / "ablation.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")


def environment(**more: str) -> dict[str, str]:
    """For a process that runs the code of this checkout with the doubles."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    return os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"} | more


def start(folder: Path, *options: str, **more: str) -> subprocess.Popen[str]:
    """`sqa ablation ablation.yaml`, in the folder."""
    command = [sys.executable, "-m", "sqa.cli", "ablation", "ablation.yaml", *options]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment(**more), stdout=pipe, stderr=pipe, text=True)


def finish(process: subprocess.Popen[str], seconds: float = 300) -> str:
    """What it said on stderr; it must end well."""
    _, said = process.communicate(timeout=seconds)
    assert process.returncode == 0, said[-4000:]
    return said


def results(folder: Path) -> dict[str, bytes]:
    """Every file of the ablation and its runs but the store and the wall times."""
    runs = folder / "runs"
    files = [path for path in sorted(runs.glob("**/*")) if path.is_file() and path.name != "times.json"]
    return {str(p.relative_to(runs)): p.read_bytes() for p in files if p.relative_to(runs).parts[0] != "store"}


def blocks(folder: Path) -> dict[str, bytes]:
    """The files of the store."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.glob("store/*/*/*"))}
