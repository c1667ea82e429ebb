"""A grid of runs: every translator at every k, answered by every contestant, on every data set."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from experiments.contestant import Contestant, Value, names_of
from experiments.needs import Needs
from sqa import metrics as metric_names
from sqa.core import progress
from sqa.core.errors import ConfigError, Count, DataError, SqaError, checked
from sqa.core.significance import Interval, bootstrap_many
from sqa.data import datasets as question_sets
from sqa.data.languages import code_of
from sqa.files.processes import end_with_parent, relayed
from sqa.files.store import Store
from sqa.run.blocks import Workshop, workshop_of
from sqa.run.config import (
    DatasetConfig,
    QualityConfig,
    RunConfig,
    folder_name,
    of_parts,
    run_from_mapping,
    to_mapping,
    with_limit,
)
from sqa.run.folder import pack, unpack
from sqa.run.pipeline import EMPTY_SENTENCES, RunResult, run
from sqa.run.saving import UNKNOWN_PAGES, save
from sqa.run.scheduler import Scheduler, current
from sqa.run.spread import Job, spread

if TYPE_CHECKING:
    from sqa.core.types import BuiltMetric, Question
    from sqa.run.parts import Parts

DECODED = ("waitk", "causal-lm")  # translators that share no work between one k and another
COSTS = {"fixed": 0.0, "waitk": 1.5, "command": 4.0, "causal-lm": 30.0}  # of translating; guessing and scoring: 1
SEPARATE = "separate wait-k"  # one model per k
CONTINUED = "multi-path wait-k"  # one model for every k, trained on for as long as the separate ones


@dataclass(frozen=True, slots=True)
class System:
    """A translator of the grid, at every k."""

    label: str  # its name in tables and figures
    language: str  # code of the source language of the data sets it is for: es, or spa
    translator: dict[str, Value]  # as in a run's config, without k
    k: tuple[int | str, ...] | None = None  # its values of k; null = those of the grid
    needs: Needs | None = None  # without which it is left out, with the reason on stderr
    seed: int | None = None  # of its training; entries that differ in it and in the model only are one translator

    def __post_init__(self) -> None:
        wrong = [] if self.label.strip() and self.label.isprintable() else [f"label: a name, got {self.label!r}"]
        wrong += ["k: at least one value, or null"] if self.k == () else []
        wrong += [f"seed: must be >= 0, got {self.seed}"] if self.seed is not None and self.seed < 0 else []
        wrong += ["translator.k: give it as `k` of the entry"] if "k" in self.translator else []
        if wrong:
            raise ConfigError(wrong)
        of_parts(translator=self.translator)


@dataclass(frozen=True, slots=True)
@checked
class AblationConfig:
    """What `sqa ablation CONFIG` reads; configs/ablation.yaml explains each key."""

    name: str
    datasets: tuple[str, ...]
    fallback: tuple[str, ...]
    k: tuple[int | str, ...]
    contestants: tuple[Contestant, ...]
    metrics: tuple[str, ...]
    resamples: Count = 1000
    seed: int = 0
    workers: Count = 2
    limit: Count | None = None
    translators: tuple[System, ...] = ()
    sweeps: dict[str, str] = field(default_factory=dict)
    quality: tuple[QualityConfig, ...] = ()

    def problems(self) -> list[str]:
        """What the declared bounds do not check."""
        wrong: list[str] = []
        wrong += [f"{key}: at least one is needed" for key in ("k", "contestants") if not getattr(self, key)]
        wrong += [f"k: {k} is there twice" for k in dict.fromkeys(self.k) if self.k.count(k) > 1]
        for key in ("datasets", "fallback"):  # whose names are in those of runs and figures
            names = [Path(dataset).name for dataset in getattr(self, key)]
            wrong += [f"{key}: two are called {name}" for name in dict.fromkeys(names) if names.count(name) > 1]
        wrong += self._duplicates()
        wrong += [p for language, name in self.sweeps.items() for p in folder_name(name, f"sweeps.{language}")]
        return wrong

    def _duplicates(self) -> list[str]:
        """Translators of a language whose runs would have the same names."""
        families = [("reference", language) for language in {code_of(system.language) for system in self.translators}]
        families += [(with_seed(system.label, system.seed), code_of(system.language)) for system in self.translators]
        names = [(part_of_name(family), language) for family, language in families]
        return [
            f"translators: {family!r} is there twice for {language}"
            for i, (family, language) in enumerate(families)
            if names[i] in names[:i]
        ]


def with_seed(family: str, seed: int | None) -> str:
    """What the rows of one training of a translator are called."""
    return family if seed is None else f"{family}, seed {seed}"


def part_of_name(family: str) -> str:
    """A translator's part of the names of its runs."""
    return family.replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of the ablation: a translator at one k, answered by one contestant on one data set."""

    dataset: str
    family: str  # the label of a `System`, "reference", or the name of a sweep's models
    k: int | str  # a number of words, "full", "diagonal"
    guesser: str  # name of the contestant, see experiments/contestants.py
    run: RunConfig
    seed: int | None = None  # of the translator's training, where several were trained

    @property
    def translator(self) -> str:
        """The family, with the seed where there are several."""
        return with_seed(self.family, self.seed)

    @property
    def beside(self) -> str:
        """What it has in common with the cells of its data set that share its translator's work within a process."""
        # Prefix translations of a command are remembered within a process, so its k stay together too.
        translator = self.run.translator
        return f"{translator.options.model} {self.k}" if translator.name in DECODED else self.translator


@dataclass(frozen=True, slots=True)
class Row:
    """A finished cell."""

    cell: Cell
    n: int  # questions
    stats: dict[str, np.ndarray]  # metric -> (n, d)
    intervals: dict[str, Interval]
    signatures: dict[str, str]
    unknown_pages: int | None
    empty_sentences: int


def usable(config: AblationConfig) -> list[str]:
    """The available data sets, downloaded where they have to be; stderr says which are used, and why.

    A problem with a file of the user's own is an error: no other data set replaces it.
    """
    available = []
    for name in config.datasets:
        try:
            questions = question_sets.load_questions(name)
        except SqaError as error:
            if name not in question_sets.question_sets():
                raise
            print(f"{name}: left out, {str(error).splitlines()[0]}", file=sys.stderr)
        else:
            if len(languages := dict.fromkeys(code_of(question.language) for question in questions)) > 1:
                raise DataError(f"{name}: questions in {' and '.join(languages)}; give each language a file of its own")
            available.append(name)
            print(f"{name}: {len(questions)} questions", file=sys.stderr)
    if not available:
        print(
            f"none of {', '.join(config.datasets)} is available: running on {', '.join(config.fallback)}",
            file=sys.stderr,
        )
    return available or list(config.fallback)


def language_of(dataset: str) -> str:
    """The language code of a data set's first question; `usable` checks that all questions share it."""
    return code_of(question_sets.load_questions(dataset, 1)[0].language)


class Entry(NamedTuple):
    """A translator at one k."""

    family: str
    k: int | str
    translator: dict[str, Any]  # as in a run's config
    seed: int | None = None


def cells(
    config: AblationConfig,
    datasets: list[str],
    models: dict[str, list[Entry]],
    reserved: Mapping[str, str] | None = None,
) -> Iterator[Cell]:
    """Every run of the ablation.

    models: the trained models of its sweeps, by source language.  reserved: names that contestants have already, by
    their identity.
    """
    named = list(zip(names_of(config.contestants, reserved).values(), config.contestants, strict=True))
    for dataset in datasets:
        language = language_of(dataset)
        for family, k, translator, seed in systems(config, language, models.get(language, [])):
            for guesser, contestant in named:
                at = k if seed is None else f"{k}-seed{seed}"
                mapping = {
                    "name": f"{config.name}-{Path(dataset).name}-{part_of_name(family)}-{at}-{guesser}",
                    "dataset": {"name": dataset},
                    "translator": translator,
                    "guesser": contestant.guesser,
                    "buzzer": contestant.buzzer,
                    "metrics": list(config.metrics),
                    "seed": config.seed,
                    "quality": to_mapping(config.quality),
                }
                run_config = run_from_mapping(mapping)
                run_config = run_config if config.limit is None else with_limit(run_config, config.limit)
                yield Cell(dataset, family, k, guesser, run_config, seed)


def systems(config: AblationConfig, language: str, models: Sequence[Entry]) -> Iterator[Entry]:
    """The translators of one source language at each k; stderr says which have no row, and why."""
    for line in _without_rows(config, language):
        print(line, file=sys.stderr)
    for system in config.translators:
        if code_of(system.language) != language:
            continue
        if missing := system.needs.missing() if system.needs else "":
            print(f"{system.label}: left out, {missing}", file=sys.stderr)
            continue
        for k in config.k if system.k is None else system.k:
            yield Entry(system.label, k, {**system.translator, "k": k}, system.seed)
    yield from models
    for reveal in ("full", "diagonal"):
        yield Entry("reference", reveal, {"name": "fixed", "text": "reference", "reveal": reveal})


def _without_rows(config: AblationConfig, language: str) -> Iterator[str]:
    """A line for each translator of the config that is for other languages only."""
    offered = [(system.label, code_of(system.language)) for system in config.translators]
    for family in dict.fromkeys(family for family, _ in offered):
        languages = list(dict.fromkeys(code for other, code in offered if other == family))
        if language not in languages:
            yield f"{family}: no rows, the questions are in {language} and it is for {', '.join(languages)}"


def finished(
    config: AblationConfig,
    runs: Path,
    wanted: Callable[[Cell], bool] = lambda _: True,
    reserved: Mapping[str, str] | None = None,
) -> list[Row]:
    """The rows of the wanted cells; what the store lacks is run.  reserved: as in `cells`."""
    metric_names.build(config.metrics)
    models = trained(runs, config.sweeps, config.k)
    return run_cells([cell for cell in cells(config, usable(config), models, reserved) if wanted(cell)], config, runs)


def run_cells(todo: list[Cell], config: AblationConfig, runs: Path) -> list[Row]:
    """The rows of all cells.  Finished ones are read from their folders; the others run in `workers` processes.

    There the contestants of one translator stay together and share its work.
    """
    scheduler = current()
    if scheduler is not None:
        return spread_cells(scheduler, todo, config, runs)
    rows = {cell.run.name: row for cell in todo if (row := finished_row(cell, config, runs)) is not None}
    groups: dict[tuple[str, str], list[Cell]] = {}
    for cell in todo:
        groups.setdefault((cell.dataset, cell.beside), []).append(cell)
    costs: dict[str, float] = {}
    for group in groups.values():
        costs |= cost(group, workshop(runs).parts.questions)
    cheap_first = sorted(groups.values(), key=lambda group: sum(costs[cell.run.name] for cell in group))
    unfinished = [left for group in cheap_first if (left := [cell for cell in group if cell.run.name not in rows])]
    if not unfinished:
        return [rows[cell.run.name] for cell in todo]
    context = get_context("spawn")
    messages = context.SimpleQueue()
    total = sum(costs[cell.run.name] for group in unfinished for cell in group)

    def show(stage: str) -> None:
        bar.set_postfix_str(f"{len(rows)}/{len(todo)} runs; {stage}", refresh=False)

    with (
        ProcessPoolExecutor(config.workers, context, _start, (messages,)) as pool,
        progress.weighed("ablation", total) as bar,
        relayed(messages, show),
    ):
        jobs = [pool.submit(run_group, group, config, runs) for group in unfinished]
        try:
            for row in (row for job in as_completed(jobs) for row in job.result()):
                rows[row.cell.run.name] = row
                bar.update(costs[row.cell.run.name])
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [rows[cell.run.name] for cell in todo]


def cost(group: Sequence[Cell], questions: Callable[[DatasetConfig], Sequence[Question]]) -> dict[str, float]:
    """Name of each cell's run -> about how long it takes, relative to the others.

    The first cell of a k translates, for all that share its translator.
    """
    n, seen, costs = len(questions(group[0].run.dataset)), set(), {}
    for cell in group:
        shared = (cell.translator, cell.k) in seen
        seen.add((cell.translator, cell.k))
        costs[cell.run.name] = n * (1.0 if shared else 1.0 + COSTS.get(cell.run.translator.name, 5.0))
    return costs


def _start(messages: Any) -> None:
    """In a worker process: end with the parent, and send it the name of the stage under way."""
    end_with_parent()
    progress.report_to(messages.put)


def run_group(group: list[Cell], config: AblationConfig, runs: Path) -> list[Row]:
    """Run some cells in this process with one thread, and write their run folders."""
    import torch

    torch.set_num_threads(1)
    store, parts, rows = Store(runs), workshop(runs).parts, []
    for cell in group:
        row, result = run_cell(cell, config.resamples, config.seed, store, parts)
        save(result, runs)
        rows.append(row)
    return rows


def workshop(runs: Path) -> Workshop:
    """What the runs of a folder share in a process: questions, guessers, the other components used last."""
    return workshop_of(Store(runs.resolve()))


def finished_row(cell: Cell, config: AblationConfig, runs: Path) -> Row | None:
    """The row of a cell whose run is finished (only its intervals are computed); None where it has to run."""
    saved = workshop(runs).finished(cell.run, runs / cell.run.name)
    if saved is None:
        return None
    counts, metrics = saved.counts, metric_names.build(cell.run.scored)
    intervals = intervals_of(metrics, saved.stats, config.resamples, config.seed)
    return Row(cell, len(saved.questions), *intervals, counts.get(UNKNOWN_PAGES), counts[EMPTY_SENTENCES])


def run_cell(cell: Cell, resamples: int, seed: int, store: Store, parts: Parts) -> tuple[Row, RunResult]:
    """The row of a cell, with its intervals, and its run; stages in the store are read."""
    result = run(cell.run, store, parts=parts, progress=False)
    empty = int(result.stats[EMPTY_SENTENCES].sum(axis=0)[0])
    intervals = intervals_of(result.metrics, result.stats, resamples, seed)
    return Row(cell, len(result.questions), *intervals, result.unknown_pages, empty), result


def intervals_of(
    metrics: Sequence[BuiltMetric], stats: Mapping[str, np.ndarray], resamples: int, seed: int
) -> tuple[dict[str, np.ndarray], dict[str, Interval], dict[str, str]]:
    """Statistics (questions, d), intervals and signatures by metric; metrics that refused the run are left out."""
    computed = {metric.name: metric for metric in metrics if metric.name in stats}
    tables = {name: stats[name] for name in computed}
    intervals = bootstrap_many(list(tables.values()), list(computed.values()), resamples, seed)
    signatures = {name: metric.signature() for name, metric in computed.items()}
    return tables, dict(zip(computed, intervals, strict=True)), signatures


def spread_cells(scheduler: Scheduler, todo: Sequence[Cell], config: AblationConfig, runs: Path) -> list[Row]:
    """`run_cells` on the workers of a scheduler; the run folders are written here."""
    jobs = [
        Job(cell.run, partial(finish_cell, cell, config.resamples, config.seed), beside=cell.beside) for cell in todo
    ]
    rows: dict[int, Row] = {}
    with progress.bar("ablation", len(jobs), unit="run") as bar:
        for index, (row, files) in spread(scheduler, jobs, config.workers):
            unpack(files, runs / todo[index].run.name)
            rows[index] = row
            bar.update()
    return [rows[index] for index in range(len(todo))]


def finish_cell(cell: Cell, resamples: int, seed: int, store: Store, parts: Parts) -> tuple[Row, dict[str, bytes]]:
    """On a worker, when all blocks of a cell are in the store: its row, and the files of its folder."""
    row, result = run_cell(cell, resamples, seed, store, parts)
    return row, pack(result)


def trained(runs: Path, sweeps: Mapping[str, str], ks: Sequence[int | str]) -> dict[str, list[Entry]]:
    """Per source language, the finished models of its sweep at the requested k; stderr says how many there are."""
    from smt.training.sweep import MULTI, finished

    by_language: dict[str, list[Entry]] = {}
    for language, name in sweeps.items():
        folder, entries = runs / "smt" / name, by_language.setdefault(language, [])
        for model in finished(folder):
            family, at = (CONTINUED, model.bleu) if model.k == MULTI else (SEPARATE, {str(model.k)})
            for k in (k for k in ks if str(k) in at):
                entries.append(Entry(family, k, {"name": "waitk", "model": str(model.model), "k": k}, model.seed))
        hint = "" if entries else f"; train them: sqa train smt CONFIG --sweep, with name: {name}"
        count = len({entry.translator["model"] for entry in entries})
        print(f"{folder}: {count} trained models{hint}", file=sys.stderr)
    return by_language
