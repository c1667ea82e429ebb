"""An ablation of doubles that takes seconds: questions, a copying translator at some k, guesser and buzzer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from doubles import write_questions

from sqa.core.paths import ROOT
from sqa.files.yaml_reader import read_yaml

QUESTIONS = 130  # three blocks


def prepare(folder: Path, delay: float) -> None:
    """folder/ablation.yaml and the questions that it names; delay: of each word of the translator, in seconds."""
    folder.mkdir(parents=True)
    write_questions(folder / "questions.jsonl", QUESTIONS)
    mapping = read_yaml(ROOT / "configs" / "ablation.yaml") | {
        "datasets": ["questions.jsonl"],
        "fallback": [],
        "k": [1, 3],
        "translators": [
            {"label": "copy", "language": "es", "translator": {"name": "doubles:build_translator", "delay": delay}}
        ],
        "contestants": [{"guesser": {"name": "doubles:build_guesser"}, "buzzer": {"name": "doubles:build_buzzer"}}],
        "metrics": ["ew", "bleu", "dal"],
        "resamples": 20,
        "workers": 2,
    }
    (folder / "ablation.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")


def results(runs: Path) -> dict[str, bytes]:
    """Every file of the runs but the store and the wall times."""
    files = [path for path in sorted(runs.glob("**/*")) if path.is_file() and path.name != "times.json"]
    return {str(p.relative_to(runs)): p.read_bytes() for p in files if p.relative_to(runs).parts[0] != "store"}


def blocks(root: Path) -> dict[str, bytes]:
    """The files of a store."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.glob("store/*/*/*"))}


def threads_as_workers(port: int = 0, workers: int = 1) -> Any:
    """A scheduler at a port of its own with workers that are threads of this process."""
    from distributed import LocalCluster

    quick = {"n_workers": workers, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    return LocalCluster(protocol="tcp://", host="127.0.0.1", scheduler_port=port, **quick)
