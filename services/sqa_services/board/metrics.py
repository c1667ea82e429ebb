"""Metrics of the board, in Dynabench's form: get_<name>(predictions, targets), with unit, name and direction.

    EVAL    over a data set: predictions and targets are lists with one entry per example
    DELTA   over its perturbed copies: the share of examples on which a model keeps its answer
    JOB     over the evaluation itself: throughput, memory

Metrics of questions are additive (`Additive.stats`), so they have intervals and paired differences.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from sqa import metrics as question_metrics
from sqa.core.errors import ConfigError, DataError, NotComputable
from sqa.core.registry import did_you_mean
from sqa.core.trace import Buzzes, Emissions, Guesses, QuestionTrace
from sqa.core.types import BuiltMetric, Question
from sqa.metrics.short_answers import normalise, word_f1

Get = Callable[[Sequence[Any], Sequence[Any]], float]


@dataclass(frozen=True, slots=True)
class Meta:
    """Unit, name and direction of a metric; its utility is direction * value + offset."""

    unit: str
    pretty_name: str
    utility_direction: int = 1  # 1: higher is better, -1: lower is better
    offset: float = 0.0


class Answer(NamedTuple):
    """Words, guesses and buzzes of a model on one question."""

    emissions: Emissions
    guesses: Guesses | None
    buzzes: Buzzes | None

    @property
    def page(self) -> str:
        """The top guess on the complete translation, or "" if there is none."""
        return self.guesses[-1][0].page if self.guesses and self.guesses[-1] else ""


@dataclass(frozen=True, slots=True)
class Additive:
    """A metric of `sqa.metrics` with Dynabench's signature; predictions are Answers, targets are Questions."""

    name: str  # name in `sqa.metrics.build`
    offset: float = 0.0  # offset of the utility, see `Meta`

    def __call__(self, predictions: Sequence[Answer], targets: Sequence[Question]) -> float:
        return self.metric.score(self.stats(predictions, targets).sum(axis=0))

    @property
    def metric(self) -> BuiltMetric:
        """The metric in `sqa.metrics`."""
        return _built(self.name)

    @property
    def meta(self) -> Meta:
        """Unit, name and direction of the metric."""
        unit = "" if self.metric.unit in SCALES else self.metric.unit
        return Meta(unit, self.metric.label, 1 if self.metric.higher_is_better else -1, self.offset)

    def stats(self, predictions: Sequence[Answer], targets: Sequence[Question]) -> np.ndarray:
        """Return additive statistics (n, d), one row per question."""
        traces = [QuestionTrace(question, *answer) for answer, question in zip(predictions, targets, strict=True)]
        return question_metrics.collect(traces, self.metric)


@cache
def _built(name: str) -> BuiltMetric:
    [metric] = question_metrics.build([name])
    return metric


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


def get_examples_per_second(job: Job) -> float:
    """Return the examples per second of wall-clock time."""
    if job.seconds is None:
        raise NotComputable("examples_per_second: the model did not run now")
    return job.examples / job.seconds


def get_memory_utilization(job: Job) -> float:
    """Return the peak memory of the worker process in GiB."""
    if job.seconds is None or job.peak_bytes is None:
        raise NotComputable("memory_utilization: the model did not run now, or this system does not report it")
    return job.peak_bytes / 2**30


# -------------------------------------------------------------------------------------------------- the registry

SCALES = ("0-1", "0-100")  # units that `sqa.metrics` gives to dimensionless values
LAG = 50.0  # words; the utility of a lag is this offset minus the lag

EVAL: Mapping[str, Get] = {
    "accuracy": get_accuracy,
    "macro_f1": get_macro_f1,
    "squad_f1": get_squad_f1,
    "bleu": get_bleu,
    "ew": Additive("ew"),
    "oracle_ew": Additive("oracle-ew"),
    "qa_accuracy": Additive("accuracy"),
    "corpus_bleu": Additive("bleu"),
    "chrf": Additive("chrf"),
    "al": Additive("al", LAG),
    "laal": Additive("laal", LAG),
    "ap": Additive("ap", 1.0),
    "dal": Additive("dal", LAG),
}
JOB: Mapping[str, Callable[[Job], float]] = {
    "examples_per_second": get_examples_per_second,
    "memory_utilization": get_memory_utilization,
}
DELTA = {"fairness": "Fairness", "robustness": "Robustness", "simultaneous": "Speech-like input"}
METAS: Mapping[str, Meta] = {  # except for metrics of `sqa.metrics`, which define their own metadata
    "accuracy": Meta("%", "Accuracy"),
    "macro_f1": Meta("%", "Macro F1"),
    "squad_f1": Meta("%", "F1"),
    "bleu": Meta("", "BLEU"),
    **{name: Meta("%", pretty_name) for name, pretty_name in DELTA.items()},
    "examples_per_second": Meta("examples/second", "Throughput"),
    "memory_utilization": Meta("GiB", "Memory", -1, 16.0),
}


def additive(name: str) -> Additive | None:
    """Return a metric of questions, or None for a metric of labels."""
    get = EVAL[name]
    return get if isinstance(get, Additive) else None


def meta_of(name: str) -> Meta:
    """Return the metadata of a registered metric.  Raises ConfigError if the metric is unknown."""
    get = EVAL.get(name)
    if isinstance(get, Additive):
        return get.meta
    if name in METAS:
        return METAS[name]
    names = [*EVAL, *DELTA, *JOB]
    raise ConfigError(f"no metric {name!r}{did_you_mean(name, names)}; known: {', '.join(names)}")


def pretty(name: str, value: float) -> str:
    """Format a value with four digits and its unit."""
    return f"{round(value, 4)} {meta_of(name).unit}".rstrip()
