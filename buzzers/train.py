"""Command `sqa train buzzer CONFIG`: train a buzzer on a guesser's guesses for tossups that the guesser never saw.

Every word of a tossup of the fold `buzzer` is a step, labelled by whether the top guess is right.  Tossups without an
answer page are included; the guesser is never right on them, as on unknown answers.  One tossup in eight is held out to
choose the epoch and the probability threshold (by expected wins) and to calibrate.

With `noise`, every tossup is used twice: clean, and corrupted like a translation (`sqa.data.texts`).  With
`translated`, round-trip translations in files (`guessers.noise`) are also used, and corrupted as well.  A buzzer
trained with `translated` is for translations, so its threshold is tuned on all corrupted texts, not on clean tossups.

With `end: answer`, a question that ends unanswered is answered with the top guess, and a wrong answer costs nothing.
The fold `dev` is read only for the final report.  Buzzers of the same guesser share its cached guesses.

A calibrated buzzer's probability of being right equals the share of right steps.  The fit is isotonic.  Steps are
sorted by logit and cut into bins of equal size.  Neighbouring bins whose shares of right steps decrease are merged
(pool adjacent violators), and the logits of the shares are joined by straight lines.  A slope of 0.01 is added to keep
different logits apart, so a threshold selects the same steps before and after calibration.  `calibrated` in
buzzers/learnt.py applies the fit.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from torch import nn
from tqdm import tqdm

from buzzers import wins
from buzzers.fit import FitConfig, StateNetwork, StepNetwork, fit
from buzzers.histories import DataChoice, GuessHistory, Histories, guesser_of, histories_of
from buzzers.learnt import LOGISTIC, MLP, SLOPE, Card, End, LearntBuzzer
from buzzers.recurrent import RECURRENT
from buzzers.threshold import SIGNALS, ThresholdBuzzer
from sqa.core import BelowOne, ConfigError, Count, DataError, checked
from sqa.data.texts import corrupt, tossups_of, translations
from sqa.files import read_yaml
from sqa.metrics.qa import oracle_expected_wins, stable_expected_wins
from sqa.pipeline import config as configs

KNOTS = 20  # maximum number of bins of the fit


def calibration_of(logits: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the knots of the calibration, an array of shape (2, k) with 1 <= k <= 20.

    The first row has increasing logits, the second their calibrated logits, which never decrease, minus .01 times the
    logit.  `logits` are finite, `right` is boolean; both have shape (n,), n >= 1.
    """
    order = np.argsort(logits, kind="stable")
    pools: list[np.ndarray] = []  # [steps, sum of logits, right steps]
    for part in np.array_split(order, min(KNOTS, len(order))):
        pools.append(np.array([len(part), logits[part].sum(dtype=np.float64), right[part].sum()]))
        while len(pools) > 1 and (np.diff(_means(pools[-2:])) <= 0).any():
            pools[-2:] = [pools[-2] + pools[-1]]
    at, chance = _means(pools)
    return np.stack([at, np.log(chance / (1 - chance)) - SLOPE * at]).astype(np.float32)


def _means(pools: Sequence[np.ndarray]) -> np.ndarray:
    """Return the mean logit and the share of right steps of each pool, an array of shape (2, k).

    Half a right and half a wrong step are added, so that the share is never 0 or 1.
    """
    steps, total, right = np.transpose(pools)
    return np.stack([total / steps, (right + 0.5) / (steps + 1)])


KEPT_BACK = 8  # one in this many tossups is used for tuning
ENDS: tuple[End, ...] = ("answer", "silent")


@dataclass(frozen=True, slots=True)
@checked
class NetworkShape:
    """Keys under `network` that apply to the kind; see configs/train_buzzers.yaml."""

    hidden: Annotated[Count | None, "rectified units, or units of the state"] = None
    dropout: Annotated[BelowOne | None, "dropout of the state in training, 0..1"] = None
    skip: Annotated[bool | None, "whether the output also reads the step's features"] = None


@dataclass(frozen=True, slots=True)
class ThresholdTraining:
    """Config for tuning a threshold buzzer; configs/train_buzzers.yaml documents meanings and units."""

    kind: Literal["threshold"]
    output: Path
    data: DataChoice


@dataclass(frozen=True, slots=True)
class Learning:
    """Config for training a buzzer's network; configs/train_buzzers.yaml documents meanings and units."""

    kind: Literal["logistic", "mlp", "recurrent"]
    output: Path
    data: DataChoice
    training: FitConfig
    network: NetworkShape = NetworkShape()
    end: End = "silent"

    def __post_init__(self) -> None:
        expected = SHAPES[self.kind]
        given = [field.name for field in fields(NetworkShape) if getattr(self.network, field.name) is not None]
        if given != expected:
            raise ConfigError(f"network: {self.kind} takes {', '.join(expected) or 'none'}, got {', '.join(given)}")

    def untrained(self, width: int) -> nn.Module:
        """Return the untrained network for this number of features."""
        shape, units = self.network, self.network.hidden or 0
        if shape.skip is None:
            return StepNetwork(width, units)
        return StateNetwork(width, units, shape.dropout or 0.0, shape.skip)


NETWORKS = {network.kind: network for network in (LOGISTIC, MLP, RECURRENT)}
SHAPES = {"logistic": [], "mlp": ["hidden"], "recurrent": ["hidden", "dropout", "skip"]}
KINDS: dict[str, type] = {"threshold": ThresholdTraining, **dict.fromkeys(NETWORKS, Learning)}


def main(config_path: Path, output: Path | None = None) -> Path:
    """Train a buzzer and return its folder (`output`, or the config's `output` if that is None)."""
    config = load_config(config_path)
    learnt, kept, tuning, dev = material(config.data)
    if not learnt or not kept or not dev["dev"]:
        raise DataError(f"{config_path}: too few tossups to train on; raise limit")
    folder = output or config.output
    report: dict[str, Any] = {"read": {"learnt": len(learnt), "kept back": len(kept)}}
    if isinstance(config, ThresholdTraining):
        tuned, column = tune([*learnt, *kept])
        tuned.save(folder, config.data.guesser)
        report |= {"signal": tuned.signal, "threshold": tuned.threshold}
        for name, histories in dev.items():
            report[name] = dev_wins(histories, [history.signals[:, column] for history in histories], tuned.threshold)
    else:
        buzzer, epoch = learn(config, learnt, kept, tuning)
        buzzer.save(folder)
        report |= {"epoch": epoch, "threshold": buzzer.threshold, "end": config.end}
        for name, histories in dev.items():
            chances = [buzzer.chances(history.rows) for history in histories]
            report[name] = dev_wins(histories, chances, buzzer.threshold, buzzer.card.end == "answer")
    tqdm.write(f"{folder} {json.dumps(report, indent=1)}", file=sys.stderr)
    return folder


class Material(NamedTuple):
    """The data of a training run."""

    learnt: list[GuessHistory]
    kept: list[GuessHistory]  # tossups that select the epoch and calibrate
    tuning: list[GuessHistory]  # tossups that tune the threshold: `kept`; with translations, all corrupted tossups
    dev: dict[str, list[GuessHistory]]  # name -> tossups for the report: the fold `dev`, and held-out translations


def material(data: DataChoice) -> Material:
    """Return the guess histories of the tossups, in the variants (clean, translated, corrupted) that `data` selects."""
    guesser = guesser_of(data)
    whole = tossups_of(["buzzer"], data.half)
    kept_back = {tossup.id for tossup in whole[::KEPT_BACK]}
    texts = [("buzzer", whole[: data.limit]), ("dev", tossups_of(["dev"])[: data.limit])]
    texts += [(f"buzzer {file.name}", translations([file], whole)) for file in data.translated]
    if data.noise:
        texts += [(f"{name} corrupted", corrupt(some, data.noise, data.noise_least)) for name, some in texts]
    read = [(name, some, histories_of(guesser, some, name, data.cache)) for name, some in texts]
    result = Material([], [], [], {name: histories for name, _, histories in read if name.startswith("dev")})
    for name, tossups, histories in read:
        if name.startswith("dev"):
            continue
        pairs = list(zip(tossups, histories, strict=True))
        result.learnt.extend(history for tossup, history in pairs if tossup.id not in kept_back)
        held = [history for tossup, history in pairs if tossup.id in kept_back]
        if name != "buzzer" or not data.translated:
            result.kept.extend(held)
        if name.endswith(" corrupted") and data.translated:
            result.tuning.extend(histories)
        if ".jsonl" in name:
            result.dev[f"kept back, {name}"] = held
    return result if result.tuning else result._replace(tuning=result.kept)


def load_config(path: Path) -> ThresholdTraining | Learning:
    """Load a training config.  Raises ConfigError that lists all problems."""
    kind = read_yaml(path).get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ConfigError(f"{path} kind: expected one of {', '.join(KINDS)}, got {repr(kind)[:60]}")
    return configs.load(path, KINDS[kind])


def tune(histories: Histories) -> tuple[ThresholdBuzzer, int]:
    """Return the threshold buzzer with the best expected wins over all signals, and the index of its signal."""
    columns = range(len(SIGNALS))
    best = [wins.best_threshold(histories, [history.signals[:, column] for history in histories]) for column in columns]
    column = max(columns, key=lambda column: best[column][1])
    return ThresholdBuzzer(best[column][0], SIGNALS[column]), column


def learn(config: Learning, learnt: Histories, kept: Histories, tuning: Histories) -> tuple[LearntBuzzer, int]:
    """Return the trained, calibrated and tuned buzzer, and the selected epoch."""
    network = NETWORKS[config.kind]
    fitted = fit(config.training, config.untrained, learnt, kept, config.end == "answer")
    logits = fitted.logits(kept)
    guessed = np.concatenate([history.guessed for history in kept])
    right = np.concatenate([history.right for history in kept])
    tensors = fitted.tensors | {"calibration": calibration_of(np.concatenate(logits)[guessed], right[guessed])}
    training = {"noise": config.data.noise, **asdict(config.training), "epoch": fitted.epoch}
    untuned = Card(config.data.guesser, config.training.features, 0.0, training, config.end)
    chances = [LearntBuzzer(network, tensors, untuned).chances(history.rows) for history in tuning]
    best: dict[str, float] = {end: wins.best_threshold(tuning, chances, end == "answer")[0] for end in ENDS}
    card = replace(untuned, threshold=best[config.end], thresholds=best if config.end == "answer" else {})
    return LearntBuzzer(network, tensors, card), fitted.epoch


def dev_wins(dev: Histories, scores: wins.Scores, threshold: float, at_end: bool = False) -> dict[str, float]:
    """Return the expected wins of the buzzer and of two oracles, and the buzzer's share of each oracle's wins."""
    reached = float(wins.wins(dev, scores, np.array([threshold]), at_end).mean())
    oracle = float(np.mean([oracle_expected_wins(wins.CURVE, history.fraction, history.right, 0.0) for history in dev]))
    stable = float(np.mean([stable_expected_wins(wins.CURVE, history.fraction, history.right, 0.0) for history in dev]))
    report = {"expected wins": reached, "expected wins, stable": stable, "expected wins, oracle": oracle}
    if stable > 0:
        report |= {"share of stable": reached / stable, "share of oracle": reached / oracle}
    return report
