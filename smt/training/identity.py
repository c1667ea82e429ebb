"""What a training is made from, kept beside its checkpoints, so that another one's are never taken up by mistake."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from smt.models.bundle import folder_fingerprint, model_folder
from smt.training.config import SmtConfig, TrainConfig
from sqa.core.errors import ConfigError, DataError
from sqa.files.digest import joined_digest
from sqa.files.json_reader import parse_json
from sqa.files.store import write_text
from sqa.training.checkpoints import Checkpoints

FILE = "run.json"
_TRAIN = {"precision": TrainConfig().precision}  # keys that run.json was written without once
CORPUS: dict[str, Any] = {"made": [], "train": None, "development": None}  # likewise
_NO_MATTER = {"name", "data", "full_encoder"}  # keys of a config that do not change what a training gives
_NO_MATTER_TRAIN = {"threads", "compile"}  # but for the last digits


def identity(config: SmtConfig, data: Path) -> dict[str, Any]:
    """Everything that decides what a training gives, as JSON values."""
    kept = {key: value for key, value in asdict(config).items() if key not in _NO_MATTER}
    kept["train"] = {key: value for key, value in kept["train"].items() if key not in _NO_MATTER_TRAIN}
    files = ("vocabulary.model", "lexicon_probabilities.npy", "packed/target_start.npy")
    total = joined_digest(data / name for name in files)
    start = folder_fingerprint(model_folder(config.start, "start")) if config.start else None
    return json.loads(json.dumps({"config": kept, "data": total, "start model": start}))


def problems(folder: Path, config: SmtConfig, data: Path) -> list[str]:
    """Why a folder's checkpoints cannot be gone on from with this config: the keys that differ."""
    file = folder / FILE
    if not file.exists():
        if Checkpoints(folder).found():
            print(f"sqa: {folder}: no {FILE} says what its checkpoints were trained with; taken up as they are",
                  file=sys.stderr)  # fmt: skip
        return []
    try:
        before = parse_json(file.read_bytes())
    except ValueError as error:
        raise DataError(f"{file}: damaged ({error}); --fresh to start anew") from error
    before["config"]["train"] = _TRAIN | before["config"]["train"]
    before["config"]["corpus"] = CORPUS | before["config"]["corpus"]
    changed = ", ".join(_changes(before, identity(config, data)))
    return [f"{folder}: trained with another {changed}; change `name`, or --fresh to start anew"] if changed else []


def check(folder: Path, config: SmtConfig, data: Path) -> None:
    """Refuse a folder that holds a training of another config, data or start model."""
    found = problems(folder, config, data)
    if found:
        raise ConfigError(found)


def write(folder: Path, config: SmtConfig, data: Path) -> None:
    """Say what the checkpoints of a folder are trained with."""
    write_text(folder / FILE, json.dumps(identity(config, data), indent=1) + "\n")


def _changes(old: Any, new: Any, where: str = "") -> Iterator[str]:
    """Paths of the values that differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from _changes(old.get(key), new.get(key), f"{where}.{key}" if where else key)
    elif old != new:
        yield where.removeprefix("config.")
