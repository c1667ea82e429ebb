"""Declarations of registered parts for their tests, read from tests/conformance/parts/KIND/NAME.yaml."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from stand_ins.keyed_parts import Places

from sqa.core import BUZZERS, GUESSERS, POLICIES, QUALITY, TRANSLATORS
from sqa.files import parse_yaml

Options = Mapping[str, Any]
REGISTRIES = {registry.kind: registry for registry in (TRANSLATORS, GUESSERS, BUZZERS, POLICIES, QUALITY)}
FOLDER = Path(__file__).parents[1] / "conformance" / "parts"


class Declared(NamedTuple):
    """The declaration of a part.

    made: options of a tiny instance (`with` in the file); "@x" is the place x of tests/stand_ins/keyed_parts.py
    changes: another value of a field, which gives another key
    pairs: two sets of options that differ in a field alone, where the plain ones do not let it change
    same: another value that must leave the key, and why; null: not tried (it needs a GPU)
    contract: options, or the function that makes them, for the contract of its kind; default: the tiny instance
    streams: False: needs whole questions, or `translate` notices the end of the source one step later
    tolerance: of scores; 0 if sums have a fixed order, since matrix products depend on the size of the matrices
    needs: extra
    weights: whether it has weights, and so computes on a device
    """

    made: Options
    changes: Mapping[str, Any] = {}
    pairs: Mapping[str, tuple[Options, Options]] = {}
    same: Mapping[str, tuple[Any, str]] = {}
    contract: list[Any] | None = None
    streams: bool = True
    tolerance: float = 0.0
    needs: str = ""
    weights: bool = True

    @property
    def fields(self) -> list[str]:
        return [*self.changes, *self.pairs]

    @property
    def cases(self) -> list[Any]:
        return [self.made] if self.contract is None else self.contract


def _declared(file: Path) -> Declared:
    row = parse_yaml(file.read_text("utf-8"))
    return Declared(row.pop("with"), **row)


TABLE = {(file.parent.name.replace("-", " "), file.stem): _declared(file) for file in sorted(FOLDER.glob("*/*.yaml"))}


def filled(value: Any, places: Places) -> Any:
    """Return the value with every string "@NAME" in it replaced by the path of the place NAME."""
    if isinstance(value, Mapping):
        return {key: filled(item, places) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, places) for item in value]
    if isinstance(value, str) and value.startswith("@"):
        part, colon, attribute = value[1:].partition(":")
        return f"{places.path(part)}{colon}{attribute}"
    return value
