"""Expected-wins curves: the two published ones, and those that `sqa curve fit` writes.

A curve file is JSON: {"kind": "expected-wins curve", "version": 1, "method": "cubic", "coefficients": [c0, c1, c2, c3]}
or {..., "method": "monotone", "knots": {"t": [0, ..., 1], "ew": [...]}}, and beside that how it was made
(`sqa.metrics.curve_fit`), which this module does not read.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct

from sqa.core.errors import ConfigError, DataError
from sqa.core.registry import did_you_mean
from sqa.core.types import Floats
from sqa.files.records import converted, json_document

KEYS = (
    *("kind", "version", "method", "coefficients", "knots"),
    *("buzzes", "right", "questions", "points", "rmse", "largest_error", "rises", "data", "filters", "band"),
)
KIND, VERSION = "expected-wins curve", 1
_LARGEST = 1 << 20  # bytes of a curve file
_STEEPEST = 1e6  # coefficients at most, and one over the least step between two knots: no fit has more


@dataclass(frozen=True, slots=True)
class Curve:
    """Expected wins EW(t): the chance that a right answer at fraction t of the question comes before a human's.

    EW(t) = c0 + c1 t + c2 t^2 + c3 t^3, a least-squares fit to recorded human games; not clipped, so it may pass 1 by
    a hair near t = 0, and EW(1) is about .4, not 0.  t may exceed 1 where a caller's positions overshoot the text.
    """

    name: str
    source: str  # where the coefficients come from
    coefficients: tuple[float, float, float, float]  # c0, c1, c2, c3

    def __call__(self, t: float | Floats) -> float | Floats:
        """EW at fraction t >= 0, elementwise."""
        c0, c1, c2, c3 = self.coefficients
        return c0 + c1 * t + c2 * t**2 + c3 * t**3


@dataclass(frozen=True, slots=True)
class MonotoneCurve:
    """EW(t) through given points, joined by the monotone cubic spline of Fritsch and Carlson (scipy's PCHIP).

    Between two points it stays between their values, so it never rises where they do not.  Constant after t = 1.
    """

    name: str
    source: str
    t: tuple[float, ...]  # ascending, from 0 to 1
    ew: tuple[float, ...]  # as many, never rising, within 0..1

    def __call__(self, t: float | Floats) -> float | Floats:
        """EW at fraction t >= 0, elementwise."""
        values: float | Floats = _spline(self.t, self.ew)(np.minimum(t, 1.0))
        return values


AnyCurve = Curve | MonotoneCurve
_Coefficient = Annotated[float, Meta(ge=-_STEEPEST, le=_STEEPEST)]
_Shares = tuple[Annotated[float, Meta(ge=0, le=1)], ...]


class _Knots(Struct):
    t: _Shares
    ew: _Shares


class _Shape(Struct):
    """The keys of a curve file that define the curve."""

    method: str
    coefficients: tuple[_Coefficient, _Coefficient, _Coefficient, _Coefficient] | None = None
    knots: _Knots | None = None


@functools.lru_cache(maxsize=64)
def _spline(t: tuple[float, ...], ew: tuple[float, ...]) -> Callable[[Any], Any]:
    from scipy.interpolate import PchipInterpolator

    spline: Callable[[Any], Any] = PchipInterpolator(t, ew)
    return spline


CURVES: dict[str, Curve] = {
    curve.name: curve
    for curve in (
        Curve(
            name="qanta2018",
            source="Pinafore/qanta-codalab, curve_pipeline.pkl",
            coefficients=(0.9930799808912602, 0.07753813168299144, -1.278222873334493, 0.5879804678680423),
        ),
        Curve(
            name="xqb-interface",
            source="h-j-han/xqb_interface, fixtures/curve_pipeline.pkl",
            coefficients=(0.999352355315875, -0.09224063054267757, -1.149033601888297, 0.6098396790274875),
        ),
    )
}


def is_file_name(name: str) -> bool:
    """True if a curve of this name is read from a file."""
    return name.endswith(".json")


def curve_named(name: str, where: str = "curve") -> AnyCurve:
    """A published curve by its name, or the curve in a .json file.

    A file's curve is named <method>-<hash of its shape>: files with the same curve have the same name.  An unknown
    name: ConfigError beginning with `where`; a file without a curve: DataError.
    """
    if name in CURVES:
        return CURVES[name]
    if is_file_name(name):
        return read_curve(Path(name))
    raise ConfigError(f"{where}: must be one of {', '.join(CURVES)} or a curve file (.json), got {name!r}")


def read_curve(path: Path) -> AnyCurve:
    """The curve in a file."""
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
    return curve_of(document, path)


def curve_of(document: dict[str, Any], path: Path) -> AnyCurve:
    """The curve of a file's document; `path` is for the errors."""
    shape = converted(str(path), document, _Shape)
    if shape.method == "cubic" and shape.coefficients is not None:
        return Curve(_name(shape.method, [shape.coefficients]), str(path), shape.coefficients)
    if shape.method == "monotone" and shape.knots is not None:
        t, ew = shape.knots.t, shape.knots.ew
        if len(t) != len(ew) or len(t) < 2 or (t[0], t[-1]) != (0, 1):
            raise DataError(f"{path}: knots: expected as many ew as t, and t ascending from 0 to 1")
        if any(b - a < 1 / _STEEPEST for a, b in pairwise(t)):
            raise DataError(f"{path}: knots.t: expected ascending, by steps of {1 / _STEEPEST:g} at least")
        if any(a < b for a, b in pairwise(ew)):
            raise DataError(f"{path}: knots.ew: expected numbers that never rise")
        return MonotoneCurve(_name(shape.method, [t, ew]), str(path), t, ew)
    raise DataError(
        f"{path}: expected method 'cubic' with coefficients, or 'monotone' with knots, got {shape.method!r}"
    )


def _name(method: str, shape: list[tuple[float, ...]]) -> str:
    return f"{method}-{hashlib.sha256(json.dumps(shape).encode()).hexdigest()[:12]}"
