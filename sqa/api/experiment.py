"""Run every combination of translators, k, contestants and data sets, and show the results in a table and a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sqa.api.runs import Run
from sqa.core import DATA, FULL, TRANSLATORS, ConfigError, Floats, K, code_of, did_you_mean, part_names, set_for
from sqa.core.differences import compare_levels, interval_over_levels
from sqa.core.schema import keys
from sqa.data.datasets import load_questions
from sqa.pipeline import RESAMPLES, RunConfig, RunFolder, intervals, paired, run_all, run_from_mapping, to_mapping
from sqa.pipeline.overrides import named
from sqa.pipeline.saving import signed
from sqa.report.data import over_trainings
from sqa.report.plots import COLUMN, Panel, canvas, distinct, draw, lines, style
from sqa.results import Frame, Row, Table, frames, row_of

if TYPE_CHECKING:
    import pandas

    from sqa.report.plots import Axes

Part = str | Mapping[str, Any]  # "bm25", or {"name": "waitk", "model": "es-en"}
COLUMNS = ("dataset", "translator", "k", "contestant")  # columns of a frame
PRINTED = ("ew", "oracle-ew", "accuracy", "bleu", "dal")  # default columns of the printed table
TRAINED_FOR = "its guesser"  # selects the bundled buzzer of each guesser
EVERY_GUESSER = "every guesser"  # contestant shown for a mean over guessers
NO_K = "-"  # value of k shown for a translator without k
_Contestant = tuple[str, Part | None, Part | None]  # label, guesser, buzzer


@dataclass(frozen=True, slots=True)
class Entry:
    """A translator, and its names in the results.

    Args:
        label: Name of the translator in tables and figures.
        translator: Values of its config, or its name.
        k: Name of its k in the results; empty: the translator runs at every k of the experiment.
        seed: Seed of its training, if the translator was trained several times.
        language: Code of the source language of its data sets; None: all data sets.

    Examples:
        >>> Entry("ours", {"name": "recorded", "file": "docs/example/instances.log"}).label
        'ours'
    """

    label: str
    translator: Part
    k: K = ""
    seed: int | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of an experiment: a translator at one k, answered by one contestant on one data set.

    Attributes:
        dataset: Name of the data set.
        family: Label of the translator.
        k: A number of source words, "full", or another name.
        contestant: Label of the guesser with its buzzer.
        config: Config of the run.
        seed: Seed of the translator's training; None if it was trained once.

    Examples:
        >>> experiment = sqa.Experiment([{"name": "waitk", "model": "es-en"}], ["bm25"], k=[3, "full"])
        >>> [cell.key for cell in experiment.cells()]
        [('mini-es', 'waitk', '3', 'bm25'), ('mini-es', 'waitk', 'full', 'bm25')]
    """

    dataset: str
    family: str
    k: K
    contestant: str
    config: RunConfig
    seed: int | None = None

    @property
    def translator(self) -> str:
        """The translator's label, with the seed of its training if there is one."""
        return with_seed(self.family, self.seed)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Values of the columns in `COLUMNS`."""
        return self.dataset, self.translator, str(self.k), self.contestant


def source_language(dataset: str) -> str:
    """Return the language code of a data set's first question."""
    return code_of(load_questions(dataset, 1)[0].language)


def with_seed(family: str, seed: int | None) -> str:
    """Return the name of a translator in the results, with the seed of its training if there is one."""
    return family if seed is None else f"{family}, seed {seed}"


@dataclass(frozen=True)
class Experiment:
    """An experiment: every combination of data sets, translators, k and guessers.  Nothing runs before `run`.

    Args:
        translators: Translators, each a name, the values of a config, or an `Entry`.
        guessers: Guessers, each a name or the values of a config; or a mapping of label to (guesser, buzzer).
        k: Values of k for every translator that has one: at least 1, or "full".  Empty: each translator's own k.
        buzzer: Buzzer of all guessers without a label; default: the bundled buzzer of each.  None: no buzzer.
        dataset: Name of a question set, or a file of questions; one or several.
        limit: Maximum number of questions, at least 1; None: all.
        metrics: Names of metrics; empty: the default set.
        name: Prefix of the names of the runs.
        runs: Folder of results and of the store.
        workers: Number of processes, at least 1; None: one per processor.
        seed: Seed of the intervals.
        resamples: Number of resamples behind the intervals of `Results.frame`.
        quality: Metrics of texts, as in a run's config.
        name_of: Function that names the run of a cell; None: names consist of the cell's labels and a digest.

    Examples:
        >>> experiment = sqa.Experiment([{"name": "waitk", "model": "es-en"}], ["bm25"], k=[3, 9], limit=3)
        >>> [result.k for result in experiment.run(progress=False)]
        ['3', '9']
    """

    translators: Sequence[Part | Entry]
    guessers: Sequence[Part] | Mapping[str, tuple[Part | None, Part | None]]
    k: Sequence[K] = ()
    buzzer: Part | None = TRAINED_FOR
    dataset: str | Sequence[str] = "mini-es"
    limit: int | None = None
    metrics: Sequence[str] = ()
    name: str = "experiment"
    runs: str | Path = "runs"
    workers: int | None = None
    seed: int = 0
    resamples: int = RESAMPLES
    quality: Sequence[Part] = ()
    name_of: Callable[[Cell], str] | None = None

    def run(self, progress: bool = True, wanted: Callable[[Cell], bool] = lambda _: True) -> Results:
        """Run every combination, reusing stored blocks.

        Args:
            progress: Whether to print progress on stderr.
            wanted: Function that selects the cells to run.

        Returns:
            The results in the order of data set, translator, k, guesser.

        Raises:
            ConfigError: If there is no combination, or one has problems.  All problems are reported before the first
                run.
            DataError: If a file that a run reads is missing or malformed.
        """
        cells = list(filter(wanted, self.cells()))
        set_for(name for cell in cells for name in part_names(to_mapping(cell.config)))
        configs, beside = [cell.config for cell in cells], [cell.translator for cell in cells]
        made = run_all(configs, Path(self.runs), progress, self.workers, beside)
        return Results(Result(cell, saved, self.resamples) for cell, saved in zip(cells, made, strict=True))

    def cells(self) -> list[Cell]:
        """Return every combination.

        Returns:
            The cells in the order of data set, translator, k, guesser.

        Raises:
            ConfigError: If there is no combination, or one has problems; the message lists all problems.
        """
        cells, problems = [], list[str]()
        for dataset, entry, (contestant, guesser, buzzer) in self._combinations():
            try:
                config = self._config(dataset, entry, guesser, buzzer)
                cell = Cell(dataset, entry.label, entry.k, contestant, config, entry.seed)
                cells.append(replace(cell, config=self._named(cell)))
            except ConfigError as error:
                labels = f"{with_seed(entry.label, entry.seed)} {contestant} {entry.k}"
                problems += [f"{labels}: {problem}" for problem in error.problems]
        if problems:
            raise ConfigError(problems)
        if not cells:
            raise ConfigError("an experiment needs at least one translator and one guesser")
        return cells

    def _combinations(self) -> Iterator[tuple[str, Entry, _Contestant]]:
        """Yield each data set with every translator of its language at each k, and every contestant."""
        entries, contestants = list(self._entries()), list(self._contestants())
        by_language = any(entry.language for entry in entries)
        for dataset in [self.dataset] if isinstance(self.dataset, str) else self.dataset:
            language = source_language(dataset) if by_language else None
            of_dataset = [e for e in entries if e.language is None or code_of(e.language) == language]
            yield from product([dataset], of_dataset, contestants)

    def _entries(self) -> Iterator[Entry]:
        """Yield every translator at each k."""
        for part, label in zip(self.translators, _labels(self.translators), strict=True):
            entry = part if isinstance(part, Entry) else Entry(label, part)
            translator = _mapping(entry.translator)
            if entry.k:
                yield entry
            elif self.k and "k" in keys(TRANSLATORS.config_class(str(translator.get("name")))):
                yield from (replace(entry, translator={**translator, "k": k}, k=k) for k in self.k)
            else:
                yield replace(entry, k=translator.get("k", NO_K))

    def _contestants(self) -> Iterator[_Contestant]:
        if isinstance(self.guessers, Mapping):
            yield from ((label, *parts) for label, parts in self.guessers.items())
            return
        for part, label in zip(self.guessers, _labels(self.guessers), strict=True):
            yield label, part, _bundled_buzzer(_mapping(part)) if self.buzzer == TRAINED_FOR else self.buzzer

    def _config(self, dataset: str, entry: Entry, guesser: Part | None, buzzer: Part | None) -> RunConfig:
        mapping: dict[str, Any] = {
            "name": self.name,
            "dataset": {"name": dataset, "limit": self.limit},
            "translator": _mapping(entry.translator),
            "guesser": to_mapping(guesser),
            "buzzer": to_mapping(buzzer),
            "seed": self.seed,
            "quality": to_mapping(self.quality),
        }
        return run_from_mapping(mapping | ({"metrics": list(self.metrics)} if self.metrics else {}))

    def _named(self, cell: Cell) -> RunConfig:
        """Return the config of a cell with the name of its run."""
        if self.name_of is not None:
            return replace(cell.config, name=self.name_of(cell))
        config: RunConfig = named(cell.config, (cell.translator, cell.contestant, str(cell.k)))
        return config


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a cell.

    Attributes:
        cell: The cell.
        saved: Contents of the run's folder.
        resamples: Number of resamples behind the intervals of `rows`.

    Examples:
        >>> experiment = sqa.Experiment([{"name": "waitk", "model": "es-en"}], ["bm25"], k=[3], limit=3)
        >>> [first] = experiment.run(progress=False)
        >>> first.translator, first.k, round(first.run.metrics["ew"], 3)
        ('waitk', '3', 0.304)
    """

    cell: Cell
    saved: RunFolder
    resamples: int = RESAMPLES

    @property
    def dataset(self) -> str:
        """Name of the data set."""
        return self.cell.dataset

    @property
    def translator(self) -> str:
        """Label of the translator."""
        return self.cell.translator

    @property
    def guesser(self) -> str:
        """Label of the guesser."""
        return self.cell.contestant

    @property
    def k(self) -> str:
        """k of the translator; "-" if it has none."""
        return str(self.cell.k)

    @cached_property
    def run(self) -> Run:
        """The run."""
        return Run(self.saved.folder)

    @property
    def report(self) -> dict[str, Row]:
        """Rows of the run's report by metric, to six digits, including counts and metrics without a value."""
        return self.saved.report

    @property
    def stats(self) -> Mapping[str, Floats]:
        """Statistics of each question by metric, arrays of shape (n, d)."""
        return self.saved.stats

    @cached_property
    def rows(self) -> dict[str, Row]:
        """Unrounded rows by metric, for metrics that have a value; their intervals use `resamples` resamples."""
        given = [(m, self.stats[m.name]) for m in paired.metrics_of(list(self.saved.signatures), self.saved)]
        rows = intervals(self.cell.key, given, self.resamples, self.saved.config.seed)
        settings = self.saved.settings
        return {m.name: replace(row, signature=signed(m, settings)) for (m, _), row in zip(given, rows, strict=True)}

    def is_baseline_of(self, other: Result, to: str) -> bool:
        """Return whether this is the baseline of another result with the same data set and guesser.

        Args:
            other: A result.
            to: The baseline's k, for the same translator, or the label of the baseline's translator.

        Returns:
            True if this is that baseline.
        """
        same = (self.dataset, self.guesser) == (other.dataset, other.guesser)
        return same and (self.translator == to or (self.translator == other.translator and self.k == to))


class Results(tuple[Result, ...]):
    """All results, in the order of data set, translator, k, guesser; printed as a table of a few metrics.

    Examples:
        >>> experiment = sqa.Experiment([{"name": "waitk", "model": "es-en"}], ["bm25"], k=[3, 9], limit=3)
        >>> print(experiment.run(progress=False).table("ew", "dal"))
        translator  guesser  k     ew   dal
        waitk       bm25     3  0.304  3.67
        waitk       bm25     9  0.264  9.17
    """

    @property
    def frame(self) -> Frame:
        """A frame with one row per combination and metric, and the columns in `COLUMNS`."""
        return Frame(COLUMNS, tuple(row for result in self for row in result.rows.values()))

    @property
    def systems(self) -> Frame:
        """A frame with one row per system and metric, and the columns in `COLUMNS` and "trainings".

        A system is a translator with all of its training seeds.  A system that was trained once keeps the row of its
        run.  The value of any other system is the mean over its trainings, and its interval is one standard deviation
        (n - 1) on either side.
        """
        measured = [(replace(result.cell, seed=None).key, row) for result in self for row in result.rows.values()]
        return over_trainings(COLUMNS, (replace(row, cell=key) for key, row in measured))

    def __repr__(self) -> str:
        return repr(self._shown())

    def _repr_html_(self) -> str:
        return self._shown()._repr_html_()

    def _shown(self) -> Table:
        return self.table(*(name for name in PRINTED if name in self._names()))

    @property
    def keys(self) -> tuple[str, ...]:
        """Attributes that distinguish a result from the others: the first columns of tables."""
        several = len({result.dataset for result in self}) > 1
        return (*(["dataset"] if several else []), "translator", "guesser", "k")

    def table(self, *metrics: str, intervals: bool = False) -> Table:
        """Return a row per combination and a column per metric.

        Args:
            metrics: Names of metrics; default: all.
            intervals: Whether to add 95% intervals.

        Returns:
            The table, which prints as text and converts to TSV, LaTeX, HTML and a data frame.

        Raises:
            ConfigError: If one of the metrics is in none of the runs.
        """
        names = metrics or self._names()
        digits = {name: getattr(self._metric(name), "digits", 0) for name in names}
        rows = []
        for result in self:
            measured = [result.report.get(name) for name in names]
            cells = [row if intervals or row is None else row.value for row in measured]
            rows.append((*(getattr(result, key) for key in self.keys), *cells))
        return Table((*self.keys, *names), rows, digits)

    def compare(self, *metrics: str, to: str | int = FULL) -> pandas.DataFrame:
        """Compare each result with a baseline of the same data set and guesser, paired over questions.

        Args:
            metrics: Names of metrics; default: `ew`.
            to: The k of the baseline, with the same translator, or the label of the baseline's translator.

        Returns:
            A frame with one row per compared result and metric.  Columns: dataset (if there are several), translator,
            guesser, k, metric, diff (result minus baseline), low, high (95% interval) and p (approximate
            randomisation).

        Raises:
            ConfigError: If no result has that baseline.
            NotComputable: If a result and its baseline have no metric in common that has a value.
        """
        rows = []
        for result in self:
            base = next((other for other in self if other.is_baseline_of(result, str(to))), None)
            if base is not None and base is not result:
                for row in paired.compare(result.saved, base.saved, wanted=metrics or ("ew",))[0]:
                    key = (getattr(result, name) for name in self.keys)
                    rows.append((*key, row.metric, row.diff, row.low, row.high, row.p))
        if not rows:
            raise ConfigError(f"to={to!r}: no result has that k or translator as its baseline")
        return frames().DataFrame(rows, columns=(*self.keys, "metric", "diff", "low", "high", "p"))

    def over(self, levels: str, *metrics: str) -> Frame:
        """Return means over guessers or training runs, with 95% intervals over questions and these levels.

        Args:
            levels: "guesser", "seed" or "guesser,seed".  Guessers come with their buzzers; the seeds are those of a
                translator's entries, one per training run.  "training" is another name of "seed".
            metrics: Names of metrics; default: `ew`.

        Returns:
            A frame with the columns COLUMNS and one row per system and metric.  The contestant of a mean over guessers
            is "every guesser".

        Raises:
            ConfigError: If a level is unknown, a run lacks a metric, or a system has no run for some member.

        Examples:
            >>> experiment = sqa.Experiment([{"name": "waitk", "model": "es-en"}], ["bm25", "gru"], k=[3], limit=3)
            >>> [row] = experiment.run(progress=False).over("guesser").rows
            >>> row.cell, row.n
            (('mini-es', 'waitk', '3', 'every guesser'), 3)
        """
        rows = []
        for key, runs in self._crossed(levels).items():
            for name in metrics or ("ew",):
                metric = self._metric(name)
                interval = interval_over_levels(_tables(key, runs, name), metric)
                rows.append(row_of(key, name, interval, metric.unit, metric.signature()))
        return Frame(COLUMNS, tuple(rows))

    def difference(self, a: str, b: str, *metrics: str, levels: str = "seed") -> pandas.DataFrame:
        """Compare two translators at each k, with 95% intervals and p-values over questions and the given levels.

        Training runs of different translators are independent.  Guessers that answer both are paired.

        Args:
            a: Label of a translator.
            b: Label of the translator that is subtracted.
            metrics: Names of metrics; default: `ew`.
            levels: As in `over`.

        Returns:
            A frame with one row per data set, k, guesser and metric.  Columns: dataset, k, guesser, metric, diff (a
            minus b), low, high (95% interval) and p, both by Student's t.

        Raises:
            ConfigError: If the translators have no common data set, k and guesser, or as in `over`.

        Examples:
            >>> human = [{"name": "fixed", "text": "reference", "reveal": reveal} for reveal in ("full", "diagonal")]
            >>> entries = [sqa.Entry("slow", human[0], "-"), sqa.Entry("fast", human[1], "-")]
            >>> results = sqa.Experiment(entries, ["bm25"], limit=3).run(progress=False)
            >>> list(results.difference("fast", "slow", levels="guesser").columns[3:])
            ['metric', 'diff', 'low', 'high', 'p']
        """
        systems, rows = self._crossed(levels), []
        for of_b, (dataset, _, *at) in [(of_b, key) for key, of_b in systems.items() if key[1] == b]:
            for of_a in [of_a for key, of_a in systems.items() if key == (dataset, a, *at)]:
                same = [{guesser for guesser, _ in of_a} == {guesser for guesser, _ in of_b}, False]
                for name in metrics or ("ew",):
                    tables = [_tables((dataset, *at), runs, name) for runs in (of_a, of_b)]
                    gap = compare_levels(tables[0], tables[1], self._metric(name), self[0].resamples, same)
                    rows.append((dataset, *at, name, gap.diff, gap.low, gap.high, gap.p))
        if not rows:
            raise ConfigError(f"{a!r} and {b!r} have no data set, k and guesser in common")
        return frames().DataFrame(rows, columns=("dataset", "k", "guesser", "metric", "diff", "low", "high", "p"))

    def _crossed(self, levels: str) -> dict[tuple[str, str, str, str], dict[tuple[str, int | None], Result]]:
        """Return the results of each system by guesser and seed; a system covers all members of the levels."""
        named = {"seed" if level == "training" else level for level in levels.split(",")}
        if not named <= {"guesser", "seed"}:
            raise ConfigError(f"levels: expected guesser, seed or guesser,seed, got {levels!r}")
        systems: dict[tuple[str, str, str, str], dict[tuple[str, int | None], Result]] = {}
        for result in self:
            cell = result.cell
            contestant = EVERY_GUESSER if "guesser" in named else cell.contestant
            key = (cell.dataset, cell.family if "seed" in named else cell.translator, str(cell.k), contestant)
            systems.setdefault(key, {})[cell.contestant, cell.seed] = result
        return systems

    def plot(self, metric: str = "ew", ax: Axes | None = None) -> Axes:
        """Plot a metric over k, one line per translator and guesser.

        The band is the 95% interval over questions.  For a translator with several trainings, the line is the mean
        over trainings and the band is one standard deviation.

        Args:
            metric: Name of the metric.
            ax: Axes to draw into; None for a new figure.

        Returns:
            The axes: k in source words, against the metric in its unit.

        Raises:
            ConfigError: If no run has the metric.
        """
        shown = [*(["dataset"] if "dataset" in self.keys else []), "translator", "contestant"]
        rows = self.systems.where(metric)
        rows = [replace(row, cell=(", ".join(row[i] for i in shown), row["k"], row["trainings"])) for row in rows]
        drawn = lines(Frame(("line", "k", "trainings"), rows).rows, "line", "k", trainings="trainings")
        with style(to_files=False):
            if ax is None:
                _, [[ax]] = canvas((COLUMN, 2.6))
            draw(ax, Panel("", drawn, getattr(self._metric(metric), "label", metric)), distinct(len(drawn)))
            ax.set(xlabel="k (source words read first)", ylim=(0, None))
            if rows:
                ax.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.3)
        return ax

    def _names(self) -> tuple[str, ...]:
        """Return the metrics and counts of the runs' reports."""
        return tuple(dict.fromkeys(name for result in self for name in result.report))

    def _metric(self, name: str) -> Any:
        """Return a metric of the runs by name; None for a count or a metric without a value.

        Raises ConfigError for an unknown name.
        """
        if name not in self._names():
            raise ConfigError(f"{name!r} is not a metric of these runs{did_you_mean(name, self._names())}")
        folder = next((result.saved for result in self if name in result.saved.signatures), None)
        return None if folder is None else paired.metrics_of([name], folder)[0]


def _tables(key: tuple[str, ...], runs: Mapping[tuple[str, int | None], Result], name: str) -> Floats:
    """Return a system's statistics of a metric, of shape (guessers, seeds, n, d)."""
    guessers, seeds = (list(dict.fromkeys(names)) for names in zip(*runs, strict=True))
    if missing := [f"{g}, seed {s}" for g, s in product(guessers, seeds) if (g, s) not in runs]:
        raise ConfigError(f"{', '.join(key)}: no run of {'; '.join(missing)}")
    if lacking := [run.saved.folder.name for run in runs.values() if name not in run.stats]:
        raise ConfigError(f"{name}: no value for {', '.join(lacking)}")
    return np.array([[runs[g, s].stats[name] for s in seeds] for g in guessers])


def _mapping(part: Part) -> dict[str, Any]:
    return {"name": part} if isinstance(part, str) else dict(to_mapping(part))


def _labels(parts: Sequence[Part | Entry]) -> list[str]:
    """Return the name of each part; parts with equal names get their other values appended."""
    mappings = [{"name": part.label} if isinstance(part, Entry) else _mapping(part) for part in parts]
    names = [str(mapping.get("name")) for mapping in mappings]
    return [
        name if names.count(name) == 1 else " ".join(str(value) for value in mapping.values())
        for name, mapping in zip(names, mappings, strict=True)
    ]


def _bundled_buzzer(guesser: Mapping[str, Any]) -> dict[str, str]:
    """Return the config of the bundled MLP buzzer for a guesser.  Raises ConfigError if there is none."""
    name = str(guesser.get("name"))
    if not (DATA / "models" / f"buzzer-mlp-{name}").is_dir():
        raise ConfigError(f"guesser {name!r}: no bundled buzzer was trained for it; give buzzer=..., or buzzer=None")
    return {"name": "mlp", "model": name}
