"""The keys of a run's config: those of a part as a table, all as a JSON Schema for editors.

Both are read from the dataclasses that the loader reads (sqa/pipeline/config.py), and meanings from the comments beside
fields.
"""

import inspect
import io
import json
import tokenize
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union

from sqa.core.errors import ConfigError
from sqa.core.own import OwnPart
from sqa.core.registry import BUZZERS, GUESSERS, POLICIES, QUALITY, TRANSLATORS, did_you_mean
from sqa.files.yaml_reader import ENTRIES, LIKE, describe
from sqa.metrics import ALL
from sqa.pipeline.config import OTHER_LANGUAGES, ComponentConfig, DatasetConfig, QualityConfig, RunConfig, to_mapping

KINDS = {"translator": TRANSLATORS, "guesser": GUESSERS, "buzzer": BUZZERS, "quality": QUALITY, "policy": POLICIES}
Schema = dict[str, Any]
OWN: Schema = {"type": "string", "pattern": ":"}  # file.py:Name, module:name
NAMED: Schema = {"type": "object", "properties": {"name": OWN}, "required": ["name"]}  # a user's part with its keys
PLAIN: dict[Any, Schema] = {
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    Path: {"type": "string"},
    type(None): {"type": "null"},
    Any: {},
}
OPTIONAL = ("guesser", "buzzer")  # parts that a run may do without


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a config."""

    key: str
    type: str
    default: str  # "required" without one
    meaning: str  # the comment beside it in the source; "" without one


def keys_of(kind: str, name: str) -> list[Key]:
    """The keys of a part, in the order of its dataclass; ConfigError for an unknown kind or name."""
    if kind == "metric":
        variants = [each for each in ALL if each.partition("@")[0] == name.partition("@")[0]] or ALL
        raise ConfigError(f"a metric has no keys: `metrics:` is a list of names, such as {', '.join(variants)}")
    if kind not in KINDS:
        raise ConfigError(f"unknown kind {kind!r}{did_you_mean(kind, KINDS)}; known: {', '.join(KINDS)}")
    cls = KINDS[kind].config_class(name)
    hints, meanings = typing.get_type_hints(cls), comments(cls)
    shown = [each for each in fields(cls) if kind != "policy" or ":" in name or each.name in ("k", "n")]
    return [Key(each.name, describe(hints[each.name]), _default(each), meanings.get(each.name, "")) for each in shown]


def _default(field: Any) -> str:
    if field.default is MISSING and field.default_factory is MISSING:
        return "required"
    value = field.default_factory() if field.default is MISSING else field.default
    return value if isinstance(value, str) and value else json.dumps(value, default=str)


def comments(cls: type) -> dict[str, str]:
    """key -> the comment at the end of its line."""
    try:
        source = inspect.getsource(cls)
    except (OSError, TypeError):  # made by a program, not written in a file
        return {}
    names = {field.name for field in fields(cls)}
    meanings: dict[str, str] = {}
    last = ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME and token.line.lstrip().startswith(f"{token.string}:") and token.string in names:
            last = token.string
        elif token.type == tokenize.COMMENT and last:
            meanings.setdefault(last, token.string.lstrip("# "))
        elif token.type == tokenize.NEWLINE:
            last = ""
    return meanings


# ------------------------------------------------------------------------------------------ sqa config schema


def schema() -> Schema:
    """Of a run's file, or of a file of `entries`.  Parts whose packages are not installed may have any keys."""
    parts = {kind: _part(kind) for kind in ("translator", *OPTIONAL)}
    run = _mapping(RunConfig, _hooks(parts, {}))
    run["required"].remove("name")  # the file's
    started: Schema = {"type": "object", "not": {"required": ["name"]}}  # some keys, in an entry like another
    entry = _mapping(RunConfig, _hooks(parts, started))
    entry["properties"][LIKE] = {"type": "string", "description": "another entry, whose keys this one has, too"}
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


def _hooks(parts: Mapping[str, Schema], extra: Schema) -> dict[str, Schema]:
    """Keys of a run whose values the loader reads by their registry."""
    schemas: dict[str, Schema] = {}
    for kind in parts:
        alternatives = [PLAIN[type(None)]] * (kind in OPTIONAL) + [extra] * bool(extra)
        schemas[kind] = {"anyOf": [_to(kind), *alternatives]} if alternatives else _to(kind)
    schemas["dataset"] = {"anyOf": [_mapping(DatasetConfig), PLAIN[str]]}
    return {**schemas, "metrics": {"type": "array", "items": {"anyOf": [{"enum": list(ALL)}, {"pattern": "[:@]"}]}}}


def _to(kind: str) -> Schema:
    return {"$ref": f"#/$defs/{kind}"}


def _part(kind: str) -> Schema:
    """A name, or a mapping with a name and the keys of the part of that name."""
    registry = KINDS[kind]
    names = list(registry.names())
    mappings = []
    for name in names:
        mapping = _of_class(lambda name=name: registry.config_class(name))
        if "properties" in mapping:
            shared = {OTHER_LANGUAGES: PLAIN[bool]} if kind == "translator" else {}
            mapping["properties"] = {"name": {"const": name}, **mapping["properties"], **shared}
            mapping["required"] = ["name", *mapping["required"]]
        else:
            mapping = {"type": "object", "properties": {"name": {"const": name}}, "required": ["name"]}
        mappings.append(mapping)
    return {"anyOf": [{"enum": names}, OWN, *mappings, NAMED]}


def _of_class(find: Any) -> Schema:
    """The mapping of a part's dataclass; any keys if it cannot be imported."""
    try:
        return _mapping(find())
    except ConfigError:
        return {}


def _mapping(cls: type, hooks: Mapping[str, Schema] | None = None) -> Schema:
    """A mapping with the keys of a dataclass and no others."""
    hints, meanings = typing.get_type_hints(cls), comments(cls)
    properties, required = {}, []
    for field in fields(cls):
        if field.init:
            of_type = hooks[field.name] if hooks and field.name in hooks else _value(hints[field.name])
            properties[field.name] = {**of_type, **_beside(field, meanings)}
            if field.default is MISSING and field.default_factory is MISSING:
                required.append(field.name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _beside(field: Field[Any], meanings: Mapping[str, str]) -> Schema:
    """Description and default of a key, which an editor shows."""
    shown: Schema = {"description": meanings[field.name]} if field.name in meanings else {}
    return shown if field.default is MISSING else {**shown, "default": to_mapping(field.default)}


def _value(hint: Any) -> Schema:
    """A type, as `sqa.pipeline.config.Reader` reads its values."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in PLAIN:
        return dict(PLAIN[hint])
    if hint == tuple[QualityConfig, ...]:
        return _quality()
    if hint == tuple[ComponentConfig, ...]:
        return {"type": "array", "items": _to("guesser")}
    if hint is OwnPart:
        return {"anyOf": [OWN, {"type": "object", "required": ["name"]}]}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_value(member) for member in inner]}
    if origin is Literal:
        return {"enum": list(inner)}
    if origin is tuple and inner[-1] is Ellipsis:
        return {"type": "array", "items": _value(inner[0])}
    if origin is tuple:
        return {
            "type": "array",
            "prefixItems": list(map(_value, inner)),
            "minItems": len(inner),
            "maxItems": len(inner),
        }
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": _value(inner[1])}
    if is_dataclass(hint):
        return _mapping(typing.cast(type, hint))
    raise TypeError(f"no schema for {hint}")


def _quality() -> Schema:
    """`quality:`, a list of {kind: options}, or one mapping of kinds."""
    short = [PLAIN[str], {"type": "array", "items": PLAIN[str]}]
    kinds = {
        name: {"anyOf": [*short, _of_class(lambda name=name: QUALITY.config_class(name))]} for name in QUALITY.names()
    }
    entries = {"type": "object", "properties": kinds, "patternProperties": {":": {}}, "additionalProperties": False}
    return {"anyOf": [entries, {"type": "array", "items": {**entries, "minProperties": 1, "maxProperties": 1}}]}
