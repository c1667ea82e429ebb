"""Question answering while the question is still being read: expected wins, accuracy, reciprocal rank.

Every position is the fraction of source CHARACTERS read when the target word became visible (equation 1 of Han,
Carpuat and Boyd-Graber 2022 gives the words, `sqa.core.reveal` the characters).  A question without target words has no
step: it is never answered, and counts as wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from sqa import __version__
from sqa.core.errors import ConfigError, NotComputable
from sqa.core.significance import ratio, ratio_many
from sqa.core.types import Bools, Floats, Ints
from sqa.metrics.curve import CURVES as CURVES  # users of this module find the curves here too
from sqa.metrics.curve import AnyCurve, curve_named

if TYPE_CHECKING:
    from sqa.core.trace import QuestionTrace


def expected_wins(curve: AnyCurve, fraction: Floats, correct: Bools, buzz: Bools) -> float:
    """EW at the first buzz if the top guess there is right, else 0; never buzzed 0.

    `fraction` (n,) float, `correct` (n,) bool, `buzz` (n,) bool: one entry per step.
    """
    buzzed = np.flatnonzero(buzz)
    if not len(buzzed) or not correct[buzzed[0]]:
        return 0.0
    return float(curve(fraction[buzzed[0]]))


def oracle_expected_wins(curve: AnyCurve, fraction: Floats, correct: Bools, never: float) -> float:
    """EW at the first step whose top guess is right; `never` when there is none."""
    right = np.flatnonzero(correct)
    return float(curve(fraction[right[0]])) if len(right) else never


def stable_expected_wins(curve: AnyCurve, fraction: Floats, correct: Bools, never: float) -> float:
    """EW at the first step from which the top guess stays right to the end; `never` when the last one is wrong."""
    if not len(correct) or not correct[-1]:
        return never
    wrong = np.flatnonzero(~correct)
    return float(curve(fraction[wrong[-1] + 1 if len(wrong) else 0]))


def last_wrong_expected_wins(curve: AnyCurve, fraction: Floats, correct: Bools) -> float:
    """EW at the position OF the last wrong guess, EW(1) when no guess is wrong.

    `score_stable` of Pinafore/qb and "expected_wins_optimal" of Pinafore/qanta-codalab.  It pays for a question whose
    last guess is wrong and pays least for one that was right throughout; here for comparison with old numbers only.
    """
    wrong = np.flatnonzero(~correct)
    return float(curve(fraction[wrong[-1]] if len(wrong) else 1.0))


def _choice(metric: str, field: str, value: object, allowed: tuple[object, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"metrics.{metric}.{field}: must be one of {', '.join(map(str, allowed))}, got {value!r}")


def _steps(trace: QuestionTrace, metric: str) -> tuple[Floats, Bools]:
    """(fraction, correct) of every step.  No guesser ran: NotComputable."""
    _require_guesses(trace, metric)
    return trace.fraction, trace.correct


def _require_guesses(trace: QuestionTrace, metric: str) -> None:
    if trace.guesses is None:
        raise NotComputable(f"{metric}: no guesser ran on {trace.question.id}")


def _may_answer_at_end(trace: QuestionTrace) -> bool:
    """Whether the last step has a guess and comes after the whole source was read."""
    if not trace.emissions or not trace.guesses or not trace.guesses[-1]:
        return False
    last, sentences = trace.emissions[-1], trace.question.sentences
    return last.sentence == len(sentences) - 1 and last.g == len(sentences[-1])


def _variant(base: str, curve: str, *extra: str) -> str:
    """The metric's name: its base and what is not the default."""
    parts = ([] if curve == "qanta2018" else [curve]) + [part for part in extra if part]
    return "@".join([base, *parts])


def _label(base: str, name: str) -> str:
    """A metric in figures and tables: `base` and the variants of its name."""
    return "@".join([base, *name.split("@")[1:]])


@dataclass(frozen=True, slots=True)
class ExpectedWins:
    """Mean over questions of EW at the buzzer's first buzz, 0 to about 1.  stats = [sum of EW, questions].

    A question that ends without a buzz wins nothing, whoever plays (the paper's rule); `end` = "answer" answers it with
    the top guess of the last step, if there is one and the whole source had been read by then: before, nobody knew that
    no word would follow.
    """

    higher_is_better: ClassVar[bool] = True
    unit: ClassVar[str] = "0-1"
    digits: ClassVar[int] = 3
    kind: ClassVar[str] = "answers"

    curve: str = "qanta2018"  # a key of CURVES, or a file (.json)
    end: str = "silent"  # "silent" or "answer"
    _curve: AnyCurve = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_curve", curve_named(self.curve, "metrics.ew.curve"))
        _choice("ew", "end", self.end, ("silent", "answer"))

    @property
    def name(self) -> str:
        return _variant("ew", self.curve, "" if self.end == "silent" else "answer-at-end")

    @property
    def label(self) -> str:
        return _label("EW", self.name)

    def signature(self) -> str:
        return f"ew|curve:{self._curve.name}|pos:source-char|every:word|never:0|end:{self.end}|v:{__version__}"

    def stats(self, trace: QuestionTrace) -> Floats:
        """(2,): [EW, 1]."""
        fraction, correct = _steps(trace, self.name)
        if trace.buzzes is None:
            raise NotComputable(f"{self.name}: no buzzer ran on {trace.question.id}")
        buzz = np.array([b.buzz for b in trace.buzzes], dtype=bool)
        if self.end == "answer" and not buzz.any() and _may_answer_at_end(trace):
            buzz[-1] = True
        return np.array([expected_wins(self._curve, fraction, correct, buzz), 1.0])

    def score(self, stats: Floats) -> float:
        return ratio(stats, self.name)

    def score_many(self, stats: Floats) -> Floats:
        return ratio_many(stats)


@dataclass(frozen=True, slots=True)
class OracleExpectedWins:
    """Mean over questions of EW when the buzz comes at the first right top guess.  stats = [sum of EW, questions].

    A question never right wins nothing; `never` = "curve-end" gives it EW(1) instead, as the paper's code does.
    """

    higher_is_better: ClassVar[bool] = True
    unit: ClassVar[str] = "0-1"
    digits: ClassVar[int] = 3
    kind: ClassVar[str] = "answers"

    curve: str = "qanta2018"  # a key of CURVES, or a file (.json)
    never: str = "0"  # "0" or "curve-end"
    _curve: AnyCurve = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_curve", curve_named(self.curve, "metrics.oracle-ew.curve"))
        _choice("oracle-ew", "never", self.never, ("0", "curve-end"))

    @property
    def name(self) -> str:
        return _variant("oracle-ew", self.curve, "" if self.never == "0" else self.never)

    @property
    def label(self) -> str:
        return _label("oracle EW", self.name)

    def signature(self) -> str:
        return f"oracle-ew|curve:{self._curve.name}|pos:source-char|every:word|never:{self.never}|v:{__version__}"

    def stats(self, trace: QuestionTrace) -> Floats:
        """(2,): [EW, 1]."""
        curve = self._curve
        never = 0.0 if self.never == "0" else float(curve(1.0))
        return np.array([oracle_expected_wins(curve, *_steps(trace, self.name), never), 1.0])

    def score(self, stats: Floats) -> float:
        return ratio(stats, self.name)

    def score_many(self, stats: Floats) -> Floats:
        return ratio_many(stats)


@dataclass(frozen=True, slots=True)
class StableExpectedWins:
    """Mean over questions of EW when the buzz comes after the last wrong top guess.  stats = [sum of EW, questions].

    `at` = "first-right": the step after the last wrong one, 0 when the last guess is wrong.  "last-wrong": the rule of
    the two public repositories, see `last_wrong_expected_wins`; a question without steps then gets EW(1), as there.
    """

    higher_is_better: ClassVar[bool] = True
    unit: ClassVar[str] = "0-1"
    digits: ClassVar[int] = 3
    kind: ClassVar[str] = "answers"

    curve: str = "qanta2018"  # a key of CURVES, or a file (.json)
    at: str = "first-right"  # "first-right" or "last-wrong"
    _curve: AnyCurve = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_curve", curve_named(self.curve, "metrics.stable-ew.curve"))
        _choice("stable-ew", "at", self.at, ("first-right", "last-wrong"))

    @property
    def name(self) -> str:
        return _variant("stable-ew", self.curve, "" if self.at == "first-right" else self.at)

    @property
    def label(self) -> str:
        return _label("stable EW", self.name)

    def signature(self) -> str:
        never = "0" if self.at == "first-right" else "last-step"
        return (
            f"stable-ew|curve:{self._curve.name}|pos:source-char|every:word|at:{self.at}|never:{never}|v:{__version__}"
        )

    def stats(self, trace: QuestionTrace) -> Floats:
        """(2,): [EW, 1]."""
        curve, steps = self._curve, _steps(trace, self.name)
        if self.at == "last-wrong":
            return np.array([last_wrong_expected_wins(curve, *steps), 1.0])
        return np.array([stable_expected_wins(curve, *steps, 0.0), 1.0])

    def score(self, stats: Floats) -> float:
        return ratio(stats, self.name)

    def score_many(self, stats: Floats) -> Floats:
        return ratio_many(stats)


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Share of questions whose answer is among the first `at` guesses on the full translation, 0 to 1.

    stats = [1 if it is, questions].
    """

    higher_is_better: ClassVar[bool] = True
    unit: ClassVar[str] = "0-1"
    digits: ClassVar[int] = 3
    kind: ClassVar[str] = "answers"

    at: int = 1

    def __post_init__(self) -> None:
        if self.at < 1:
            raise ConfigError(f"metrics.accuracy.at: must be >= 1, got {self.at}")

    @property
    def name(self) -> str:
        return "accuracy" if self.at == 1 else f"accuracy@{self.at}"

    @property
    def label(self) -> str:
        return self.name

    def signature(self) -> str:
        return f"accuracy|at:{self.at}|input:full|v:{__version__}"

    def stats(self, trace: QuestionTrace) -> Floats:
        """(2,): [1 if the answer's rank is at most `at`, 1]."""
        return np.array([float(0 < _final_rank(trace, self.name) <= self.at), 1.0])

    def score(self, stats: Floats) -> float:
        return ratio(stats, self.name)

    def score_many(self, stats: Floats) -> Floats:
        return ratio_many(stats)


@dataclass(frozen=True, slots=True)
class ReciprocalRank:
    """Mean reciprocal rank of the answer on the full translation, 0 to 1; 0 outside the first `top` guesses.

    stats = [1/rank, questions].
    """

    higher_is_better: ClassVar[bool] = True
    unit: ClassVar[str] = "0-1"
    digits: ClassVar[int] = 3
    kind: ClassVar[str] = "answers"

    top: int = 50

    @property
    def name(self) -> str:
        return "mrr" if self.top == 50 else f"mrr@{self.top}"

    @property
    def label(self) -> str:
        return _label("MRR", self.name)

    def signature(self) -> str:
        return f"mrr|top:{self.top}|input:full|v:{__version__}"

    def stats(self, trace: QuestionTrace) -> Floats:
        """(2,): [1/rank or 0, 1]."""
        rank = _final_rank(trace, self.name)
        return np.array([1.0 / rank if 0 < rank <= self.top else 0.0, 1.0])

    def score(self, stats: Floats) -> float:
        return ratio(stats, self.name)

    def score_many(self, stats: Floats) -> Floats:
        return ratio_many(stats)


def _final_rank(trace: QuestionTrace, metric: str) -> int:
    """Rank of the answer at the last step, 0 when it is not listed or nothing was written."""
    _require_guesses(trace, metric)
    return int(trace.rank[-1]) if len(trace.rank) else 0


def log_reciprocal_rank(rank: Ints, top: int = 50, floor: float = -4.0) -> Floats:
    """Natural log of 1/rank per step (n,), `floor` where the answer is not in the first `top` (ln(1/50) = -3.91)."""
    inside = (rank > 0) & (rank <= top)
    return np.where(inside, -np.log(np.where(inside, rank, 1)), floor)


@dataclass(frozen=True, slots=True)
class LogRankCurve:
    """Mean log reciprocal rank over the steps in each bin of the source-character position (Figure 6).

    A step at fraction f falls into bin min(floor(f * bins), bins - 1).  Steps are pooled: a question weighs as much
    as it has steps in the bin.  stats = [sum of logs per bin, steps per bin], (2 * bins,).
    """

    higher_is_better: ClassVar[bool] = True

    bins: int = 25
    top: int = 50
    floor: float = -4.0

    @property
    def name(self) -> str:
        return "log-mrr-curve"

    def signature(self) -> str:
        return (
            f"log-mrr-curve|bins:{self.bins}|pos:source-char|every:word|pool:step|log:e"
            f"|top:{self.top}|floor:{self.floor:g}|v:{__version__}"
        )

    @property
    def centres(self) -> Floats:
        """(bins,) middle of each bin, fractions of the source characters."""
        return (np.arange(self.bins) + 0.5) / self.bins

    def stats(self, trace: QuestionTrace) -> Floats:
        """(2 * bins,): sums, then counts."""
        _require_guesses(trace, self.name)
        at = np.minimum((trace.fraction * self.bins).astype(np.int64), self.bins - 1)  # (n,)
        logs = log_reciprocal_rank(trace.rank, self.top, self.floor)  # (n,)
        sums = np.bincount(at, weights=logs, minlength=self.bins)
        return np.concatenate([sums, np.bincount(at, minlength=self.bins)])

    def score_many(self, stats: Floats) -> Floats:
        """(B, 2 * bins) -> (B, bins), nan where no step falls into the bin."""
        sums, counts = stats[:, : self.bins], stats[:, self.bins :]
        return np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
