"""Several configs in one file, each under a name: `FILE.yaml:NAME` wherever a config is named.

    entries:
      small: {output: a, network: {width: 10, depth: 2}}
      wide: {like: small, output: b, network: {width: 50}}     network is {width: 50, depth: 2}

An entry `like` another is that one with the keys that it gives itself; mappings are merged key by key, but one that
names its component (`name`) takes the place of the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqa.core.errors import ConfigError
from sqa.core.registry import did_you_mean

ENTRIES, LIKE = "entries", "like"
_SUFFIXES = (".yaml", ".yml")


def split(path: Path) -> tuple[Path, str | None]:
    """The file, and the name of the entry in it if one is named."""
    file, colon, name = str(path).rpartition(":")
    return (Path(file), name) if colon and Path(file).suffix in _SUFFIXES else (path, None)


def is_config(text: str) -> bool:
    """Whether this names a YAML file, or an entry of one."""
    return split(Path(text))[0].suffix in _SUFFIXES


def name_of(path: Path) -> str:
    """What a config without a `name` is called: its entry, else its file."""
    file, entry = split(path)
    return entry or file.stem


def chosen(mapping: dict[str, Any], entry: str | None, file: Path) -> dict[str, Any]:
    """The config that is meant: the mapping of a file itself, or one of its entries.

    ConfigError: an entry that is none, none named where there are some, `like` in a circle.
    """
    entries = mapping.get(ENTRIES)
    if not isinstance(entries, Mapping):
        if entry is None:
            return mapping
        raise ConfigError(f"{file}: has no `{ENTRIES}`, so none called {entry!r}; leave `:{entry}` out")
    if others := [str(key) for key in mapping if key != ENTRIES]:
        raise ConfigError(f"{file} {others[0]}: unknown; a file of {ENTRIES} has no other key")
    if entry is None:
        raise ConfigError(f"{file}: holds several configs; say which, {file}:NAME with one of {', '.join(entries)}")
    return _resolved(entries, entry, file, ())


def _resolved(entries: Mapping[Any, Any], name: object, file: Path, within: tuple[object, ...]) -> dict[str, Any]:
    if name not in entries:
        near = did_you_mean(str(name), list(map(str, entries)))
        place = f"{file}:{within[-1]} {LIKE}" if within else f"{file}"
        raise ConfigError(f"{place}: no entry {name!r}{near}; there are {', '.join(map(str, entries))}")
    if name in within:
        raise ConfigError(f"{file}:{within[0]} {LIKE}: a circle, {' -> '.join(map(str, (*within, name)))}")
    own = entries[name]
    if not isinstance(own, Mapping):
        raise ConfigError(f"{file}:{name}: expected a mapping of keys to values")
    if LIKE not in own:
        return dict(own)
    rest = {key: value for key, value in own.items() if key != LIKE}
    return _over(_resolved(entries, own[LIKE], file, (*within, name)), rest)


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        there = below.get(key)
        both = isinstance(there, Mapping) and isinstance(value, Mapping) and "name" not in value
        merged[key] = _over(there, value) if both else value  # type: ignore[arg-type]  # both are mappings
    return merged
