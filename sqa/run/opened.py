"""Opens the traces of a finished run from its folder alone: no model is loaded, nothing is computed again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from sqa.core.errors import DataError
from sqa.core.trace import SCHEMA_VERSION
from sqa.core.types import Question
from sqa.files.store import Stage, Store, blocks_of, dataset_fingerprint
from sqa.run import folder as runs
from sqa.run.config import RunConfig
from sqa.run.pipeline import BLOCK_SIZE, Parts, Traces

_TRACED = ("translate", "guess", "buzz")  # stages whose rows a trace holds


@dataclass(frozen=True)
class FinishedRun:
    """What a run's folder leads to."""

    folder: Path
    config: RunConfig
    questions: list[Question]
    traces: Traces  # read from the store as they are walked through

    @property
    def guessed(self) -> bool:
        """Whether a guesser ran."""
        return self.config.guesser is not None


def open_run(folder: Path, parts: Parts | None = None) -> FinishedRun:
    """The run that `sqa run` wrote to `folder`; its store is the one beside it.

    ConfigError where `folder` is not a run's; DataError where the questions are not those it ran on, or the store
    lacks its stages or has them in another schema.  Give the same `parts` to several runs and they share questions.
    """
    saved = runs.read(folder)
    keys = json.loads((folder / runs.SUMMARY).read_text(encoding="utf-8")).get("stages")
    if not isinstance(keys, dict) or "translate" not in keys:
        raise DataError(f"{folder / runs.SUMMARY}: names no stages; run the config again")
    questions = (parts or Parts()).questions(saved.config.dataset)
    if dataset_fingerprint(questions) != saved.dataset:
        raise DataError(f"{folder}: made from other questions than {saved.config.dataset.name} now has; run it again")
    store = Store(folder.resolve().parent)
    stages = {name: _stage(store, name, keys[name]) for name in _TRACED if name in keys}
    return FinishedRun(folder, saved.config, questions, Traces(store, blocks_of(questions, BLOCK_SIZE), stages))


def _stage(store: Store, name: str, key: str) -> Stage:
    """The stage of a key, from the manifest that lies with its blocks."""
    manifest = store.root / "store" / name / key / "manifest.json"
    try:
        found = json.loads(manifest.read_text(encoding="utf-8"))
        version = found.pop("schema_version")
        stage = Stage(found.pop("stage"), **{**found, "upstream": tuple(found["upstream"])})
    except FileNotFoundError as error:
        raise DataError(f"{manifest}: is missing; run the config again with --runs {store.root}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{manifest}: damaged ({error}); delete its folder and run the config again") from error
    if version != SCHEMA_VERSION:
        raise DataError(f"{manifest}: has trace schema version {version}, expected {SCHEMA_VERSION}; run it again")
    if stage.key != key or stage.name != name:
        raise DataError(f"{manifest}: describes another stage; delete its folder and run the config again")
    return stage
