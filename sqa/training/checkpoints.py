"""The checkpoints of a training, written atomically, with the state of its optimiser.

Its whole state is a mapping of names to tensors by name, state dictionaries or plain values.  It is one file
(`head.pt`), replaced each time, or, where other code reads the weights as well (to average the last ones), folders
checkpoint-<step>: model.safetensors, optimizer.safetensors, state.json.
"""

import json
import pickle
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from sqa.core.errors import ConfigError, DataError
from sqa.files.atomic import atomic, atomic_folder
from sqa.files.records import parse_json

TENSORS = ("model", "optimizer")  # parts stored as tensors; all others are plain values in state.json


class Checkpoints:
    """The checkpoints of one training, at a file named *.pt or in a folder."""

    def __init__(self, path: Path, keep: int = 1, identity: Mapping[str, Any] | None = None) -> None:
        """`keep`: the number of folders kept; `identity`: values that a checkpoint in a file must have, by key."""
        self.path, self.keep, self.identity = path, keep, identity

    @property
    def in_file(self) -> bool:
        return self.path.suffix == ".pt"

    def complete(self) -> list[Path]:
        """Complete checkpoints, oldest first."""
        if self.in_file:
            return [self.path] if self.path.is_file() else []
        return sorted(path for path in self.path.glob("checkpoint-???????") if (path / "state.json").exists())

    def write(self, step: int, content: Mapping[str, Any]) -> Path:
        """Write the state after `step` and delete the oldest beyond `keep`; returns the file or folder."""
        if self.in_file:
            record = {"identity": repr(self.identity), "keys": self._keys(), "step": step, **content}
            with atomic(self.path) as partial:
                torch.save(record, partial)
            return self.path
        target = self.path / f"checkpoint-{step:07d}"
        with atomic_folder(target) as draft:
            for name in TENSORS:
                tensors = {key: value.contiguous() for key, value in content[name].items()}
                save_file(tensors, draft / f"{name}.safetensors")
            plain = {key: value for key, value in content.items() if key not in TENSORS}
            (draft / "state.json").write_text(json.dumps({"step": step, **plain}) + "\n", encoding="utf-8")
            if target.exists():
                _remove(target)
        for old in self.complete()[: -self.keep]:
            _remove(old)
        return target

    def newest(self) -> dict[str, Any] | None:
        """The content of the newest checkpoint, with its `step`; None without a checkpoint.

        Damaged, or of an earlier version: DataError; a file of another config: ConfigError naming the keys that differ.
        """
        complete = self.complete()
        if not complete:
            return None
        try:
            if self.in_file:
                content: dict[str, Any] = torch.load(self.path, weights_only=True)
            else:
                content = parse_json((complete[-1] / "state.json").read_bytes())
                content |= {name: load_file(complete[-1] / f"{name}.safetensors") for name in TENSORS}
        except (RuntimeError, EOFError, OSError, ValueError, SafetensorError, pickle.UnpicklingError) as error:
            raise DataError(f"{complete[-1]}: the checkpoint is damaged; remove it to start again") from error
        if self.in_file:
            self._check_identity(content)
        return content

    def remove(self) -> None:
        """Delete them all."""
        for path in self.complete():
            _remove(path)

    def average(self, last: int) -> dict[str, Tensor]:
        """Mean of the weights of the `last` newest folders.  No checkpoint: DataError."""
        folders = self.complete()[-last:]
        if not folders:
            raise DataError(f"{self.path}: no checkpoint to average; train first")
        total: dict[str, Tensor] = {}
        for path in folders:
            for name, value in load_file(path / "model.safetensors").items():
                total[name] = total[name] + value if name in total and value.is_floating_point() else value
        return {name: value / len(folders) if value.is_floating_point() else value for name, value in total.items()}

    def _keys(self) -> dict[str, str]:
        return {key: repr(value) for key, value in (self.identity or {}).items()}

    def _check_identity(self, content: Mapping[str, Any]) -> None:
        before, now = content.get("keys", {}), self._keys()
        if "step" not in content:
            raise DataError(f"{self.path}: the checkpoint is of an earlier version; remove it to start again")
        if content["identity"] != repr(self.identity):
            keys = ", ".join(key for key in now if before.get(key) != now[key])
            other = f"belongs to another config ({keys} differ)"
            raise ConfigError(f"work: {self.path} {other}; remove it or name another folder")


def _remove(path: Path) -> None:
    """Delete a checkpoint; a folder stops being one first."""
    if path.is_file():
        return path.unlink()
    (path / "state.json").unlink(missing_ok=True)
    shutil.rmtree(path)


class Moments:
    """Adam's state of parameters, by "name.key", as a part of a training."""

    def __init__(self, optimiser: torch.optim.Optimizer, parameters: Iterable[tuple[str, nn.Parameter]]) -> None:
        self.optimiser, self.parameters = optimiser, dict(parameters)

    def state_dict(self) -> dict[str, Tensor]:
        """The tensors."""
        kept = {name: self.optimiser.state[parameter] for name, parameter in self.parameters.items()}
        return {f"{name}.{key}": value for name, state in kept.items() for key, value in state.items()}

    def load_state_dict(self, kept: Mapping[str, Tensor]) -> None:
        """Restore the optimiser's state from a `state_dict`."""
        for name, parameter in self.parameters.items():
            tensors = {key: kept[f"{name}.{key}"] for key in ("step", "exp_avg", "exp_avg_sq")}
            self.optimiser.state[parameter] = {key: value.to(parameter.device) for key, value in tensors.items()}
