"""The loop of gradient-based training: rounds with checkpoints, from which an interrupted training run resumes.

    trainer = Trainer("runs/x", optimiser, {"network": network, "optimiser": optimiser}, checkpoints, clip=1.0)
    trainer.resume()
    for epoch in trainer.rounds(20, stopped=lambda: trainer.stale >= 3):
        torch.manual_seed(seed + epoch)
        for batch in batches(seed, epoch):
            trainer.descend([loss(network, batch)])
        trainer.judge(accuracy(network))
    trainer.take_best()

A round is an optimiser step or a pass over the texts.  Its random numbers depend only on the seed and its index, so a
resumed training run sees the same batches and ends with the same weights.

Checkpoints are files `checkpoint-<step>.pt` in the folder of a training run, written atomically.  A checkpoint is a
dict whose values are state dictionaries, dicts of tensors or plain values.
"""

import math
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sqa.core import ConfigError, DataError, NotComputable, bar
from sqa.files import check_weights
from sqa.files.atomic import atomic

Part = nn.Module | torch.optim.Optimizer | torch.optim.lr_scheduler.LRScheduler  # part of a checkpoint


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
        self.check(complete[-1], content["identity"])
        return content

    def check(self, path: Path, identity: Mapping[str, str]) -> None:
        """Raise ConfigError if the training run in `path` has another identity; the message names the keys."""
        if differ := [key for key in {**identity, **self.identity} if identity.get(key) != self.identity.get(key)]:
            other = f"belongs to another config ({', '.join(differ)} differ)"
            raise ConfigError(f"{path} {other}; remove it, or name another folder")

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


class Trainer:
    """The state of a training run between two rounds."""

    def __init__(
        self,
        where: object,
        optimiser: torch.optim.Optimizer,
        parts: Mapping[str, Part],
        checkpoints: Checkpoints | None = None,
        clip: float | None = None,
        unit: str = "epoch",
    ) -> None:
        """Create a trainer; `where` and `unit` appear in messages.

        `parts`: parts to save and restore, by name.  `clip`: maximum norm of the gradients.
        """
        self.where, self.optimiser, self.parts, self.unit = where, optimiser, parts, unit
        self.checkpoints, self.clip = checkpoints, clip
        self.done, self.stale = 0, 0  # number of completed rounds, and of rounds since the best one
        self.best: dict[str, dict[str, Tensor]] = {}  # weights of the modules at the best round
        self.best_score = -np.inf
        self._before, self._since = 0.0, time.process_time()
        self.say: Callable[..., object] = lambda **values: None  # function that shows numbers next to the progress bar

    @property
    def seconds(self) -> float:
        """Processor time so far in seconds, including the time before the training run was resumed."""
        return self._before + time.process_time() - self._since

    def set_rate(self, rate: float) -> None:
        """Set the learning rate of the following steps."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate

    def descend(self, losses: Iterable[Tensor]) -> float:
        """Take one optimiser step on the sum of the losses, and return the sum.

        Raises NotComputable, without a step, if a loss or (with `clip`) the norm of the gradients is not finite.
        """
        where, total = f"{self.where}: {self.unit} {self.done + 1}", 0.0
        self.optimiser.zero_grad(set_to_none=True)
        for loss in losses:
            total += _finite(loss.item(), where)
            loss.backward()
        if self.clip is not None:
            trained = [parameter for group in self.optimiser.param_groups for parameter in group["params"]]
            _finite(float(torch.nn.utils.clip_grad_norm_(trained, self.clip)), f"{where}, its gradient")
        self.optimiser.step()
        return total

    def rounds(
        self, total: int, every: int = 1, stopped: Callable[[], bool] = lambda: False, label: str = "training"
    ) -> Iterator[int]:
        """Yield the indices of the remaining rounds until `stopped()` is true.

        A checkpoint is saved after every `every` rounds and at the end.
        """
        with bar(label, total, self.done, self.unit) as shown:
            self.say = partial(shown.set_postfix, refresh=False)
            while self.done < total and not stopped():
                yield self.done
                self.done += 1
                shown.update()
                if self.done % every == 0 or self.done == total:
                    self.save()
        if self.done < total and self.done % every:
            self.save()

    def judge(self, score: float, later: bool = False) -> None:
        """Keep a copy of the modules if this score is the best so far; `later`: also if it equals the best one."""
        self.stale = 0 if score > self.best_score else self.stale + 1
        if score > self.best_score or (later and score == self.best_score):
            self.best_score = score
            self.best = {
                name: {key: value.clone() for key, value in module.state_dict().items()}
                for name, module in self.modules()
            }

    def take_best(self) -> None:
        """Restore the weights that had the best score."""
        for name, module in self.modules():
            module.load_state_dict(self.best[name])

    def modules(self) -> list[tuple[str, nn.Module]]:
        """Return the parts that are modules, with their names."""
        return [(name, part) for name, part in self.parts.items() if isinstance(part, nn.Module)]

    def save(self) -> None:
        """Write a checkpoint if checkpoints are enabled; raises DataError if a weight is not finite."""
        if self.checkpoints is None:
            return
        for _, module in self.modules():
            check_weights(f"{self.where}: {self.unit} {self.done}", module.named_parameters())
        content: dict[str, Any] = {name: part.state_dict() for name, part in self.parts.items()}
        if self.best:
            content |= {"best": self.best, "counts": (self.stale, self.best_score, self.seconds)}
        self.checkpoints.write(self.done, content)

    def resume(self) -> bool:
        """Continue from the newest checkpoint; return False if there is none.

        Raises ConfigError if the checkpoint belongs to another config.
        """
        kept = self.checkpoints.newest() if self.checkpoints is not None else None
        if kept is None:
            return False
        for name, part in self.parts.items():
            part.load_state_dict(kept[name])
        self.done = kept["step"]
        if "best" in kept:
            self.best, (self.stale, self.best_score, self._before) = kept["best"], kept["counts"]
        return True


def scale_of(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each column of `rows` (n, d), float32 of shape (d,).

    A constant column, which carries no information, has the deviation 1.
    """
    mean, deviation = rows.mean(0, dtype=np.float64), rows.std(0, dtype=np.float64)
    deviation[deviation < 1e-6] = 1.0
    return mean.astype(np.float32), deviation.astype(np.float32)


@contextmanager
def denormals_flushed() -> Iterator[None]:
    """Flush denormal numbers to 0 in this context: gradients of rare words contain them, which slows steps down."""
    for kind in (np.float32, np.float64):
        np.finfo(kind)  # numpy computes these limits once, and warns if denormals are already flushed
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def _finite(loss: float, where: str) -> float:
    """Return `loss`, or raise NotComputable if it is not finite; `where` names the training run and the step."""
    if not math.isfinite(loss):
        raise NotComputable(f"{where}: the loss is {loss}, training stops; lower the learning rate and restart")
    return loss
