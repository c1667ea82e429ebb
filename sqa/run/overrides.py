"""Keys of a config given beside it: `k=9 guesser.name=gru` on a command line, `k=9` from Python.

A key is written as it lies in the file (`guesser.name`, `dataset.limit`), or by its last word where only one part of
the run has such a key (`k`, `limit`).  A value is YAML.  `guesser=gru` takes another guesser, with that one's own
defaults; `guesser.name=gru` keeps the other keys; `dataset=xqb-pl` is `dataset.name=xqb-pl`.  What comes out passes
the same checks as a file, and the run has a name of its own: two configs never share a folder.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqa.core import own
from sqa.core.errors import ConfigError
from sqa.core.registry import did_you_mean
from sqa.files.store import digest
from sqa.files.yaml_reader import name_of, parse_yaml, read_yaml
from sqa.run.config import OTHER_LANGUAGES, PARTS, DatasetConfig, RunConfig, run_from_mapping, to_mapping

TOP = tuple(field.name for field in dataclasses.fields(RunConfig))
DIGITS = 8  # of the config's digest in a run's name
LONGEST = 80  # characters of a run's name before its digest


@dataclass(frozen=True, slots=True)
class Override:
    """One key and its value."""

    key: str  # "k", "guesser.name"
    value: Any  # plain values, as YAML has them

    def __str__(self) -> str:
        return f"{self.key}={self.value if isinstance(self.value, str) else _flow(self.value)}"


def parsed(words: Iterable[str]) -> tuple[Override, ...]:
    """Overrides of a command line, KEY=VALUE each.  ConfigError lists all words that are none."""
    return tuple(Override(key, _yaml(key, text)) for key, text in _split(words))


def parsed_axes(words: Iterable[str]) -> tuple[tuple[Override, ...], ...]:
    """The axes of a sweep, KEY=VALUE,VALUE,... each; a comma within brackets or quotes belongs to its value."""
    return axes({key: _yaml(key, f"[{text}]") for key, text in _split(words)})


def axes(values: Mapping[str, Sequence[Any]]) -> tuple[tuple[Override, ...], ...]:
    """The axes of a sweep from key -> its values.  A key without a value, or with one twice: ConfigError."""
    problems = [f"{key}: at least one value is needed" for key, several in values.items() if not several]
    for key, several in values.items():
        written = [str(Override(key, value)) for value in several]
        problems += [f"{text}: is there twice" for text in dict.fromkeys(written) if written.count(text) > 1]
    if problems:
        raise ConfigError(problems)
    return tuple(tuple(Override(key, value) for value in several) for key, several in values.items())


def load_with(path: Path, overrides: Sequence[Override]) -> RunConfig:
    """A run's YAML with keys of one's own: `sqa.run.config.load_run` where there are none.  ConfigError lists all."""
    return overridden(read_yaml(path), name_of(path), overrides, str(path), Path(path).parent)


def grid(path: Path, sweep: Sequence[Sequence[Override]]) -> list[tuple[tuple[Override, ...], RunConfig]]:
    """Every combination of the axes with its config, the last axis fastest; ConfigError lists all problems."""
    return grid_of(read_yaml(path), name_of(path), sweep, str(path), Path(path).parent)


def grid_of(
    mapping: Mapping[str, Any], name: str, sweep: Sequence[Sequence[Override]], where: str, folder: Path | None
) -> list[tuple[tuple[Override, ...], RunConfig]]:
    """`grid` of plain values in place of a file."""
    found, problems = [], list[str]()
    for chosen in itertools.product(*sweep):
        try:
            found.append((chosen, overridden(mapping, name, chosen, where, folder)))
        except ConfigError as error:
            problems += [problem for problem in error.problems if problem not in problems]
    names = [config.name for _, config in found]
    problems += [f"name: two runs would be called {one!r}" for one in dict.fromkeys(names) if names.count(one) > 1]
    if problems:
        raise ConfigError(problems)
    return found


def overridden(
    mapping: Mapping[str, Any], name: str, overrides: Sequence[Override], where: str, folder: Path | None
) -> RunConfig:
    """The run of plain values, called `name` unless they say otherwise, with overrides; `where` names it in errors."""
    whole = copy.deepcopy(dict(mapping))
    whole.setdefault("name", name)
    keys = [override.key for override in overrides]
    twice = [f"{key}: is given twice" for key in dict.fromkeys(keys) if keys.count(key) > 1]
    if twice:
        raise ConfigError(twice)
    places = _apply(whole, overrides, folder)
    try:
        config = run_from_mapping(whole, folder)
    except ConfigError as error:
        raise ConfigError([_blamed(problem, places, where) for problem in error.problems]) from None
    return config if not overrides or "name" in keys else named(config, map(_slug, overrides))


def named(config: RunConfig, words: Iterable[str]) -> RunConfig:
    """The same run under a name of its own: its name, words of what it is, and digits of the whole config."""
    plain = to_mapping(config)
    del plain["name"]
    slugs = (re.sub(r"[^\w.+]+", "_", word).strip("_.") for word in words)
    name = "-".join([config.name, *filter(None, slugs)])[:LONGEST]
    return dataclasses.replace(config, name=f"{name}-{digest(plain)[:DIGITS]}")


def _slug(override: Override) -> str:
    """An override in a folder's name: k9, gru; nothing for a list or a mapping."""
    value, last = override.value, override.key.rpartition(".")[2]
    if isinstance(value, Mapping | list):
        return ""
    text = value if isinstance(value, str) and value != "full" else f"{last}{_flow(value)}"
    return Path(text).name


def _apply(whole: dict[str, Any], overrides: Sequence[Override], folder: Path | None) -> dict[str, Override]:
    """Set every key in place, those that name a part before those that are looked for in the parts; full key -> it."""
    places: dict[str, Override] = {}
    for override in sorted(overrides, key=lambda o: "." not in o.key and o.key not in TOP):
        key = override.key if "." in override.key or override.key in TOP else _place(whole, override, folder)
        value = override.value
        if key == "dataset" and isinstance(value, str):
            key = "dataset.name"
        _set(whole, key, value, override)
        places[key] = override
    return places


def _place(whole: Mapping[str, Any], override: Override, folder: Path | None) -> str:
    """Where a key without a dot belongs: in the one part that has it."""
    known = {f"dataset.{field.name}": field.name for field in dataclasses.fields(DatasetConfig)}
    unknown: list[str] = []
    for part, registry in PARTS.items():
        given = whole.get(part)
        name = given.get("name") if isinstance(given, Mapping) else given
        if not isinstance(name, str):
            continue
        try:
            options = [field.name for field in dataclasses.fields(registry.config_class(own.located(name, folder)))]
        except ConfigError as error:  # an unknown part, told below or with the other problems of the config
            unknown += [f"{part}.name: {problem}" for problem in error.problems]
            continue
        options += [OTHER_LANGUAGES] if part == "translator" else []
        known |= {f"{part}.{option}": option for option in options}
    found = [place for place, option in known.items() if option == override.key]
    if len(found) > 1:
        raise ConfigError(f"{override}: {' and '.join(found)} are keys of the run; write which is meant")
    if not found and unknown:
        raise ConfigError(unknown)
    if not found:
        near = did_you_mean(override.key, [*known.values(), *TOP])
        raise ConfigError(f"{override}: neither the run nor a part of it has the key {override.key!r}{near}")
    return _nested_policy(whole, found[0])


def _nested_policy(whole: Mapping[str, Any], key: str) -> str:
    """`translator.k` as `translator.policy.k` where the file has `policy: {name: wait-k, k: 6}`."""
    part, _, option = key.partition(".")
    policy = whole[part].get("policy") if isinstance(whole.get(part), Mapping) else None
    return f"{part}.policy.{option}" if isinstance(policy, Mapping) and option in policy else key


def _set(whole: dict[str, Any], key: str, value: Any, override: Override) -> None:
    """Set a dotted key; a part given by its name alone becomes a mapping."""
    *way, last = key.split(".")
    at = whole
    for step in way:
        inner = at.get(step)
        if inner is None or isinstance(inner, str):
            inner = {} if inner is None else {"name": inner}
        if not isinstance(inner, dict):
            raise ConfigError(f"{override}: {step} is no mapping of keys to values; give {step} as a whole")
        at[step] = at = inner
    at[last] = value


def _blamed(problem: str, places: Mapping[str, Override], where: str) -> str:
    """A problem with the override that brought it, or with the file."""
    for key, override in places.items():
        if re.match(rf"{re.escape(key)}(?![\w])", problem):
            return f"{override}: {problem}"
    return f"{where} {problem}"


def _split(words: Iterable[str]) -> list[tuple[str, str]]:
    found, problems = [], []
    for word in words:
        key, equals, text = word.partition("=")
        if not equals or not re.fullmatch(r"[\w-]+(\.[\w-]+)*", key):
            problems.append(f"{word}: expected KEY=VALUE, as k=9 or guesser.name=gru")
        found.append((key, text))
    if problems:
        raise ConfigError(problems)
    keys = [key for key, _ in found]
    twice = [f"{key}: is given twice" for key in dict.fromkeys(keys) if keys.count(key) > 1]
    if twice:
        raise ConfigError(twice)
    return found


def _yaml(key: str, text: str) -> Any:
    try:
        return parse_yaml(text)
    except ValueError as error:
        raise ConfigError(f"{key}={text}: {error}") from error


def _flow(value: Any) -> str:
    """A value as YAML has it in a line."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return str(value)
