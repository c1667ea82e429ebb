"""The one reader of YAML: plain values only, each key once, of a size and depth that a person writes."""

from __future__ import annotations

import re
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

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
