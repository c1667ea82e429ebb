"""Save and load checkpoints of a training run: files `checkpoint-<step>.pt` in its folder, written atomically.

A checkpoint is a dict whose values are state dictionaries, dicts of tensors or plain values.
"""

import pickle
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from sqa.core.errors import ConfigError, DataError
from sqa.files.atomic import atomic


class Checkpoints:
    """The checkpoints of one training run."""

    def __init__(self, folder: Path, keep: int = 1, identity: Mapping[str, Any] | None = None) -> None:
        """Keep the `keep` newest files; only a checkpoint with the same `identity` values can be resumed."""
        self.folder, self.keep = folder, keep
        self.identity = {key: repr(value) for key, value in (identity or {}).items()}

    def complete(self) -> list[Path]:
        """Return the checkpoint files, oldest first."""
        return sorted(self.folder.glob("checkpoint-???????.pt"))

    def write(self, step: int, content: Mapping[str, Any]) -> Path:
        """Write the state after `step`, delete the oldest files beyond `keep`, and return the file."""
        path = self.folder / f"checkpoint-{step:07d}.pt"
        with atomic(path) as partial:
            torch.save({"identity": self.identity, "step": step, **content}, partial)
        for old in self.complete()[: -self.keep]:
            old.unlink()
        return path

    def newest(self) -> dict[str, Any] | None:
        """Return the content of the newest checkpoint, including its `step`; None if there is no checkpoint.

        Raises:
            DataError: If the file is damaged.
            ConfigError: If it belongs to another config; the message names the keys that differ.
        """
        complete = self.complete()
        if not complete:
            return None
        content = _content(complete[-1])
        before = content["identity"]
        if differ := [key for key in {**before, **self.identity} if before.get(key) != self.identity.get(key)]:
            other = f"belongs to another config ({', '.join(differ)} differ)"
            raise ConfigError(f"work: {complete[-1]} {other}; remove it or name another folder")
        return content

    def remove(self) -> None:
        """Delete all checkpoints."""
        for path in self.complete():
            path.unlink()

    def average(self, last: int) -> dict[str, Tensor]:
        """Return the mean of the weights of the `last` newest checkpoints.  Raises DataError if there is none."""
        paths = self.complete()[-last:]
        if not paths:
            raise DataError(f"{self.folder}: no checkpoint to average; train first")
        total: dict[str, Tensor] = {}
        for path in paths:
            for name, value in _content(path)["model"].items():
                total[name] = total[name] + value if name in total and value.is_floating_point() else value
        return {name: value / len(paths) if value.is_floating_point() else value for name, value in total.items()}


def _content(path: Path) -> dict[str, Any]:
    """Return the content of a checkpoint with tensors on the CPU.  Raises DataError if the file is damaged."""
    try:
        content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except (RuntimeError, EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
        raise DataError(f"{path}: the checkpoint is damaged; remove it to start again") from error
    return content


class Moments:
    """Adam's state as tensors named "PARAMETER.KEY", saved as a part of a checkpoint."""

    def __init__(self, optimiser: torch.optim.Optimizer, parameters: Iterable[tuple[str, nn.Parameter]]) -> None:
        self.optimiser, self.parameters = optimiser, dict(parameters)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the tensors of the state by name."""
        kept = {name: self.optimiser.state[parameter] for name, parameter in self.parameters.items()}
        return {f"{name}.{key}": value for name, state in kept.items() for key, value in state.items()}

    def load_state_dict(self, kept: Mapping[str, Tensor]) -> None:
        """Restore the optimiser's state from a `state_dict`."""
        for name, parameter in self.parameters.items():
            tensors = {key: kept[f"{name}.{key}"] for key in ("step", "exp_avg", "exp_avg_sq")}
            self.optimiser.state[parameter] = {key: value.to(parameter.device) for key, value in tensors.items()}
