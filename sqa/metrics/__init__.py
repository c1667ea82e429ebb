"""Metrics by name: `build(["ew", "bleu"])`. Importing this package imports no metric and no sacrebleu.

A metric turns one question's trace into additive statistics and the sum of statistics into a score, so that
resampling (`sqa.significance`) needs to know no metric by name.  A name is `base` or `base@variant`; the built
metric's `name` is the name it was built from, and its `signature()` says everything that makes two numbers
comparable.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from sqa.errors import ConfigError, NotComputable

if TYPE_CHECKING:
    from sqa.interfaces import Metric
    from sqa.trace import QuestionTrace

_QA, _LATENCY, _QUALITY = "sqa.metrics.qa", "sqa.metrics.latency", "sqa.metrics.quality"
_REVISION = "sqa.metrics.revision"

# name -> (module, class, arguments)
_TABLE: dict[str, tuple[str, str, dict[str, Any]]] = {
    "ew": (_QA, "ExpectedWins", {}),
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
    "al": (_LATENCY, "Latency", {"formula": "al"}),
    "laal": (_LATENCY, "Latency", {"formula": "laal", "reference": "question"}),
    "ap": (_LATENCY, "Latency", {"formula": "ap"}),
    "dal": (_LATENCY, "Latency", {"formula": "dal"}),
    **{
        f"{formula}@{convention}": (_LATENCY, "Latency", {"formula": formula, "convention": convention})
        for formula in ("al", "ap", "dal")
        for convention in ("iwslt-2020-first", "iwslt-2020-final", "simuleval-1.0.2")
    },
    "ne": (_REVISION, "NormalizedErasure", {}),
}

ALL: tuple[str, ...] = tuple(_TABLE)  # every name that `build` knows
DEFAULT: tuple[str, ...] = (  # what a run reports when its config names no metrics
    "ew",
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
        if name not in _TABLE:
            near = get_close_matches(str(name), ALL, n=1, cutoff=0.0)
            lines.append(f"{where}[{index}]: no metric {name!r}; nearest is {near[0]!r}")
        elif name in seen:
            lines.append(f"{where}[{index}]: {name!r} is listed twice")
        seen.add(name)
    return lines


def build(names: Sequence[str] = DEFAULT) -> list[Metric]:
    """The metrics of these names, in this order.  Unknown or repeated names: ConfigError listing all of them."""
    wrong = problems(names)
    if wrong:
        raise ConfigError(wrong)
    built = []
    for name in names:
        module, attribute, arguments = _TABLE[name]
        built.append(getattr(import_module(module), attribute)(**arguments))
    return built


def collect(traces: Sequence[QuestionTrace], metric: Metric) -> np.ndarray:
    """Statistics of every question, (n, d); one row per trace in order.  No question: NotComputable."""
    if not traces:
        raise NotComputable(f"{metric.name}: there is no question to score")
    return np.stack([metric.stats(trace) for trace in traces])  # (n, d)
