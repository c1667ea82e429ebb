"""Compare two finished runs metric by metric, paired over questions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from sqa import metrics as metric_names
from sqa.core import QUALITY, ConfigError, Floats, NotComputable, bootstrap_many, did_you_mean
from sqa.core.differences import compare_levels, compare_many
from sqa.metrics.quality.text_metric import saved
from sqa.pipeline.config import PARTS, to_mapping
from sqa.pipeline.folder import RunFolder
from sqa.pipeline.saving import RESAMPLES, signed
from sqa.results import Row, Table, defined, row_of

Scored = Sequence[tuple[Any, Floats]]  # metrics with their statistics, arrays of shape (n, d)


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """Comparison of two runs by one metric: difference a - b, 95% interval and two-sided p-value (differences.py)."""

    metric: str
    a: float
    b: float
    diff: float
    low: float | None  # None: undetermined, since fewer than 6 questions differ
    high: float | None
    p: float
    n: int
    signature: str


def intervals(
    cell: tuple[str, ...], given: Scored, resamples: int = 1000, seed: int = 0, unit: str | None = None
) -> list[Row]:
    """Return a row with an interval for each metric; all intervals use the same resamples.

    unit: unit of metrics that define neither unit nor signature; None: each metric has its own.
    """
    if not given:
        return []
    metrics, stats = zip(*given, strict=True)
    named = [(m.unit, m.signature()) if unit is None else (unit, "") for m in metrics]
    measured = bootstrap_many(stats, metrics, resamples, seed)
    return [row_of(cell, m.name, i, *of) for m, i, of in zip(metrics, measured, named, strict=True)]


def compare(
    a: RunFolder, b: RunFolder, n_resamples: int = RESAMPLES, wanted: Sequence[str] = ()
) -> tuple[list[ComparisonRow], list[str]]:
    """Return paired differences a - b of common metrics (default: all), and a note for each metric left out.

    A metric is left out unless both runs have a value for it with the same signature of its own.  If guesser or buzzer
    differ, the signature of the row names both.  Raises ConfigError if the runs have different questions, and
    NotComputable if no metric is left.
    """
    check_same_questions([a, b])
    names, notes = common_metrics([a, b], wanted)
    comparable = []
    for metric in metrics_of(names, a):
        try:
            metric.score(a.stats[metric.name].sum(axis=0))
            metric.score(b.stats[metric.name].sum(axis=0))
        except NotComputable as refusal:
            notes.append(f"{metric.name}: left out, {refusal}")
        else:
            comparable.append(metric)
    if not comparable:
        raise NotComputable("\n".join(["the two runs have no common metric with a value", *notes]))
    pairs = [(a.stats[metric.name], b.stats[metric.name]) for metric in comparable]
    rows = []
    for metric, c in zip(comparable, compare_many(pairs, comparable, n_resamples, a.config.seed), strict=True):
        low, high = defined(c.low), defined(c.high)
        signature = signed(metric, _common([a, b]))
        rows.append(ComparisonRow(metric.name, c.a, c.b, c.diff, low, high, c.p, c.n, signature))
    return rows, notes


QUESTIONS = "questions"  # the level of every interval
LEVELS: Mapping[str, Callable[[dict[str, Any]], Any]] = {  # level -> function that removes its member from a config
    "guesser": lambda config: (config.pop("guesser"), config.pop("buzzer")),
    "training": lambda config: config["translator"].pop("model", None),
}


def compare_over(
    given: Sequence[RunFolder], over: str, n_resamples: int = RESAMPLES, wanted: Sequence[str] = ()
) -> Table:
    """Return the differences between two systems in their common metrics, with intervals over questions and LEVELS.

    `over` lists the levels, separated by commas: QUESTIONS, one of LEVELS, or any dotted key of a config, such as
    translator.seed.  Runs that differ only in their members of these levels belong to the same system.  Raises
    ConfigError unless there are two systems, each with a run for every combination of its members, all on the same
    questions.
    """
    levels = over.split(",")
    parts_of = [{part: to_mapping(getattr(run.config, part)) for part in PARTS} for run in given]
    known = {f"{part}.{key}" for parts in parts_of for part, keys in parts.items() for key in keys or ()}
    if unknown := set(levels) - {QUESTIONS, *LEVELS, *known}:
        level, options = min(unknown), f"{QUESTIONS}, {', '.join(LEVELS)}, or a key such as translator.model"
        raise ConfigError(f"--over: {level!r} is not a level{did_you_mean(level, list(known))}; known: {options}")
    taken = [LEVELS.get(level) or partial(_pop, level) for level in levels if level != QUESTIONS]
    systems: dict[str, dict[tuple[str, ...], RunFolder]] = {}
    check_same_questions(given)
    if problems := unknown_metrics("--metric", wanted, given):
        raise ConfigError(problems)
    for run, parts in zip(given, parts_of, strict=True):
        member = tuple(repr(take(parts)) for take in taken)
        systems.setdefault(repr(parts), {})[member] = run
    members = [[sorted(set(level)) for level in zip(*runs, strict=True)] for runs in systems.values()]
    if len(systems) != 2 or sum(prod(map(len, of)) for of in members) != len(given):
        sizes = " and ".join(str(len(runs)) for runs in systems.values())
        raise ConfigError(f"--over {over}: expected exactly two systems with all their members, got {sizes} members")
    same = [a == b for a, b in zip(*members, strict=True)]
    rows = []
    for metric in metrics_of(common_metrics(given, wanted)[0], given[0]):
        a, b = (
            np.array([runs[each].stats[metric.name] for each in product(*of)])
            for runs, of in zip(systems.values(), members, strict=True)
        )
        a, b = (x.reshape(*map(len, of), *x.shape[1:]) for x, of in zip((a, b), members, strict=True))
        gap = compare_levels(a, b, metric, n_resamples, same)
        low, high = defined(gap.low), defined(gap.high)
        rows.append((metric.name, gap.diff, low, high, gap.p, gap.n, len(given), signed(metric, _common(given))))
    return Table(("metric", "diff", "low", "high", "p", "n", "runs", "signature"), rows)


def _common(runs: Sequence[RunFolder]) -> dict[str, str]:
    """Return the settings of runs; those that differ are joined: "bm25-6d1f20c3 and gru-0a4be917"."""
    names = dict.fromkeys(name for run in runs for name in run.settings)
    return {name: " and ".join(dict.fromkeys(run.settings.get(name, "?") for run in runs)) for name in names}


def _pop(key: str, parts: dict[str, Any]) -> Any:
    """Remove and return the value of a dotted key."""
    part, _, name = key.partition(".")
    return (parts.get(part) or {}).pop(name, None)


def common_metrics(runs: Sequence[RunFolder], wanted: Sequence[str] = ()) -> tuple[list[str], list[str]]:
    """Return metrics (default: all) that all runs have with one signature, and a note for each metric left out."""
    names, notes = [], []
    for name in wanted or dict.fromkeys(name for run in runs for name in run.signatures):
        lacking = [str(run.folder) for run in runs if name not in run.signatures]
        signatures = list(dict.fromkeys(run.signatures.get(name, "") for run in runs))
        if lacking:
            notes.append(f"{name}: left out, {lacking[0]} has no value for it")
        elif len(signatures) > 1:
            notes.append(f"{name}: left out, signatures differ{_difference(signatures)}")
        else:
            names.append(name)
    return names, notes


def _difference(signatures: Sequence[str]) -> str:
    """Return a text with the parts that not every signature has, and the signatures in full."""
    parts = [signature.split("|") for signature in signatures]
    own = ([part for part in each if not all(part in other for other in parts)] for each in parts)
    return f" ({' and '.join('|'.join(each) or 'nothing there' for each in own)}): {' and '.join(signatures)}"


def metrics_of(names: Sequence[str], run: RunFolder) -> list[Any]:
    """Return the metrics of these names, including those of the run's `quality:`."""
    entries = {entry.name: entry for entry in run.config.quality}
    metrics = {m.name: m for m in metric_names.build([m for m in run.config.metrics if metric_names.is_own(m)])}
    metrics |= {m.name: m for m in metric_names.build([m for m in names if m not in entries and m not in metrics])}
    for name in entries.keys() & set(names):
        entry = entries[name].for_run(run.config.name)
        label = getattr(entry.options, "LABEL", None)  # of a `MeanOfSegments`
        mean = None if label is None else saved(name, run.signatures[name], label)
        metrics[name] = mean or QUALITY.build(entry.kind, entry.options)
    return [metrics[name] for name in names]


def check_same_questions(runs: Sequence[RunFolder]) -> None:
    """Raise ConfigError unless all runs have the same questions."""
    for run in runs[1:]:
        if (run.dataset, run.ids) != ((first := runs[0]).dataset, first.ids):
            sizes = " and ".join(f"{each.config.dataset.name}, {len(each.ids)}" for each in (first, run))
            raise ConfigError(f"{first.folder} and {run.folder}: not on the same questions ({sizes})")


def unknown_metrics(option: str, names: Sequence[str], runs: Sequence[RunFolder]) -> list[str]:
    """Return a problem for each metric of an option that no run has."""
    known = list(dict.fromkeys(name for run in runs for name in run.signatures))
    return [f"{option}: no run has {name!r}{did_you_mean(name, known)}" for name in names if name not in known]
