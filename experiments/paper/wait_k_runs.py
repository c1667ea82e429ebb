"""Runs of the ablation's translators, answered by the contestants of Figures 6, 7 and 10.

The runs have the ablation's names and keys, so finished runs are reused.

With `questions: guessable`, a question counts only if the guesser can name its answer (Table 1 gives the number of
such questions).  With `matched`, a question counts if any compared guesser can name its answer.  The paper similarly
uses the questions whose answer occurs in its English training questions.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from experiments.contestants import Contestant, NamedContestant, check_labels, components, names_of, sift
from experiments.grid import (
    CONTINUED,
    SEPARATE,
    AblationConfig,
    ablation_of,
    experiment,
    left_out,
    run_name,
    trained,
    usable,
)
from experiments.outputs import LeftOut
from experiments.studies.question_sets import knows
from sqa.api.experiment import Results, source_language
from sqa.core import BUZZERS, GUESSERS, ConfigError, Count, Question, checked, code_of
from sqa.files import Store
from sqa.pipeline import Parts, load, workshop_of
from sqa.report import plots


@dataclass(frozen=True, slots=True)
@checked
class FigureConfig:
    """Keys of `sqa reproduce fig6`, fig7 and fig10; configs/figure6.yaml and figure7.yaml explain them."""

    name: str
    ablation: Path
    contestants: tuple[NamedContestant, ...]
    labels: tuple[str, ...] | None = None
    questions: Literal["guessable", "matched", "all"] = "all"
    bins: Annotated[int, Meta(ge=2), "of Figure 6"] = 25
    language: Annotated[str | None, "of Figure 7"] = None
    limit: Annotated[Count | None, "replaces that of the ablation"] = None

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        wrong = ["labels: at least one, or null"] if self.labels == () else []
        return [*check_labels(self.contestants, "contestants"), *wrong]


class Runs(NamedTuple):
    """Runs of the ablation's translators, answered by the contestants of a figure."""

    config: FigureConfig
    base: AblationConfig
    parts: Parts
    results: Results  # the translators at every k, and the human translation at full input
    left_out: list[LeftOut]  # contestants and translators

    @property
    def datasets(self) -> list[str]:
        """Available data sets."""
        return list(dict.fromkeys(result.dataset for result in self.results))

    @property
    def contestants(self) -> list[str]:
        """Labels of the available contestants."""
        return list(dict.fromkeys(result.guesser for result in self.results))

    @property
    def labels(self) -> list[str]:
        """Labels of the translators that have results."""
        return list(dict.fromkeys(r.cell.family for r in self.results if r.cell.family != "reference"))

    def of(self, dataset: str, contestant: str | None = None, label: str | None = None) -> Results:
        """Return the results of a data set, contestant and translator (None: all) by k, the human ones last."""
        chosen = [r for r in self.results if r.dataset == dataset and contestant in (None, r.guesser)]
        chosen = [r for r in chosen if label is None or r.cell.family in (label, "reference")]
        return Results(sorted(chosen, key=lambda r: (r.cell.family == "reference", plots.order(r.cell.k))))


def runs_of(config_path: Path, runs: Path, metrics: Sequence[str] = ()) -> Runs:
    """Run the translators of the ablation with the contestants of a figure's config, which requires `metrics`."""
    config, parts = load(config_path, FigureConfig), workshop_of(Store(runs.resolve())).parts
    base, language = ablation_of(config, config_path.parent), config.language

    def make(contestant: NamedContestant) -> None:
        guesser, buzzer = components(contestant.guesser, contestant.buzzer)
        parts.component(GUESSERS, guesser)
        parts.component(BUZZERS, buzzer)

    present, absent = sift(config.contestants, make)
    problems = [] if "full" in base.k else [f"{config.ablation} k: needs full, which the others are compared with"]
    problems += [f"{config.ablation} metrics: needs {name}" for name in metrics if name not in base.metrics]
    if problems:
        raise ConfigError(problems)
    contestants = [Contestant(contestant.guesser, contestant.buzzer or {}) for contestant in present]
    named = names_of(contestants, names_of(base.contestants)).values()
    names = dict(zip((contestant.label for contestant in present), named, strict=True))
    swept = (SEPARATE, CONTINUED) if base.sweeps else ()
    known = dict.fromkeys([*(system.label for system in base.translators), *swept])
    labels = list(known) if config.labels is None else list(config.labels)
    if unknown := [label for label in labels if label not in known]:
        raise ConfigError(f"labels: {unknown[0]!r} is no translator of {config.ablation}, which has {', '.join(known)}")
    systems = tuple(system for system in base.translators if system.label in labels)
    sweeps = {code: name for code, name in base.sweeps.items() if {SEPARATE, CONTINUED} & {*labels}}
    base = replace(base, sweeps=sweeps, translators=systems)
    languages = {code_of(code) for code in (*(system.language for system in systems), *sweeps)}
    languages &= languages if language is None else {code_of(language)}
    datasets = [dataset for dataset in usable(base) if source_language(dataset) in languages]
    if not datasets:
        wanted_in = f" in {language}" if language else ""
        raise ConfigError(
            f"{config.ablation} translators: no {' or '.join(labels)} translator for an available data set{wanted_in}"
        )
    grid = replace(
        experiment(base, datasets, runs, trained(runs, sweeps, base.k)),
        guessers={contestant.label: (contestant.guesser, contestant.buzzer) for contestant in present},
        name_of=lambda cell: run_name(base, replace(cell, contestant=names[cell.contestant])),
    )
    shown = {*labels, "reference"}
    results = grid.run(wanted=lambda cell: cell.family in shown and cell.k != "diagonal")
    gone = left_out(base, results)
    for out in gone:
        print(f"{out.label}: not shown, {out.reason}", file=sys.stderr)
    return Runs(config, base, parts, results, [*absent, *gone])


def nameable(
    guessers: Sequence[Mapping[str, Any]], questions: Sequence[Question], word: str, parts: Parts
) -> np.ndarray:
    """Return a boolean array (n,): whether at least one of the guessers can name the answer of each question.

    Raises ConfigError if no guesser lists its answers, or if no question qualifies.  `word` is the value of the key
    `questions`, for the message.
    """
    masks = [knows(parts.component(GUESSERS, components(guesser)[0]), questions) for guesser in guessers]
    masks = [mask for mask in masks if mask is not None]
    if not np.any(masks):
        names = ", ".join(str(guesser["name"]) for guesser in guessers)
        why = f"is known to have an answer to a question of {questions[0].dataset}; set `questions: all`"
        raise ConfigError(f"questions: {word}: none of the guessers {names} {why}")
    return np.any(masks, axis=0)
