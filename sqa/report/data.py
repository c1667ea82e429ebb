"""The report's data: finished runs grouped by questions and compared, and the reasons for missing values."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, fields, replace
from itertools import combinations
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import yaml

from sqa.core import FULL, ConfigError, DataError, K, SqaError, holm, in_a_line
from sqa.core.paths import short
from sqa.files import Stage, Store, digest
from sqa.pipeline import ComparisonRow, RunFolder, paired, saving
from sqa.pipeline import folder as runs
from sqa.pipeline.config import ComponentConfig, RunConfig, to_mapping
from sqa.pipeline.engine import ANSWERED
from sqa.results import Frame, Row, Table, grouped

# the part of a model's path that names a training: runs/smt/NAME/k3-seed0/model
_TRAINING = re.compile(r"(k(\d+|full)-)?seed-?\d+")


class Gap(NamedTuple):
    """A number that is missing in the report, and the reason."""

    what: str  # a metric or another item
    runs: tuple[str, ...]  # labels of the affected runs; () = the whole report
    why: str


def over_trainings(columns: Sequence[str], rows: Iterable[Row]) -> Frame:
    """Return a frame with a row for each cell and metric: the mean over the rows with them, one for each training.

    The interval is one standard deviation (n - 1) on either side; a single row keeps its own.  The column "trainings"
    follows `columns`.
    """
    systems = grouped((row.cell, row) for row in rows).values()
    by_metric = [trainings for of in systems for trainings in grouped((row.metric, row) for row in of).values()]
    return Frame((*columns, "trainings"), list(map(_averaged, by_metric)))


def _averaged(rows: Sequence[Row]) -> Row:
    """Return the mean of a metric over the trainings of a system, with one standard deviation as its interval."""
    cell = (*rows[0].cell, str(len(rows)))
    if len(rows) == 1:
        return replace(rows[0], cell=cell)
    values = [row.value for row in rows]
    mean, spread = fmean(values), stdev(values)
    signature = f"{rows[0].signature}|trainings:{len(rows)}|interval:one standard deviation"
    return replace(rows[0], cell=cell, value=mean, low=mean - spread, high=mean + spread, signature=signature)


@dataclass(frozen=True, slots=True)
class Reported:
    """One finished run, read back.  Nothing is computed and no model is loaded."""

    label: str  # folder name, with parent folders if another run has the same name
    saved: RunFolder
    rows: dict[str, Row]  # by metric, in the report's order
    refusals: dict[str, str]  # metric -> reason for its missing value
    digits: dict[str, int]  # metric -> decimal places, only for metrics with a value
    stages: tuple[Stage, ...]  # from the store, without that of the scores
    gaps: tuple[Gap, ...]  # values missing from the run's folder

    @property
    def questions(self) -> tuple[str, tuple[str, ...]]:
        """Key of the run's questions, equal for runs on the same questions."""
        return self.saved.dataset, self.saved.ids

    @property
    def k(self) -> K | None:
        """Source words read before the first target word, or "full"; None if the translator has no k."""
        k = getattr(self.saved.config.translator.options, "k", None)
        return k if isinstance(k, int) or k == FULL else None

    @property
    def family(self) -> str:
        """Key of the translator, guesser and buzzer; equal for runs that differ only in k and training."""
        config = self.saved.config
        translator = to_mapping(config.translator)
        translator.pop("k", None)
        translator["model"] = untrained(str(translator.get("model")))
        parts = [None if part is None else to_mapping(part) for part in (config.guesser, config.buzzer)]
        return digest([translator, *parts])


def untrained(text: str) -> str:
    """Return a text that contains a model's path, with a star for the training."""
    return _TRAINING.sub("*", text)


def read_runs(folders: Sequence[Path]) -> list[Reported]:
    """Return the runs in these folders.

    Raises ConfigError for an empty list or a folder named twice, and ConfigError or DataError with the run's name if a
    run is unfinished, damaged, or of another schema version.
    """
    check_distinct(folders)
    return [_read(folder, label) for folder, label in zip(folders, run_names(folders), strict=True)]


def check_distinct(folders: Sequence[Path]) -> None:
    """Raise ConfigError unless there is at least one folder and all are distinct."""
    if not folders:
        raise ConfigError("give at least one run's folder")
    for folder, count in Counter(folder.resolve() for folder in folders).items():
        if count > 1:
            raise ConfigError(f"{folder}: the same run is named twice")


def run_names(folders: Sequence[Path]) -> list[str]:
    """Return the folders' names, with parent folders where they are needed to distinguish them."""
    paths = [folder.resolve().parts for folder in folders]
    names = []
    for path in paths:
        depth = 1
        while depth < len(path) and sum(other[-depth:] == path[-depth:] for other in paths) > 1:
            depth += 1
        names.append("/".join(path[-depth:]))
    return names


def groups_of(reported: Iterable[Reported]) -> list[list[Reported]]:
    """Return the runs grouped by their questions, in order of appearance."""
    return list(grouped((run.questions, run) for run in reported).values())


def compared(first: Reported, run: Reported) -> tuple[list[ComparisonRow], list[Gap]]:
    """Return paired differences run - first, and the metrics that cannot be compared."""
    try:
        rows, notes = paired.compare(run.saved, first.saved)
    except SqaError as error:
        rows, notes = [], str(error).splitlines()
    signed = {*run.saved.signatures, *first.saved.signatures}
    gaps = []
    for note in notes:
        name, _, why = note.partition(": ")
        metric, reason = (name, why) if name in signed else ("all metrics", note)
        gaps.append(Gap(f"difference of {metric}", (run.label, first.label), in_a_line(reason)))
    return rows, gaps


# ------------------------------------------------------------------------------------------------------ one folder


def _read(folder: Path, label: str) -> Reported:
    saved = runs.read(folder)
    rows = saved.report
    refusals = {name: _reason(row) for name, row in rows.items() if row.value is None}
    refusals |= {name: in_a_line(why).removeprefix(f"{name}: ") for name, why in saved.refusals.items()}
    stages, gaps = _stages(saved, label)
    if why := doubt(saved):
        gaps.append(Gap("calibrated answers", (label,), why))
    return Reported(label, saved, rows, refusals, _digits(saved), stages, tuple(gaps))


def doubt(saved: RunFolder) -> str:
    """Return why no question is answered, or why the buzzer does not fit the guesser; "" if all is well."""
    answered = saved.report.get(ANSWERED)
    said = answered.signature if answered else ""
    return said.removeprefix("questions with a buzz").removeprefix("; ").removeprefix("none: ")


def _digits(saved: RunFolder) -> dict[str, int]:
    """Return decimal places by metric, without metrics that cannot be built, for example for lack of a program."""
    digits = {}
    for name in saved.signatures:
        with suppress(SqaError):
            digits[name] = paired.metrics_of([name], saved)[0].digits
    return digits


def _reason(row: Row) -> str:
    """Return the reason why a row has no value: the one in its signature, or that the metric is undefined."""
    reason = row.signature.removeprefix("not computed: ")
    return reason if reason != row.signature else "undefined on these questions"


def _stages(saved: RunFolder, label: str) -> tuple[tuple[Stage, ...], list[Gap]]:
    """Return the stages from the store beside the run, and a gap for each missing one."""
    store, stages, gaps = Store(saved.folder.resolve().parent), [], []
    for name in (name for name in saved.stages if name != "score"):  # the report lists the metrics' signatures instead
        try:
            stages.append(store.stage(name, saved.stages[name]))
        except DataError:
            why = "the store beside the run no longer has this stage, or its manifest is damaged"
            gaps.append(Gap(f"fingerprint of {name}", (label,), why))
    return tuple(stages), gaps


# ---------------------------------------------------------------------------------------------- parts, settings


def changes(first: RunConfig, other: RunConfig) -> list[tuple[str, str]]:
    """Return the keys, with their values in `other`, in which `other` differs from `first`, except the name.

    A part with another name is returned as a whole.
    """
    base, changed = to_mapping(first), to_mapping(other)
    differences = []
    for key in dict.fromkeys([*base, *changed]):
        value, before = changed.get(key), base.get(key)
        if value == before or key == "name":
            continue
        if isinstance(value, dict) and isinstance(before, dict) and value.get("name") == before.get("name"):
            inner = (part for part in dict.fromkeys([*before, *value]) if before.get(part) != value.get(part))
            differences += [(f"{key}.{part}", _yaml(value.get(part))) for part in inner]
        else:
            differences.append((key, _yaml(value)))
    return differences


def _yaml(value: Any) -> str:
    """Return a value as YAML on one line."""
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=1 << 20)
    return text.strip().removesuffix("...").strip()


def described(component: ComponentConfig | None, *without: str) -> str:
    """Return a component's name, its k and its non-default settings, except those in `without`; "none" for None."""
    if component is None:
        return "none"
    options = component.options
    defaults = {each.name: each.default for each in fields(options)}
    changed = [name for name in defaults if name == "k" or getattr(options, name) != defaults[name]]
    settings = {name: to_mapping(getattr(options, name)) for name in changed if name not in without}
    return " ".join([short(component.name), *(f"{name}={_short(value)}" for name, value in settings.items())])


def _short(value: Any) -> str:
    """Return a setting as text; an absolute path becomes its file name."""
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else _yaml(value)


# ------------------------------------------------------------------------------------------------- pairs of runs


def _check_compared(runs: Sequence[RunFolder], metrics: Sequence[str], resamples: int) -> None:
    """Raise ConfigError for too few runs, duplicate runs, unknown metrics, or no resamples."""
    problems = [] if len(runs) > 1 else ["RUN: a comparison needs at least two"]
    problems += paired.unknown_metrics("--metric", metrics, runs)
    problems += [] if resamples >= 1 else [f"--resamples: must be >= 1, got {resamples}"]
    if problems:
        raise ConfigError(problems)
    if len(runs) > 2:  # a run may be compared with itself, as a check
        check_distinct([run.folder for run in runs])


def compare_all(
    runs: Sequence[RunFolder], metrics: Sequence[str] = (), resamples: int = saving.RESAMPLES
) -> tuple[Table, list[str]]:
    """Compare each pair of runs by each metric (default: all); also return a note for each metric left out.

    The table has a row per comparison.  If there are more than two runs, it also has the names of both, and `p_holm`,
    the p-value adjusted over all pairs of runs for this metric.  Raises ConfigError for runs on different questions,
    duplicate runs, or a metric that no run has.
    """
    _check_compared(runs, metrics, resamples)
    named = zip(run_names([run.folder for run in runs]), runs, strict=True)
    compared = [((a, b), *paired.compare(x, y, resamples, metrics)) for (a, x), (b, y) in combinations(named, 2)]
    notes = list(dict.fromkeys(note for _, _, left_out in compared for note in left_out))
    if len(runs) == 2:
        return Table.of(compared[0][1], ComparisonRow), notes
    lines = [
        (*pair, *astuple(row), p_holm)
        for of in grouped((row.metric, (pair, row)) for pair, rows, _ in compared for row in rows).values()
        for (pair, row), p_holm in zip(of, holm([row.p for _, row in of]), strict=True)
    ]
    return Table(("run_a", "run_b", *(each.name for each in fields(ComparisonRow)), "p_holm"), lines), notes
