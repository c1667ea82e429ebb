"""YAML files as plain values with unique keys and limited size and depth; sqa/pipeline/config.py adds types.

Several configs may share a file, each under a name: `FILE.yaml:NAME` works wherever a config is named.

    entries:
      small: {output: a, network: {width: 10, depth: 2}}
      wide: {like: small, output: b, network: {width: 50}}     network is {width: 50, depth: 2}

An entry with the key `like` inherits all keys of the named entry, and may override their values.  Mappings are merged
key by key, except that a mapping with a component's `name` replaces the whole mapping.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from sqa.core import ConfigError, did_you_mean, kind_of
from sqa.files.records import GREATEST_WHOLE

MAX_TEXT = 4 << 20  # characters of a document
MAX_NODES = 100_000  # values of a document, with aliases expanded
MAX_DEPTH = 60  # nested lists and mappings
ENTRIES, LIKE = "entries", "like"
_PLAIN = frozenset({"null", "bool", "int", "float", "str", "seq", "map", "merge"})
_SUFFIXES = (".yaml", ".yml")


def parse_yaml(text: str) -> Any:
    """Return the value of a YAML document; raises a one-line ValueError with the position if it is invalid or large."""
    if len(text) > MAX_TEXT:
        raise ValueError(f"not valid YAML: more than {MAX_TEXT} characters")
    try:
        return yaml.load(text, Loader=_Loader)
    except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        # PyYAML's constructors raise other errors than YAMLError for a value that does not fit its tag.
        raise ValueError(f"not valid YAML: {_told(error)}") from error


def _told(error: Exception) -> str:
    """Return an error in one line: its position, the problem, and the line where the enclosing construct begins."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return " ".join(str(error).split())
    place, start = error.problem_mark, error.context_mark
    begun = f", {error.context} that begins in line {start.line + 1}" if error.context and start else ""
    return f"line {place.line + 1}, column {place.column + 1}: {error.problem}{begun}"


class _Loader(yaml.SafeLoader):
    """PyYAML loader that refuses exponential aliases, special values and repeated keys, and reads 1e-3 as a number."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0
        self._nodes = 0  # nodes composed so far
        self._sizes: dict[int, int] = {}  # id of a composed node -> number of values in it, with aliases expanded

    def compose_node(self, parent: Any, index: Any) -> Node | None:
        """Count values and depth while PyYAML composes a node."""
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]  # the stubs give it no types
        start = event.start_mark
        self._depth += 1
        self._nodes += 1
        if self._nodes > MAX_NODES:  # fail before the enclosing list has ended
            raise _problem(f"more than {MAX_NODES} values", start)
        if self._depth > MAX_DEPTH:
            raise _problem(f"lists and mappings are nested more than {MAX_DEPTH} deep", start)
        node = super().compose_node(parent, index)
        self._depth -= 1
        if node is None:
            return None
        if isinstance(event, yaml.AliasEvent):
            if id(node) not in self._sizes:
                raise _problem("an alias occurs within its own value", start)
            return node
        _check_kind(node)
        self._sizes[id(node)] = size = 1 + sum(self._sizes[id(child)] for child in _children(node))
        if size > MAX_NODES:
            raise _problem(f"more than {MAX_NODES} values with aliases expanded", start)
        return node

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Refuse repeated keys, because PyYAML silently uses the last one."""
        keys = set()
        for key_node, _ in node.value:
            if isinstance(key_node, ScalarNode):
                if key_node.value in keys:
                    raise _problem(f"the key {key_node.value!r} occurs twice", key_node.start_mark)
                keys.add(key_node.value)
        return super().construct_mapping(node, deep)


def _children(node: Node) -> list[Node]:
    if isinstance(node, MappingNode):
        return [child for pair in node.value for child in pair]
    return list(node.value) if isinstance(node, SequenceNode) else []


def _check_kind(node: Node) -> None:
    """Refuse values of special kinds, integers over 64 bits and text that cannot be encoded."""
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    if kind not in _PLAIN:
        raise _problem(f"a {kind} is not allowed; put text in quotes", node.start_mark)
    if not isinstance(node, ScalarNode):
        return
    if kind in ("int", "float", "str") and node.style is None and (problem := _misread(kind, node.value)):
        raise _problem(problem, node.start_mark)
    if "\0" in node.value or any("\ud800" <= c <= "\udfff" for c in node.value):
        raise _problem("text with a NUL or half a surrogate pair is not allowed", node.start_mark)


def _misread(kind: str, text: str) -> str:
    """Return the problem with a number that is over 64 bits or that YAML reads in base 8 or 60; "" if there is none."""
    digits = text.lstrip("+-").replace("_", "")
    if ":" in text and kind != "str":
        return f"{text} would be a number to base 60; write it to base 10, or text in quotes"
    if kind != "float" and digits[:1] == "0" and digits.isdecimal() and len(digits) > 1:
        return f"{text} would be a number to base 8 or text; write it without the leading 0, or text in quotes"
    if kind == "int" and abs(int(digits, 0)) > GREATEST_WHOLE:
        return "a whole number of more than 64 bits is not allowed"
    return ""


def _problem(text: str, mark: Any) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, text, mark)


class _Dumper(yaml.SafeDumper):
    """PyYAML dumper that quotes a text which `_Loader` would read as a number."""


for kind in (_Loader, _Dumper):
    kind.add_implicit_resolver(
        "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9]+(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
    )


def dump_yaml(value: Any) -> str:
    """Return a YAML document in ASCII that `parse_yaml` reads as the same plain value."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False)


# -------------------------------------------------------------------------------------------- files and their entries


def split_entry(path: Path) -> tuple[Path, str | None]:
    """Split "FILE.yaml:NAME" into the file and the name of its entry, or None if no entry is named."""
    file, colon, name = str(path).rpartition(":")
    return (Path(file), name) if colon and Path(file).suffix in _SUFFIXES else (path, None)


def is_config(text: str) -> bool:
    """Return whether a text names a YAML file, or an entry of one."""
    return split_entry(Path(text))[0].suffix in _SUFFIXES


def name_of(path: Path) -> str:
    """Return the default name of a config: its entry, else its file."""
    file, entry = split_entry(path)
    return entry or file.stem


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file, or in an entry of one.

    Raises ConfigError for an unreadable file, a file that is not UTF-8 or YAML, a repeated key, an unknown or missing
    entry, or a circular `like`.
    """
    file, entry = split_entry(Path(path))
    try:
        mapping = mapping_in(file.read_bytes(), str(file))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    entries = mapping.get(ENTRIES)
    if not isinstance(entries, Mapping):
        if entry is None:
            return mapping
        raise ConfigError(f"{file}: has no `{ENTRIES}`, hence no entry {entry!r}; omit `:{entry}`")
    if extra := [str(key) for key in mapping if key != ENTRIES]:
        raise ConfigError(f"{file} {extra[0]}: unknown; a file of {ENTRIES} has no other key")
    if entry is None:
        raise ConfigError(f"{file}: contains several configs; use {file}:NAME with one of {', '.join(entries)}")
    return _resolved(entries, entry, file, ())


def mapping_in(content: bytes, source: str) -> dict[str, Any]:
    """Return the mapping in a YAML text; raises ConfigError naming `source` if it is not UTF-8, YAML or a mapping."""
    try:
        mapping = parse_yaml(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{source}: not UTF-8 (byte {error.start}); save it as UTF-8") from error
    except ValueError as error:
        if content.lstrip()[:1] == b"{" and content.count(b"\n{"):
            names = f"translator: {{name: recorded, file: {source}}}"
            names = f"dataset: {{name: {source}}}" if b'"page"' in content else names
            raise ConfigError(f"{source}: expected a config in YAML, got JSON lines; a config has `{names}`") from error
        raise ConfigError(f"{source}: {error}") from error
    if not isinstance(mapping, dict):
        example = "a config has keys such as `dataset: {name: mini-es}`"
        raise ConfigError(f"{source}: expected a mapping of keys to values, got {kind_of(mapping)}; {example}")
    return mapping


def _resolved(entries: Mapping[Any, Any], name: object, file: Path, chain: tuple[object, ...]) -> dict[str, Any]:
    """Return an entry with the values inherited by `like`; `chain` holds the entries whose `like` led to it."""
    if name not in entries:
        near = did_you_mean(str(name), list(map(str, entries)))
        asking = f"{file}:{chain[-1]} {LIKE}" if chain else f"{file}"
        raise ConfigError(f"{asking}: no entry {name!r}{near}; entries are {', '.join(map(str, entries))}")
    if name in chain:
        raise ConfigError(f"{file}:{chain[0]} {LIKE}: a circle, {' -> '.join(map(str, (*chain, name)))}")
    if len(chain) > 100:
        raise ConfigError(f"{file}:{chain[0]} {LIKE}: a chain of more than 100 entries")
    entry = entries[name]
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{file}:{name}: expected a mapping of keys to values")
    if LIKE not in entry:
        return dict(entry)
    given = {key: value for key, value in entry.items() if key != LIKE}
    return _merged(_resolved(entries, entry[LIKE], file, (*chain, name)), given)


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        if isinstance(base.get(key), Mapping) and isinstance(value, Mapping) and "name" not in value:
            value = _merged(base[key], value)
        merged[key] = value
    return merged
