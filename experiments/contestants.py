"""Who is compared in a figure or a report: the guessers that a config lists, each perhaps with its buzzer.

One that is `optional` (a server that may be down, a package or a model that may be missing) is left out where it
is not available, with the reason; without `optional` the command stops there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from experiments.contestant import Contestant, Value, components, names_of
from experiments.grid import AblationConfig, Row, finished, language_of
from experiments.outputs import LeftOut
from sqa.core.errors import ConfigError, SqaError
from sqa.core.registry import BUZZERS, GUESSERS
from sqa.data.languages import code_of
from sqa.report.plots import order
from sqa.run.config import load

if TYPE_CHECKING:
    from sqa.run.parts import Parts


@dataclass(frozen=True, slots=True)
class NamedContestant:
    """A guesser and perhaps its buzzer, as in a run's YAML, with the name they go by."""

    label: str  # in figures and tables
    guesser: dict[str, Value]
    buzzer: dict[str, Value] | None = None
    optional: bool = False
    every_word: bool = True  # Table 1 asks it for all prefixes at once if it can; false = for those at the fractions

    def __post_init__(self) -> None:
        if not self.optional:
            components(self.guesser, self.buzzer)


WAIT_K = "wait-k"  # the translator that Figures 6, 7 and 10 are about


def check_labels(contestants: Sequence[NamedContestant], where: str) -> list[str]:
    """What is wrong with a list of contestants: none at all, or a label twice."""
    labels = [contestant.label for contestant in contestants]
    if not labels:
        return [f"{where}: at least one is needed"]
    return [f"{where}: the label {label!r} is there twice" for label in sorted(set(labels)) if labels.count(label) > 1]


def sift(
    contestants: Sequence[NamedContestant], make: Callable[[NamedContestant], object]
) -> tuple[list[NamedContestant], list[LeftOut]]:
    """Call `make` on each; those it works for, and the optional ones that it raises a SqaError for, with its text."""
    present: list[NamedContestant] = []
    left_out: list[LeftOut] = []
    for contestant in contestants:
        try:
            make(contestant)
        except SqaError as error:
            if not contestant.optional:
                raise
            left_out.append(LeftOut(contestant.label, " ".join(str(error).split())))
            print(f"{contestant.label}: left out, {left_out[-1].reason}", file=sys.stderr)
        else:
            present.append(contestant)
    return present, left_out


class Runs(NamedTuple):
    """The ablation's runs of some contestants."""

    config: AblationConfig
    rows: list[Row]  # wait-k of every k, and the human translation at full input
    labels: dict[str, str]  # name of a contestant (Cell.guesser) -> its label
    left_out: list[LeftOut]

    @property
    def datasets(self) -> list[str]:
        """The available ones."""
        return list(dict.fromkeys(row.cell.dataset for row in self.rows))

    def of(self, dataset: str, guesser: str = "", family: str = "") -> list[Row]:
        """Rows of a data set, guesser and translator ("": all), from the smallest k to full input, then the human's."""
        wanted = (("dataset", dataset), ("guesser", guesser), ("family", family))
        rows = [row for row in self.rows if all(name in ("", getattr(row.cell, key)) for key, name in wanted)]
        return sorted(rows, key=lambda row: (row.cell.family == "reference", order(row.cell.k)))


def runs_of(
    wanted_contestants: Sequence[NamedContestant],
    ablation: Path,
    runs: Path,
    parts: Parts,
    metrics: Sequence[str] = (),
    language: str | None = None,
) -> Runs:
    """Run the wait-k models of the ablation's config with the contestants; what the store holds is not run again.

    The runs have the ablation's own names and keys, so those of a finished `sqa ablation` are found.  `metrics` are
    those that the figure cannot do without; `language` that of the data sets wanted, all where it is None.
    """
    base = load(ablation, AblationConfig)

    def make(contestant: NamedContestant) -> None:
        guesser, buzzer = components(contestant.guesser, contestant.buzzer)
        parts.component(GUESSERS, guesser)
        parts.component(BUZZERS, buzzer)

    present, left_out = sift(wanted_contestants, make)
    problems = []
    if not present:
        problems += ["contestants: none of them is available", *(f"{out.label}: {out.reason}" for out in left_out)]
    if "full" not in base.k:
        problems.append(f"{ablation.name} k: needs full, which the others are compared with")
    problems += [f"{ablation.name} metrics: needs {name}" for name in metrics if name not in base.metrics]
    if problems:
        raise ConfigError(problems)
    contestants = tuple(Contestant(contestant.guesser, contestant.buzzer or {}) for contestant in present)
    reserved = names_of(base.contestants)
    names = names_of(contestants, reserved)
    labels = {name: contestant.label for name, contestant in zip(names.values(), present, strict=True)}
    base = replace(
        base,
        contestants=contestants,
        sweeps={},
        translators=tuple(system for system in base.translators if system.label == WAIT_K),
    )
    wanted = {(WAIT_K, k) for k in base.k} | {("reference", "full")}
    languages = {code_of(system.language) for system in base.translators if language in (None, system.language)}
    rows = finished(
        base, runs, lambda cell: (cell.family, cell.k) in wanted and language_of(cell.dataset) in languages, reserved
    )
    if not rows:
        wanted_in = f" in {language}" if language else ""
        raise ConfigError(f"{ablation.name} translators: no {WAIT_K} for a data set{wanted_in} that is here")
    return Runs(base, rows, labels, left_out)
