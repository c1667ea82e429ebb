"""A grid of runs: every translator at every k, answered by every contestant, on every data set."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from experiments.contestants import Contestant, Needs, names_of, twice
from experiments.measured import intervals
from sqa import metrics as metric_names
from sqa.core.errors import DataError, SqaError
from sqa.core.k import K
from sqa.core.schema import Count, Whole, checked
from sqa.core.types import Floats
from sqa.data import datasets as question_sets
from sqa.data.languages import code_of
from sqa.files.store import Store
from sqa.pipeline import folder as folders
from sqa.pipeline import paired
from sqa.pipeline.blocks import Workshop, workshop_of
from sqa.pipeline.config import QualityConfig, RunConfig, folder_name, of_parts, to_mapping, with_limit
from sqa.pipeline.spread import run_all
from sqa.results import Row

COLUMNS = ("dataset", "translator", "k", "contestant")
DECODED = ("waitk", "causal-lm")  # translators that share no work between different k
SEPARATE = "separate wait-k"  # one model per k
CONTINUED = "multi-path wait-k"  # one model for all k, trained on for as long as the separate models


@dataclass(frozen=True, slots=True)
@checked
class System:
    """A translator of the grid, at every k."""

    label: str  # its name in tables and figures
    language: str  # source language code of its data sets: es, or spa
    translator: dict[str, Any]  # as in a run's config, without k
    k: tuple[K, ...] | None = None  # null = the grid's values of k
    needs: Needs | None = None  # requirements; if one is missing, the translator is left out, with the reason on stderr
    seed: Whole | None = None  # training seed; entries that differ only in seed and model are one translator

    def problems(self) -> list[str]:
        """Return the problems that bounds do not check; raises ConfigError if the translator is invalid."""
        wrong = [] if self.label.strip() and self.label.isprintable() else [f"label: a name, got {self.label!r}"]
        wrong += ["k: at least one value, or null"] if self.k == () else []
        wrong += ["translator.k: give it as `k` of the entry"] if "k" in self.translator else []
        if not wrong:
            of_parts(translator=self.translator)
        return wrong


@dataclass(frozen=True, slots=True)
@checked
class AblationConfig:
    """Keys of `sqa ablation CONFIG`; configs/ablation.yaml explains them."""

    name: str
    datasets: tuple[str, ...]
    fallback: tuple[str, ...]
    k: tuple[K, ...]
    contestants: tuple[Contestant, ...]
    metrics: tuple[str, ...]
    resamples: Count = 1000
    seed: int = 0
    workers: Count | None = None
    limit: Count | None = None
    translators: tuple[System, ...] = ()
    sweeps: dict[str, str] = field(default_factory=dict)
    quality: tuple[QualityConfig, ...] = ()

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check.

        Labels must be unique because they name runs, figures and tables.
        """
        wrong = [f"{key}: at least one is needed" for key in ("k", "contestants") if not getattr(self, key)]
        wrong += [f"k: {k} is there twice" for k in twice(self.k)]
        for key in ("datasets", "fallback"):
            names = [Path(dataset).name for dataset in getattr(self, key)]
            wrong += [f"{key}: two are called {name}" for name in twice(names)]
        systems = [(part_of_name(with_seed(s.label, s.seed)), code_of(s.language)) for s in self.translators]
        systems += [("reference", language) for language in {language for _, language in systems}]
        wrong += [f"translators: {name!r} is there twice for {language}" for name, language in twice(systems)]
        return wrong + [p for language, name in self.sweeps.items() for p in folder_name(name, f"sweeps.{language}")]


def with_seed(family: str, seed: int | None) -> str:
    """Return the name of one training of a translator in the rows."""
    return family if seed is None else f"{family}, seed {seed}"


def part_of_name(family: str) -> str:
    """Return the part of a run's name that stands for its translator."""
    return family.replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Cell:
    """One run of the ablation: a translator at one k, answered by one contestant on one data set."""

    dataset: str
    family: str  # the label of a `System`, "reference", or the name of a sweep's models
    k: K  # a number of words, "full", "diagonal"
    guesser: str  # name of the contestant, see experiments/contestants.py
    run: RunConfig
    seed: int | None = None  # training seed, if several were trained

    @property
    def translator(self) -> str:
        """Translator's family, with the seed if there are several."""
        return with_seed(self.family, self.seed)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Cell of the rows."""
        return self.dataset, self.translator, str(self.k), self.guesser

    @property
    def beside(self) -> str:
        """Key shared by the cells of a data set that reuse the same translator's work within a process."""
        # A command's translations of prefixes are cached within a process, so its k share a key too.
        translator = self.run.translator
        return f"{translator.options.model} {self.k}" if translator.name in DECODED else self.translator


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished cell: its numbers in the columns COLUMNS, and their statistics for each question."""

    cell: Cell
    n: int  # questions
    rows: tuple[Row, ...]
    stats: dict[str, Floats]  # metric -> (n, d)
    counts: dict[str, int]  # counts of empty outputs and unknown pages

    @property
    def by_metric(self) -> dict[str, Row]:
        """Rows by metric."""
        return {row.metric: row for row in self.rows}


def usable(config: AblationConfig) -> list[str]:
    """Return the available data sets, downloaded if necessary; stderr names the chosen sets and the reasons.

    A problem with a user's own file is an error; no other data set replaces it.
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
        names = ", ".join(config.datasets), ", ".join(config.fallback)
        print(f"none of {names[0]} is available: running on {names[1]}", file=sys.stderr)
    return available or list(config.fallback)


def language_of(dataset: str) -> str:
    """Return the language code of a data set's first question; `usable` checks that all questions share it."""
    return code_of(question_sets.load_questions(dataset, 1)[0].language)


class Entry(NamedTuple):
    """A translator at one k."""

    family: str
    k: K
    translator: dict[str, Any]  # as in a run's config
    seed: int | None = None


def cells(
    config: AblationConfig,
    datasets: list[str],
    models: dict[str, list[Entry]],
    reserved: Mapping[str, str] | None = None,
) -> Iterator[Cell]:
    """Yield every run of the ablation.

    models: the trained models of its sweeps, by source language.  reserved: names already given to contestants, by
    identity.
    """
    named = list(zip(names_of(config.contestants, reserved).values(), config.contestants, strict=True))
    for dataset in datasets:
        language = language_of(dataset)
        for family, k, translator, seed in systems(config, language, models.get(language, [])):
            for guesser, contestant in named:
                at = k if seed is None else f"{k}-seed{seed}"
                run_config = of_parts(
                    name=f"{config.name}-{Path(dataset).name}-{part_of_name(family)}-{at}-{guesser}",
                    dataset={"name": dataset},
                    translator=translator,
                    guesser=contestant.guesser,
                    buzzer=contestant.buzzer,
                    metrics=list(config.metrics),
                    seed=config.seed,
                    quality=to_mapping(config.quality),
                )
                run_config = run_config if config.limit is None else with_limit(run_config, config.limit)
                yield Cell(dataset, family, k, guesser, run_config, seed)


def systems(config: AblationConfig, language: str, models: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the translators of one source language at each k; stderr names those without a row and the reason."""
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
    """Yield a line for each translator of the config that is only for other languages."""
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
) -> list[Finished]:
    """Return the wanted cells; cells missing in the store are run.  reserved: as in `cells`."""
    metric_names.build(config.metrics)
    models = trained(runs, config.sweeps, config.k)
    todo = [cell for cell in cells(config, usable(config), models, reserved) if wanted(cell)]
    made = run_all([cell.run for cell in todo], runs, workers=config.workers, beside=[cell.beside for cell in todo])
    return [measured(cell, saved, config) for cell, saved in zip(todo, made, strict=True)]


def measured(cell: Cell, saved: folders.RunFolder, config: AblationConfig) -> Finished:
    """Return a cell with its stored run; metrics that refused the run are left out."""
    metrics = paired.metrics_of(list(saved.signatures), saved)
    scored = [(metric, saved.stats[metric.name]) for metric in metrics]
    rows = tuple(intervals(cell.key, scored, config.resamples, config.seed))
    return Finished(cell, len(saved.questions), rows, saved.stats, saved.counts)


def workshop(runs: Path) -> Workshop:
    """Return the objects that runs share within a process: questions, guessers, the most recent other components."""
    return workshop_of(Store(runs.resolve()))


def trained(runs: Path, sweeps: Mapping[str, str], ks: Sequence[K]) -> dict[str, list[Entry]]:
    """Return, per source language, the finished models of its sweep at the requested k; stderr gives their number."""
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
