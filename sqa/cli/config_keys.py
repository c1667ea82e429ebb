"""The keys of a run's config: as a table for one part, and as a JSON Schema for editors.

Both come from the dataclasses that the loader reads and from their annotations (sqa/core/schema.py).
"""

import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, is_dataclass
from typing import Annotated, Any, Union

import msgspec

from sqa.core import BUZZERS, GUESSERS, POLICIES, QUALITY, TRANSLATORS, ConfigError, describe, did_you_mean, schema
from sqa.core.paths import OwnPart
from sqa.files.yaml_reader import ENTRIES, LIKE
from sqa.metrics import all_names
from sqa.pipeline import DatasetConfig, QualityConfig, RunConfig, to_mapping
from sqa.pipeline.config import OTHER_LANGUAGES

KINDS = {"translator": TRANSLATORS, "guesser": GUESSERS, "buzzer": BUZZERS, "quality": QUALITY, "policy": POLICIES}
Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
OWN: Schema = {"type": "string", "pattern": ":"}  # file.py:Name, module:name
NAMED: Schema = {"type": "object", "properties": {"name": OWN}, "required": ["name"]}  # user-defined part with its keys
OPTIONAL = ("guesser", "buzzer")  # optional parts of a run
Row = tuple[str, str, str, str]  # key, type, default ("required" if there is none), meaning


def keys_of(kind: str, name: str) -> list[Row]:
    """Return the keys of a part, in the order of its dataclass; raises ConfigError for an unknown kind or name."""
    if kind == "metric":
        every = all_names()
        variants = [each for each in every if each.partition("@")[0] == name.partition("@")[0]] or every
        raise ConfigError(f"a metric has no keys: `metrics:` is a list of names, such as {', '.join(variants)}")
    if kind not in KINDS:
        raise ConfigError(f"unknown kind {kind!r}{did_you_mean(kind, KINDS)}; known: {', '.join(KINDS)}")
    shown = schema.keys(KINDS[kind].config_class(name)).values()
    return [
        (key.name, describe(key.hint), _default(key), key.help)
        for key in shown
        if kind != "policy" or ":" in name or key.name in ("k", "n")
    ]


def _default(key: schema.Key) -> str:
    if key.required:
        return "required"
    return key.default if isinstance(key.default, str) and key.default else json.dumps(key.default, default=str)


# ------------------------------------------------------------------------------------------ sqa config schema


def json_schema() -> Schema:
    """Return the schema of a run's file, or of a file of `entries`.

    If the package of a part is not installed, the schema allows any keys for that part.
    """
    parts = {kind: _part(kind) for kind in ("translator", *OPTIONAL)}
    run = _mapping(RunConfig, _parts_of_a_run({}))
    run["required"].remove("name")  # default: the config file's name
    # an entry that inherits another one may give only some keys of a part, without its name
    started: Schema = {"type": "object", "not": {"required": ["name"]}}
    entry = _mapping(RunConfig, _parts_of_a_run(started))
    entry["properties"][LIKE] = {"type": "string", "description": "another entry, whose keys this entry inherits"}
    entries = {"type": "object", "additionalProperties": {**entry, "required": []}}
    several = {"type": "object", "properties": {ENTRIES: entries}, "required": [ENTRIES], "additionalProperties": False}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A run of sqa",
        "if": {"type": "object", "required": [ENTRIES]},
        "then": several,
        "else": run,
        "$defs": parts,
    }


def _parts_of_a_run(extra: Schema) -> dict[str, Schema]:
    """Return the schemas of a run's parts, data set and metrics; `extra` is one more accepted form of a part."""
    more = [extra] if extra else []
    optional = {kind: {"anyOf": [_to(kind), {"type": "null"}, *more]} for kind in OPTIONAL}
    metrics = {"type": "array", "items": {"anyOf": [{"enum": list(all_names())}, {"pattern": "[:@]"}]}}
    dataset = {"anyOf": [_mapping(DatasetConfig), TEXT]}
    return {"translator": {"anyOf": [_to("translator"), *more]}, **optional, "dataset": dataset, "metrics": metrics}


def _to(kind: str) -> Schema:
    return {"$ref": f"#/$defs/{kind}"}


def _part(kind: str) -> Schema:
    """Return the schema of a part of a run: its name, or a mapping with its name and keys."""
    registry, mappings = KINDS[kind], []
    for name in registry.names():
        mapping = _of_class(registry.config_class, name)
        shared = {OTHER_LANGUAGES: {"type": "boolean"}} if kind == "translator" and mapping else {}
        properties = {"name": {"const": name}, **mapping.get("properties", {}), **shared}
        required = ["name", *mapping.get("required", ())]
        mappings.append({"type": "object", **mapping, "properties": properties, "required": required})
    return {"anyOf": [{"enum": list(registry.names())}, OWN, *mappings, NAMED]}


def _of_class(config_class: Callable[[str], type], name: str) -> Schema:
    """Return the schema of a part's dataclass, or {}, which allows any keys, if it cannot be imported."""
    try:
        return _mapping(config_class(name))
    except ConfigError:
        return {}


def _mapping(cls: type, given: Mapping[str, Schema] | None = None) -> Schema:
    """Return the schema of a mapping with exactly the keys of a dataclass; `given` has the schemas of some keys."""
    properties = {}
    for key in schema.keys(cls).values():
        about = {"description": key.help} if key.help else {}
        default = {"default": to_mapping(key.default)} if key.default is not MISSING else {}
        properties[key.name] = {**((given or {}).get(key.name) or _value(key.hint)), **about, **default}
    required = [key.name for key in schema.keys(cls).values() if key.required]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _value(hint: Any) -> Schema:
    """Return the schema of a type; msgspec generates it unless the type contains dataclasses."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated and _holds_dataclass(inner[0]):
        return _value(inner[0])
    if hint == tuple[QualityConfig, ...]:
        return _quality()
    if hint is OwnPart:
        return {"anyOf": [OWN, {"type": "object", "required": ["name"]}]}
    if is_dataclass(hint):
        return _mapping(typing.cast(type, hint))
    if origin in (Union, types.UnionType):
        return {"anyOf": [_value(member) for member in inner]}
    if origin is tuple and _holds_dataclass(inner[0]):
        return {"type": "array", "items": _value(inner[0])}
    return msgspec.json.schema(hint, schema_hook=lambda cls: TEXT)  # for a Path, the only remaining class


def _holds_dataclass(hint: Any) -> bool:
    return is_dataclass(hint) or any(map(_holds_dataclass, typing.get_args(hint)))


def _quality() -> Schema:
    """Return the schema of `quality:`, a list of {kind: options} or one mapping of kinds."""
    short = [TEXT, {"type": "array", "items": TEXT}]
    kinds = {name: {"anyOf": [*short, _of_class(QUALITY.config_class, name)]} for name in QUALITY.names()}
    entries = {"type": "object", "properties": kinds, "patternProperties": {":": {}}, "additionalProperties": False}
    return {"anyOf": [entries, {"type": "array", "items": {**entries, "minProperties": 1, "maxProperties": 1}}]}
