"""Run every combination of translators, guessers and k, and show the results in a table and a figure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqa.api.runs import Run, part_names
from sqa.core.compute import set_for
from sqa.core.errors import ConfigError
from sqa.core.k import FULL, K
from sqa.core.paths import DATA
from sqa.core.registry import TRANSLATORS, did_you_mean
from sqa.pipeline import paired
from sqa.pipeline.config import run_from_mapping, to_mapping
from sqa.pipeline.overrides import named
from sqa.pipeline.spread import run_all
from sqa.report.plots import COLUMN, Panel, canvas, draw, lines, style
from sqa.results import Frame, Table, frames

if TYPE_CHECKING:
    import pandas

    from sqa.report.plots import Axes

Part = str | Mapping[str, Any]  # "bm25", or {"name": "waitk", "model": "es-en"}
KEYS = ("translator", "guesser", "k")
PRINTED = ("ew", "oracle-ew", "accuracy", "bleu", "dal")  # default columns of the printed table
TRAINED_FOR = "its guesser"  # selects the bundled buzzer of each guesser


@dataclass(frozen=True)
class Experiment:
    """An experiment: the parts to combine, given as in a config.  Nothing is read or run before `run`."""

    translators: Sequence[Part]
    guessers: Sequence[Part]
    k: Sequence[K] = ()  # for every translator with a k; empty: each translator's own
    buzzer: Part | None = TRAINED_FOR  # for all combinations; by default the bundled buzzer of each guesser
    dataset: str = "mini-es"
    limit: int | None = None  # number of questions
    metrics: Sequence[str] = ()  # empty: the default set
    name: str = "experiment"  # prefix of the names of runs
    runs: str | Path = "runs"
    workers: int | None = None  # processes; None: one per processor

    def run(self, progress: bool = True) -> Results:
        """Run every combination, reusing stored blocks.  Raises ConfigError with all problems before the first run."""
        configs, problems = [], list[str]()
        for labels, mapping in self._combinations():
            try:
                configs.append((labels, named(run_from_mapping(mapping), labels)))
            except ConfigError as error:
                problems += [f"{' '.join(labels)}: {problem}" for problem in error.problems]
        if problems:
            raise ConfigError(problems)
        if not configs:
            raise ConfigError("an experiment needs at least one translator and one guesser")
        set_for(name for _, config in configs for name in part_names(config))
        made = run_all([config for _, config in configs], Path(self.runs), progress, self.workers)
        return Results(Result(*labels, Run(run.folder)) for (labels, _), run in zip(configs, made, strict=True))

    def _combinations(self) -> Iterator[tuple[tuple[str, str, str], dict[str, Any]]]:
        """Yield the labels (translator, guesser, k) and the config's plain values of each combination."""
        for translator, label in zip(map(_mapping, self.translators), _labels(self.translators), strict=True):
            for k in self.k if self.k and _has_k(translator) else (None,):
                for guesser, other in zip(map(_mapping, self.guessers), _labels(self.guessers), strict=True):
                    mapping: dict[str, Any] = {
                        "name": self.name,
                        "dataset": {"name": self.dataset, "limit": self.limit},
                        "translator": translator if k is None else {**translator, "k": k},
                        "guesser": guesser,
                        "buzzer": _bundled_buzzer(guesser) if self.buzzer == TRAINED_FOR else to_mapping(self.buzzer),
                    }
                    if self.metrics:
                        mapping["metrics"] = list(self.metrics)
                    yield (label, other, str(translator.get("k", "-") if k is None else k)), mapping


@dataclass(frozen=True)
class Result:
    """The result of a combination."""

    translator: str
    guesser: str
    k: str  # "-" if the translator has no k
    run: Run

    def is_baseline_of(self, other: Result, to: str) -> bool:
        """Return True if this is the baseline `to` of `other`: a k of the same translator, or a translator's label."""
        same = self.guesser == other.guesser
        return same and (self.translator == to or (self.translator == other.translator and self.k == to))


class Results(tuple[Result, ...]):
    """All results, in the order translator, k, guesser; printed as a table of a few metrics."""

    @property
    def frame(self) -> Frame:
        """A frame with one row per combination and metric, with columns translator, guesser and k."""
        cells = [(result, (result.translator, result.guesser, result.k)) for result in self]
        rows = (replace(row, cell=cell) for result, cell in cells for row in result.run.rows.values())
        return Frame(KEYS, tuple(rows))

    def __repr__(self) -> str:
        return repr(self._shown())

    def _repr_html_(self) -> str:
        return self._shown()._repr_html_()

    def _shown(self) -> Table:
        return self.table(*(name for name in PRINTED if name in self._names()))

    def table(self, *metrics: str, intervals: bool = False) -> Table:
        """Return a row per combination and a column per metric (default: all), optionally with 95% intervals."""
        names = metrics or self._names()
        digits = {name: getattr(self._metric(name), "digits", 0) for name in names}
        rows = []
        for result in self:
            measured = [result.run.rows.get(name) for name in names]
            cells = [row if intervals or row is None else row.value for row in measured]
            rows.append((result.translator, result.guesser, result.k, *cells))
        return Table((*KEYS, *names), rows, digits)

    def compare(self, *metrics: str, to: str = FULL) -> pandas.DataFrame:
        """Compare each result with a baseline of the same guesser, paired over questions.

        Args:
            metrics: Names of metrics; default: `ew`.
            to: The k of the baseline, with the same translator, or the label of the baseline's translator.

        Returns:
            A frame with one row per compared result and metric.  Columns: translator, guesser, k, metric, diff (result
            minus baseline), low, high (95% interval) and p (approximate randomisation).

        Raises:
            ConfigError: If no result has that baseline.
        """
        header = (*KEYS, "metric", "diff", "low", "high", "p")
        rows = []
        for result in self:
            base = next((other for other in self if other.is_baseline_of(result, to)), None)
            if base is not None and base is not result:
                for row in paired.compare(result.run.read, base.run.read, wanted=metrics or ("ew",))[0]:
                    key = (result.translator, result.guesser, result.k)
                    rows.append((*key, row.metric, row.diff, row.low, row.high, row.p_randomization))
        if not rows:
            raise ConfigError(f"to={to!r}: no result has that k or translator as its baseline")
        return frames().DataFrame(rows, columns=header)

    def plot(self, metric: str = "ew", ax: Axes | None = None) -> Axes:
        """Plot a metric over k with 95% bands, one line per translator and guesser, in `ax` or a new figure."""
        label = getattr(self._metric(metric), "label", metric)
        rows = [
            replace(row, cell=(", ".join(row.cell[:2]), row.cell[2]))
            for row in self.frame.where(metric)
            if row.value is not None
        ]
        with style(to_files=False):
            if ax is None:
                _, [[ax]] = canvas((COLUMN, 2.6))
            draw(ax, Panel("", lines(rows, 0, 1), label))
            ax.set_xlabel("k (source words read first)")
            ax.set_ylim(bottom=0)
            if rows:
                ax.legend()
        return ax

    def _names(self) -> tuple[str, ...]:
        """Return the metrics and counts of the runs' reports."""
        return tuple(dict.fromkeys(row.metric for row in self.frame.rows))

    def _metric(self, name: str) -> Any:
        """Return a metric of the runs by name; None for a count or a metric without a value.

        Raises ConfigError for an unknown name.
        """
        if name not in self._names():
            raise ConfigError(f"{name!r} is no metric of these runs{did_you_mean(name, self._names())}")
        folder = next((result.run.read for result in self if name in result.run.read.signatures), None)
        return None if folder is None else paired.metrics_of([name], folder)[0]


def _mapping(part: Part) -> dict[str, Any]:
    return {"name": part} if isinstance(part, str) else dict(to_mapping(part))


def _labels(parts: Sequence[Part]) -> list[str]:
    """Return the name of each part; parts with equal names get their other values appended."""
    mappings = list(map(_mapping, parts))
    names = [str(mapping.get("name")) for mapping in mappings]
    return [
        name if names.count(name) == 1 else " ".join(str(value) for value in mapping.values())
        for name, mapping in zip(names, mappings, strict=True)
    ]


def _has_k(translator: Mapping[str, Any]) -> bool:
    options = {field.name for field in dataclasses.fields(TRANSLATORS.config_class(str(translator.get("name"))))}
    return "k" in options


def _bundled_buzzer(guesser: Mapping[str, Any]) -> dict[str, str]:
    """Return the config of the bundled MLP buzzer for a guesser.  Raises ConfigError if there is none."""
    name = str(guesser.get("name"))
    if not (DATA / "models" / f"buzzer-mlp-{name}").is_dir():
        raise ConfigError(f"guesser {name!r}: no bundled buzzer was trained for it; give buzzer=..., or buzzer=None")
    return {"name": "mlp", "model": name}
