"""Fit the expected-wins curve to human buzzes: `sqa train curve BUZZES --method cubic|monotone --output curve.json`.

    EW(t) = 1 - (right buzzes before t) / (all buzzes)

This is the probability that a right answer at t beats a random buzz in the data, which is wrong or not before t.

cubic      The published fit (Pinafore/qb, qanta/reporting/curve_score.py).  Buzzes are sorted by position; positions
           are truncated to thousandths.  Each occupied thousandth gives one point, y = 1 - (right buzzes before the
           LAST buzz of that thousandth) / (all buzzes).  The fit is ordinary least squares of y on 1, t, t^2, t^3,
           equally weighted.  QANTA's filter of players is not applied.  A cubic with values outside 0 to 1 is an error.
monotone   EW(t) itself at t = 0, .05, ..., 1, joined by scipy's monotone cubic spline (PCHIP).  The curve is 1 at
           t = 0 and never rises, which a cubic does not guarantee.

The band is a percentile bootstrap over questions: whole questions are drawn with replacement, and the curve is
refitted.
"""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import numpy as np
from msgspec import to_builtins

from sqa.core import Bools, Count, DataError, Floats, Whole, checked
from sqa.data import human_buzzes
from sqa.data.human_buzzes import BeyondEnd, Buzzes
from sqa.metrics.qa import CURVE_KIND, CURVE_VERSION, AnyCurve, Curve, Knots, MonotoneCurve, identified

Method = Literal["cubic", "monotone"]
METHODS: tuple[Method, ...] = get_args(Method)
KNOTS = np.arange(21) / 20  # t of the monotone curve
GRID = np.arange(101) / 100  # t of the band
LEAST_BUZZES = 100  # minimum number of buzzes
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
@checked
class FitConfig:
    """Options of a fit."""

    method: Method = "cubic"
    beyond_end: Annotated[BeyondEnd, "treatment of positions above 1"] = "refuse"
    resamples: Annotated[Count, "resamples of the band's bootstrap over questions"] = 1000
    seed: Whole = 0


@dataclass(frozen=True)
class Fitted:
    """A fitted curve, its points and its band."""

    curve: AnyCurve
    document: dict[str, Any]  # content of the curve's file
    x: Floats  # (m,) t of the points, truncated to thousandths
    y: Floats  # (m,)
    low: Floats  # (101,) band at GRID
    high: Floats  # (101,)


def fit(source: str, config: FitConfig) -> Fitted:
    """Fit a curve to a file of buzzes.  Raises DataError for too few buzzes."""
    kept = human_buzzes.load_buzzes(source, config.beyond_end)
    questions = _checked(kept)
    x, y = points(kept.position, kept.correct)
    curve = _curve(config.method, kept)
    low, high = band(kept, config)
    residual = np.asarray(curve(x)) - y
    document = {
        "kind": CURVE_KIND,
        "version": CURVE_VERSION,
        **to_builtins(curve),
        "buzzes": len(kept),
        "right": int(kept.correct.sum()),
        "questions": questions,
        "points": len(x),
        "rmse": float(np.sqrt(np.mean(residual**2))),
        "largest_error": float(np.abs(residual).max()),
        "rises": rises(curve),
        "data": {"file": kept.name, "sha256": kept.sha256, "buzzes": len(kept)},
        "filters": {
            "beyond_end": config.beyond_end,
            "buzzes_beyond_end": kept.beyond_end,
            "first_of_game": False,
        },
        "band": {
            "level": LEVEL,
            "unit": "questions",
            "units": questions,
            "resamples": config.resamples,
            "seed": config.seed,
            "t": GRID.tolist(),
            "low": low.tolist(),
            "high": high.tolist(),
        },
    }
    return Fitted(identified(curve, source), document, x, y, low, high)


def points(position: Floats, correct: Bools, weight: Floats | None = None) -> tuple[Floats, Floats]:
    """Return the points of the published fit: (m,) thousandths with a buzz, (m,) 1 - share of earlier right buzzes.

    `position` (n,) must be ascending, `correct` (n,) is bool, `weight` (n,) is the multiplicity of each buzz (None: 1).
    """
    weight = np.ones(len(position)) if weight is None else weight
    counted = np.flatnonzero(weight > 0)
    thousandth = (position[counted] * 1000).astype(np.int64)  # truncated, as published
    last = counted[np.flatnonzero(np.append(thousandth[1:] != thousandth[:-1], True))]  # (m,) last buzz of each
    before = np.cumsum(weight * correct)[last] - correct[last]
    return (position[last] * 1000).astype(np.int64) / 1000, 1 - before / weight.sum()


def cubic(x: Floats, y: Floats) -> Floats:
    """Return the coefficients c0..c3 (4,) of the least-squares cubic."""
    return np.asarray(np.polynomial.polynomial.polyfit(x, y, 3))


def survival(t: Floats, position: Floats, correct: Bools, weight: Floats | None = None) -> Floats:
    """Return EW(t) of the data: 1 - share of right buzzes before t; parameters as for `points`."""
    weight = np.ones(len(position)) if weight is None else weight
    right = np.concatenate([[0.0], np.cumsum(weight * correct)])
    return np.asarray(1 - right[np.searchsorted(position, t, side="left")] / weight.sum())


def _curve(method: Method, buzzes: Buzzes, weight: Floats | None = None) -> AnyCurve:
    """Fit a curve to buzzes sorted by position."""
    if method == "cubic":
        return Curve(tuple(cubic(*points(buzzes.position, buzzes.correct, weight)).tolist()))
    ew = survival(KNOTS, buzzes.position, buzzes.correct, weight)
    return MonotoneCurve(Knots(tuple(KNOTS.tolist()), tuple(ew.tolist())))


def band(buzzes: Buzzes, config: FitConfig) -> tuple[Floats, Floats]:
    """Return the pointwise band at GRID, (101,) lower and (101,) upper ends, by resampling questions."""
    names, unit = np.unique(buzzes.question, return_inverse=True)
    rng = np.random.default_rng([config.seed, len(names)])
    values = np.empty((config.resamples, len(GRID)))
    for row in values:
        drawn = np.bincount(rng.integers(0, len(names), len(names)), minlength=len(names))
        row[:] = _curve(config.method, buzzes, drawn[unit].astype(np.float64))(GRID)
    low, high = np.percentile(values, [50 * (1 - LEVEL), 50 * (1 + LEVEL)], axis=0)
    return low, high


def rises(curve: AnyCurve) -> list[list[float]]:
    """Return the intervals of t in GRID in which the curve rises; the true probability never rises."""
    up = np.diff(np.asarray(curve(GRID))) > 1e-12
    edges = np.flatnonzero(np.diff(np.concatenate([[False], up, [False]])))
    return [[float(GRID[a]), float(GRID[b])] for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _checked(buzzes: Buzzes) -> int:
    """Return the number of questions.  Raises DataError for too few buzzes, questions, positions or right answers."""
    questions, positions = len(np.unique(buzzes.question)), len(np.unique((buzzes.position * 1000).astype(np.int64)))
    for wrong, problem in (
        (len(buzzes) < LEAST_BUZZES, f"{len(buzzes)} buzzes are too few; at least {LEAST_BUZZES} are needed"),
        (questions < 2, "all buzzes are on one question; the band needs several"),
        (not buzzes.correct.any(), "no buzz is right, so the curve would be 1 everywhere"),
        (positions < 10, f"the buzzes are at {positions} different positions (thousandths); at least 10 are needed"),
    ):
        if wrong:
            raise DataError(f"{buzzes.name}: {problem}")
    return questions


def summary(fitted: Fitted) -> list[tuple[str, str]]:
    """Return (name, value) rows that summarise a fit."""
    d = fitted.document
    lines = [
        ("curve", fitted.curve.name),
        ("buzzes", f"{d['buzzes']} of {d['data']['buzzes']}, {d['right']} right"),
        ("beyond the end", f"{d['filters']['buzzes_beyond_end']} ({d['filters']['beyond_end']})"),
        ("questions", str(d["questions"])),
    ]
    if "coefficients" in d:
        lines.append(("c0 c1 c2 c3", " ".join(f"{c:.6f}" for c in d["coefficients"])))
    for t, low, high in zip(GRID[::25], fitted.low[::25], fitted.high[::25], strict=True):
        lines.append((f"EW({t:g})", f"{float(fitted.curve(t)):.4f} [{low:.4f}, {high:.4f}]"))
    lines.append(("largest distance from the data", f"{d['largest_error']:.4f}"))
    lines.append(("rises", ", ".join(f"{a:g} to {b:g}" for a, b in d["rises"]) or "nowhere"))
    return lines
