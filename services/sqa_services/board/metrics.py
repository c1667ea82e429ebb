"""Metrics of the board, in Dynabench's form: get_<name>(predictions, targets), with unit, name and direction.

    METRICS  over a data set: predictions and targets are lists with one entry per example
    DELTA    over its perturbed copies: the share of examples on which a model keeps its answer
    JOB      over the evaluation itself: throughput, memory

METRICS is a registry like those of `sqa.core.registry`: plugins add names, and "file.py:build" names a metric of a
user, a function without parameters that returns a `Metric` or an `Additive`.  Metrics of questions are additive
(`Additive.stats`), so they have intervals and paired differences.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from sqa import metrics as question_metrics
from sqa.core import BuiltMetric, Emissions, NoKeys, Question, QuestionTrace, Registry
from sqa.core.errors import ConfigError, DataError, NotComputable
from sqa.core.trace import Buzzes, Guesses
from sqa.metrics.short_answers import normalise, word_f1

Get = Callable[[Sequence[Any], Sequence[Any]], float]


@dataclass(frozen=True, slots=True)
class Meta:
    """Unit, name and direction of a metric; its utility is direction * value + offset."""

    unit: str
    pretty_name: str
    utility_direction: int = 1  # 1: higher is better, -1: lower is better
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Metric:
    """A function of predictions and targets, with its unit, name and direction.

        def build() -> Metric:
            return Metric(share_of_short_answers, Meta("%", "Short answers"))

    Args:
        get: Function of two lists with one entry per example; returns a finite number, or raises NotComputable.
    """

    get: Get
    meta: Meta

    def __call__(self, predictions: Sequence[Any], targets: Sequence[Any]) -> float:
        value = self.get(predictions, targets)
        if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise DataError(f"{self.meta.pretty_name}: a metric must return a finite number, got {value!r}")
        return value


class Answer(NamedTuple):
    """Words, guesses and buzzes of a model on one question."""

    emissions: Emissions
    guesses: Guesses | None
    buzzes: Buzzes | None

    @property
    def page(self) -> str:
        """The top guess on the complete translation, or "" if there is none."""
        return self.guesses[-1][0].page if self.guesses and self.guesses[-1] else ""


@dataclass(frozen=True)
class Additive:
    """A metric of `sqa.metrics` with Dynabench's signature; predictions are Answers, targets are Questions."""

    name: str  # name in `sqa.metrics.build`
    offset: float = 0.0  # offset of the utility, see `Meta`

    def __call__(self, predictions: Sequence[Answer], targets: Sequence[Question]) -> float:
        return self.metric.score(self.stats(predictions, targets).sum(axis=0))

    @cached_property
    def metric(self) -> BuiltMetric:
        """The metric in `sqa.metrics`."""
        [metric] = question_metrics.build([self.name])
        return metric

    @property
    def meta(self) -> Meta:
        """Unit, name and direction of the metric."""
        unit = "" if self.metric.unit in SCALES else self.metric.unit
        return Meta(unit, self.metric.label, 1 if self.metric.higher_is_better else -1, self.offset)

    def stats(self, predictions: Sequence[Answer], targets: Sequence[Question]) -> np.ndarray:
        """Return additive statistics (n, d), one row per question."""
        traces = [QuestionTrace(question, *answer) for answer, question in zip(predictions, targets, strict=True)]
        return question_metrics.collect(traces, self.metric)


# ------------------------------------------------------------------------------------------- metrics of labels


def get_accuracy(predictions: Sequence[str], targets: Sequence[str | Sequence[str]]) -> float:
    """Return the percentage of predictions equal to the label, or to one of a list of labels, rounded to two digits."""
    return _percent([float(_equal(*pair)) for pair in _pairs(predictions, targets, "accuracy")])


def get_macro_f1(predictions: Sequence[str], targets: Sequence[str]) -> float:
    """Return macro F1 over all labels, in percent with two digits; the F1 of a label that is never predicted is 0."""
    pairs = _pairs(predictions, targets, "macro_f1")
    right = Counter(target for label, target in pairs if label == target)
    seen = Counter(label for pair in pairs for label in pair)
    return _percent([2 * right[label] / seen[label] for label in seen])


def get_squad_f1(predictions: Sequence[str], targets: Sequence[str | Sequence[str]]) -> float:
    """Return the mean word F1 after SQuAD's normalisation, in percent with two digits.

    If there are several answers, the best one counts.
    """
    scores = []
    for text, target in _pairs(predictions, targets, "squad_f1"):
        answers = [target] if isinstance(target, str) else list(target) or [""]
        scores.append(max(_word_f1(answer, text) for answer in answers))
    return _percent(scores)


def _percent(shares: Sequence[float]) -> float:
    return round(100 * sum(shares) / len(shares), 2)


def get_bleu(predictions: Sequence[str], targets: Sequence[str]) -> float:
    """Return sacrebleu's corpus BLEU, 0 to 100, not rounded."""
    from sacrebleu import corpus_bleu

    pairs = _pairs(predictions, targets, "bleu")
    return float(corpus_bleu([text for text, _ in pairs], [[target for _, target in pairs]]).score)


def get_unperturbed_percent(predictions: Sequence[Sequence[Any]], targets: Sequence[Any], metric: Get) -> float:
    """Return the mean over examples of `metric` on the predictions for their perturbed copies, with two digits.

    The target is the model's own prediction for the unperturbed example.  Examples without copies do not count.  Each
    example's value is rounded before averaging, as in Dynabench (83.34, not 83.33).

    Raises:
        NotComputable: No example has a copy.
    """
    pairs = [(copies, target) for copies, target in zip(predictions, targets, strict=True) if copies]
    if not pairs:
        raise NotComputable("unperturbed percent: no example has a perturbed copy")
    return round(sum(metric(copies, [target] * len(copies)) for copies, target in pairs) / len(pairs), 2)


def _pairs(predictions: Sequence[Any], targets: Sequence[Any], name: str) -> list[tuple[Any, Any]]:
    if len(predictions) != len(targets):
        raise DataError(f"{name}: {len(predictions)} predictions for {len(targets)} targets")
    if not targets:
        raise NotComputable(f"{name}: there is no example to score")
    return list(zip(predictions, targets, strict=True))


def _equal(label: str, target: object) -> bool:
    if isinstance(target, str):
        return label == target
    if isinstance(target, list | tuple):
        return label in target
    raise DataError(f"accuracy: a target must be a text or a list of texts, got {target!r}")


def _word_f1(answer: str, text: str) -> float:
    """Return word F1 as in SQuAD 2.0, where two texts without words have F1 1."""
    gold, words = normalise(answer).split(), normalise(text).split()
    return word_f1(words, gold) if gold or words else 1.0


# ---------------------------------------------------------------------------------------------- metrics of jobs


@dataclass(frozen=True, slots=True)
class Job:
    """Duration and memory of one evaluation."""

    examples: int
    seconds: float | None  # None: the model did not run (submission or stored results)
    peak_bytes: int | None  # peak memory of the worker during the run; None: unknown

    def values(self) -> dict[str, float]:
        """Return the examples per second of wall-clock time and the peak memory in GiB, as far as they are known."""
        if self.seconds is None:
            return {}
        memory = {} if self.peak_bytes is None else {"memory_utilization": self.peak_bytes / 2**30}
        return {"examples_per_second": self.examples / self.seconds, **memory}


# -------------------------------------------------------------------------------------------------- the registry

SCALES = ("0-1", "0-100")  # units that `sqa.metrics` gives to dimensionless values
LAG = 50.0  # words; the utility of a lag is this offset minus the lag

accuracy = partial(Metric, get_accuracy, Meta("%", "Accuracy"))
macro_f1 = partial(Metric, get_macro_f1, Meta("%", "Macro F1"))
squad_f1 = partial(Metric, get_squad_f1, Meta("%", "F1"))
bleu = partial(Metric, get_bleu, Meta("", "BLEU"))
ew, oracle_ew, qa_accuracy, corpus_bleu, chrf = (
    partial(Additive, name) for name in ("ew", "oracle-ew", "accuracy", "bleu", "chrf")
)
al, laal, dal = (partial(Additive, name, LAG) for name in ("al", "laal", "dal"))
ap = partial(Additive, "ap", 1.0)

_LABELS = ("accuracy", "macro_f1", "squad_f1", "bleu")
_QUESTIONS = ("ew", "oracle_ew", "qa_accuracy", "corpus_bleu", "chrf", "al", "laal", "ap", "dal")
METRICS = Registry("board metric", {name: f"{__name__}:{name}" for name in (*_LABELS, *_QUESTIONS)})
DELTA = {
    "fairness": Meta("%", "Fairness"),
    "robustness": Meta("%", "Robustness"),
    "simultaneous": Meta("%", "Speech-like input"),
}
JOB = {
    "examples_per_second": Meta("examples/second", "Throughput"),
    "memory_utilization": Meta("GiB", "Memory", -1, 16.0),
}


def metric(name: str) -> Metric | Additive:
    """Return an evaluation metric: a registered one, or a user's "module:build" or "file.py:build".

    Raises ConfigError if the metric is unknown, or if the build function returns something else.
    """
    return _metric(name, METRICS.target(name))


@cache
def _metric(name: str, _: str) -> Metric | Additive:
    built = METRICS.build(name, NoKeys())
    if not isinstance(built, Metric | Additive):
        raise ConfigError(f"board metric {name!r}: returned a {type(built).__name__}, not a Metric or Additive")
    return built


def meta_of(name: str) -> Meta:
    """Return the metadata of a metric.  Raises ConfigError if the metric is unknown."""
    return (DELTA | JOB).get(name) or metric(name).meta
