"""Metrics by name: `build(["ew", "bleu"])`.  Importing this package does not import sacrebleu.

A metric turns one question's trace into additive statistics and the sum of statistics into a score, so that
resampling (`sqa.core.significance`) works for every metric.  A metric's name parses to a `Measure`
(sqa/metrics/measure.py): `parse("ew@xqb-interface")` has a unit, a direction and requirements, and prints as its name.
A metric's `signature()` holds everything that makes two numbers comparable.

`ew`, `oracle-ew` and `stable-ew` accept the file of a curve: `ew@curves/mine.json` (written by `sqa train curve`).
Every metric of answers can match answers as Quizbowl does: `ew@aliases`.  A user-defined metric is "module:build" or
"file.py:build", a decorated function, or a function without parameters that returns a `Metric` or a latency `Formula`.

A metric declares itself (`Family` in sqa/metrics/measure.py).  Latencies are listed in sqa/metrics/latency.py
(FORMULAS, CONVENTIONS).  Metrics that need a model, a program or a file are entries of a config's `quality:`
(sqa/metrics/quality/text_metric.py).
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np

from sqa.core import QUALITY, BuiltMetric, Floats, Metric, QuestionTrace, beside, paths
from sqa.core.errors import ConfigError, DataError, NotComputable
from sqa.metrics.latency import FORMULAS, family_of
from sqa.metrics.measure import ALIASES, SIGN, Family, Measure

# Further lines of every report.
PRINTED: tuple[str, ...] = ("empty-questions", "empty-sentences", "unknown-pages", "answered-questions")
_QA, _TEXTS, _ANSWERED = "sqa.metrics.qa", "sqa.metrics.quality", "sqa.questions.measures"
TARGETS: dict[str, str] = {  # base -> "module:attribute" of the metric, which declares its `Family`
    "ew": f"{_QA}:ExpectedWins",
    "oracle-ew": f"{_QA}:OracleExpectedWins",
    "stable-ew": f"{_QA}:StableExpectedWins",
    "accuracy": f"{_QA}:Accuracy",
    "mrr": f"{_QA}:ReciprocalRank",
    "bleu": f"{_TEXTS}.bleu:Bleu",
    "chrf": f"{_TEXTS}.bleu:ChrF",
    "ter": f"{_TEXTS}.bleu:Ter",
    "names": f"{_TEXTS}.names:Names",
    "facts": "sqa.metrics.fact_metrics:Facts",
    "facts-lag": "sqa.metrics.fact_metrics:FactsLag",
    "answered": f"{_ANSWERED}:RunAnswers",
    "answered-lag": f"{_ANSWERED}:RunAnswersLag",
    "negations": f"{_TEXTS}.names:negation_agreement",
    "lbleu": f"{_TEXTS}.bleu:LatencyBleu",
    **{formula.name: "" for formula in FORMULAS.values() if formula.of_runs},
    "ne": "sqa.metrics.revision:erasure",
    "answer-lag": f"{_QA}:AnswerLag",
}
# Default metrics of a run, without ter, which is slow on questions.
DEFAULT: tuple[str, ...] = tuple(
    "ew ew@answer-at-end ew@xqb-interface oracle-ew oracle-ew@curve-end stable-ew accuracy accuracy@10 mrr bleu chrf "
    "al al@reference laal laal@reference ap dal".split()
)


@cache
def family(base: str) -> Family | None:
    """Return the family of a base name, which imports its module; None if there is none."""
    if base not in TARGETS:
        return None
    if base in FORMULAS:
        return family_of(FORMULAS[base])
    module, _, attribute = TARGETS[base].partition(":")
    declared: Family = getattr(import_module(module), attribute).family
    return declared


@cache
def all_names() -> tuple[str, ...]:
    """Return all names that `build` accepts, except names with a file or a number."""
    families = [found for found in map(family, TARGETS) if found]
    aliases = (f"{name}{ALIASES}" for each in families if each.kind == "answers" for name in each.names())
    return (*(name for each in families for name in each.names()), *aliases)


def parse(name: str) -> Measure:
    """Parse the name of a metric.  Raises ConfigError, with the reason or the nearest name, if the name is invalid."""
    found = family(str(name).partition(SIGN)[0])
    try:
        measure = found.read(name) if found else None
    except ValueError as error:
        raise ConfigError(f"no metric {name!r}: {error}") from error
    if measure is None:
        raise ConfigError(f"no metric {name!r}{_instead(str(name))}")
    return measure


def _instead(name: str) -> str:
    """Return the end of the message about an unknown name, which suggests a replacement."""
    folded = name.lower()
    if folded in PRINTED:
        return ": every run prints it by default; omit it"
    if folded in QUALITY.names():
        return f": it needs a model, a program or a file, so it is an entry of `quality:` ({folded}: ...)"
    near = {parse(base).label.lower(): base for base in TARGETS} | {each: each for each in all_names()}
    return f"; nearest is {near[get_close_matches(folded, near, n=1, cutoff=0.0)[0]]!r}"


def problems(names: Iterable[str], where: str = "metrics") -> list[str]:
    """Return one line per unknown or repeated name; empty if `build` accepts all names."""
    lines, seen = [], set()
    for index, name in enumerate(names):
        if name in seen:
            lines.append(f"{where}[{index}]: {name!r} is listed twice")
        else:
            try:
                called = _built(name).name
            except (ConfigError, DataError) as error:
                lines += [f"{where}[{index}]: {problem}" for problem in str(error).splitlines()]
            else:
                if is_own(name) and is_known(called):
                    lines.append(f"{where}[{index}]: {name!r} has the name {called!r} of another metric")
        seen.add(name)
    return lines


def located(name: str, folder: Path | None) -> str:
    """Return a metric's name with its file, if any, resolved in `folder` (`ew@curve.json`, `mine.py:build`)."""
    if is_own(name):
        return paths.located(name, folder)
    measure, sign, file = name.partition(SIGN)
    return f"{measure}{sign}{beside(file, folder)}" if file.endswith((".json", ".jsonl")) else name


def is_own(name: object) -> bool:
    """Return True for "module:build" and "file.py:build"."""
    return isinstance(name, str) and ":" in name and not name.endswith(".json")


def is_known(name: str) -> bool:
    """Return True if a name is one of `all_names`; only the module of its metric is imported."""
    found = family(name.partition(SIGN)[0])
    return found is not None and found.read(name) is not None


def _built(name: str) -> BuiltMetric:
    if not is_own(name):
        return parse(name).build()
    from sqa.metrics.own_metrics import own_metric

    return own_metric(name)


def build(names: Sequence[str] = DEFAULT) -> list[BuiltMetric]:
    """Build the metrics of these names, in order.  Raises ConfigError with all unknown or repeated names."""
    wrong = problems(names)
    if wrong:
        raise ConfigError(wrong)
    return [_built(name) for name in names]


def collect(traces: Sequence[QuestionTrace], metric: Metric) -> Floats:
    """Return the statistics of every question, (n, d), one row per trace.  Raises NotComputable without traces."""
    if not traces:
        raise NotComputable(f"{metric.name}: there is no question to score")
    return np.stack([metric.stats(trace) for trace in traces])  # (n, d)
