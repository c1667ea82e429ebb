"""Translators x guessers x k: every combination run, then one table and one figure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqa.api.runs import Run, frames, part_names, plain
from sqa.core.errors import ConfigError
from sqa.core.paths import DATA
from sqa.core.registry import TRANSLATORS, did_you_mean
from sqa.core.threads import set_for
from sqa.report import tables
from sqa.run import folder as folders
from sqa.run import paired
from sqa.run.config import run_from_mapping
from sqa.run.overrides import named
from sqa.run.sweep import run_all

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

Part = str | Mapping[str, Any]  # "bm25", or {"name": "waitk", "model": "es-en"}
KEYS = ("translator", "guesser", "k")
TRAINED_FOR = "its guesser"  # the buzzer that the project bundles for a guesser


@dataclass(frozen=True)
class Experiment:
    """What is combined.  Parts are given as in a config; nothing is read or run before `run`."""

    translators: Sequence[Part]
    guessers: Sequence[Part]
    k: Sequence[int | str] = ()  # for every translator that has a k; none: each its own
    buzzer: Part | None = TRAINED_FOR  # for all; the default is the bundled one that was trained for the guesser
    dataset: str = "mini-es"
    limit: int | None = None  # questions
    metrics: Sequence[str] = ()  # none: the default set
    name: str = "experiment"  # how the names of its runs begin
    runs: str | Path = "runs"

    def run(self, progress: bool = True) -> Results:
        """Run every combination; what the store has is not made again.  ConfigError lists all problems first."""
        configs, problems = [], list[str]()
        for way, mapping in self._combinations():
            try:
                configs.append((way, named(run_from_mapping(mapping), way)))
            except ConfigError as error:
                problems += [f"{' '.join(way)}: {problem}" for problem in error.problems]
        if problems:
            raise ConfigError(problems)
        if not configs:
            raise ConfigError("an experiment needs at least one translator and one guesser")
        set_for(name for _, config in configs for name in part_names(config))
        swept = run_all([((), config) for _, config in configs], Path(self.runs), progress)
        return Results(
            tuple(Result(*way, Run(one.folder), one.rows) for (way, _), one in zip(configs, swept, strict=True))
        )

    def _combinations(self) -> Iterator[tuple[tuple[str, str, str], dict[str, Any]]]:
        """(labels of translator, guesser and k) and the config's plain values."""
        for translator, label in zip(map(_mapping, self.translators), _labels(self.translators), strict=True):
            for k in self.k if self.k and _has_k(translator) else (None,):
                for guesser, other in zip(map(_mapping, self.guessers), _labels(self.guessers), strict=True):
                    mapping: dict[str, Any] = {
                        "name": self.name,
                        "dataset": {"name": self.dataset, "limit": self.limit},
                        "translator": translator if k is None else {**translator, "k": k},
                        "guesser": guesser,
                        "buzzer": _bundled_buzzer(guesser) if self.buzzer == TRAINED_FOR else plain(self.buzzer),
                    }
                    if self.metrics:
                        mapping["metrics"] = list(self.metrics)
                    yield (label, other, str(translator.get("k", "-") if k is None else k)), mapping


@dataclass(frozen=True)
class Result:
    """One combination."""

    translator: str
    guesser: str
    k: str  # "-" where the translator has none
    run: Run
    rows: tuple[folders.ReportRow, ...]  # its report, intervals included

    def row(self, metric: str) -> folders.ReportRow | None:
        """The report's line of a metric."""
        return next((row for row in self.rows if row.metric == metric), None)


@dataclass(frozen=True)
class Results(Sequence[Result]):
    """All combinations, in the order translator, k, guesser."""

    results: tuple[Result, ...]

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: Any) -> Any:
        return self.results[index]

    def table(self, *metrics: str, intervals: bool = False) -> Table:
        """A row a combination, a column a metric (none named: all), with 95% intervals if wanted."""
        names = metrics or tuple(dict.fromkeys(row.metric for one in self.results for row in one.rows))
        digits = {name: getattr(self._metric(name), "digits", 0) for name in names}
        rows = []
        for one in self.results:
            found = {row.metric: row for row in one.rows}
            cells = [_cell(found.get(name), digits[name], intervals) for name in names]
            rows.append((one.translator, one.guesser, one.k, *cells))
        return Table(((*KEYS, *names), *rows))

    def plot(self, metric: str = "ew") -> Figure:
        """A metric over k with its 95% bands, a line a translator and guesser; save it with `.savefig(path)`."""
        from sqa.api.figure import over_k

        lines: dict[str, dict[str, tuple[float, float, float]]] = {}
        label = getattr(self._metric(metric), "label", metric)
        for one in self.results:
            row = one.row(metric)
            if row is not None and row.value is not None:
                low, high = (row.value if end is None else end for end in (row.low, row.high))
                lines.setdefault(f"{one.translator}, {one.guesser}", {})[one.k] = (row.value, low, high)
        return over_k(lines, label)

    def _metric(self, name: str) -> Any:
        """A metric of the runs by name; None for a count, and for one without a value.  Unknown: ConfigError."""
        known = dict.fromkeys(row.metric for one in self.results for row in one.rows)
        if name not in known:
            raise ConfigError(f"{name!r} is no metric of these runs{did_you_mean(name, known)}")
        having = next((one.run.read for one in self.results if name in one.run.read.signatures), None)
        return None if having is None else paired.metrics_of([name], having)[0]


@dataclass(frozen=True)
class Table:
    """Text cells, a header first."""

    rows: tuple[tuple[str, ...], ...]

    def __str__(self) -> str:
        return tables.aligned(self.rows).rstrip("\n")

    def _repr_html_(self) -> str:
        return tables.html_table(self.rows)

    def to_latex(self) -> str:
        """A tabular with the rules of booktabs."""
        return tables.latex(self.rows)

    def to_tsv(self) -> str:
        """Tab-separated lines."""
        return tables.tsv_text(self.rows)

    def to_frame(self) -> pandas.DataFrame:
        """A data frame, numbers as such."""
        return frames().DataFrame(tables.as_objects(self.rows), columns=list(self.rows[0]))


def _mapping(part: Part) -> dict[str, Any]:
    return {"name": part} if isinstance(part, str) else dict(plain(part))


def _labels(parts: Sequence[Part]) -> list[str]:
    """Names; of parts that share a name, the name with what else they say."""
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
    """The MLP buzzer that comes with the project for a guesser; none was trained: ConfigError."""
    name = str(guesser.get("name"))
    if not (DATA / "models" / f"buzzer-mlp-{name}").is_dir():
        raise ConfigError(f"guesser {name!r}: no bundled buzzer was trained for it; give buzzer=..., or buzzer=None")
    return {"name": "mlp", "model": name}


def _cell(row: folders.ReportRow | None, digits: int, intervals: bool) -> str:
    if row is None or row.value is None:
        return "n/a"
    value = f"{row.value:.{digits}f}"
    if not intervals or row.low is None or row.high is None:
        return value
    return f"{value} [{row.low:.{digits}f}, {row.high:.{digits}f}]"
