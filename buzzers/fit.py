"""Training of a buzzer's network on whole questions.

Objective `label` is the cross entropy of "the top guess is right", step by step, as in QANTA.  Objective `wins`: let
p_t be the probability that the buzzer answers at step t if it has not answered before, right_t the label, and EW_t the
curve at step t.  Then

    sum_t EW_t right_t p_t prod_{s<t} (1 - p_s)

is the question's expected wins if every step answers with that probability.  The sum is differentiable, so training
maximises it directly over the whole question.  A share of the cross entropy is added so that p remains a probability of
being right.  With `at_end`, the remaining probability goes to an answer at the last step.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from buzzers import wins
from buzzers.histories import Histories
from buzzers.learnt import WIDTHS, standardise
from sqa.core import Count, NotNegative, Positive, Whole, checked
from sqa.files import Arithmetic, Device, Dtype, place
from sqa.training.trainer import Trainer, scale_of

GRADIENT_NORM = 1.0  # maximum norm of the gradient
Scale = tuple[np.ndarray, np.ndarray]  # mean and standard deviation, each of shape (d,)
AT_ONCE = 256  # number of questions scored at once


@dataclass(frozen=True, slots=True)
@checked
class FitConfig:
    """Settings under `training` in configs/train_buzzers.yaml, which documents their meanings and units."""

    features: Literal["qanta", "all"]
    objective: Literal["wins", "label"]
    label_weight: NotNegative
    batch: Count
    epochs: Count
    learning_rate: Positive
    weight_decay: NotNegative
    seed: Whole
    device: Annotated[Device, "auto = a GPU if there is one"] = "cpu"
    dtype: Annotated[Dtype, "auto or float32"] = "auto"
    ARITHMETIC: ClassVar = Arithmetic(("float32",))


class Batch(NamedTuple):
    """A batch of B questions, padded to the length of the longest."""

    rows: Tensor  # (B, n, d), standardised
    right: Tensor  # (B, n), 1 where the top guess is right
    guessed: Tensor  # (B, n), 1 where there is a guess, 0 in the padding
    worth: Tensor  # (B, n), the curve where the top guess is right, else 0
    end: Tensor  # (B,), value of an answer at the last step if unanswered questions are answered there, else 0


class StepNetwork(nn.Module):
    """Network with one logit per step from the step's features: logistic regression, or an MLP if there are units."""

    def __init__(self, width: int, units: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(width, units) if units else None
        self.output = nn.Linear(units or width, 1)

    def forward(self, rows: Tensor) -> Tensor:
        """Return logits of shape (B, n) for features of shape (B, n, d)."""
        inner = rows if self.hidden is None else torch.relu(self.hidden(rows))
        return self.output(inner).squeeze(-1)


class StateNetwork(nn.Module):
    """Recurrent network with one logit per step from the state after the steps so far."""

    def __init__(self, width: int, units: int, dropout: float, skip: bool) -> None:
        super().__init__()
        self.cell = nn.GRU(width, units, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.skip = skip
        self.output = nn.Linear(units + width if skip else units, 1)

    def forward(self, rows: Tensor) -> Tensor:
        """Return logits of shape (B, n) for features of shape (B, n, d)."""
        states = self.dropout(self.cell(rows)[0])  # (B, n, H)
        return self.output(torch.cat([states, rows], dim=-1) if self.skip else states).squeeze(-1)


class Fitted(NamedTuple):
    """A fitted network."""

    tensors: dict[str, np.ndarray]  # the network's tensors, mean and standard deviation; float32
    logits: Callable[[Histories], list[np.ndarray]]  # returns uncalibrated logits of shape (n,) for each question
    epoch: int  # the selected epoch, from 1


def fit(
    config: FitConfig, make: Callable[[int], nn.Module], learnt: Histories, kept: Histories, at_end: bool = False
) -> Fitted:
    """Train `make(features)` on `learnt` and return the network of the epoch with the most expected wins on `kept`."""
    torch.manual_seed(config.seed)
    width = WIDTHS[config.features]
    scale = scale_of(np.concatenate([history.rows[:, :width] for history in learnt]))
    device = place(config).device
    network = make(width).to(device)
    optimiser = torch.optim.Adam(network.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, config.epochs)
    by_length = sorted(learnt, key=lambda history: len(history.right))
    groups = [by_length[i : i + config.batch] for i in range(0, len(by_length), config.batch)]
    batches = [batch_of(group, scale, at_end, device) for group in groups]
    trainer = Trainer("training", optimiser, {"network": network}, clip=GRADIENT_NORM)
    for _ in trainer.rounds(config.epochs):
        network.train()
        for number in torch.randperm(len(batches)).tolist():
            trainer.descend([loss(network(batches[number].rows), batches[number], config)])
        decay.step()
        trainer.judge(wins.best_threshold(kept, logits_of(network, kept, scale), at_end)[1])
        trainer.say(best=f"{trainer.best_score:.4f}")
    trainer.take_best()
    tensors = {name: tensor.cpu().numpy() for name, tensor in network.state_dict().items()}
    tensors |= {"mean": scale[0], "deviation": scale[1]}
    return Fitted(tensors, lambda histories: logits_of(network, histories, scale), trainer.done - trainer.stale)


def batch_of(histories: Histories, scale: Scale, at_end: bool = False, device: str = "cpu") -> Batch:
    """Return the questions as one padded batch."""
    longest, width = max(len(history.right) for history in histories), len(scale[0])
    rows = np.zeros((len(histories), longest, width), np.float32)
    right, guessed, worth = (np.zeros((len(histories), longest), np.float32) for _ in range(3))
    end = np.zeros(len(histories), np.float32)
    for row, history in enumerate(histories):
        n = len(history.right)
        rows[row, :n] = standardise(history.rows[:, :width], *scale)
        right[row, :n], guessed[row, :n] = history.right, history.guessed
        worth[row, :n] = np.where(history.right, wins.CURVE(history.fraction), 0)
        end[row] = worth[row, n - 1] if at_end and n else 0
    return Batch(*(torch.from_numpy(array).to(device) for array in (rows, right, guessed, worth, end)))


def loss(logits: Tensor, batch: Batch, config: FitConfig) -> Tensor:
    """Return the training loss, a scalar, for logits of shape (B, n)."""
    entropy = binary_cross_entropy_with_logits(logits, batch.right, weight=batch.guessed, reduction="sum")
    label = entropy / batch.guessed.sum().clamp(min=1)
    if config.objective == "label":
        return label
    return config.label_weight * label - soft_wins(logits, batch).mean()


def soft_wins(logits: Tensor, batch: Batch) -> Tensor:
    """Return expected wins of shape (B,) if each step with a guess answers with probability sigmoid(logit)."""
    wait = -softplus(logits) * batch.guessed  # ln(1 - p), (B, n)
    waited = torch.cumsum(wait, dim=1) - wait  # ln of the probability that no earlier step answered
    answer = torch.exp(waited - softplus(-logits)) * batch.guessed
    return (answer * batch.worth).sum(1) + torch.exp(wait.sum(1)) * batch.end


@torch.no_grad()
def logits_of(network: nn.Module, histories: Histories, scale: Scale) -> list[np.ndarray]:
    """Return the logits of each question, float32 arrays of shape (n,)."""
    network.eval()
    groups = [histories[start : start + AT_ONCE] for start in range(0, len(histories), AT_ONCE)]
    device = str(next(network.parameters()).device)
    batches = (batch_of(group, scale, device=device) for group in groups)
    rows = (row for batch in batches for row in network(batch.rows).cpu().numpy())
    return [row[: len(history.right)] for row, history in zip(rows, histories, strict=True)]
