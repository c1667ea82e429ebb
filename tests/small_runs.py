"""Run test doubles on a few generated questions."""

from pathlib import Path

from doubles import write_questions

from sqa.files import Store
from sqa.pipeline import Parts, RunConfig, RunResult, run, run_from_mapping

PARTS = {kind: f"doubles:build_{kind}" for kind in ("translator", "guesser", "buzzer")}  # keys of a run's config


def small_config(folder: Path, n: int = 5, **changes: object) -> RunConfig:
    """Return the config of a run named "t" on `n` questions; `changes` replace keys of the config."""
    questions = folder / f"questions{n}.jsonl"
    if not questions.exists():
        write_questions(questions, n)
    plain = {
        "name": "t",
        "dataset": {"name": str(questions)},
        **PARTS,
        "metrics": ["ew", "accuracy", "bleu", "al"],
    }
    return run_from_mapping(plain | changes)


def small_run(folder: Path, n: int = 5, parts: Parts | None = None, **changes: object) -> RunResult:
    """Run the config that `small_config` returns; the store is in folder/runs."""
    return run(small_config(folder, n, **changes), Store(folder / "runs"), parts=parts, progress=False)
