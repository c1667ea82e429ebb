"""Helpers for runs with user-defined parts in a temporary folder."""

from pathlib import Path

from doubles import write_questions

from sqa.files import Store
from sqa.pipeline import RunResult, run, run_from_mapping


def write(folder: Path, **modules: str) -> None:
    """Write Python modules to a folder; a name may be "package/module"."""
    for name, text in modules.items():
        file = folder / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def played(folder: Path, **keys: object) -> RunResult:
    """Run a config on two questions, by default with a test double as translator; the store is in folder/runs."""
    questions = folder / "questions.jsonl"
    if not questions.exists():
        write_questions(questions, 2)
    mapping = {
        "name": "mine",
        "dataset": {"name": str(questions)},
        "translator": "doubles:build_translator",
        "metrics": ["accuracy"],
        **keys,
    }
    return run(run_from_mapping(mapping, folder), Store(folder / "runs"), progress=False)
