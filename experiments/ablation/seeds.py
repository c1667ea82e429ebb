"""Translators trained several times in the ablation over k: means over seeds, variance, differences as in MultEval.

The statistics are those of experiments/ablation/trainings.py; p-values are corrected (Holm) for the ks of a comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, stdev
from typing import TYPE_CHECKING, NamedTuple

from experiments.ablation.trainings import Difference, compare_trainings, over_questions
from experiments.grid import CONTINUED, SEPARATE
from experiments.ladders import order
from experiments.made import Difference as Told
from experiments.made import Made
from sqa import metrics as metric_names
from sqa.core.permutation import holm

if TYPE_CHECKING:
    from experiments.grid import Row

SHIPPED = "wait-k"  # the bundled model, which they began with
SHOWN = ("bleu", "ew", "oracle-ew", "accuracy")
ENDS = ("", ".sd", ".questions")  # of columns


class Over(NamedTuple):
    """One metric of one translator, k and guesser over seeds."""

    n: int
    mean: float
    deviation: float | None  # n - 1; None with one seed
    questions: float | None = None  # standard deviation over questions; None where the metric is not among SHOWN


Key = tuple[str, str, int | str, str]  # data set, family, k, guesser


def groups_of(rows: Sequence[Row]) -> dict[Key, list[Row]]:
    """The trainings of each translator, k and guesser; the shipped model counts as one."""
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        if row.cell.seed is not None or row.cell.family == SHIPPED:
            groups.setdefault((row.cell.dataset, row.cell.family, row.cell.k, row.cell.guesser), []).append(row)
    return groups


def over_seeds(rows: Sequence[Row]) -> dict[Key, dict[str, Over]]:
    """(data set, family, k, guesser) -> metric -> mean and deviations."""
    return {
        key: {name: _over(group, name) for name in group[0].intervals if all(name in row.intervals for row in group)}
        for key, group in groups_of(rows).items()
    }


def _over(group: Sequence[Row], metric: str) -> Over:
    intervals = [row.intervals[metric] for row in group]
    values = [interval.value for interval in intervals]
    questions = None
    if metric in SHOWN:
        [built] = metric_names.build([metric])
        questions = over_questions([row.stats[metric] for row in group], built, intervals[0].resamples, 0)
    return Over(len(values), fmean(values), stdev(values) if len(values) > 1 else None, questions)


def differences(groups: Mapping[Key, Sequence[Row]], other: str, metric: str) -> dict[Key, tuple[Difference, float]]:
    """Key of the separate models -> they minus `other` at the same k, and p corrected for all k of the same guesser."""
    [built] = metric_names.build([metric])
    found: dict[Key, tuple[Difference, float]] = {}
    for dataset, guesser in dict.fromkeys((key[0], key[3]) for key in groups):
        pairs: dict[Key, Difference] = {}
        for key, mine in groups.items():
            theirs = groups.get((dataset, other, key[2], guesser), [])
            if (key[0], key[3]) == (dataset, guesser) and key[1] == SEPARATE and theirs:
                if all(metric in row.stats for row in (*mine, *theirs)):
                    tables = [row.stats[metric] for row in mine], [row.stats[metric] for row in theirs]
                    pairs[key] = compare_trainings(*tables, built, mine[0].intervals[metric].resamples)
        found |= dict(zip(pairs, zip(pairs.values(), holm([d.p for d in pairs.values()]), strict=True), strict=True))
    return found


def trends(groups: Mapping[Key, Sequence[Row]], metric: str) -> dict[tuple[Key, Key], Difference]:
    """(least k, largest k) of a translator with several trainings -> largest minus least, by the same seeds."""
    [built] = metric_names.build([metric])
    ladders: dict[tuple[str, str, str], list[Key]] = {}
    for key, mine in groups.items():
        if len(mine) > 1 and all(metric in row.stats for row in mine):
            ladders.setdefault((key[0], key[1], key[3]), []).append(key)
    found: dict[tuple[Key, Key], Difference] = {}
    for keys in ladders.values():
        least, most = (pick(keys, key=lambda key: order(key[2])) for pick in (min, max))
        below, above = ({row.cell.seed: row for row in groups[key]} for key in (least, most))
        seeds = [seed for seed in above if seed in below]
        if least != most and seeds:
            high, low = ([rows[seed].stats[metric] for seed in seeds] for rows in (above, below))
            resamples = groups[most][0].intervals[metric].resamples
            found[least, most] = compare_trainings(high, low, built, resamples, same=most[1] != SEPARATE)
    return found


def write_seeds(rows: Sequence[Row], made: Made) -> None:
    """seeds.tsv, and seeds_differences.tsv with p in the column `note`; nothing where no row has a seed."""
    if all(row.cell.seed is None for row in rows):
        return
    summary = over_seeds(rows)
    names = list(dict.fromkeys(name for values in summary.values() for name in values))
    head = ["dataset", "translator", "k", "guesser", "seeds", *(f"{n}{p}" for n in names for p in ENDS)]
    lines = []
    for (dataset, family, k, guesser), values in summary.items():
        numbers = [cell for name in names for cell in _cells(values.get(name))]
        lines.append([dataset, family, str(k), guesser, str(next(iter(values.values())).n), *numbers])
    made.table("seeds.tsv", head, lines)
    made.differences(_told(groups_of(rows)), name="seeds_differences.tsv", show=False)


def _cells(over: Over | None) -> tuple[str, ...]:
    values = (None, None, None) if over is None else (over.mean, over.deviation, over.questions)
    return tuple("n/a" if value is None else f"{value:.6f}" for value in values)


def _told(groups: Mapping[Key, Sequence[Row]]) -> Iterator[Told]:
    """What the largest k gains over the smallest, and separate models over the others."""
    for metric in SHOWN:
        for (least, most), d in trends(groups, metric).items():
            yield _line(most, metric, f"k = {most[2]} minus k = {least[2]}", d, d.p)
        for other in (CONTINUED, SHIPPED):
            for key, (d, p) in differences(groups, other, metric).items():
                named = "the shipped model" if other == SHIPPED else other
                yield _line(key, metric, f"{SEPARATE} minus {named}, k = {key[2]}", d, p)


def _line(key: Key, metric: str, between: str, found: Difference, p: float) -> Told:
    dataset, family, _, guesser = key
    return Told(dataset, family, guesser, metric, between, found.value, found.low, found.high, note=f"p={p:.3f}")
