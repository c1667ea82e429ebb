"""Figures 7 (Polish) and 10 (Spanish): does the picture over k depend on who answers?  A line per guesser.

    sqa reproduce fig7
    sqa reproduce fig10

EW, oracle EW and accuracy over k.  The paper takes the questions whose answer its English training questions have; so
do we: those whose answer any of the guessers compared can name (`questions: matched`).

Claims, after Figure 7 of Han, Carpuat and Boyd-Graber (2022), which redraws Figure 3 for a recurrent, a transformer and
a retrieval guesser.  For each guesser: EW rises, peaks and falls with k; oracle EW peaks at a smaller k than EW; full
input has the worse EW and the better accuracy.  For each pair of guessers: they order the k alike (Kendall's tau over
k is above chance).  The verdict on each is printed, with our numbers, and written beside the figures.

Every number is of the questions of a run of `sqa ablation` with the same keys; a run that is in the store is not made
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from experiments.contestant import components
from experiments.contestants import NamedContestant, Runs, check_labels, runs_of, write_csv, write_verdicts
from experiments.drawing import End, label_ends
from experiments.grid import workshop
from experiments.studies.guesser_report import knows
from experiments.verdicts import POOLED, Verdict, corrected, judge, of_difference
from sqa import metrics as metric_names
from sqa.core.errors import ConfigError
from sqa.core.permutation import PERMUTATIONS, null_of, p_value
from sqa.core.registry import GUESSERS
from sqa.core.significance import bootstrap_band, bootstrap_many, compare
from sqa.data.datasets import load_questions
from sqa.report.figure_style import COLOURS, COLUMN, save, style
from sqa.run.config import load

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from experiments.grid import Row
    from sqa.run.parts import Parts

PANELS = (("ew", "expected wins (EW)"), ("oracle-ew", "oracle EW"), ("accuracy", "accuracy"))  # metric, y axis
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


@dataclass(frozen=True, slots=True)
class Figure7Config:
    """What `sqa reproduce fig7` and fig10 read; configs/figure7.yaml explains each key."""

    name: str  # of the folder, and what its files begin with
    ablation: Path
    contestants: tuple[NamedContestant, ...]
    language: str | None = None
    questions: Literal["matched", "all"] = "all"

    def __post_init__(self) -> None:
        problems = check_labels(self.contestants, "contestants")
        if problems:
            raise ConfigError(problems)


def main(config_path: Path, runs: Path) -> None:
    """`sqa reproduce fig7`: run what the store lacks; numbers, figures and verdicts; the verdicts on stdout."""
    config, parts = load(config_path, Figure7Config), workshop(runs).parts
    found = runs_of(config, config_path, runs, parts, [metric for metric, _ in PANELS], config.language)
    if config.questions == "matched":
        found = matched(found, config, parts)
    folder = runs / config.name
    paths = []
    for dataset in found.datasets:
        stem = f"{config.name}_{Path(dataset).name}"
        paths += [
            write_csv(table(found, dataset), folder / f"{stem}.csv"),
            *draw(found, dataset, folder, stem, config.questions),
        ]
    paths.append(write_verdicts(verdicts_of(found), found.left_out, folder / "verdicts.tsv"))
    print(paths[-1].read_text(encoding="utf-8"), end="")
    for path in paths:
        print(path)


def matched(found: Runs, config: Figure7Config, parts: Parts) -> Runs:
    """The same rows on the questions whose answer one of the guessers can name.  None says what it has: ConfigError."""
    labels = set(found.labels.values())
    guessers = [parts.component(GUESSERS, components(contestant.guesser)[0])
                for contestant in config.contestants if contestant.label in labels]  # fmt: skip
    masks: dict[str, np.ndarray] = {}
    for dataset in found.datasets:
        limit = next(row.cell.run.dataset.limit for row in found.rows if row.cell.dataset == dataset)
        asked = load_questions(dataset, limit)
        known = [mask for mask in (knows(guesser, asked) for guesser in guessers) if mask is not None]
        if not known or not np.any(known):
            raise ConfigError(f"questions: matched: no guesser is known to have an answer of {dataset}; set `all`")
        masks[dataset] = np.any(known, axis=0)
    return found._replace(rows=[_only(row, masks[row.cell.dataset], found) for row in found.rows])


def _only(row: Row, mask: np.ndarray, found: Runs) -> Row:
    """A row of some of its questions, with intervals over these."""
    metrics = metric_names.build([name for name, _ in PANELS])
    stats = {name: values[mask] for name, values in row.stats.items()}
    known = [stats[metric.name] for metric in metrics]
    intervals = bootstrap_many(known, metrics, found.config.resamples, found.config.seed)
    return replace(
        row, n=int(mask.sum()), stats=stats, intervals={m.name: i for m, i in zip(metrics, intervals, strict=True)}
    )


# ------------------------------------------------------------------------------------------------------ verdicts


@dataclass(frozen=True, slots=True)
class Agreement:
    """Kendall's tau (a) of two guessers' values over K values of k: a curve of one point, for `bootstrap_band`.

    stats (n, 4 K): sum and count of each k for the first guesser, then for the second.
    """

    name: str = "agreement"

    def score_many(self, stats: np.ndarray) -> np.ndarray:
        """(B, 4 K) -> (B, 1), -1 to 1; a tie counts for neither side."""
        values = (stats[:, 0::2] / stats[:, 1::2]).reshape(len(stats), 2, -1)  # (B, 2, K)
        one, other = np.triu_indices(values.shape[2], 1)
        signs = np.sign(values[:, :, one] - values[:, :, other])  # (B, 2, pairs)
        return (signs[:, 0] * signs[:, 1]).mean(axis=1, keepdims=True)


def verdicts_of(found: Runs) -> list[Verdict]:
    """Every claim of the docstring on every data set, with labels for the guessers' names."""
    resamples, seed = found.config.resamples, found.config.seed
    verdicts = [
        replace(v, guesser=found.labels[v.guesser])
        for v in judge(found.rows, resamples, seed, together=False)
        if v.guesser != "-" and v.dataset != POOLED
    ]
    for dataset in found.datasets:
        lines = {guesser: found.of(dataset, guesser) for guesser in found.labels}
        for guesser, rows in lines.items():
            verdicts.append(_accuracy(rows, dataset, found.labels[guesser], resamples, seed))
        for a, b in combinations(lines, 2):
            who = f"{found.labels[a]}, {found.labels[b]}"
            verdicts += [_agreement(lines[a], lines[b], dataset, who, metric, resamples, seed) for metric, _ in PANELS]
    return corrected(verdicts)


def _accuracy(rows: Sequence[Row], dataset: str, label: str, resamples: int, seed: int) -> Verdict:
    """Full input (the last row) against the smallest k."""
    first, last = rows[0], rows[-1]
    [metric] = metric_names.build(["accuracy"])
    gap = compare(last.stats["accuracy"], first.stats["accuracy"], metric, resamples, seed)
    numbers = f"k={last.cell.k} {gap.a:.3f}, k={first.cell.k} {gap.b:.3f}, {gap.diff:+.3f} "
    numbers += f"[{gap.low:+.3f}, {gap.high:+.3f}]"
    claim = f"accuracy is better at k={last.cell.k} than at k={first.cell.k}"
    return of_difference(dataset, "wait-k", label, claim, numbers, gap)


def _agreement(
    a: Sequence[Row], b: Sequence[Row], dataset: str, who: str, metric: str, resamples: int, seed: int
) -> Verdict:
    """Kendall's tau over k, with its interval over questions; against k that change places for both guessers alike."""
    stats = np.hstack([row.stats[metric] for row in (*a, *b)])  # (n, 4 K)
    band = bootstrap_band(stats, Agreement(), resamples, seed)
    tau, low, high = float(band.value[0]), float(band.low[0]), float(band.high[0])
    numbers = f"Kendall's tau {tau:+.2f} [{low:+.2f}, {high:+.2f}] over {len(a)} k"
    table = np.stack([np.hstack([x.stats[metric], y.stats[metric]]) for x, y in zip(a, b, strict=True)], axis=1)
    null = null_of(table, _taus, PERMUTATIONS, seed)  # (B, 1)
    p, against = (float(p_value(sign * band.value, sign * null)[0]) for sign in (1, -1))
    return Verdict(dataset, "wait-k", who, f"the guessers order the k alike by {metric}", numbers, p, against)


def _taus(sums: np.ndarray) -> np.ndarray:
    """Sums (b, K, 4) -> tau (b, 1)."""
    return Agreement().score_many(sums.reshape(len(sums), -1, 2, 2).swapaxes(1, 2).reshape(len(sums), -1))


# -------------------------------------------------------------------------------------------- numbers and figure


def table(found: Runs, dataset: str) -> list[list[str]]:
    """The drawn numbers: one line per guesser, translator and k, value and 95% interval of each panel."""
    header = ["dataset", "guesser", "translator", "k", "questions"]
    header += [f"{metric}{part}" for metric, _ in PANELS for part in ("", ".low", ".high")]
    lines = [header]
    for guesser, label in found.labels.items():
        for row in (*found.of(dataset, guesser), *found.of(dataset, guesser, "reference")):
            intervals = [row.intervals[metric] for metric, _ in PANELS]
            numbers = [f"{x:.6f}" for i in intervals for x in (i.value, i.low, i.high)]
            lines.append([dataset, label, row.cell.translator, str(row.cell.k), str(row.n), *numbers])
    return lines


def draw(found: Runs, dataset: str, folder: Path, stem: str, which: str) -> list[Path]:
    """One data set's figure, one column wide; returns the PDF and the PNG."""
    from matplotlib import pyplot

    n = next(row.n for row in found.rows if row.cell.dataset == dataset)
    with style():
        figure, panels = pyplot.subplots(len(PANELS), 1, figsize=(COLUMN, 4.75), layout="constrained", sharex=True)
        for axes, (metric, name) in zip(panels, PANELS, strict=True):
            axes.set_ylabel(name)
            _panel(axes, found, dataset, metric)
        ks = [row.cell.k for row in found.of(dataset, next(iter(found.labels)))]
        panels[-1].set_xticks(range(len(ks)), [*map(str, ks)])
        panels[-1].set_xlabel("k (source words read first)\nhuman: the value for the human translation")
        kind = "questions" if which == "all" else "questions with a matched answer"
        panels[0].set_title(f"{dataset}, {n} {kind}\n95% bands", loc="left")
        return save(figure, folder, stem)


def _panel(axes: Axes, found: Runs, dataset: str, metric: str) -> None:
    """One metric over k: a line with its band for each guesser, named with the value of the human translation.

    That value is not drawn: it may be several times those of the lines, which would lie flat below it.
    """
    ends = {}
    for i, (guesser, label) in enumerate(found.labels.items()):
        colour, marker = COLOURS[i % len(COLOURS)], _MARKERS[i % len(_MARKERS)]
        line = [row.intervals[metric] for row in found.of(dataset, guesser)]
        x = range(len(line))
        axes.fill_between(x, [i.low for i in line], [i.high for i in line], color=colour, alpha=0.12, linewidth=0)
        axes.plot(x, [i.value for i in line], color=colour, marker=marker)
        [human] = found.of(dataset, guesser, "reference")
        ends[f"{label}\nhuman: {human.intervals[metric].value:.2f}"] = End(line[-1].value, colour)
    axes.set_ylim(bottom=0)
    label_ends(axes, ends)
