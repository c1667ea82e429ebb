"""Metrics by name: `build(["ew", "bleu"])`. Importing this package imports no sacrebleu.

A metric turns one question's trace into additive statistics and the sum of statistics into a score, so that
resampling (`sqa.core.significance`) needs to know no metric by name.  A name is `base` or `base@variant`; the built
metric's `name` is the name it was built from, and its `signature()` says everything that makes two numbers
comparable.  `ew`, `oracle-ew` and `stable-ew` also take the file of a curve as variant: `ew@curves/mine.json`
(`sqa curve fit` writes such files).  Every metric of answers has a variant that matches them as Quizbowl does:
`ew@aliases` (sqa/metrics/by_aliases.py).  Your own metric is "module:build" or "file.py:build", a function without
parameters that returns a `Metric` or a latency `Formula`; `al@file.py:build` takes a `Convention` of your own.  The
latencies are listed in sqa/metrics/latency.py (FORMULAS, CONVENTIONS), the others here.  Metrics that need a model, a
program or a file are entries of a config's `quality:` instead: sqa/metrics/quality/text_metric.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sqa.core import places
from sqa.core.errors import ConfigError, DataError, NotComputable
from sqa.core.types import Floats
from sqa.metrics.latency import FORMULAS, metric_names

if TYPE_CHECKING:
    from sqa.core.interfaces import BuiltMetric, Metric
    from sqa.core.trace import QuestionTrace

_QA, _LATENCY, _QUALITY = "sqa.metrics.qa", "sqa.metrics.latency", "sqa.metrics.quality.bleu"
_NAMES = "sqa.metrics.quality.names"
_FACTS = ("facts", "facts@invented", "facts@timed", "facts-lag", "facts-lag@seconds")
_REVISION = "sqa.metrics.revision"

# name -> (module, class, arguments)
_TABLE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "ew": (_QA, "ExpectedWins", {}),
    "ew@answer-at-end": (_QA, "ExpectedWins", {"end": "answer"}),
    "ew@xqb-interface": (_QA, "ExpectedWins", {"curve": "xqb-interface"}),
    "oracle-ew": (_QA, "OracleExpectedWins", {}),
    "oracle-ew@curve-end": (_QA, "OracleExpectedWins", {"never": "curve-end"}),
    "oracle-ew@xqb-interface": (_QA, "OracleExpectedWins", {"curve": "xqb-interface"}),
    "stable-ew": (_QA, "StableExpectedWins", {}),
    "stable-ew@last-wrong": (_QA, "StableExpectedWins", {"at": "last-wrong"}),
    "stable-ew@xqb-interface": (_QA, "StableExpectedWins", {"curve": "xqb-interface"}),
    "accuracy": (_QA, "Accuracy", {"at": 1}),
    "accuracy@10": (_QA, "Accuracy", {"at": 10}),
    "mrr": (_QA, "ReciprocalRank", {}),
    "bleu": (_QUALITY, "Bleu", {}),
    "chrf": (_QUALITY, "ChrF", {}),
    "ter": (_QUALITY, "Ter", {}),
    "names": (_NAMES, "Names", {"side": "kept"}),
    "names@copied": (_NAMES, "Names", {"side": "copied"}),
    "names@invented": (_NAMES, "Names", {"side": "invented"}),
    **{name: ("sqa.metrics.fact_metrics", "named", {"name": name}) for name in _FACTS},
    **{name: (_LATENCY, "Latency", arguments) for name, arguments in metric_names().items()},
    "ne": (_REVISION, "NormalizedErasure", {}),
    "answer-lag": ("sqa.metrics.answer_lag", "AnswerLag", {}),
}

ANSWERS: tuple[str, ...] = tuple(name for name, (module, _, _) in _TABLE.items() if module == _QA)
ALIASES = "@aliases"  # sqa/metrics/by_aliases.py, which is imported when it is asked for

_CURVED = {"ew": "ExpectedWins", "oracle-ew": "OracleExpectedWins", "stable-ew": "StableExpectedWins"}

# every name that `build` knows, but for those with a file
ALL: tuple[str, ...] = (*_TABLE, *(f"{name}{ALIASES}" for name in ANSWERS))
DEFAULT: tuple[str, ...] = (  # what a run reports when its config names no metrics; not ter, which is slow on questions
    "ew",
    "ew@answer-at-end",
    "ew@xqb-interface",
    "oracle-ew",
    "oracle-ew@curve-end",
    "stable-ew",
    "accuracy",
    "accuracy@10",
    "mrr",
    "bleu",
    "chrf",
    "al",
    "laal",
    "ap",
    "dal",
)


def problems(names: Iterable[str], where: str = "metrics") -> list[str]:
    """One line per name that no metric has or that occurs twice; empty when `build` would accept all of them."""
    lines, seen = [], set()
    for index, name in enumerate(names):
        if name not in ALL and not is_own(name) and not _has_curve_file(name):
            near = get_close_matches(str(name), ALL, n=1, cutoff=0.0)
            lines.append(f"{where}[{index}]: no metric {name!r}; nearest is {near[0]!r}")
        elif name in seen:
            lines.append(f"{where}[{index}]: {name!r} is listed twice")
        elif name not in ALL:
            found = _own_problems(name) if is_own(name) else _curve_problems(name)
            lines += [f"{where}[{index}]: {problem}" for problem in found]
        seen.add(name)
    return lines


def located(name: str, folder: Path | None) -> str:
    """A metric's name with the whole path of the file that it is in, if in one."""
    if not is_own(name):
        return name
    formula, place = _split(name)
    return f"{formula}@{places.located(place, folder)}" if formula else places.located(place, folder)


def is_own(name: object) -> bool:
    """True for "module:build", "file.py:build" and "al@file.py:build"."""
    return isinstance(name, str) and ":" in name and not name.endswith(".json")


def _own_problems(name: str) -> list[str]:
    try:
        metric = _own(name)
    except ConfigError as error:
        return list(error.problems)
    return [f"{name!r} calls itself {metric.name!r}, which another metric has"] if metric.name in ALL else []


def _own(name: str) -> BuiltMetric:
    formula, place = _split(name)
    from sqa.metrics.own_metrics import own_latency, own_metric

    return own_latency(formula, place) if formula else own_metric(place)


def _split(name: str) -> tuple[str, str]:
    """("al", "file.py:build") of "al@file.py:build"; ("", name) where no formula comes first."""
    formula, _, place = name.partition("@")
    return (formula, place) if formula in FORMULAS else ("", name)


def _has_curve_file(name: object) -> bool:
    """True for `ew@file.json`, `ew@file.json@aliases` and the like."""
    base, _, curve = name.removesuffix(ALIASES).partition("@") if isinstance(name, str) else ("", "", "")
    return base in _CURVED and curve.endswith(".json")


def _curve_problems(name: str) -> list[str]:
    from sqa.metrics.curve import curve_named

    try:
        curve_named(name.removesuffix(ALIASES).partition("@")[2])
    except DataError as error:
        return str(error).splitlines()
    return []


def build(names: Sequence[str] = DEFAULT) -> list[BuiltMetric]:
    """The metrics of these names, in this order.  Unknown or repeated names: ConfigError listing all of them."""
    wrong = problems(names)
    if wrong:
        raise ConfigError(wrong)
    return [_built(name) for name in names]


def _built(name: str) -> BuiltMetric:
    if is_own(name):
        return _own(name)
    if name.endswith(ALIASES):
        matched: BuiltMetric = import_module("sqa.metrics.by_aliases").ByAliases(_built(name.removesuffix(ALIASES)))
        return matched
    base, _, curve = name.partition("@")
    module, attribute, arguments = _TABLE.get(name) or (_QA, _CURVED[base], {"curve": curve})
    built: BuiltMetric = getattr(import_module(module), attribute)(**arguments)
    return built


def aliased(names: Sequence[str]) -> tuple[str, ...]:
    """The variants of these metrics that match answers as Quizbowl does; those that look at no answer have none."""
    answering = (name for name in names if name in ANSWERS or (_has_curve_file(name) and not name.endswith(ALIASES)))
    return tuple(f"{name}{ALIASES}" for name in answering if f"{name}{ALIASES}" not in names)


def collect(traces: Sequence[QuestionTrace], metric: Metric) -> Floats:
    """Statistics of every question, (n, d); one row per trace in order.  No question: NotComputable."""
    if not traces:
        raise NotComputable(f"{metric.name}: there is no question to score")
    return np.stack([metric.stats(trace) for trace in traces])  # (n, d)
