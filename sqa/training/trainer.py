"""The loop of every training by gradients: rounds with checkpoints, from which an interrupted training resumes.

    trainer = Trainer("runs/x", optimiser, {"network": network, "optimiser": optimiser}, checkpoints, clip=1.0)
    trainer.resume()
    for epoch in trainer.rounds(20, stopped=lambda: trainer.stale >= 3):
        torch.manual_seed(seed + epoch)
        for batch in batches(seed, epoch):
            trainer.descend([loss(network, batch)])
        trainer.judge(accuracy(network))
    trainer.take_best()

A round is an optimiser step or a pass over the texts.  Random numbers in it depend on the seed and its number alone, so
a training that was killed and resumed sees the same batches as one that was not, and ends with the same weights.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from sqa.core.errors import NotComputable
from sqa.core.progress import bar
from sqa.files.model_files import check_weights
from sqa.training.checkpoints import Checkpoints


class Part(Protocol):
    """A part of a checkpoint: a module, an optimiser, a schedule."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: Any) -> Any: ...


class Trainer:
    """The state of a training between two rounds."""

    def __init__(
        self,
        where: object,
        optimiser: torch.optim.Optimizer,
        parts: Mapping[str, Part],
        checkpoints: Checkpoints | None = None,
        clip: float | None = None,
        unit: str = "epoch",
    ) -> None:
        """parts: saved and restored, by name; clip: the greatest norm of gradients; where, unit: for messages."""
        self.where, self.optimiser, self.parts, self.unit = where, optimiser, parts, unit
        self.checkpoints, self.clip = checkpoints, clip
        self.done, self.stale = 0, 0  # rounds in all, and since the best one
        self.best: dict[str, dict[str, Tensor]] = {}  # the modules as they were then
        self.best_score = -np.inf
        self._before, self._since = 0.0, time.process_time()
        self.say: Callable[..., object] = lambda **values: None  # shows numbers beside the bar

    @property
    def seconds(self) -> float:
        """Processor time in all runs so far."""
        return self._before + time.process_time() - self._since

    def set_rate(self, rate: float) -> None:
        """The learning rate of the next steps."""
        for group in self.optimiser.param_groups:
            group["lr"] = rate

    def descend(self, losses: Iterable[Tensor]) -> float:
        """One step of the optimiser down the sum of the losses, which is returned.

        NotComputable, and no step, where it or its gradient is not finite.
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
        """The numbers of the rounds still to do, until `stopped`; a checkpoint after `every` of them and at the end."""
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
        """Keep a copy of the modules if this is the best score so far; `later`: or equals it."""
        self.stale = 0 if score > self.best_score else self.stale + 1
        if score > self.best_score or (later and score == self.best_score):
            self.best_score = score
            self.best = {
                name: {key: value.clone() for key, value in module.state_dict().items()}
                for name, module in self.modules()
            }

    def take_best(self) -> None:
        """Restore the modules of the best score."""
        for name, module in self.modules():
            module.load_state_dict(self.best[name])

    def modules(self) -> list[tuple[str, nn.Module]]:
        """The parts that are modules."""
        return [(name, part) for name, part in self.parts.items() if isinstance(part, nn.Module)]

    def save(self) -> None:
        """Write a checkpoint, if the training has any; NaN in a weight raises an error."""
        if self.checkpoints is None:
            return
        for _, module in self.modules():
            check_weights(f"{self.where}: {self.unit} {self.done}", module.named_parameters())
        content: dict[str, Any] = {name: part.state_dict() for name, part in self.parts.items()}
        if self.best:
            content |= {"best": self.best, "counts": (self.stale, self.best_score, self.seconds)}
        self.checkpoints.write(self.done, content)

    def resume(self) -> bool:
        """Continue from the newest checkpoint; False without one.  ConfigError if it belongs to another config."""
        kept = self.checkpoints.newest() if self.checkpoints is not None else None
        if kept is None:
            return False
        for name, part in self.parts.items():
            part.load_state_dict(kept[name])
        self.done = kept["step"]
        if "best" in kept:
            self.best, (self.stale, self.best_score, self._before) = kept["best"], kept["counts"]
        return True


@contextmanager
def denormals_flushed() -> Iterator[None]:
    """Flush denormal numbers to 0 in here: in the gradients of rare words they make a step several times slower."""
    for kind in (np.float32, np.float64):
        np.finfo(kind)  # numpy computes its limits once, and warns if denormals are flushed by then
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


def _finite(loss: float, where: str) -> float:
    """The loss of a training step, or NotComputable with the remedy; `where` names the training and the step."""
    if not math.isfinite(loss):
        raise NotComputable(f"{where}: the loss is {loss}, training stops; lower the learning rate and start anew")
    return loss
