"""Metrics by name: `build(["ew", "bleu"])`. Importing this package imports no metric and no sacrebleu.

A metric turns one question's trace into additive statistics and the sum of statistics into a score, so that
resampling (`sqa.core.significance`) needs to know no metric by name.  A name is `base` or `base@variant`; the built
metric's `name` is the name it was built from, and its `signature()` says everything that makes two numbers
comparable.  `ew`, `oracle-ew` and `stable-ew` also take the file of a curve as variant: `ew@curves/mine.json`
(`sqa curve fit` writes such files).  Metrics that need a model, a program or a file are entries of a config's
`quality:` instead: sqa/metrics/quality/text_metric.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from sqa.core.arrays import Floats
from sqa.core.errors import ConfigError, DataError, NotComputable

if TYPE_CHECKING:
    from sqa.core.interfaces import Metric
    from sqa.core.trace import QuestionTrace

_QA, _LATENCY, _QUALITY = "sqa.metrics.qa", "sqa.metrics.latency", "sqa.metrics.quality.bleu"
_REVISION = "sqa.metrics.revision"

_VARIANTS: dict[str, dict[str, str]] = {"": {}, "@char": {"unit": "char"}, "@question": {"stream": "question"}}
_YAAL = {"reference": "question", "convention": "omnisteval-0.1.10"}

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
    "ter": (_QUALITY, "Ter", {}),
    **{
        f"{formula}{variant}": (_LATENCY, "Latency", {"formula": formula} | more)
        for formula in ("al", "ap", "dal", "atd", "start-offset", "end-offset")
        for variant, more in _VARIANTS.items()
    },
    **{
        f"laal{variant}": (_LATENCY, "Latency", {"formula": "laal", "reference": "question"} | more)
        for variant, more in _VARIANTS.items()
    },
    **{
        f"{formula}{variant}": (_LATENCY, "Latency", _YAAL | {"formula": formula} | more)
        for formula in ("yaal", "long-yaal")
        for variant, more in _VARIANTS.items()
    },
    **{
        f"{formula}@{convention}": (_LATENCY, "Latency", {"formula": formula, "convention": convention})
        for formula in ("al", "ap", "dal")
        for convention in ("iwslt-2020-first", "iwslt-2020-final", "simuleval-1.0.2")
    },
    "ne": (_REVISION, "NormalizedErasure", {}),
}

_CURVED = {"ew": "ExpectedWins", "oracle-ew": "OracleExpectedWins", "stable-ew": "StableExpectedWins"}

ALL: tuple[str, ...] = tuple(_TABLE)  # every name that `build` knows, but for those with a file
DEFAULT: tuple[str, ...] = (  # what a run reports when its config names no metrics; not ter, which is slow on questions
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
        if name not in _TABLE and not _has_curve_file(name):
            near = get_close_matches(str(name), ALL, n=1, cutoff=0.0)
            lines.append(f"{where}[{index}]: no metric {name!r}; nearest is {near[0]!r}")
        elif name in seen:
            lines.append(f"{where}[{index}]: {name!r} is listed twice")
        elif name not in _TABLE:
            lines += [f"{where}[{index}]: {problem}" for problem in _curve_problems(name)]
        seen.add(name)
    return lines


def _has_curve_file(name: object) -> bool:
    """True for `ew@file.json` and the like."""
    base, _, curve = name.partition("@") if isinstance(name, str) else ("", "", "")
    return base in _CURVED and curve.endswith(".json")


def _curve_problems(name: str) -> list[str]:
    from sqa.metrics.curve import curve_named

    try:
        curve_named(name.partition("@")[2])
    except DataError as error:
        return str(error).splitlines()
    return []


def build(names: Sequence[str] = DEFAULT) -> list[Metric]:
    """The metrics of these names, in this order.  Unknown or repeated names: ConfigError listing all of them."""
    wrong = problems(names)
    if wrong:
        raise ConfigError(wrong)
    built = []
    for name in names:
        base, _, curve = name.partition("@")
        module, attribute, arguments = _TABLE.get(name) or (_QA, _CURVED[base], {"curve": curve})
        built.append(getattr(import_module(module), attribute)(**arguments))
    return built


def collect(traces: Sequence[QuestionTrace], metric: Metric) -> Floats:
    """Statistics of every question, (n, d); one row per trace in order.  No question: NotComputable."""
    if not traces:
        raise NotComputable(f"{metric.name}: there is no question to score")
    return np.stack([metric.stats(trace) for trace in traces])  # (n, d)
