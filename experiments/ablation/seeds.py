"""Translators trained several times in the ablation over k: means over seeds, variance, differences as in MultEval.

The statistics are those of experiments/ablation/trainings.py; p-values are corrected (Holm) for the ks of a comparison.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, NamedTuple

from experiments.ablation.trainings import Difference, compare_trainings, over_questions
from experiments.grid import CONTINUED, SEPARATE
from sqa import metrics as metric_names
from sqa.core.permutation import holm
from sqa.files.store import write_text
from sqa.report import markdown
from sqa.report.figure_style import COLOURS, GREY, PAGE, save, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from experiments.grid import Row

SHIPPED = "wait-k"  # the bundled model, which they began with
SHOWN = (("bleu", "BLEU", 1), ("ew", "EW", 3), ("oracle-ew", "oracle EW", 3), ("accuracy", "accuracy", 3))
_MARKERS = "os^Dv"
_SHOWN_NAMES = tuple(name for name, _, _ in SHOWN)
_NAMES = {SEPARATE: "a model for each k", CONTINUED: "one multi-path model", SHIPPED: "the shipped model"}


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
    if metric in _SHOWN_NAMES:
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
        least, most = min(keys, key=_order), max(keys, key=_order)
        below, above = ({row.cell.seed: row for row in groups[key]} for key in (least, most))
        seeds = [seed for seed in above if seed in below]
        if least != most and seeds:
            high, low = ([rows[seed].stats[metric] for seed in seeds] for rows in (above, below))
            resamples = groups[most][0].intervals[metric].resamples
            found[least, most] = compare_trainings(high, low, built, resamples, same=most[1] != SEPARATE)
    return found


def _order(key: Key) -> tuple[bool, int]:
    """The place of a key's k among others."""
    return isinstance(key[2], str), 0 if isinstance(key[2], str) else key[2]


def write_seeds(rows: Sequence[Row], folder: Path) -> list[Path]:
    """seeds.tsv, and seeds.md with a table and a figure per data set; nothing where no row has a seed."""
    if all(row.cell.seed is None for row in rows):
        return []
    summary, groups = over_seeds(rows), groups_of(rows)
    names = list(dict.fromkeys(name for values in summary.values() for name in values))
    lines = [
        "\t".join(
            [
                "dataset",
                "translator",
                "k",
                "guesser",
                "seeds",
                *(f"{n}{p}" for n in names for p in ("", ".sd", ".questions")),
            ]
        )
    ]
    for (dataset, family, k, guesser), values in summary.items():
        numbers = [cell for name in names for cell in _cells(values.get(name))]
        lines.append("\t".join([dataset, family, str(k), guesser, str(next(iter(values.values())).n), *numbers]))
    write_text(folder / "seeds.tsv", "\n".join(lines) + "\n")
    figures = [path for dataset in dict.fromkeys(key[0] for key in summary) for path in draw(summary, dataset, folder)]
    write_text(folder / "seeds.md", "\n".join(_report(summary, groups, figures)) + "\n")
    return [folder / "seeds.tsv", *figures, folder / "seeds.md"]


def _cells(over: Over | None) -> tuple[str, ...]:
    values = (None, None, None) if over is None else (over.mean, over.deviation, over.questions)
    return tuple("n/a" if value is None else f"{value:.6f}" for value in values)


def _report(
    summary: Mapping[Key, Mapping[str, Over]], groups: Mapping[Key, Sequence[Row]], figures: Sequence[Path]
) -> Iterator[str]:
    """Markdown: mean and deviations over seeds and over questions, and what separate models gain over the others."""
    yield "# Over seeds\n"
    yield "Mean ± standard deviation over trainings (± over questions, of one training). Differences of means with 95%"
    yield "intervals over questions and trainings; p by approximate randomisation over both, with Holm over"
    yield "the k where translators are compared."
    for dataset, guesser in dict.fromkeys((key[0], key[3]) for key in summary):
        yield f"\n## {dataset}, {guesser}\n"
        yield from (f"![{f.stem}]({f.name})\n" for f in figures if f.suffix == ".png" and dataset in f.stem)
        yield from markdown.head(["translator", "k", "seeds", *(name for _, name, _ in SHOWN)])
        mine = {key[1:3]: values for key, values in summary.items() if (key[0], key[3]) == (dataset, guesser)}
        for (family, k), values in mine.items():
            cells = [_shown(values.get(metric), digits) for metric, _, digits in SHOWN]
            yield markdown.row([str(family), str(k), str(next(iter(values.values())).n), *cells])
        yield ""
        here = {key: rows for key, rows in groups.items() if (key[0], key[3]) == (dataset, guesser)}
        yield from _trends(here)
        for other in (CONTINUED, SHIPPED):
            yield from _gains(here, other)


def _shown(over: Over | None, digits: int) -> str:
    if over is None:
        return "n/a"
    spread = "" if over.deviation is None else f" ± {over.deviation:.{digits}f}"
    return f"{over.mean:.{digits}f}{spread}" + ("" if over.questions is None else f" (± {over.questions:.{digits}f})")


def _gains(groups: Mapping[Key, Sequence[Row]], other: str) -> Iterator[str]:
    """A sentence per metric: mean difference separate - other at each k, its interval and corrected p."""
    for metric, name, digits in SHOWN:
        found = differences(groups, other, metric)
        if found:
            each = ", ".join(
                f"{key[2]}:{d.value:+.{digits}f} [{d.low:+.{digits}f}, {d.high:+.{digits}f}] p={p:.3f}"
                for key, (d, p) in found.items()
            )
            yield f"- {name}, {SEPARATE} minus {'the shipped model' if other == SHIPPED else other}: {each}"


def _trends(groups: Mapping[Key, Sequence[Row]]) -> Iterator[str]:
    """A sentence per metric and translator: its largest k minus its smallest."""
    for metric, name, digits in SHOWN:
        for (least, most), d in trends(groups, metric).items():
            yield (
                f"- {name}, {most[1]}, k = {most[2]} minus k = {least[2]}: "
                f"{d.value:+.{digits}f} [{d.low:+.{digits}f}, {d.high:+.{digits}f}] p={d.p:.3f}"
            )


def draw(summary: Mapping[tuple, Mapping[str, Over]], dataset: str, folder: Path) -> list[Path]:
    """Expected wins of each guesser and BLEU over k, mean and standard deviation over seeds; PDF and PNG."""
    from matplotlib import pyplot

    guessers = list(dict.fromkeys(key[3] for key in summary if key[0] == dataset))
    panels = [(guesser, "ew", f"expected wins, {guesser}") for guesser in guessers] + [(guessers[0], "bleu", "BLEU")]
    with style():
        figure, axes = pyplot.subplots(1, len(panels), figsize=(PAGE, 2.4), layout="constrained", squeeze=False)
        for axis, (guesser, metric, label) in zip(axes[0], panels, strict=True):
            _panel(axis, {key[1:3]: v for key, v in summary.items() if key[0] == dataset and key[3] == guesser}, metric)
            axis.set_ylabel(label)
            axis.set_xlabel("k (source words read first)")
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=max(1, len(labels)), handlelength=2)
        return save(figure, folder, f"seeds_{Path(dataset).name}")


def _panel(axis: Axes, mine: Mapping[tuple, Mapping[str, Over]], metric: str) -> None:
    ks = sorted({k for _, k in mine}, key=lambda k: 10**9 if k == "full" else int(k))
    families = list(dict.fromkeys(family for family, _ in mine))
    trained = [family for family in families if family != SHIPPED]
    for place, family in enumerate(families):
        aside = 0.16 * (place - (len(families) - 1) / 2)  # else the bars hide one another
        look = trained.index(family) if family in trained else None
        at = [i for i, k in enumerate(ks) if metric in mine.get((family, k), ())]
        found = [mine[family, ks[i]][metric] for i in at]
        if found:
            axis.errorbar(
                [i + aside for i in at], [o.mean for o in found], [o.deviation or 0.0 for o in found],
                color=GREY if look is None else COLOURS[look % len(COLOURS)],
                marker="" if look is None else _MARKERS[look % len(_MARKERS)],
                label=_NAMES.get(family, family), capsize=2,
            )  # fmt: skip
    axis.set_xticks(range(len(ks)), list(map(str, ks)))
