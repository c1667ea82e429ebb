"""The checkpoints of a training: folders checkpoint-<step>, whole or not there at all."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor

from sqa.core.errors import DataError

MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what Adam keeps of each parameter


def write(
    folder: Path, step: int, weights: Mapping[str, Tensor], moments: Mapping[str, Mapping[str, Tensor]], keep: int
) -> Path:
    """Write checkpoint-<step> and drop the oldest beyond `keep`; `moments` are the optimiser's, per parameter."""
    target = folder / f"checkpoint-{step:07d}"
    draft = target.with_suffix(".part")
    draft.mkdir(parents=True, exist_ok=True)
    save_file({k: v.contiguous() for k, v in weights.items()}, draft / "model.safetensors")
    flat = {f"{name}.{key}": value.contiguous() for name, state in moments.items() for key, value in state.items()}
    save_file(flat, draft / "optimizer.safetensors")
    (draft / "state.json").write_text(json.dumps({"step": step}) + "\n")
    if target.exists():
        remove(target)
    draft.replace(target)
    for old in checkpoints(folder)[:-keep]:
        remove(old)
    return target


def checkpoints(folder: Path) -> list[Path]:
    """Complete checkpoints, oldest first."""
    return sorted(path for path in folder.glob("checkpoint-???????") if (path / "state.json").exists())


def remove(folder: Path) -> None:
    """Delete a checkpoint; it stops being one first."""
    (folder / "state.json").unlink(missing_ok=True)
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def average(folder: Path, last: int) -> dict[str, Tensor]:
    """Mean of the weights of the `last` newest checkpoints."""
    found = checkpoints(folder)[-last:]
    if not found:
        raise DataError(f"{folder}: no checkpoint to average; train first")
    total: dict[str, Tensor] = {}
    for path in found:
        for name, value in load_file(path / "model.safetensors").items():
            total[name] = total[name] + value if name in total and value.is_floating_point() else value
    return {name: value / len(found) if value.is_floating_point() else value for name, value in total.items()}
