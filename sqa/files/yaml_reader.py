"""The one reader of YAML: plain values only, each key once, of a size and depth that a person writes; and of plain
values as frozen dataclasses: strict, with every problem named at once and its place.

A class's fields say which keys exist, of which type, and which have defaults.  (pydantic could check them; what it
says of unions and of other than its own types would have to be said anew, in more lines than these.)
"""

from __future__ import annotations

import math
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal, Union

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from sqa.core.errors import ConfigError
from sqa.core.places import OwnPart
from sqa.core.registry import did_you_mean

MAX_TEXT = 4 << 20  # characters of a document
MAX_NODES = 100_000  # values of a document, aliases written out
MAX_DEPTH = 60  # lists and mappings within one another
MAX_DIGITS = 19  # of a whole number: 64 bits
_PLAIN = frozenset({"null", "bool", "int", "float", "str", "seq", "map", "merge"})


def parse_yaml(text: str) -> Any:
    """The value of a YAML document.  ValueError, one line saying where, for what is odd, too large or too deep."""
    if len(text) > MAX_TEXT:
        raise ValueError(f"not valid YAML: more than {MAX_TEXT} characters")
    try:
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        # All but the first are what the package's constructors raise for a value that is not of its own tag.
        raise ValueError(f"not valid YAML: {' '.join(str(error).split())}") from error


class _Loader(yaml.SafeLoader):
    """YAML without its traps: aliases that blow up, odd kinds of values, keys that are lost, and 1e-3 as text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._nodes = 0  # composed so far
        self._sizes: dict[int, int] = {}  # id of a composed node -> values in it, aliases written out

    def compose_node(self, parent: Any, index: Any) -> Node | None:
        """The package's own, counting."""
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]  # the stubs give it no types
        start = event.start_mark
        self._depth += 1
        self._nodes += 1
        if self._nodes > MAX_NODES:  # before the list that they stand in has ended
            raise _problem(f"more than {MAX_NODES} values", start)
        if self._depth > MAX_DEPTH:
            raise _problem(f"lists and mappings lie more than {MAX_DEPTH} deep", start)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if node is None:
            return None
        if isinstance(event, yaml.AliasEvent):
            if id(node) not in self._sizes:
                raise _problem("an alias stands within what it stands for", start)
            return node
        _check_kind(node)
        self._sizes[id(node)] = size = 1 + sum(self._sizes[id(child)] for child in _children(node))
        if size > MAX_NODES:
            raise _problem(f"more than {MAX_NODES} values, aliases written out", start)
        return node

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Of two equal keys the second would silently win."""
        seen = set()
        for key_node, _ in node.value:
            scalar = isinstance(key_node, ScalarNode)
            if scalar and key_node.value in seen:
                raise _problem(f"the key {key_node.value!r} occurs twice", key_node.start_mark)
            if scalar:
                seen.add(key_node.value)
        return super().construct_mapping(node, deep)


def _children(node: Node) -> list[Node]:
    if isinstance(node, MappingNode):
        return [child for pair in node.value for child in pair]
    return list(node.value) if isinstance(node, SequenceNode) else []


def _check_kind(node: Node) -> None:
    """Only plain kinds, whole numbers of 64 bits, text that can be written."""
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    if kind not in _PLAIN:
        raise _problem(f"a {kind} is not taken; put text in quotes", node.start_mark)
    if not isinstance(node, ScalarNode):
        return
    if kind == "int" and len(node.value.replace("_", "")) > MAX_DIGITS:
        raise _problem(f"a whole number of more than {MAX_DIGITS} digits is not taken", node.start_mark)
    if "\0" in node.value or any("\ud800" <= c <= "\udfff" for c in node.value):
        raise _problem("text with a NUL or half a surrogate pair is not taken", node.start_mark)


def _problem(text: str, mark: Any) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, text, mark)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


Read = Callable[[Any, str], Any]  # (value, its place) -> what it means
Special = Callable[[Any, str, list[str]], Any]  # the same, given the list of problems


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads values of a type; what is wrong is added to `problems`, lines "place: what was expected, what was got"."""

    problems: list[str]
    special: Mapping[Any, Special] = field(default_factory=dict)  # type -> what reads its values

    def dataclass(self, cls: type, value: Any, where: str, hooks: Mapping[str, Read] | None = None) -> Any:
        """An instance of `cls` from a mapping, None where something is wrong; `hooks` read the values of these keys."""
        if not isinstance(value, Mapping):
            self._add(where, f"expected a mapping of keys to values, got {kind_of(value)}")
            return None
        before = len(self.problems)
        known = {f.name: f for f in fields(cls) if f.init}
        hints = typing.get_type_hints(cls)
        for key in value:
            if key not in known:
                self._add(join(where, key), f"unknown{did_you_mean(str(key), known)}")
        arguments: dict[str, Any] = {}
        for name, f in known.items():
            here = join(where, name)
            if name not in value:
                if f.default is MISSING and f.default_factory is MISSING:
                    self._add(here, f"missing; expected {describe(hints[name])}")
            elif hooks and name in hooks:
                arguments[name] = hooks[name](value[name], here)
            else:
                arguments[name] = self.value(hints[name], value[name], here)
        if len(self.problems) > before:
            return None
        try:
            return cls(**arguments)
        except ConfigError as error:
            self.problems.extend(placed(where, problem) for problem in error.problems)
        except ValueError as error:
            self.problems.append(placed(where, str(error)))
        return None

    def value(self, hint: Any, value: Any, where: str) -> Any:
        """`value` as the type `hint`, None where something is wrong."""
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if hint is Any:  # what takes it checks it
            return value
        if hint in self.special:
            return self.special[hint](value, where, self.problems)
        if origin in (Union, types.UnionType):
            return self._union(hint, arguments, value, where)
        if is_dataclass(hint):
            return self.dataclass(typing.cast(type, hint), value, where)
        if origin is tuple and isinstance(value, (list, tuple)):
            hints = [arguments[0]] * len(value) if arguments[-1] is Ellipsis else arguments
            if len(hints) == len(value):
                pairs = enumerate(zip(hints, value, strict=True))
                return tuple(self.value(item_hint, item, f"{where}[{i}]") for i, (item_hint, item) in pairs)
        if origin in (dict, Mapping) and isinstance(value, Mapping):
            return {
                self.value(arguments[0], key, f"{where} key"): self.value(arguments[1], item, join(where, key))
                for key, item in value.items()
            }
        if origin is Literal:
            if any(value == choice and type(value) is type(choice) for choice in arguments):
                return value
            near = did_you_mean(value, [a for a in arguments if isinstance(a, str)]) if isinstance(value, str) else ""
            return self._add(where, f"expected {describe(hint)}, got {value!r}{near}")
        if hint is float and _fits(hint, value) and not _finite(value):
            return self._add(where, f"expected a finite number, got {kind_of(value)}")
        if isinstance(hint, type) and _fits(hint, value):
            return float(value) if hint is float else Path(value) if hint is Path else value
        return self._add(where, f"expected {describe(hint)}, got {kind_of(value)}{_unquoted(hint, value)}")

    def _union(self, hint: Any, arguments: tuple[Any, ...], value: Any, where: str) -> Any:
        """The first member of a union that takes the value; the exact type before a wider one."""
        if value is None and type(None) in arguments:
            return None
        if OwnPart in arguments:  # made before, or it is none
            if isinstance(value, OwnPart):
                return value
            [plain] = (argument for argument in arguments if argument is not OwnPart)
            return self.value(plain, value, where)
        for argument in sorted(arguments, key=lambda a: type(value) is not a):
            tried = Reader([], self.special)
            result = tried.value(argument, value, where)
            if not tried.problems:
                return result
        nested = [a for a in arguments if is_dataclass(a)]
        if len(nested) == 1 and isinstance(value, Mapping):
            return self.dataclass(typing.cast(type, nested[0]), value, where)
        return self._add(where, f"expected {describe(hint)}, got {kind_of(value)}")

    def _add(self, where: str, problem: str) -> None:
        self.problems.append(f"{where}: {problem}")


def _unquoted(hint: Any, value: Any) -> str:
    """What to say of a number between quotation marks where a number is wanted."""
    try:
        quoted = hint in (int, float) and isinstance(value, str) and math.isfinite(hint(value))
    except ValueError:
        return ""
    return "; write it without quotes" if quoted else ""


def _fits(hint: type, value: Any) -> bool:
    """Exact types but for: an int is a float, a str is a Path; a bool is no number."""
    if hint is Path:
        return isinstance(value, (str, Path))
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return type(value) is hint


def _finite(value: float) -> bool:
    """No NaN, no infinity, no whole number beyond the greatest float."""
    return math.isfinite(value) if isinstance(value, float) else abs(value) <= sys.float_info.max


def describe(hint: Any) -> str:
    """A type in a config author's words."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(describe(argument) for argument in arguments)
    if origin is Literal:
        return " or ".join(repr(argument) for argument in arguments)
    if origin is tuple and arguments[-1] is not Ellipsis:
        return f"a list of {len(arguments)}: {', '.join(map(describe, arguments))}"
    if origin is tuple:
        return f"a list of {describe(arguments[0])}"
    if is_dataclass(hint) or origin in (dict, Mapping):
        return "a mapping of keys to values"
    names = {int: "a whole number", float: "a number", str: "text", bool: "true or false", Path: "a path"}
    return "null" if hint is type(None) else names.get(hint, str(hint))


def kind_of(value: Any) -> str:
    """A value and its kind, short, for messages."""
    if value is None:
        return "null (nothing)"
    names = {bool: "true or false", int: "number", float: "number", str: "text", list: "list", dict: "mapping"}
    return f"{names.get(type(value), type(value).__name__)} {str(value)[:60]!r}"


def join(where: str, key: object) -> str:
    return f"{where}.{key}" if where else str(key)


def placed(where: str, problem: str) -> str:
    """A component's own "key: ..." under its place in the file; a place already named is not named twice."""
    last = where.rpartition(".")[2]
    return join(where, problem.removeprefix(f"{last}.") if last else problem)
