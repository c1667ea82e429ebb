"""Shapes, training settings and sizes of the trained models, next to the recipe that the paper describes.

    sqa reproduce models

Each column of the table is a model.  Its settings are read from the model's files, or else from its training config.
Its size is measured.  The paper has no such table, and no claim is tested.  The paper's column is the recipe in
configs/*_paper*.yaml, whose comments give the source of each value.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.outputs import Outputs
from sqa.core.errors import DataError
from sqa.core.paths import ROOT
from sqa.files.model_files import WEIGHTS, content, model_files
from sqa.files.yaml_reader import read_yaml
from sqa.pipeline.config import load


@dataclass(frozen=True, slots=True)
class ModelColumn:
    """A model of the table, or a recipe."""

    part: str  # part of the system: translator, guesser, buzzer
    label: str
    files: tuple[Path, ...]  # files with its settings; an earlier file takes precedence
    model: Path | None = None  # folder of the model


@dataclass(frozen=True, slots=True)
class ModelsConfig:
    """Keys of `sqa reproduce models`; configs/models.yaml explains them."""

    name: str
    columns: tuple[ModelColumn, ...]
    prefixes: tuple[str, ...] = ()


def main(config_path: Path, runs: Path) -> None:
    """Write the settings and sizes of the models as CSV; no run is needed."""
    config = load(config_path, ModelsConfig)
    lines = [["part", "model", "setting", "value", "source"]]
    for column in config.columns:
        for name, (value, source) in settings(column, config.prefixes).items():
            lines.append([column.part, column.label, name, value, source])
    outputs = Outputs(runs / config.name)
    outputs.csv("models.csv", lines)
    outputs.end()


def settings(column: ModelColumn, prefixes: Sequence[str] = ()) -> dict[str, tuple[str, str]]:
    """Return a dict that maps each setting's dotted name to (value, source file or "measured"), with the size last."""
    values: dict[str, tuple[str, str]] = {}
    for file in column.files:
        for key, value in _flat(read_yaml(ROOT / file), ""):
            name = next((key.removeprefix(f"{p}.") for p in prefixes if key.startswith(f"{p}.")), key)
            values.setdefault(name, (_shown(value), str(file)))
    if column.model is not None:
        numbers, size = measure(ROOT / column.model)
        values |= {"numbers stored": (f"{numbers:,}", "measured"), "size (MB)": (f"{size / 1e6:.3g}", "measured")}
    return values


def _flat(mapping: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield each dotted key with its value, as in ("model.width", 256); a list is one value."""
    for key, value in mapping.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _shown(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_shown, value))
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def measure(folder: Path) -> tuple[int, int]:
    """Return the number of weights, including quantisation scales, and the unpacked bytes of all files but the card."""
    from safetensors import SafetensorError
    from safetensors.numpy import load as load_tensors

    try:
        tensors = load_tensors(content(folder / WEIGHTS))
    except (OSError, SafetensorError) as error:
        raise DataError(f"{folder / WEIGHTS}: cannot be read: {error}") from error
    return sum(array.size for array in tensors.values()), sum(len(content(path)) for path in model_files(folder))
