"""The file of an expected-wins curve, as `sqa curve fit` writes it (sqa/metrics/curve_fit.py).

JSON: {"kind": "expected-wins curve", "version": 1, "method": "cubic", "coefficients": [c0, c1, c2, c3]}
or {..., "method": "monotone", "knots": {"t": [0, ..., 1], "ew": [...]}}, and beside that how it was made, unread here.
"""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct

from sqa.core.errors import DataError
from sqa.core.registry import did_you_mean
from sqa.files.records import converted, json_document

KEYS = (
    *("kind", "version", "method", "coefficients", "knots"),
    *("buzzes", "right", "questions", "points", "rmse", "largest_error", "rises", "data", "filters", "band"),
)
KIND, VERSION = "expected-wins curve", 1
_LARGEST = 1 << 20  # bytes of a curve file
_STEEPEST = 1e6  # coefficients at most, and one over the least step between two knots: no fit has more


_Coefficient = Annotated[float, Meta(ge=-_STEEPEST, le=_STEEPEST)]
_Shares = tuple[Annotated[float, Meta(ge=0, le=1)], ...]


class Cubic(Struct, tag_field="method", tag="cubic"):
    """The keys that define a cubic curve."""

    coefficients: tuple[_Coefficient, _Coefficient, _Coefficient, _Coefficient]

    @property
    def name(self) -> str:
        return _named("cubic", [self.coefficients])


class Knots(Struct):
    t: _Shares  # ascending from 0 to 1
    ew: _Shares  # as many, never rising

    def __post_init__(self) -> None:
        if len(self.t) != len(self.ew) or len(self.t) < 2 or (self.t[0], self.t[-1]) != (0, 1):
            raise ValueError("expected as many ew as t, and t ascending from 0 to 1")
        if any(b - a < 1 / _STEEPEST for a, b in pairwise(self.t)):
            raise ValueError(f"expected t ascending, by steps of {1 / _STEEPEST:g} at least")
        if any(a < b for a, b in pairwise(self.ew)):
            raise ValueError("expected ew that never rise")


class Monotone(Struct, tag_field="method", tag="monotone"):
    """The keys that define a monotone curve."""

    knots: Knots

    @property
    def name(self) -> str:
        return _named("monotone", [self.knots.t, self.knots.ew])


Shape = Cubic | Monotone


def _named(method: str, values: list[Any]) -> str:
    """<method>-<hash>: files with the same curve have the same name."""
    return f"{method}-{hashlib.sha256(json.dumps(values).encode()).hexdigest()[:12]}"


def read(path: Path) -> Shape:
    """What defines the curve in a file."""
    if not path.is_file():
        raise DataError(f"{path}: there is no such curve; `sqa curve fit BUZZES --output {path}` makes one")
    if path.stat().st_size > _LARGEST:
        raise DataError(f"{path}: is larger than {_LARGEST} bytes, not an expected-wins curve")
    document = json_document(path)
    if not isinstance(document, dict) or (document.get("kind"), document.get("version")) != (KIND, VERSION):
        raise DataError(f'{path}: not a curve: expected an object with kind "{KIND}" and version {VERSION}')
    for key in document:
        if key not in KEYS and not key.startswith("_"):
            raise DataError(f"{path}: unknown key {key[:60]!r}{did_you_mean(key, KEYS)} in a curve")
    shape: Shape = converted(str(path), document, Shape)  # type: ignore[arg-type]  # a union is no type to mypy
    return shape
