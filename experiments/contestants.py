"""Who takes part in a grid, a figure or a table: guessers with their buzzers, and what a translator needs.

A contestant whose guesser no other one has is named after it ("bm25").  Where several share a guesser the buzzer is
named too ("bm25+mlp"), and where they share both, the first digits of their whole config follow ("bm25+mlp-1f0c2d3e").

One that is `optional` (a server that may be down, a package or a model that may be missing) is left out where it
is not available, with the reason; without `optional` the command stops there.
"""

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from experiments.outputs import LeftOut
from sqa.core.errors import ConfigError, SqaError
from sqa.core.packages import lacking
from sqa.core.schema import checked
from sqa.files.store import digest
from sqa.pipeline.config import ComponentConfig, of_parts, to_mapping

_DIGITS = 8  # of the config's sha256 in a name


def twice(values: Sequence[Any]) -> list[Any]:
    """What is more than once among values, each once."""
    return [value for value in dict.fromkeys(values) if values.count(value) > 1]


@dataclass(frozen=True, slots=True)
class Needs:
    """A program, package or folder without which a translator is left out; null = none."""

    program: str | None = None  # on the PATH
    package: str | None = None  # of Python
    folder: Path | None = None  # relative to where the command is started
    hint: str | None = None  # how to get it, for the line that says what is missing

    def missing(self) -> str:
        """What is missing, in words; "" where nothing is."""
        problem = ""
        if self.program is not None and shutil.which(self.program) is None:
            problem = f"the program {self.program} is not installed"
        elif self.package is not None and find_spec(self.package.partition(".")[0]) is None:
            problem = str(lacking(self.package, "it"))
        elif self.folder is not None and not self.folder.is_dir():
            problem = f"there is no folder {self.folder}"
        return f"{problem} ({self.hint})" if problem and self.hint and self.hint not in problem else problem


@dataclass(frozen=True, slots=True)
class Contestant:
    """A guesser and the buzzer that goes with it, as in a run's YAML."""

    guesser: dict[str, Any]
    buzzer: dict[str, Any]


@dataclass(frozen=True, slots=True)
@checked
class NamedContestant:
    """A guesser and perhaps its buzzer, as in a run's YAML, with the name they go by."""

    label: str  # in figures and tables
    guesser: dict[str, Any]
    buzzer: dict[str, Any] | None = None
    optional: bool = False
    every_word: bool = True  # Table 1 asks it for all prefixes at once if it can; false = for those at the fractions

    def problems(self) -> list[str]:
        """Return no problem; an unknown or wrong part of a contestant that is not optional: ConfigError."""
        if not self.optional:
            components(self.guesser, self.buzzer)
        return []


def components(
    guesser: Mapping[str, Any], buzzer: Mapping[str, Any] | None = None
) -> tuple[ComponentConfig, ComponentConfig | None]:
    """The checked configs of a guesser and a buzzer.  ConfigError lists all problems."""
    run = of_parts(guesser=guesser, buzzer=buzzer)
    assert run.guesser is not None  # it was given
    return run.guesser, run.buzzer


def names_of(contestants: Sequence[Contestant], reserved: Mapping[str, str] | None = None) -> dict[str, str]:
    """Identity -> name of each contestant, in order; those in `reserved` keep theirs, and no other gets it.

    The identity is the sha256 (hex) of the whole config of guesser and buzzer, defaults included.
    A duplicate, or a wrong config: ConfigError.
    """
    candidates: dict[str, tuple[str, ...]] = {}  # identity -> names, from the shortest to the one that no other has
    for i, contestant in enumerate(contestants):
        try:
            key = digest(to_mapping(components(contestant.guesser, contestant.buzzer)))
        except ConfigError as error:
            raise ConfigError([f"contestants[{i}].{problem}" for problem in error.problems]) from error
        if key in candidates:
            raise ConfigError(f"contestants[{i}]: the same guesser and buzzer are there already; leave one out")
        both = f"{contestant.guesser['name']}+{contestant.buzzer['name']}"
        candidates[key] = (str(contestant.guesser["name"]), both, f"{both}-{key[:_DIGITS]}")
    known = reserved or {}
    names = {key: name for key, name in known.items() if key in candidates}
    for level in range(3):
        wanted = {key: names_of_one[level] for key, names_of_one in candidates.items() if key not in names}
        taken = {*known.values(), *names.values(), *twice(list(wanted.values()))}
        names |= {key: name for key, name in wanted.items() if name not in taken}
    return {key: names[key] for key in candidates}


def check_labels(contestants: Sequence[NamedContestant], where: str) -> list[str]:
    """What is wrong with a list of contestants: none at all, or a label twice."""
    labels = [contestant.label for contestant in contestants]
    missing = [] if labels else [f"{where}: at least one is needed"]
    return missing + [f"{where}: the label {label!r} is there twice" for label in twice(labels)]


def sift(
    contestants: Sequence[NamedContestant], make: Callable[[NamedContestant], object], where: str = "contestants"
) -> tuple[list[NamedContestant], list[LeftOut]]:
    """Call `make` on each; those it works for, and the optional ones that it raises a SqaError for, with its text.

    None that it works for: ConfigError.
    """
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
    if not present:
        raise ConfigError([f"{where}: none of them is available", *(f"{out.label}: {out.reason}" for out in left_out)])
    return present, left_out
