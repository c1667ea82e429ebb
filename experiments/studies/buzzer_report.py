"""How good is every buzzer of a guesser, and how far from the best that its guesses allow?

`python -m experiments.studies.buzzer_report GUESSER [--questions dev|guessdev|RUN.yaml] [--reliability]` prints a table
(TSV): expected wins, their part of the two oracles' expected wins, what happens at the answer, calibration, and the
paired difference to the best fixed threshold.

That threshold is the best one of a grid on the very questions of the table, over all three signals of the threshold
buzzer: no threshold chosen beforehand can win more, so a buzzer above it beats them all.

A question that ends unanswered wins nothing (the paper's rule).  Buzzers that learnt to have it answered there have two
lines, by the paper's rule (", silent") and then by theirs, each with the chance that was tuned for it.  "-translated"
are those that learnt from translations too.

    dev        tossups that neither the guesser nor the buzzer learnt from, guessed by the guesser that buzzers are
               trained on (`data` in configs/train_buzzers.yaml:mlp-GUESSER); a fifth of them on answers without a page
    guessdev   QANTA's guessdev questions that have a page, guessed by the bundled guesser
    RUN.yaml   the questions, translator and guesser of a run's config; what --runs has of it is not made again
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from buzzers import calibration, learnt, logistic, mlp, recurrent, wins
from buzzers.features import SIGNALS, signals
from buzzers.histories import GuessHistory, guesser_of, histories_of
from buzzers.learnt import all_features
from buzzers.threshold import KIND, ThresholdBuzzer
from buzzers.train import fold_tossups, load_config
from sqa.core.errors import ConfigError, SqaError
from sqa.core.paths import DATA, ROOT
from sqa.core.significance import Comparison, bootstrap, compare
from sqa.data.datasets import load_guessdev
from sqa.files.store import Store
from sqa.metrics.qa import ExpectedWins, oracle_expected_wins, stable_expected_wins
from sqa.run import pipeline
from sqa.run.config import load_run, with_limit
from sqa.run.entries import is_config

NETWORKS = (recurrent.NETWORK, mlp.NETWORK, logistic.NETWORK)
HEADER = (
    "buzzer", "threshold", "ew", "ew_low", "ew_high", "of_oracle", "of_stable", "accuracy_at_buzz", "mean_position",
    "never", "ece", "brier", "minus_best_threshold", "low", "high", "p",
)  # fmt: skip
RELIABILITY_HEADER = ("buzzer", "chance_low", "chance_high", "steps", "mean_chance", "share_right")


@dataclass(frozen=True, slots=True)
class Outcome:
    """One buzzer on n questions."""

    name: str
    threshold: float | None  # of its score; None for an oracle
    won: np.ndarray  # (n,) expected wins
    steps: np.ndarray  # (n,) where it answered, the number of steps where it never did
    chances: list[np.ndarray] | None = None  # per question, chance of being right at each step; None where it has none


class Line(NamedTuple):
    """One row of the table; None where a buzzer has no such number."""

    outcome: Outcome
    low: float  # of the expected wins
    high: float
    accuracy_at_buzz: float | None  # right answers / answers; None if it never answers
    position: float | None  # mean fraction of the characters read at the answer
    never: float  # questions without an answer / questions
    ece: float | None
    brier: float | None
    against: Comparison | None  # this minus the best threshold; None for that itself


def outcomes(guesser: str, histories: Sequence[GuessHistory], models: Path = DATA / "models") -> list[Outcome]:
    """Every buzzer of a guesser: the trained ones, the tuned threshold, the best thresholds, the oracles."""
    found = []
    for suffix, network in itertools.product(("", "-translated"), NETWORKS):
        folder = models / f"buzzer-{network.kind}-{guesser}{suffix}"
        if folder.is_dir():
            buzzer, name = learnt.load(network, folder), f"{network.kind}{suffix}"
            chances = [buzzer.chances(one.rows) for one in histories]
            if buzzer.card.thresholds:
                found.append(_answered(f"{name}, silent", histories, chances, buzzer.threshold))
                buzzer = learnt.load(network, folder, end="answer")
            outcome = _answered(name, histories, chances, buzzer.threshold, bool(buzzer.card.thresholds))
            found.append(replace(outcome, chances=chances))
    if not found:
        how = f"sqa train buzzer configs/train_buzzers.yaml:mlp-{guesser}"
        raise ConfigError(f"{guesser}: no trained buzzer under {models}; {how}")
    if (models / f"{KIND}-{guesser}").is_dir():
        tuned = ThresholdBuzzer.load(models / f"{KIND}-{guesser}")
        scores = [one.signals[:, SIGNALS.index(tuned.signal)] for one in histories]
        found.append(_answered(f"threshold ({tuned.signal})", histories, scores, tuned.threshold))
    for column, signal in enumerate(SIGNALS):
        scores = [one.signals[:, column] for one in histories]
        threshold, _ = wins.best_threshold(histories, scores)
        found.append(_answered(f"best {signal} threshold here", histories, scores, threshold))
    return [*found, *oracles(histories)]


def oracles(histories: Sequence[GuessHistory]) -> list[Outcome]:
    """The two upper bounds; they answer where they win, else never."""
    first, lasting = [], []
    for one in histories:
        n = len(one.right)
        right, wrong = np.flatnonzero(one.right), np.flatnonzero(~one.right)
        first.append(right[0] if len(right) else n)
        lasting.append(n if not n or not one.right[-1] else wrong[-1] + 1 if len(wrong) else 0)
    stable = [stable_expected_wins(wins.CURVE, one.fraction, one.right, 0.0) for one in histories]
    oracle = [oracle_expected_wins(wins.CURVE, one.fraction, one.right, 0.0) for one in histories]
    return [
        Outcome("stable oracle", None, np.array(stable), np.array(lasting)),
        Outcome("oracle", None, np.array(oracle), np.array(first)),
    ]


def _answered(
    name: str,
    histories: Sequence[GuessHistory],
    scores: Sequence[np.ndarray],
    threshold: float,
    at_end: bool = False,
) -> Outcome:
    at = np.array([threshold])
    steps = [int(wins.first_answers(one, score, at)[0]) for one, score in zip(histories, scores, strict=True)]
    if at_end:  # an unanswered question is answered at its last step, if there is a guess
        steps = [min(step, len(o.right) - bool(o.guessed[-1])) for step, o in zip(steps, histories, strict=True)]
    return Outcome(name, threshold, wins.wins(histories, scores, at, at_end)[:, 0], np.array(steps))


def lines(found: Sequence[Outcome], histories: Sequence[GuessHistory], resamples: int = 1000) -> list[Line]:
    """The table: each buzzer against the best of the fixed thresholds on these questions."""
    best = max((o for o in found if o.name.startswith("best ")), key=lambda outcome: outcome.won.mean())
    metric = ExpectedWins()
    guessed = np.concatenate([one.guessed for one in histories])
    right = np.concatenate([one.right for one in histories])[guessed]
    table = []
    for outcome in found:
        interval = bootstrap(_stats(outcome), metric, resamples)
        hits = [(o.right[s], o.fraction[s]) for o, s in zip(histories, outcome.steps, strict=True) if s < len(o.right)]
        chance = None if outcome.chances is None else np.concatenate(outcome.chances)[guessed]
        table.append(
            Line(
                outcome,
                interval.low,
                interval.high,
                accuracy_at_buzz=float(np.mean([hit for hit, _ in hits])) if hits else None,
                position=float(np.mean([place for _, place in hits])) if hits else None,
                never=1 - len(hits) / len(histories),
                ece=None if chance is None else calibration.expected_calibration_error(chance, right),
                brier=None if chance is None else calibration.brier(chance, right),
                against=None if outcome is best else compare(_stats(outcome), _stats(best), metric, resamples),
            )
        )
    return table


def _stats(outcome: Outcome) -> np.ndarray:
    """(n, 2): what the metric `ew` adds up."""
    return np.stack([outcome.won, np.ones(len(outcome.won))], axis=1)


def cells(line: Line, stable: float, oracle: float) -> list[str]:
    """The row as text; `stable` and `oracle` are those buzzers' expected wins."""
    won, against = float(line.outcome.won.mean()), line.against
    numbers = [
        won, line.low, line.high, won / oracle if oracle else None, won / stable if stable else None,
        line.accuracy_at_buzz, line.position, line.never, line.ece, line.brier,
    ]  # fmt: skip
    threshold = "-" if line.outcome.threshold is None else f"{line.outcome.threshold:.3g}"
    difference = ["-"] * 4
    if against is not None:
        difference = [f"{value:+.4f}" for value in (against.diff, against.low, against.high)]
        difference.append(f"{against.p_bootstrap:.3f}")
    return [line.outcome.name, threshold, *("-" if x is None else f"{x:.4f}" for x in numbers), *difference]


def reliability_rows(found: Sequence[Outcome], histories: Sequence[GuessHistory]) -> list[list[str]]:
    """Per trained buzzer and tenth of the chances: steps, mean chance, share right; "-" where there are no steps."""
    guessed = np.concatenate([one.guessed for one in histories])
    right = np.concatenate([one.right for one in histories])[guessed]
    rows = []
    for outcome in found:
        if outcome.chances is not None:
            for row in calibration.reliability(np.concatenate(outcome.chances)[guessed], right):
                means = [f"{row.chance:.3f}", f"{row.right:.3f}"] if row.steps else ["-", "-"]
                rows.append([outcome.name, f"{row.low:.1f}", f"{row.high:.1f}", str(row.steps), *means])
    return rows


def questions_of(guesser: str, questions: str, limit: int | None, runs: Path) -> list[GuessHistory]:
    """The questions as the guesser played them, from the stores where they are there."""
    if is_config(questions):
        return translated(Path(questions), limit, runs)
    if questions not in ("dev", "guessdev"):
        raise ConfigError(f"--questions: expected dev, guessdev or the .yaml of a run, got {questions!r}")
    data = load_config(ROOT / "configs" / f"train_buzzers.yaml:mlp-{guesser}").data
    if questions == "guessdev":
        data, tossups = replace(data, model=guesser), [tossup for tossup in load_guessdev() if tossup.page is not None]
    else:
        tossups = fold_tossups("dev", None)
    return histories_of(guesser_of(data), tossups[:limit], questions, data.cache)


def translated(path: Path, limit: int | None, runs: Path) -> list[GuessHistory]:
    """The questions of a run, as its guesser played what its translator wrote."""
    config = load_run(path)
    config = config if limit is None else with_limit(config, limit)
    if config.guesser is None:
        raise ConfigError(f"{path} guesser: missing; buzzers go by guesses")
    traces = pipeline.run(config, Store(runs), until="guess").traces
    return [
        GuessHistory(
            rows=all_features(trace.guesses),
            signals=np.array([signals(guesses) for guesses in trace.guesses]),
            right=trace.correct,
            guessed=np.array([bool(guesses) for guesses in trace.guesses]),
            fraction=trace.fraction,
        )
        for trace in traces
        if len(trace.guesses)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.studies.buzzer_report", description=__doc__.split("\n")[0]
    )
    parser.add_argument("guesser", help="bm25 or gru")
    parser.add_argument("--questions", default="dev", metavar="dev|guessdev|RUN.yaml")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="where the stages of a run are kept")
    parser.add_argument("--limit", type=int, default=None, help="only the first so many questions")
    parser.add_argument("--reliability", action="store_true", help="print the reliability table instead")
    given = parser.parse_args(arguments)
    try:
        histories = questions_of(given.guesser, given.questions, given.limit, given.runs)
        found = outcomes(given.guesser, histories)
    except SqaError as error:
        print("\n".join(f"sqa: {line}" for line in str(error).splitlines()), file=sys.stderr)
        return error.exit_code
    if given.reliability:
        rows: list[list[Any]] = [list(RELIABILITY_HEADER), *reliability_rows(found, histories)]
    else:
        bound = {o.name: float(o.won.mean()) for o in found}
        table = lines(found, histories)
        rows = [list(HEADER), *(cells(line, bound["stable oracle"], bound["oracle"]) for line in table)]
    print(f"sqa: {len(histories)} questions, curve {wins.CURVE.name}", file=sys.stderr)
    print("\n".join("\t".join(row) for row in rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
