"""The keys of a part of a config: their types, defaults and meanings, read from the dataclass that the part takes."""

from __future__ import annotations

import inspect
import io
import json
import tokenize
import typing
from dataclasses import MISSING, dataclass, fields
from typing import Any

from sqa.core import own
from sqa.core.errors import ConfigError
from sqa.core.registry import BUZZERS, GUESSERS, POLICIES, QUALITY, TRANSLATORS, did_you_mean
from sqa.files.yaml_reader import describe

KINDS = {"translator": TRANSLATORS, "guesser": GUESSERS, "buzzer": BUZZERS, "quality": QUALITY, "policy": POLICIES}


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
        from sqa.metrics import ALL

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
        with own.around(cls):  # a user's class: its module can be imported in here only
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
