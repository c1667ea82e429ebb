"""`sqa train guesser configs/train_guessers.yaml:fusion`: learns how far to believe which guesser.

The texts are tossups of the fold `buzzer`, of its first half (its second is for the buzzers of the fusion): as they
are, with words spoilt (sqa/data/spoilt.py), and translated there and back where such files are named.  At some words of
each text every guesser names its best pages, and the weights learn which of them, or none, is the answer (cross entropy
over the candidates of the step).  Guessers that counted or read this fold would look better than they are: the config
names those that did not, and under which names (`published`) the finished model asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from guessers.fusion.candidates import DEPTH, candidates, width
from guessers.fusion.guesser import CLIP, FusionGuesser, Weights, built
from sqa.core.answers import is_right
from sqa.core.errors import ConfigError, DataError
from sqa.data.datasets import Tossup, load_tossups
from sqa.data.folds import fold_of, half_of
from sqa.data.spoilt import spoil
from sqa.data.translated import translations
from sqa.files.finite import finite_loss
from sqa.run.config import ComponentConfig

KEPT_BACK = 8  # one in so many texts chooses the epoch


@dataclass(frozen=True, slots=True)
class FusionTraining:
    """Keys of configs/train_guessers.yaml:fusion; see there for meanings and units."""

    kind: Literal["fusion"]
    output: Path
    work: Path
    guessers: tuple[ComponentConfig, ...]
    published: dict[str, str]
    limit: int | None
    noise: float
    translated: tuple[Path, ...]
    points: int
    hidden: int
    epochs: int
    batch: int
    learning_rate: float
    weight_decay: float
    seed: int

    def __post_init__(self) -> None:
        least = {"points": 1, "hidden": 1, "epochs": 1, "batch": 1, "seed": 0, "weight_decay": 0}
        problems = [f"{key}: must be >= {low}, got {getattr(self, key)}" for key, low in least.items()
                    if getattr(self, key) < low]  # fmt: skip
        if len(self.guessers) < 2:
            problems.append("guessers: a fusion is of two or more")
        if self.limit is not None and self.limit < KEPT_BACK:
            problems.append(f"limit: must be >= {KEPT_BACK} or null, got {self.limit}")
        if not 0 <= self.noise <= 1:
            problems.append(f"noise: must be in 0..1, got {self.noise}")
        if self.learning_rate <= 0:
            problems.append(f"learning_rate: must be above 0, got {self.learning_rate}")
        if problems:
            raise ConfigError(problems)


class Lesson(NamedTuple):
    """One text at some of its words."""

    rows: np.ndarray  # (M + T, D) float32, as `Candidates.rows`
    step: np.ndarray  # (M + T,) int64
    target: np.ndarray  # (T,) int64, the row of the answer, or of "none of them"


def train(config: FusionTraining) -> FusionGuesser:
    """The fusion, its guessers under their published names; `config.work` gets it under those it learnt with."""
    texts = texts_of(config)
    if len(texts) < KEPT_BACK:
        raise DataError(f"{config.output}: {len(texts)} texts to learn from; raise limit")
    parts = built(config.guessers)
    lessons = lessons_of([part for _, part in parts], texts, config.points, config.seed)
    learnt = [lesson for place, lesson in enumerate(lessons) if place % KEPT_BACK]
    weights = fit(config, learnt, lessons[::KEPT_BACK])
    FusionGuesser(parts, weights).save(config.work)
    return FusionGuesser(built([published(part, config.published) for part in config.guessers]), weights)


def texts_of(config: FusionTraining) -> list[Tossup]:
    """The tossups as they are, spoilt and translated."""
    whole = [t for t in load_tossups() if fold_of(t.id) == "buzzer" and half_of(t.id) == "first"]
    tossups = whole[: config.limit]
    spoilt = spoil(tossups, config.noise) if config.noise else []
    return [*tossups, *spoilt, *translations(config.translated, whole)]


def lessons_of(parts: Sequence[Any], texts: Sequence[Tossup], points: int, seed: int) -> list[Lesson]:
    """What the guessers name at the last word of each text and at `points` - 1 others, drawn at random."""
    lessons = []
    for place, text in enumerate(tqdm(texts, "guessing", mininterval=2)):
        words = text.text.split()
        rng = np.random.default_rng([seed, place])
        at = sorted({len(words), *(int(end) for end in rng.integers(1, len(words) + 1, points - 1))})
        prefixes = [" ".join(words[:end]) for end in at]
        found = candidates([part.guess(prefixes, DEPTH) for part in parts], at)
        m = len(found.pages)
        target = m + np.arange(len(at))
        for row in range(m):
            if text.page is not None and is_right(found.pages[row], text.page):
                target[found.step[row]] = row
        step = np.concatenate([found.step, np.arange(len(at))])
        lessons.append(Lesson(found.rows.astype(np.float32), step, target))
    return lessons


def fit(config: FusionTraining, learnt: Sequence[Lesson], kept: Sequence[Lesson]) -> Weights:
    """The weights of the epoch with the smallest cross entropy on `kept`."""
    torch.manual_seed(config.seed)
    guessers = len(config.guessers)
    seen = np.concatenate([lesson.rows for lesson in learnt])
    mean, deviation = seen.mean(0, dtype=np.float64), seen.std(0, dtype=np.float64)
    deviation[deviation < 1e-6] = 1.0  # a number that never changes says nothing
    scale = (mean.astype(np.float32), deviation.astype(np.float32))
    network = nn.Sequential(nn.Linear(width(guessers), config.hidden), nn.ReLU(), nn.Linear(config.hidden, 1))
    optimiser = torch.optim.AdamW(network.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay)
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, config.epochs)
    batches = [joined(learnt[i : i + config.batch], scale) for i in range(0, len(learnt), config.batch)]
    checked = [joined(kept[i : i + config.batch], scale) for i in range(0, len(kept), config.batch)]
    best, state = float("inf"), network.state_dict()
    bar = tqdm(range(1, config.epochs + 1), "training", mininterval=2)
    for epoch in bar:
        for place in torch.randperm(len(batches)).tolist():
            optimiser.zero_grad()
            loss = cross_entropy(network, batches[place])
            finite_loss(loss.item(), f"training: epoch {epoch}")
            loss.backward()
            optimiser.step()
        decay.step()
        with torch.no_grad():
            reached = float(np.mean([cross_entropy(network, batch).item() for batch in checked]))
        if reached < best:
            best, state = reached, {name: tensor.clone() for name, tensor in network.state_dict().items()}
        bar.set_postfix(entropy=f"{reached:.4f}", best=f"{best:.4f}")
    names = {"0.weight": "hidden.weight", "0.bias": "hidden.bias", "2.weight": "output.weight", "2.bias": "output.bias"}
    tensors = {names[name]: tensor.numpy() for name, tensor in state.items()}
    return Weights(tensors | {"mean": scale[0], "deviation": scale[1]}, guessers)


class Batch(NamedTuple):
    """R rows of S steps of several texts."""

    rows: Tensor  # (R, D), standardised
    step: Tensor  # (R,) int64
    target: Tensor  # (S,) int64, a row


def joined(lessons: Sequence[Lesson], scale: tuple[np.ndarray, np.ndarray]) -> Batch:
    """Several texts as one; `scale` is mean and deviation (D,)."""
    rows, steps, targets, row, step = [], [], [], 0, 0
    for lesson in lessons:
        rows.append(np.clip((lesson.rows - scale[0]) / scale[1], -CLIP, CLIP))
        steps.append(lesson.step + step)
        targets.append(lesson.target + row)
        row, step = row + len(lesson.rows), step + len(lesson.target)
    return Batch(*(torch.from_numpy(np.concatenate(arrays)) for arrays in (rows, steps, targets)))


def cross_entropy(network: nn.Module, batch: Batch) -> Tensor:
    """Mean over the steps of -ln of the chance of the target."""
    logits = network(batch.rows)[:, 0]
    highest = torch.full((len(batch.target),), -torch.inf).scatter_reduce(0, batch.step, logits.detach(), "amax")
    total = torch.zeros(len(batch.target)).index_add(0, batch.step, torch.exp(logits - highest[batch.step]))
    return (torch.log(total) + highest - logits[batch.target]).mean()


def published(part: ComponentConfig, names: Mapping[str, str]) -> ComponentConfig:
    """The same guesser with its model under the name that `names` has for it."""
    model = getattr(part.options, "model", None)
    return part if model not in names else ComponentConfig(part.name, replace(part.options, model=names[model]))
