"""Who answers in an ablation: a guesser and its buzzer, and the name that its runs, rows and lines go by.

A contestant whose guesser no other one has is named after it ("bm25").  Where several share a guesser the buzzer is
named too ("bm25+mlp"), and where they share both, the first digits of their whole config follow ("bm25+mlp-1f0c2d3e").
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqa.core.errors import ConfigError
from sqa.files.store import digest
from sqa.run.config import ComponentConfig, of_parts, to_mapping

Value = str | int | float | bool | tuple[str, ...] | None
_DIGITS = 8  # of the config's sha256 in a name


@dataclass(frozen=True, slots=True)
class Contestant:
    """A guesser and the buzzer that goes with it, as in a run's YAML."""

    guesser: dict[str, Value]
    buzzer: dict[str, Value]


def components(
    guesser: Mapping[str, Any], buzzer: Mapping[str, Any] | None = None
) -> tuple[ComponentConfig, ComponentConfig | None]:
    """The checked configs of a guesser and a buzzer.  ConfigError lists all problems."""
    run = of_parts(guesser=guesser, buzzer=buzzer)
    if run.guesser is None:
        raise ConfigError("guesser: missing")
    return run.guesser, run.buzzer


def identity(contestant: Contestant) -> str:
    """sha256 (hex) of the whole config of both, defaults included."""
    return digest(to_mapping(components(contestant.guesser, contestant.buzzer)))


def names_of(contestants: Sequence[Contestant], reserved: Mapping[str, str] | None = None) -> dict[str, str]:
    """Identity -> name of each contestant, in order; those in `known` keep theirs, and no other gets it.

    A duplicate, or a wrong config: ConfigError.
    """
    by_identity: dict[str, Contestant] = {}
    problems = []
    for i, contestant in enumerate(contestants):
        try:
            key = identity(contestant)
        except ConfigError as error:
            problems += [f"contestants[{i}].{problem}" for problem in error.problems]
            continue
        if key in by_identity:
            problems.append(f"contestants[{i}]: the same guesser and buzzer are there already; leave one out")
        by_identity[key] = contestant
    if problems:
        raise ConfigError(problems)
    names = {key: name for key, name in (reserved or {}).items() if key in by_identity}
    for level in range(3):
        wanted = {key: _names(key, contestant)[level] for key, contestant in by_identity.items() if key not in names}
        taken = {*(reserved or {}).values(), *names.values()}
        names |= {
            key: name for key, name in wanted.items() if list(wanted.values()).count(name) == 1 and name not in taken
        }
    return {key: names[key] for key in by_identity}


def _names(key: str, contestant: Contestant) -> tuple[str, str, str]:
    """From the shortest to the one that no other has."""
    guesser, buzzer = contestant.guesser["name"], contestant.buzzer["name"]
    return str(guesser), f"{guesser}+{buzzer}", f"{guesser}+{buzzer}-{key[:_DIGITS]}"
