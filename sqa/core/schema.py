"""Schema of configs: frozen dataclasses whose annotations hold bounds and help texts.

    @dataclass(frozen=True, slots=True)
    @checked
    class Training:
        steps: Annotated[Count, "optimiser steps"] = 4000
        clip: Annotated[float, Meta(gt=0), "norm of the gradient"] = 1.0

The loader (sqa/pipeline/config.py), `sqa config keys` and `sqa config schema` read these annotations.
"""

import functools
import math
import operator
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union

from msgspec import Meta

from sqa.core.errors import ConfigError

T = TypeVar("T")
SOUGHT = "a relative path is looked up in the config's folder, then in the current folder"
File = Annotated[str, SOUGHT]  # key of a config that may name a file or folder to read
FilePath = Annotated[Path, SOUGHT]  # key of a config that names a file or folder to read

Count = Annotated[int, Meta(ge=1)]
Whole = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
BelowOne = Annotated[float, Meta(ge=0, lt=1)]


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a config class."""

    name: str
    hint: Any  # annotation of the key
    default: Any  # MISSING: the key is required
    help: str  # empty if the class has no help for the key
    bounds: Meta | None

    @property
    def required(self) -> bool:
        return self.default is MISSING


@functools.cache
def keys(cls: type) -> dict[str, Key]:
    """Return the keys of a config class by name, in the order of its fields."""
    hints, found = typing.get_type_hints(cls, include_extras=True), {}
    for field in fields(cls):
        if field.init:
            notes = list(_notes(hints[field.name]))
            texts = [note for note in notes if isinstance(note, str) and note != SOUGHT]
            bounds = next((note for note in notes if isinstance(note, Meta)), None)
            default = field.default if field.default_factory is MISSING else field.default_factory()
            found[field.name] = Key(field.name, hints[field.name], default, "".join(texts[:1]), bounds)
    return found


def _notes(hint: Any) -> Iterator[object]:
    """Yield the metadata of an annotation and of the union members in it."""
    yield from getattr(hint, "__metadata__", ())
    if typing.get_origin(hint) in (Annotated, Union, types.UnionType):
        for inner in typing.get_args(hint):
            yield from _notes(inner)


def checked(cls: type[T]) -> type[T]:
    """Make a config dataclass check the bounds of its keys; place the decorator below `@dataclass`.

    The constructor raises ConfigError with every value out of bounds ("batch: must be >= 1, got 0") and with the
    problems that the class's method `problems` returns or raises.
    """

    def check(self: object) -> None:
        wrong = []
        for key in keys(type(self)).values():  # type: ignore[arg-type]  # a class is hashable
            value = getattr(self, key.name)
            if key.bounds is not None and value is not None and not _within(key.bounds, value):
                null = " or null" * (type(None) in typing.get_args(_plain(key.hint)))
                wrong.append(f"{key.name}: must be {_in_words(key.bounds)}{null}, got {value}")
        try:
            wrong += getattr(self, "problems", list)()
        except ConfigError as error:  # from a part of the config
            wrong += error.problems
        if wrong:
            raise ConfigError(wrong)

    cls.__post_init__ = check  # type: ignore[attr-defined]
    return cls


def _plain(hint: Any) -> Any:
    """Return an annotation without its metadata."""
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint


def _within(bounds: Meta, value: float) -> bool:
    """Return whether a number is finite and within its bounds."""
    limits = ((getattr(operator, name), getattr(bounds, name)) for name in ("ge", "gt", "le", "lt"))
    return math.isfinite(value) and all(limit is None or holds(value, limit) for holds, limit in limits)


def _in_words(bounds: Meta) -> str:
    """Return bounds as written in messages: ">= 1", "in (0, 1]"."""
    least, most = (bounds.ge if bounds.gt is None else bounds.gt), (bounds.le if bounds.lt is None else bounds.lt)
    if most is None:
        return f"{'>=' if bounds.gt is None else '>'} {least}"
    return f"in {'[' if bounds.gt is None else '('}{least}, {most}{']' if bounds.lt is None else ')'}"


def kind_of(value: Any) -> str:
    """Return a value and its kind as a short text for messages."""
    if value is None:
        return "null (nothing)"
    names = {bool: "true or false", int: "number", float: "number", str: "text", list: "list", dict: "mapping"}
    return f"{names.get(type(value), type(value).__name__)} {str(value)[:60]!r}"


def describe(hint: Any) -> str:
    """Return a type in words for a config author."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return describe(arguments[0])
    if origin in (Union, types.UnionType):
        return " or ".join(map(describe, arguments))
    if origin is Literal:
        return " or ".join(map(repr, arguments))
    if origin is tuple and arguments[-1] is not Ellipsis:
        return f"a list of {len(arguments)}: {', '.join(map(describe, arguments))}"
    if origin is tuple:
        return f"a list of {describe(arguments[0])}"
    if is_dataclass(hint) or origin in (dict, Mapping):
        return "a mapping of keys to values"
    names = {int: "a whole number", float: "a number", str: "text", bool: "true or false", Path: "a path"}
    return "null" if hint is type(None) else names.get(hint, str(hint))


# -------------------------------------------------------------------------------------------------- k of a translator

K = int | str  # at least 1, or "full" to read the whole sentence first
FULL: Literal["full"] = "full"
LONGEST = 10_000  # number of source words for "full", larger than any sentence


def parse_k(k: K) -> int:
    """Return a config's k as a number of words; raises ConfigError unless k is an int >= 1 or "full"."""
    if k == FULL:
        return LONGEST
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        quoted = "; write it without quotes" if isinstance(k, str) and k.isdecimal() else ""
        raise ConfigError(f"k: must be >= 1 or 'full', got {k!r}{quoted}")
    return k


def order(k: K | float) -> float:
    """Return a sort key for values of k or shares of the source; "full" and all other names come last."""
    try:
        return float(k)
    except ValueError:
        return float("inf")
