"""`sqa train buzzer CONFIG`: trains the MLP buzzer on a guesser's guesses for tossups the guesser never saw.

Every word of a tossup of the fold `buzzer` is a step, its label whether the top guess is right; tossups whose answer
has no page are part of it (the guesser is never right there, as with answers it does not know).  One tossup in eight is
kept back: it chooses the epoch (accuracy of the labels, as in QANTA) and the chance at which to answer (expected wins).
The fold `dev` is read at the end only, to report.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from tqdm import tqdm

from buzzers.features import N_GUESSES, features, share
from buzzers.mlp import MlpBuzzer
from sqa import config as configs
from sqa.answers import is_right
from sqa.datasets import Tossup, load_tossups
from sqa.errors import ConfigError, DataError
from sqa.folds import fold_of
from sqa.metrics.qa import CURVES, expected_wins, oracle_expected_wins, stable_expected_wins
from sqa.registry import GUESSERS

CURVE = CURVES["qanta2018"]
KEPT_BACK = 8  # one in so many tossups chooses epoch and threshold
THRESHOLDS = np.round(np.arange(0.02, 0.99, 0.02), 2)  # chances tried
SHARES = np.round(np.arange(0.11, 0.60, 0.01), 2)  # thresholds of the threshold buzzer tried, for comparison


@dataclass(frozen=True, slots=True)
class GuesserChoice:
    """Whose guesses to train on."""

    name: str  # a registered guesser
    model: str  # its model, which must not have seen the folds `buzzer` and `dev`


@dataclass(frozen=True, slots=True)
class MlpTraining:
    """Keys of configs/buzzer_mlp_*.yaml; see there for meanings and units."""

    kind: Literal["mlp"]
    output: Path
    guesser: GuesserChoice
    limit: int | None
    hidden: int
    batch: int
    epochs: int
    learning_rate: float
    weight_decay: float
    seed: int

    def __post_init__(self) -> None:
        problems = [
            f"{name}: must be >= 1, got {getattr(self, name)}"
            for name in ("hidden", "batch", "epochs")
            if getattr(self, name) < 1
        ]
        if problems:
            raise ConfigError(problems)


@dataclass(frozen=True, slots=True)
class Played:
    """One tossup as a guesser played it; n steps, one a word."""

    rows: np.ndarray  # (n, 22) float32 features
    right: np.ndarray  # (n,) bool, the top guess is right
    guessed: np.ndarray  # (n,) bool, there is a guess
    share: np.ndarray  # (n,) float64, what the threshold buzzer looks at
    fraction: np.ndarray  # (n,) float64, characters read / characters


def main(config_path: Path, output: Path | None = None) -> Path:
    """Train a buzzer; returns its folder (the config's `output` unless another is given)."""
    config = configs.load(config_path, MlpTraining)
    choice = config.guesser
    guesser = GUESSERS.build(choice.name, GUESSERS.config_class(choice.name)(model=choice.model))
    tossups = load_tossups()
    played = {fold: list(play(guesser, _fold(tossups, fold, config.limit), fold)) for fold in ("buzzer", "dev")}
    kept = played["buzzer"][::KEPT_BACK]
    learnt = [one for place, one in enumerate(played["buzzer"]) if place % KEPT_BACK]
    if not learnt or not played["dev"]:
        raise DataError(f"{config_path}: too few tossups to train on; raise limit")
    tensors = fit(config, learnt, kept)
    chances = MlpBuzzer(tensors, 0.0).chances
    threshold = float(max(THRESHOLDS, key=lambda value: wins(kept, chances, value)))
    cut = float(max(SHARES, key=lambda value: share_wins(kept, value)))
    folder = output or config.output
    MlpBuzzer(tensors, threshold).save(folder, choice.name)
    dev = played["dev"]
    report = {
        "tossups": {"learnt": len(learnt), "kept back": len(kept), "dev": len(dev)},
        "threshold": threshold,
        "dev expected wins": wins(dev, chances, threshold),
        "dev label accuracy": label_accuracy(dev, chances),
        "dev expected wins, threshold buzzer": share_wins(dev, cut),
        "threshold buzzer": cut,
        "dev expected wins, oracle": _mean(oracle_expected_wins(CURVE, p.fraction, p.right, 0.0) for p in dev),
        "dev expected wins, stable": _mean(stable_expected_wins(CURVE, p.fraction, p.right, 0.0) for p in dev),
    }
    tqdm.write(json.dumps(report, indent=1))
    return folder


def _fold(tossups: Sequence[Tossup], fold: str, limit: int | None) -> list[Tossup]:
    return [tossup for tossup in tossups if fold_of(tossup.id) == fold][:limit]


def play(guesser: Any, tossups: Sequence[Tossup], name: str) -> Iterator[Played]:
    """Let the guesser read each tossup word by word."""
    for tossup in tqdm(tossups, f"guessing {name}", mininterval=2):
        words = tossup.text.split()
        history = guesser.guess_prefixes(words, N_GUESSES)
        read = np.cumsum([len(word) + 1 for word in words]) - 1  # characters up to the end of each word
        yield Played(
            rows=features(history),
            right=np.array([bool(g) and tossup.page is not None and is_right(g[0].page, tossup.page) for g in history]),
            guessed=np.array([bool(g) for g in history]),
            share=np.array([share(g) if len(g) >= N_GUESSES else 0.0 for g in history]),
            fraction=read / read[-1],
        )


def fit(config: MlpTraining, learnt: Sequence[Played], kept: Sequence[Played]) -> dict[str, np.ndarray]:
    """The tensors of the epoch whose labels on `kept` are best."""
    import torch
    from torch import nn

    torch.manual_seed(config.seed)
    rows = np.concatenate([one.rows for one in learnt])
    mean, deviation = rows.mean(0, dtype=np.float64), rows.std(0, dtype=np.float64)
    deviation[deviation < 1e-6] = 1.0  # a feature that never changes says nothing
    x = torch.from_numpy(((rows - mean) / deviation).astype(np.float32))  # (N, 22)
    y = torch.from_numpy(np.concatenate([one.right for one in learnt]).astype(np.float32))  # (N,)
    network = nn.Sequential(nn.Linear(x.shape[1], config.hidden), nn.ReLU(), nn.Linear(config.hidden, 1))
    optimiser = torch.optim.Adam(network.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay)
    criterion = nn.BCEWithLogitsLoss()
    best: tuple[float, dict[str, np.ndarray]] = (-1.0, {})
    bar = tqdm(range(config.epochs), "training")
    for _ in bar:
        order, total = torch.randperm(len(x)), 0.0
        for start in range(0, len(x), config.batch):
            chosen = order[start : start + config.batch]
            loss = criterion(network(x[chosen]).squeeze(1), y[chosen])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.item() * len(chosen)
        tensors = {
            "mean": mean.astype(np.float32),
            "deviation": deviation.astype(np.float32),
            "hidden.weight": network[0].weight.detach().numpy().copy(),
            "hidden.bias": network[0].bias.detach().numpy().copy(),
            "output.weight": network[2].weight.detach().numpy()[0].copy(),
            "output.bias": network[2].bias.detach().numpy().copy(),
        }
        accuracy = label_accuracy(kept, MlpBuzzer(tensors, 0.0).chances)
        best = max(best, (accuracy, tensors), key=lambda pair: pair[0])
        bar.set_postfix(loss=f"{total / len(x):.4f}", accuracy=f"{accuracy:.4f}")
    return best[1]


def wins(played: Sequence[Played], chances: Any, threshold: float) -> float:
    """Mean expected wins over tossups of answering at the first step with that chance."""
    return _mean(
        expected_wins(CURVE, one.fraction, one.right, one.guessed & (chances(one.rows) >= threshold)) for one in played
    )


def share_wins(played: Sequence[Played], threshold: float) -> float:
    """The same for the threshold buzzer."""
    return _mean(expected_wins(CURVE, one.fraction, one.right, one.share >= threshold) for one in played)


def label_accuracy(played: Sequence[Played], chances: Any) -> float:
    """Share of steps where "the chance is at least one half" agrees with "the top guess is right"."""
    agree = [(chances(one.rows) >= 0.5) == one.right for one in played]
    return float(np.concatenate(agree).mean())


def _mean(values: Iterator[float]) -> float:
    return float(np.mean(list(values)))
