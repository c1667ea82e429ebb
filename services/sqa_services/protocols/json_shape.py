"""The shape of JSON values by a JSON Schema (draft 2020-12): every problem at once, a line each.

The Rust validator, as files have tens of thousands of rows: jsonschema in Python takes forty times as long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqa.core.registry import did_you_mean

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError


class Shape:
    """A schema, compiled when it is first needed.

    A `title` beside a `pattern` says in words what is expected.  A whole number written 1.0, which JSON Schema takes
    for an integer, is none here.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.schema = dict(schema)

    @cached_property
    def _validator(self) -> Draft202012Validator:
        from jsonschema_rs import Draft202012Validator

        return Draft202012Validator(self.schema)

    def problems(self, value: object) -> list[str]:
        """What is wrong with a value: lines "place: what was expected, what was got"."""
        found = []
        if not self._validator.is_valid(value):  # twice as fast as to look for errors
            errors = self._validator.iter_errors(value)
            found = [line for error in errors for line in _lines(error, self._schema_at(error))]
        return found + _floats(value, self.schema, "")

    def _schema_at(self, error: ValidationError) -> Any:
        """The schema whose keyword an error is about."""
        found: Any = self.schema
        for key in error.schema_path[:-1]:
            found = found[key]
        return found


def _lines(error: ValidationError, schema: Any) -> Iterator[str]:
    value: Any = error.instance
    said, where = error.kind.as_dict(), _place(error.instance_path)
    match error.kind.name:
        case "required":
            needing = schema.get("dependentRequired", {}).items() if "dependentRequired" in error.schema_path else ()
            because = next((name for name, needed in needing if name in value and said["property"] in needed), None)
            also = f", although there is {because}" if because is not None else ""
            yield f"{_place([*error.instance_path, said['property']])}: is missing{also}"
        case "additionalProperties":
            known = schema["properties"]
            for name in said["unexpected"]:
                near = did_you_mean(name, known)
                yield f"{_place([*error.instance_path, name])}: no such field{near}; there are {', '.join(known)}"
        case "type" if said["types"] == ["object"]:
            yield f"{where}: an object was expected".removeprefix(": ")
        case "type":
            yield f"{where}: {' or '.join(said['types'])} expected, got {value!r}"
        case "minimum":
            yield f"{where}: must be >= {said['limit']}, got {value}"
        case "pattern" if "title" in schema:
            yield f"{where}: {schema['title']} expected, got {value!r}"
        case _:
            yield f"{where}: {' '.join(error.message.split())}".removeprefix(": ")


def _place(path: list[str | int]) -> str:
    """["steps", 3, "g"] -> "steps[3].g"."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def _floats(value: object, schema: Mapping[str, Any], where: str) -> list[str]:
    """Whole numbers written as floats where the schema has integers."""
    if isinstance(value, float):
        wrong = schema.get("type") == "integer" and value.is_integer()
        return [f"{where}: integer expected, got {value!r}"] if wrong else []
    found: list[str] = []
    if isinstance(value, Mapping) and "properties" in schema:
        for name, inner in value.items():
            if isinstance(inner, (float, list, Mapping)) and name in schema["properties"]:
                found += _floats(inner, schema["properties"][name], f"{where}.{name}".removeprefix("."))
    elif isinstance(value, list) and "items" in schema:
        for place, inner in enumerate(value):
            found += _floats(inner, schema["items"], f"{where}[{place}]")
    return found
