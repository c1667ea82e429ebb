"""The identity of a training run, stored with its checkpoints, so that no other run resumes from them."""

import json
import sys
from collections.abc import Container, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from smt.models.bundle import folder_fingerprint, model_folder
from smt.training.config import SmtConfig
from sqa.core.errors import ConfigError, DataError
from sqa.files.atomic import joined_digest, write_text
from sqa.files.devices import place
from sqa.files.records import parse_json
from sqa.training.trainer import Checkpoints

FILE = "run.json"
_FREE = {"name", "data", "full_encoder"}  # config keys that do not change the result
_FREE_TRAIN = {"threads", "compile", "device"}  # keys that change only the last digits


def identity(config: SmtConfig, data: Path) -> dict[str, Any]:
    """Return everything that a training run's result depends on; see `described`."""
    files = ("vocabulary.model", "lexicon_probabilities.npy", "packed/target_start.npy")
    total = joined_digest(data / name for name in files)
    start = folder_fingerprint(model_folder(config.start, "start")) if config.start else None
    return described(config, _FREE, _FREE_TRAIN, {"data": total, "start model": start})


def described(
    config: Any, free: Container[str], free_train: Container[str], inputs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a config and other inputs of a training run as JSON values, and its device, which may change.

    The keys `free` of the config, and `free_train` of its `train`, are left out.
    """
    kept = {key: value for key, value in asdict(config).items() if key not in free}
    kept["train"] = {key: value for key, value in kept["train"].items() if key not in free_train}
    where = place(config.train)
    kept["train"]["dtype"] = where.dtype
    return json.loads(json.dumps({"config": kept, **inputs, "device": where.device}))


def problems(folder: Path, now: Mapping[str, Any]) -> list[str]:
    """Return a list with one message if changed keys forbid resuming from a folder's checkpoints, else []."""
    file = folder / FILE
    if not file.exists():
        if Checkpoints(folder).complete():
            problem = f"no {FILE} describes the training of its checkpoints; resuming from them anyway"
            print(f"sqa: {folder}: {problem}", file=sys.stderr)
        return []
    try:
        stored = parse_json(file.read_bytes())
    except ValueError as error:
        raise DataError(f"{file}: damaged ({error}); use --fresh to restart") from error
    changed = ", ".join(_changes({**stored, "device": ""}, {**now, "device": ""}))
    return [f"{folder}: trained with another {changed}; change `name`, or use --fresh to restart"] if changed else []


def take(folder: Path, now: Mapping[str, Any]) -> None:
    """Write run.json; raises ConfigError if the folder holds checkpoints of another training run."""
    if wrong := problems(folder, now):
        raise ConfigError(wrong)
    write_text(folder / FILE, json.dumps(now, indent=1) + "\n")


def clear(folder: Path) -> None:
    """Remove the checkpoints and the identity of a training run."""
    (folder / FILE).unlink(missing_ok=True)
    Checkpoints(folder).remove()


def _changes(old: Any, new: Any, where: str = "") -> Iterator[str]:
    """Yield the paths of differing values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            yield from _changes(old.get(key), new.get(key), f"{where}.{key}" if where else key)
    elif old != new:
        yield where.removeprefix("config.")
