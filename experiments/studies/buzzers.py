"""When to answer: the expected wins of every buzzer of a guesser, and the maximum that the guesses allow.

The item `buzzers` shows the expected wins of the buzzers and of the two oracles, statistics at the answer,
calibration, and the paired difference from the best fixed threshold.

That threshold is the best of a grid on the same questions as the table, over all three signals of the threshold
buzzer.  No threshold chosen in advance can win more, so a buzzer above it beats every fixed threshold.

A question that stays unanswered wins nothing (the paper's rule).  Buzzers trained with "answer at end" have two lines:
under the paper's rule (", silent") and under their own rule, each with the threshold tuned for it.  The suffix
"-translated" marks buzzers that were also trained on translations.

    dev             tossups that neither the guesser nor the buzzer was trained on, guessed by the guesser that buzzers
                    are trained on (`data` in configs/train_buzzers.yaml:mlp-GUESSER); a fifth of them have answers
                    without a page
    guessdev        QANTA's guessdev questions that have a page, guessed by the bundled guesser
    xqb-es, xqb-pl  configs/xqb.yaml:es_wait6_translated, pl_wait6_translated; results stored in --runs are reused
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from buzzers import calibration, learnt, wins
from buzzers.histories import GuessHistory, guesser_of, histories_of
from buzzers.learnt import LOGISTIC, MLP, all_features
from buzzers.recurrent import RECURRENT
from buzzers.threshold import KIND, SIGNALS, ThresholdBuzzer, signals
from buzzers.train import load_config
from experiments.lab import grid_rows
from experiments.lab.item import Item, elsewhere, inputs_of
from experiments.lab.ledger import Row, row_of
from experiments.lab.tables import Column, columns, pivot
from sqa import metrics as metric_names
from sqa.api.experiment import Result
from sqa.core.differences import compare
from sqa.core.errors import ConfigError
from sqa.core.paths import CONFIGS, DATA, ROOT
from sqa.core.significance import bootstrap, means
from sqa.data.texts import load_guessdev, tossups_of
from sqa.files.store import Store
from sqa.metrics.qa import ExpectedWins, oracle_expected_wins, stable_expected_wins
from sqa.pipeline import engine
from sqa.pipeline.config import load_run
from sqa.pipeline.spread import make_ahead

PLAYED = (("dev", "bm25"), ("dev", "gru"), ("guessdev", "bm25"), ("xqb-es", "bm25"), ("xqb-pl", "bm25"))
CONTESTANTS, METRICS = ("rerank", "bm25"), ("ew", "accuracy", "stable-ew")
NETWORKS = (RECURRENT, MLP, LOGISTIC)
AGAINST = "minus best threshold"

Histories = Sequence[GuessHistory]
Scores = Sequence[np.ndarray]  # for each question, the score at each step


@dataclass(frozen=True, slots=True)
class Outcome:
    """One buzzer on n questions."""

    name: str
    won: np.ndarray  # (n,) expected wins
    steps: np.ndarray  # (n,) step of the answer, or the number of steps if there is none
    chances: list[np.ndarray] | None = None  # per question, P(right) at each step; None if not given


def outcomes(guesser: str, histories: Histories, models: Path = DATA / "models") -> list[Outcome]:
    """Return the outcomes of every trained buzzer, of the tuned and the best thresholds, and of the two oracles."""
    results = []
    for suffix, network in itertools.product(("", "-translated"), NETWORKS):
        folder = models / f"buzzer-{network.kind}-{guesser}{suffix}"
        if folder.is_dir():
            buzzer, name = learnt.load(network, folder), f"{network.kind}{suffix}"
            chances = [buzzer.chances(history.rows) for history in histories]
            if buzzer.card.thresholds:
                results.append(_answered(f"{name}, silent", histories, chances, buzzer.threshold))
                buzzer = learnt.load(network, folder, end="answer")
            outcome = _answered(name, histories, chances, buzzer.threshold, bool(buzzer.card.thresholds))
            results.append(replace(outcome, chances=chances))
    if not results:
        how = f"sqa train buzzer configs/train_buzzers.yaml:mlp-{guesser}"
        raise ConfigError(f"{guesser}: no trained buzzer under {models}; {how}")
    if (models / f"{KIND}-{guesser}").is_dir():
        tuned = ThresholdBuzzer.load(models / f"{KIND}-{guesser}")
        scores = [history.signals[:, SIGNALS.index(tuned.signal)] for history in histories]
        results.append(_answered(f"threshold ({tuned.signal})", histories, scores, tuned.threshold))
    for column, signal in enumerate(SIGNALS):
        scores = [history.signals[:, column] for history in histories]
        threshold, _ = wins.best_threshold(histories, scores)
        results.append(_answered(f"best {signal} threshold here", histories, scores, threshold))
    return [*results, *oracles(histories)]


def oracles(histories: Histories) -> list[Outcome]:
    """Return the outcomes of the stable oracle and the oracle, which stay silent on questions that they cannot win."""
    first, lasting = [], []
    for history in histories:
        n = len(history.right)
        right, wrong = np.flatnonzero(history.right), np.flatnonzero(~history.right)
        first.append(right[0] if len(right) else n)
        lasting.append(n if not n or not history.right[-1] else wrong[-1] + 1 if len(wrong) else 0)
    stable = [stable_expected_wins(wins.CURVE, history.fraction, history.right, 0.0) for history in histories]
    oracle = [oracle_expected_wins(wins.CURVE, history.fraction, history.right, 0.0) for history in histories]
    return [
        Outcome("stable oracle", np.array(stable), np.array(lasting)),
        Outcome("oracle", np.array(oracle), np.array(first)),
    ]


def _answered(name: str, histories: Histories, scores: Scores, threshold: float, at_end: bool = False) -> Outcome:
    at = np.array([threshold])
    steps = [int(wins.first_answers(history, score, at)[0]) for history, score in zip(histories, scores, strict=True)]
    if at_end:  # an unanswered question is answered at its last step, if there is a guess
        steps = [min(step, len(o.right) - bool(o.guessed[-1])) for step, o in zip(steps, histories, strict=True)]
    return Outcome(name, wins.wins(histories, scores, at, at_end)[:, 0], np.array(steps))


def rows(
    cell: tuple[str, ...], results: Sequence[Outcome], histories: Histories, resamples: int = 1000
) -> Iterator[Row]:
    """Yield the wins and errors of each buzzer, and its difference from the best fixed threshold.

    A number that a buzzer does not have (statistics at the answer, if it never answers) has no row.
    """
    best = max((o for o in results if o.name.startswith("best ")), key=lambda outcome: outcome.won.mean())
    wins_of = {outcome.name: float(outcome.won.mean()) for outcome in results}
    metric, n = ExpectedWins(), len(histories)
    guessed = np.concatenate([history.guessed for history in histories])
    right = np.concatenate([history.right for history in histories])[guessed]
    for outcome in results:
        at, won = (*cell, outcome.name), wins_of[outcome.name]
        yield row_of(at, "ew", bootstrap(means(outcome.won), metric, resamples), "0-1")
        for name, oracle in (("of stable", "stable oracle"), ("of oracle", "oracle")):
            if wins_of[oracle]:
                yield Row(at, name, won / wins_of[oracle], n=n, unit="share")
        hits = [(o.right[s], o.fraction[s]) for o, s in zip(histories, outcome.steps, strict=True) if s < len(o.right)]
        if hits:
            yield Row(at, "right at answer", float(np.mean([hit for hit, _ in hits])), n=n, unit="share")
            yield Row(at, "position", float(np.mean([fraction for _, fraction in hits])), n=n, unit="share")
        yield Row(at, "never", 1 - len(hits) / n, n=n, unit="share")
        if outcome.chances is not None:
            chance = np.concatenate(outcome.chances)[guessed]
            yield Row(at, "ece", calibration.expected_calibration_error(chance, right), n=n, unit="0-1")
            yield Row(at, "brier", calibration.brier(chance, right), n=n, unit="0-1")
        if outcome is not best:
            yield row_of(at, AGAINST, compare(means(outcome.won), means(best.won), metric, resamples), "0-1")


def questions_of(guesser: str, questions: str, runs: Path) -> list[GuessHistory]:
    """Return the guesses after each word of the questions; stored guesses are reused."""
    if questions.startswith("xqb-"):
        return translated(CONFIGS / f"xqb.yaml:{questions[-2:]}_wait6_translated", runs)
    data = load_config(ROOT / "configs" / f"train_buzzers.yaml:mlp-{guesser}").data
    if questions == "guessdev":
        data, tossups = replace(data, model=guesser), [tossup for tossup in load_guessdev() if tossup.page is not None]
    else:
        tossups = tossups_of(["dev"])
    return histories_of(guesser_of(data), tossups, questions, data.cache)


def translated(path: Path, runs: Path) -> list[GuessHistory]:
    """Return the guesses of a run after each translated word."""
    traces = engine.run(load_run(path), Store(runs), until="guess", ahead=make_ahead).traces
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


def measure(_: Path, runs: Path) -> Iterator[Row]:
    """Yield the rows of every buzzer on each pair of questions and guesser in PLAYED."""
    for questions, guesser in PLAYED:
        histories = questions_of(guesser, questions, runs)
        yield from rows((questions, guesser), outcomes(guesser, histories), histories)


def contestants_compared(config: Path, runs: Path) -> Iterator[Row]:
    """Yield the metrics of both contestants for every translator at every k, and their paired difference."""
    cells: dict[tuple[str, str, str], dict[str, Result]] = {}
    for row in grid_rows.finished(config, runs):
        cells.setdefault((row.cell.dataset, row.cell.translator, str(row.cell.k)), {})[row.cell.contestant] = row
    for cell, rows in cells.items():
        if all(name in rows for name in CONTESTANTS):
            for metric in metric_names.build(METRICS):
                for name in CONTESTANTS:
                    yield replace(rows[name].rows[metric.name], signature="")
                a, b = (rows[name].stats[metric.name] for name in CONTESTANTS)
                gap = compare(a, b, metric)
                yield row_of((*cell, "difference"), metric.name, gap, metric.unit)


LONG = [
    *columns("ew: EW", interval=False),
    *columns("of stable", "right at answer", "position", "never", "ece: ECE", "brier: Brier"),
    *columns(AGAINST, sign=True),
]
ORACLES = ("stable oracle", "oracle")
TRAINED = ("mlp-bert", "mlp-rerank", "mlp-rerank-translated")
BUZZERS = ("recurrent", "mlp", "logistic", "threshold")

ITEMS = (
    Item(
        "buzzers",
        "expected wins of every buzzer, and the maximum that its guesses allow",
        "",
        ("questions", "guesser", "buzzer"),
        measure,
        inputs_of([f"buzzer-{kind}-{guesser}" for kind in BUZZERS for guesser in ("bm25", "gru")]),
        {
            **{name: pivot(("buzzer",), LONG, questions="dev", guesser=name) for name in ("bm25", "gru")},
            "others": pivot(
                ("questions", "guesser", "buzzer"), columns("ew: EW"), questions=("guessdev", "xqb-es", "xqb-pl")
            ),
            "translated": pivot(
                ("buzzer",),
                [
                    Column("ew", f"{head}, our wait-6", cell={"questions": name})
                    for name, head in (("xqb-es", "Spanish"), ("xqb-pl", "Polish"))
                ],
                guesser="bm25",
                buzzer=("mlp", "mlp-translated, silent", "mlp-translated", *ORACLES),
            ),
        },
        kept="guesses for thousands of tossups, an hour",
    ),
    Item(
        "trained-buzzers",
        "values that the training of a buzzer prints for held-out tossups",
        "",
        ("buzzer", "tossups"),
        elsewhere("`sqa train buzzer` prints them"),
        blocks={
            name: pivot(("tossups",), columns("ew", "stable ew", "of stable", "ece"), buzzer=name) for name in TRAINED
        },
        kept="training runs",
    ),
    grid_rows.of_grid(
        "reading-or-buzzing",
        "paired comparison of rerank and BM25, each with its buzzer for translations",
        measure=contestants_compared,
    ),
)
