"""Contestants (guessers with their buzzers) of a grid, a figure or a table, and requirements of translators.

A contestant is named after its guesser ("bm25") if no other contestant has the same guesser.  If several share a
guesser, the name includes the buzzer ("bm25+mlp").  If they share both, the first digits of a digest of the whole
config follow ("bm25+mlp-1f0c2d3e").

A contestant may be `optional`, for example because its server may be down or its package may be missing.  An optional
contestant that is not available is left out, and the reason is reported.  If any other contestant is not available,
the command stops.
"""

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from experiments.outputs import LeftOut
from sqa.core import ConfigError, SqaError, checked, lacking
from sqa.files import digest
from sqa.pipeline import ComponentConfig, read_parts, to_mapping

_DIGITS = 8  # digits of the config's sha256 in a name


def twice(values: Sequence[Any]) -> list[Any]:
    """Return each value that occurs more than once."""
    return [value for value in dict.fromkeys(values) if values.count(value) > 1]


@dataclass(frozen=True, slots=True)
class Needs:
    """Requirements of a translator; a translator with a missing requirement is left out.  null = no requirement."""

    program: str | None = None  # name of a program on the PATH
    package: str | None = None  # Python package
    folder: Path | None = None  # relative to the working directory
    hint: str | None = None  # how to meet the requirement, for the message that reports it as missing

    def missing(self) -> str:
        """Return a description of the first missing requirement, or "" if none is missing."""
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
    """A guesser and its buzzer, as in a run's YAML."""

    guesser: dict[str, Any]
    buzzer: dict[str, Any]


@dataclass(frozen=True, slots=True)
@checked
class NamedContestant:
    """A named guesser with an optional buzzer, as in a run's YAML."""

    label: str  # name in figures and tables
    guesser: dict[str, Any]
    buzzer: dict[str, Any] | None = None
    optional: bool = False

    def problems(self) -> list[str]:
        """Return no problems.

        Raises ConfigError if a contestant that is not optional has an unknown or invalid part.
        """
        if not self.optional:
            components(self.guesser, self.buzzer)
        return []


def components(
    guesser: Mapping[str, Any], buzzer: Mapping[str, Any] | None = None
) -> tuple[ComponentConfig, ComponentConfig | None]:
    """Return the checked configs of a guesser and a buzzer; raises ConfigError with all problems."""
    named, buzzes = read_parts(guesser=guesser, buzzer=buzzer)
    return named, buzzes


def names_of(contestants: Sequence[Contestant], reserved: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return a dict that maps the identity of each contestant to its name, in order.

    `reserved` maps identities to names that no other contestant may have.  The identity is the sha256 (hex) of the
    whole config of guesser and buzzer, defaults included.  Raises ConfigError for a duplicate or an invalid config.
    """
    candidates: dict[str, tuple[str, ...]] = {}  # identity -> names, from the shortest to the unique one
    for i, contestant in enumerate(contestants):
        try:
            key = digest(to_mapping(components(contestant.guesser, contestant.buzzer)))
        except ConfigError as error:
            raise ConfigError([f"contestants[{i}].{problem}" for problem in error.problems]) from error
        if key in candidates:
            raise ConfigError(f"contestants[{i}]: the same guesser and buzzer as an earlier contestant; remove one")
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
    """Return the problems of a list of contestants: no contestant, or duplicate labels."""
    labels = [contestant.label for contestant in contestants]
    missing = [] if labels else [f"{where}: at least one is needed"]
    return missing + [f"{where}: the label {label!r} occurs twice" for label in twice(labels)]


def sift(
    contestants: Sequence[NamedContestant], make: Callable[[NamedContestant], object], where: str = "contestants"
) -> tuple[list[NamedContestant], list[LeftOut]]:
    """Return the contestants for which `make` succeeds, and the optional ones for which it raises SqaError.

    Each contestant left out carries the text of its error.  Raises ConfigError if no contestant succeeds.
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
