"""Metrics of question answering while the question is being read: expected wins, accuracy, reciprocal rank.

A position is the fraction of source characters read when the target word became visible.  Equation 1 of Han,
Carpuat and Boyd-Graber 2022 gives the words, `sqa.core.trace` the characters.  A question without target words has
no step; it is never answered and counts as wrong.

User-defined curves are read from the JSON files of `sqa train curve` (sqa/metrics/curve_fit.py):
{"kind": "expected-wins curve", "version": 1, "method": "cubic", "coefficients": [c0, c1, c2, c3]}
or {..., "method": "monotone", "knots": {"t": [0, ..., 1], "ew": [...]}}.  Other keys are ignored here.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from msgspec import Meta, Struct, structs

from sqa.core import Bools, ConfigError, DataError, Floats, Ints, NotComputable, QuestionTrace, ratio
from sqa.files import converted, json_document
from sqa.metrics.measure import KEPT, Family, MeanMetric, Parameter, choices

# ------------------------------------------------------------------------------------------------------------- curves

CURVE_KIND, CURVE_VERSION = "expected-wins curve", 1
_STEEPEST = 1e6  # largest coefficient and largest inverse knot distance; real fits stay below
_Coefficient = Annotated[float, Meta(ge=-_STEEPEST, le=_STEEPEST)]
_Shares = tuple[Annotated[float, Meta(ge=0, le=1)], ...]


class Curve(Struct, frozen=True, omit_defaults=True, tag_field="method", tag="cubic"):
    """Expected wins EW(t): the probability that a right answer at fraction t of the question beats a human's answer.

    EW(t) = c0 + c1 t + c2 t^2 + c3 t^3 is a least-squares fit to recorded human games.  EW(1) is about .4, not 0.  A
    file or fit whose cubic has a value outside 0 to 1 for a t in 0 to 1 is an error (`identified`).
    """

    coefficients: tuple[_Coefficient, _Coefficient, _Coefficient, _Coefficient]  # c0, c1, c2, c3
    name: str = ""
    source: str = ""  # origin of the coefficients

    def __call__(self, t: float | Floats) -> float | Floats:
        """Return EW at fraction t >= 0, elementwise."""
        c0, c1, c2, c3 = self.coefficients
        return c0 + c1 * t + c2 * t**2 + c3 * t**3


class Knots(Struct, frozen=True):
    t: _Shares  # ascending from 0 to 1
    ew: _Shares  # same length as t, never rising

    def __post_init__(self) -> None:
        if len(self.t) != len(self.ew) or len(self.t) < 2 or (self.t[0], self.t[-1]) != (0, 1):
            raise ValueError("expected as many ew as t, and t ascending from 0 to 1")
        if any(b - a < 1 / _STEEPEST for a, b in pairwise(self.t)):
            raise ValueError(f"expected ascending t with steps of at least {1 / _STEEPEST:g}")
        if any(a < b for a, b in pairwise(self.ew)):
            raise ValueError("expected ew values that never rise")


class MonotoneCurve(Struct, frozen=True, omit_defaults=True, tag_field="method", tag="monotone"):
    """EW(t) through given points, joined by the monotone cubic spline of Fritsch and Carlson (scipy's PCHIP).

    Between two points the curve stays between their values, so it never rises.  The curve is constant after t = 1.
    """

    knots: Knots
    name: str = ""
    source: str = ""

    def __call__(self, t: float | Floats) -> float | Floats:
        """Return EW at fraction t >= 0, elementwise."""
        values: float | Floats = _spline(self.knots)(np.minimum(t, 1.0))
        return values


AnyCurve = Curve | MonotoneCurve


@lru_cache(maxsize=64)
def _spline(knots: Knots) -> Callable[[Any], Any]:
    from scipy.interpolate import PchipInterpolator

    spline: Callable[[Any], Any] = PchipInterpolator(knots.t, knots.ew)
    return spline


CURVES: dict[str, Curve] = {
    curve.name: curve
    for curve in (
        Curve(
            (0.9930799808912602, 0.07753813168299144, -1.278222873334493, 0.5879804678680423),
            name="qanta2018",
            source="Pinafore/qanta-codalab, curve_pipeline.pkl",
        ),
        Curve(
            (0.999352355315875, -0.09224063054267757, -1.149033601888297, 0.6098396790274875),
            name="xqb-interface",
            source="h-j-han/xqb_interface, fixtures/curve_pipeline.pkl",
        ),
    )
}


def curve_named(name: str, where: str = "curve") -> AnyCurve:
    """Return a published curve by its name, or the curve in a .json file.

    Raises ConfigError, starting with `where`, for an unknown name.  Raises DataError for a file without a curve.
    """
    if name in CURVES:
        return CURVES[name]
    if name.endswith(".json"):
        return curve_in(Path(name))
    raise ConfigError(f"{where}: must be one of {', '.join(CURVES)} or a curve file (.json), got {name!r}")


def curve_in(path: Path) -> AnyCurve:
    """Read the curve in a file.  Raises DataError if the file is missing or is not a curve."""
    if not path.is_file():
        raise DataError(f"{path}: this curve does not exist; create it with `sqa train curve BUZZES --output {path}`")
    document = json_document(path)
    kind = (document.get("kind"), document.get("version")) if isinstance(document, dict) else None
    if kind != (CURVE_KIND, CURVE_VERSION):
        expected = f'an object with kind "{CURVE_KIND}" and version {CURVE_VERSION}'
        raise DataError(f"{path}: not a curve: expected {expected}")
    curve: AnyCurve = converted(str(path), document, AnyCurve)  # type: ignore[arg-type]  # mypy rejects unions
    return identified(curve, str(path))


def identified(curve: AnyCurve, source: str) -> AnyCurve:
    """Name a curve <method>-<hash>, so that equal curves have equal names.

    Raises DataError if a cubic leaves 0 to 1.
    """
    ew = np.asarray(curve(np.arange(1001) / 1000))
    if isinstance(curve, Curve) and not 0 <= ew.min() <= ew.max() <= 1:
        t = int(np.abs(ew - 0.5).argmax())
        wrong = f"the cubic leaves 0 to 1: EW({t / 1000:g}) = {ew[t]:.6g}, and EW is a probability"
        raise DataError(f"{source}: {wrong}; fit a curve with --method monotone")
    numbers = [curve.coefficients] if isinstance(curve, Curve) else [curve.knots.t, curve.knots.ew]
    hashed = hashlib.sha256(json.dumps(numbers).encode()).hexdigest()[:12]
    return structs.replace(curve, name=f"{curve.__struct_config__.tag}-{hashed}", source=source)


# ------------------------------------------------------------------------------------------------------------ metrics


def expected_wins(curve: AnyCurve, fraction: Floats, correct: Bools, buzz: Bools) -> float:
    """Return EW at the first buzz; 0 if the top guess is wrong there, or if there is no buzz.

    `fraction` (n,) float, `correct` (n,) bool, `buzz` (n,) bool: one entry per step.
    """
    buzzed = np.flatnonzero(buzz)
    if not len(buzzed) or not correct[buzzed[0]]:
        return 0.0
    return float(curve(fraction[buzzed[0]]))


def oracle_expected_wins(curve: AnyCurve, fraction: Floats, correct: Bools, never: float) -> float:
    """Return EW at the first step whose top guess is right; `never` if there is no such step."""
    right = np.flatnonzero(correct)
    return float(curve(fraction[right[0]])) if len(right) else never


def stable_expected_wins(curve: AnyCurve, fraction: Floats, correct: Bools, never: float) -> float:
    """Return EW at the first step from which the top guess stays right; `never` if the last top guess is wrong."""
    step = stable_from(correct)
    return never if step is None else float(curve(fraction[step]))


def stable_from(correct: Bools) -> int | None:
    """Return the first step from which the top guess stays right to the end; None if the last top guess is wrong."""
    if not len(correct) or not correct[-1]:
        return None
    wrong = np.flatnonzero(~correct)
    return int(wrong[-1]) + 1 if len(wrong) else 0


def last_wrong_expected_wins(curve: AnyCurve, fraction: Floats, correct: Bools) -> float:
    """Return EW at the position of the last wrong guess, EW(1) if no guess is wrong.

    This is `score_stable` of Pinafore/qb and "expected_wins_optimal" of Pinafore/qanta-codalab.  It rewards a question
    whose last guess is wrong, and gives the least to a question that was always right.  Use it only to compare with old
    results.
    """
    wrong = np.flatnonzero(~correct)
    return float(curve(fraction[wrong[-1]] if len(wrong) else 1.0))


def _may_answer_at_end(trace: QuestionTrace) -> bool:
    """Return True if the last step has a guess and follows the end of the source."""
    if not trace.emissions or not trace.guesses or not trace.guesses[-1]:
        return False
    last, sentences = trace.emissions[-1], trace.question.sentences
    return last.sentence == len(sentences) - 1 and last.g == len(sentences[-1])


_EW = "curve:{m._curve.name}|pos:source-char|every:word"
_CURVE = choices("curve", "xqb-interface", pattern=r".+\.json")  # default: qanta2018
_NUMBER_BUT = r"(?!{}(?!\d))[1-9]\d{{0,3}}"  # pattern of all numbers except the default {}
_answers = partial(Family, kind="answers", needs=("guesses",))


def _kept(text: str) -> int:
    """Parse a number of guesses.  Raises ValueError if a run stores fewer."""
    if int(text) > KEPT:
        raise ValueError(f"a run keeps the first {KEPT} guesses of each step")
    return int(text)


@dataclass(frozen=True, slots=True)
class CurveMetric(MeanMetric):
    """A metric with a curve and one other parameter.  Raises ConfigError for an unknown curve."""

    curve: str = "qanta2018"  # a key of CURVES, or a .json file
    _curve: AnyCurve = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_curve", curve_named(self.curve, f"metrics.{self.family.base}.curve"))


@_answers(
    "ew",
    "EW",
    _EW + "|never:0|end:{m.end}",
    needs=("guesses", "buzzes"),
    parameters=(_CURVE, Parameter("end", {"answer-at-end": "answer"})),
)
@dataclass(frozen=True, slots=True)
class ExpectedWins(CurveMetric):
    """Mean over questions of EW at the buzzer's first buzz, 0 to about 1.

    A question that ends without a buzz scores 0 (the paper's rule).  With `end` = "answer" it is answered with the top
    guess of the last step, if any, provided that the whole source had been read.  Before that point the player could
    not know that no word would follow.

    stats = [sum of EW, number of questions].
    """

    end: str = "silent"  # "silent" or "answer"

    def stats(self, trace: QuestionTrace) -> Floats:
        """Return the statistics [EW, 1]."""
        self.require(trace)
        buzz = np.array([b.buzz for b in trace.buzzes or ()], dtype=bool)
        if self.end == "answer" and not buzz.any() and _may_answer_at_end(trace):
            buzz[-1] = True
        return np.array([expected_wins(self._curve, trace.fraction, trace.correct, buzz), 1.0])


@_answers("oracle-ew", "oracle EW", _EW + "|never:{m.never}", parameters=(_CURVE, choices("never", "curve-end")))
@dataclass(frozen=True, slots=True)
class OracleExpectedWins(CurveMetric):
    """Mean over questions of EW when the buzz comes at the first right top guess.

    A question that is never right scores 0; `never` = "curve-end" gives it EW(1) instead, as in the paper's code.

    stats = [sum of EW, number of questions].
    """

    never: str = "0"  # "0" or "curve-end"

    def stats(self, trace: QuestionTrace) -> Floats:
        """Return the statistics [EW, 1]."""
        self.require(trace)
        curve = self._curve
        never = 0.0 if self.never == "0" else float(curve(1.0))
        return np.array([oracle_expected_wins(curve, trace.fraction, trace.correct, never), 1.0])


@_answers(
    "stable-ew", "stable EW", _EW + "|at:{m.at}|never:{m.never}", parameters=(_CURVE, choices("at", "last-wrong"))
)
@dataclass(frozen=True, slots=True)
class StableExpectedWins(CurveMetric):
    """Mean over questions of EW when the buzz comes after the last wrong top guess.

    `at` = "first-right" scores the step after the last wrong one, and 0 when the last guess is wrong.  `at` =
    "last-wrong" is the rule of two public repositories, see `last_wrong_expected_wins`; a question without steps then
    gets EW(1), as in their code.

    stats = [sum of EW, number of questions].
    """

    at: str = "first-right"  # "first-right" or "last-wrong"

    @property
    def never(self) -> str:
        return "0" if self.at == "first-right" else "last-step"

    def stats(self, trace: QuestionTrace) -> Floats:
        """Return the statistics [EW, 1]."""
        self.require(trace)
        curve, steps = self._curve, (trace.fraction, trace.correct)
        if self.at == "last-wrong":
            return np.array([last_wrong_expected_wins(curve, *steps), 1.0])
        return np.array([stable_expected_wins(curve, *steps, 0.0), 1.0])


@_answers(
    "accuracy",
    "accuracy",
    "at:{m.at}|input:full",
    parameters=(Parameter("at", {"10": 10}, _NUMBER_BUT.format(1), _kept),),
)
@dataclass(frozen=True, slots=True)
class Accuracy(MeanMetric):
    """Share of questions whose answer is among the first `at` guesses on the full translation, 0 to 1.

    stats = [questions with the answer among these guesses, questions].
    """

    at: int = 1

    def stats(self, trace: QuestionTrace) -> Floats:
        """Return the statistics [1, 1] if the rank of the answer is at most `at`, else [0, 1]."""
        self.require(trace)
        return np.array([float(0 < _final_rank(trace) <= self.at), 1.0])


@_answers("mrr", "MRR", "top:{m.top}|input:full", parameters=(Parameter("top", {}, _NUMBER_BUT.format(KEPT), _kept),))
@dataclass(frozen=True, slots=True)
class ReciprocalRank(MeanMetric):
    """Mean reciprocal rank of the answer on the full translation, 0 to 1; 0 outside the first `top` guesses.

    stats = [1/rank, questions].
    """

    top: int = KEPT

    def stats(self, trace: QuestionTrace) -> Floats:
        """Return the statistics [1/rank, 1], or [0, 1] if the answer is not among the first `top` guesses."""
        self.require(trace)
        rank = _final_rank(trace)
        return np.array([1.0 / rank if 0 < rank <= self.top else 0.0, 1.0])


@Family(
    "answer-lag",
    "answer lag",
    "unit:source-word|at:stable|of:right",
    kind="lag",
    unit="words",
    digits=2,
    needs=("guesses", "answerable"),
)
@dataclass(frozen=True, slots=True)
class AnswerLag(MeanMetric):
    """Mean lag of the final right answer behind the earliest answerable point, in source words.

    The lag of a question is the number of source words read when the top guess becomes right for good, minus the
    question's earliest_answerable.  The score is the mean over questions that end with a right answer (`accuracy` gives
    their share).  It is negative if the guesser answered before the source gave the answer.  stats = [sum of lags in
    source words, number of these questions].
    """

    def stats(self, trace: QuestionTrace) -> Floats:
        """Return the statistics [lag, 1], or [0, 0] if the last guess is wrong."""
        self.require(trace)
        step, asked = stable_from(trace.correct), trace.question.asked
        if step is None or asked is None or asked.answerable is None:
            return np.zeros(2)
        return np.array([float(trace.source_words[step] - asked.answerable), 1.0])

    def score(self, stats: Floats) -> float:
        """Return the mean lag.  Raises NotComputable if no question ends with a right answer."""
        if stats[1] > 0:
            return ratio(stats, self.name)
        raise NotComputable(f"{self.name}: no question ends with a right answer")


def _final_rank(trace: QuestionTrace) -> int:
    """Return the rank of the answer at the last step; 0 if it is not listed or nothing was written."""
    return int(trace.rank[-1]) if len(trace.rank) else 0


def log_reciprocal_rank(rank: Ints, top: int = 50, floor: float = -4.0) -> Floats:
    """Return ln(1 / rank) of each step (n,), or `floor` if the rank is 0 or above `top` (ln(1/50) = -3.91)."""
    inside = (rank > 0) & (rank <= top)
    return np.where(inside, -np.log(np.where(inside, rank, 1)), floor)
