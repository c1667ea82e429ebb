"""Config of a grid of runs: every translator at every k, answered by every contestant, on every data set."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from experiments.contestants import Contestant, Needs, names_of, twice
from experiments.outputs import LeftOut
from sqa.api.experiment import Cell, Entry, Experiment, Results, source_language, with_seed
from sqa.core import Count, DataError, K, SqaError, Whole, checked, code_of
from sqa.data import datasets as question_sets
from sqa.pipeline import QualityConfig, folder_name, load, read_parts, to_mapping

SEPARATE = "separate wait-k"  # one model per k
CONTINUED = "multi-path wait-k"  # one model for all k, trained further for as long as the separate models


@dataclass(frozen=True, slots=True)
@checked
class System:
    """A translator in the grid, evaluated at each of its values of k."""

    label: str  # name in tables and figures
    language: str  # source language code of its data sets: es, or spa
    translator: dict[str, Any]  # as in a run's config, without k
    k: tuple[K, ...] | None = None  # null = the grid's values of k
    needs: Needs | None = None  # requirements; if one is missing, the translator is left out, with the reason on stderr
    seed: Whole | None = None  # training seed; entries that differ only in seed and model are one translator

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check; raises ConfigError for an invalid translator."""
        wrong = [] if self.label.strip() and self.label.isprintable() else [f"label: a name, got {self.label!r}"]
        wrong += ["k: at least one value, or null"] if self.k == () else []
        wrong += ["translator.k: give it as `k` of the entry"] if "k" in self.translator else []
        if not wrong:
            read_parts(translator=self.translator)
        return wrong


@dataclass(frozen=True, slots=True)
@checked
class AblationConfig:
    """Keys of `sqa ablation CONFIG`; configs/ablation.yaml explains them."""

    name: str
    datasets: tuple[str, ...]
    fallback: tuple[str, ...]
    k: tuple[K, ...]
    contestants: tuple[Contestant, ...]  # none: only the texts are measured
    metrics: tuple[str, ...]
    resamples: Count = 1000
    seed: int = 0
    workers: Count | None = None
    limit: Count | None = None
    translators: tuple[System, ...] = ()
    sweeps: dict[str, str] = field(default_factory=dict)
    quality: tuple[QualityConfig, ...] = ()
    panels: tuple[str, ...] | None = field(default=None, metadata={"written": "if any"})  # changes no number

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check.

        Labels must be unique because they name runs, figures and tables.
        """
        wrong = [] if self.k else ["k: at least one is needed"]
        wrong += [f"k: {k} occurs twice" for k in twice(self.k)]
        for key in ("datasets", "fallback"):
            names = [Path(dataset).name for dataset in getattr(self, key)]
            wrong += [f"{key}: two are called {name}" for name in twice(names)]
        measured = (*self.metrics, *(entry.name for entry in self.quality))
        wrong += [
            f"panels: {name} is not among metrics and quality" for name in self.panels or () if name not in measured
        ]
        systems = [(part_of_name(with_seed(s.label, s.seed)), code_of(s.language)) for s in self.translators]
        systems += [("reference", language) for language in {language for _, language in systems}]
        wrong += [f"translators: {name!r} occurs twice for {language}" for name, language in twice(systems)]
        return wrong + [p for language, name in self.sweeps.items() for p in folder_name(name, f"sweeps.{language}")]


def ablation_of(config: Any, folder: Path) -> AblationConfig:
    """Return the ablation that a figure's config names, with the figure's `limit` if it has one."""
    base = load(folder / config.ablation, AblationConfig)
    return base if config.limit is None else replace(base, limit=config.limit)


def part_of_name(family: str) -> str:
    """Return the part of a run's name that stands for its translator."""
    return family.replace(" ", "-")


def usable(config: AblationConfig) -> list[str]:
    """Return the names of the available data sets, or the fallback data sets if none is available.

    Missing data sets are downloaded.  A data set that cannot be loaded is reported on stderr and left out, but a
    problem with a user's own file raises an error.
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


def run_name(config: AblationConfig, cell: Cell) -> str:
    """Return the name of a cell's run."""
    at = cell.k if cell.seed is None else f"{cell.k}-seed{cell.seed}"
    limit = "" if config.limit is None else f"-limit{config.limit}"
    return f"{config.name}-{Path(cell.dataset).name}-{part_of_name(cell.family)}-{at}-{cell.contestant}{limit}"


def experiment(config: AblationConfig, datasets: Sequence[str], runs: Path, models: Sequence[Entry] = ()) -> Experiment:
    """Return an experiment with a config's translators and the trained `models`.

    If there are contestants, the experiment also has the human translation.
    """
    human = {"name": "fixed", "text": "reference"}
    named = zip(names_of(config.contestants).values(), config.contestants, strict=True)
    guessers: dict[str, tuple[Any, Any]] = {name: (one.guesser, one.buzzer) for name, one in named}
    return Experiment(
        translators=[
            *_translators(config, list(dict.fromkeys(map(source_language, datasets)))),
            *models,
            *(Entry("reference", {**human, "reveal": pace}, pace) for pace in ("full", "diagonal") if guessers),
        ],
        guessers=guessers or {"texts": (None, None)},
        dataset=datasets,
        limit=config.limit,
        metrics=config.metrics,
        runs=runs,
        workers=config.workers,
        seed=config.seed,
        resamples=config.resamples,
        quality=to_mapping(config.quality),
        name_of=partial(run_name, config),
    )


def _translators(config: AblationConfig, languages: Sequence[str]) -> Iterator[Entry]:
    """Yield the config's translators of each language at each k; report translators left out on stderr."""
    offered: dict[str, list[str]] = {}
    for system in config.translators:
        offered.setdefault(system.label, []).append(code_of(system.language))
    for language in languages:
        for label, codes in offered.items():
            if language not in codes:
                known = ", ".join(dict.fromkeys(codes))
                print(f"{label}: no rows, the questions are in {language} and it is for {known}", file=sys.stderr)
        for system in (system for system in config.translators if code_of(system.language) == language):
            if missing := system.needs.missing() if system.needs else "":
                print(f"{system.label}: left out, {missing}", file=sys.stderr)
                continue
            if system.k and (others := [str(k) for k in system.k if k not in config.k]):
                own = f"its own `k` replaces that of the config, and adds k = {', '.join(others)}"
                print(f"{system.label}: {own}", file=sys.stderr)
            for k in config.k if system.k is None else system.k:
                yield Entry(system.label, {**system.translator, "k": k}, k, system.seed, language)


def finished(config: AblationConfig, runs: Path, wanted: Callable[[Cell], bool] = lambda _: True) -> Results:
    """Return the wanted cells; missing runs are computed."""
    models = trained(runs, config.sweeps, config.k)
    return experiment(config, usable(config), runs, models).run(wanted=wanted)


def left_out(config: AblationConfig, results: Results) -> list[LeftOut]:
    """Return the translators and sweeps of a config that have no results, for the languages of the results."""
    language_of = {dataset: source_language(dataset) for dataset in {result.dataset for result in results}}
    made = {(result.cell.family, language_of[result.dataset]) for result in results}
    languages = set(language_of.values())
    gone: dict[str, str] = {}
    for system in config.translators:
        language = code_of(system.language)
        if language in languages and (system.label, language) not in made:
            reason = system.needs.missing() if system.needs else ""
            gone[f"{system.label}, {language}"] = reason or "no run"
    for code, name in config.sweeps.items():
        language = code_of(code)
        if language in languages and not {(SEPARATE, language), (CONTINUED, language)} & made:
            gone[f"sweep {name}"] = "no trained models"
    return [LeftOut(*item) for item in gone.items()]


def following(config: AblationConfig, words: Sequence[str], workers: int | None = None) -> AblationConfig:
    """Return the config of a command line; a `k` given there also restricts the translators' own `k`."""
    given, kept = any(word.startswith("k=") for word in words), []
    for system in config.translators:
        own = tuple(k for k in system.k or config.k if k in config.k or not given)
        if own:
            kept.append(replace(system, k=own if system.k else None))
        else:
            print(f"{system.label}, {system.language}: left out, it has none of the given k", file=sys.stderr)
    return replace(config, translators=tuple(kept), workers=config.workers if workers is None else workers)


def trained(runs: Path, sweeps: Mapping[str, str], ks: Sequence[K]) -> list[Entry]:
    """Return the finished models of each language's sweep at the requested k; print their number to stderr."""
    from smt.training.sweep import MULTI, finished

    entries = []
    for language, name in sweeps.items():
        folder, models = runs / "smt" / name, 0
        for model in finished(folder):
            family, at = (CONTINUED, model.bleu) if model.k == MULTI else (SEPARATE, {str(model.k)})
            found = [k for k in ks if str(k) in at]
            models += bool(found)
            for k in found:
                translator = {"name": "waitk", "model": str(model.model), "k": k}
                entries.append(Entry(family, translator, k, model.seed, language))
        hint = "" if models else f"; train them: sqa train smt CONFIG --sweep, with name: {name}"
        print(f"{folder}: {models} trained models{hint}", file=sys.stderr)
    return entries
