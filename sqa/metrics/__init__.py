"""Metrics by name: `build(["ew", "bleu"])`.  Importing this package does not import sacrebleu.

A metric turns one question's trace into additive statistics and the sum of statistics into a score, so that
resampling (`sqa.core.significance`) works for every metric.  A metric's name parses to a `Measure`
(sqa/metrics/measure.py): `parse("ew@xqb-interface")` has a unit, a direction and requirements, and prints as its name.
A metric's `signature()` holds everything that makes two numbers comparable.

`ew`, `oracle-ew` and `stable-ew` accept the file of a curve: `ew@curves/mine.json` (written by `sqa train curve`).
Every metric of answers can match answers as Quizbowl does: `ew@aliases`.  A user-defined metric is "module:build" or
"file.py:build", a function without parameters that returns a `Metric` or a latency `Formula`.  `al@file.py:build`
uses a user-defined `Convention`.

Latencies are listed in sqa/metrics/latency.py (FORMULAS, CONVENTIONS), the other metrics here.  Metrics that need a
model, a program or a file are entries of a config's `quality:` (sqa/metrics/quality/text_metric.py).
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from sqa.core import own
from sqa.core.errors import ConfigError, DataError, NotComputable
from sqa.core.paths import beside
from sqa.core.registry import QUALITY
from sqa.core.trace import QuestionTrace
from sqa.core.types import BuiltMetric, Floats, Metric
from sqa.metrics.latency import FORMULAS, family_of
from sqa.metrics.measure import ALIASES, SIGN, Family, Measure, Parameter

_TEXTS, _FACTS = "sqa.metrics.quality", "sqa.metrics.fact_metrics:Facts"
_ANSWERS = "sqa.questions.of_runs:RunAnswers"
_NUMBER_BUT = r"(?!{}(?!\d))[1-9]\d{{0,3}}"  # pattern of all numbers except the default {}
KEPT = 50  # guesses per step that a run stores
PRINTED = ("empty-questions", "empty-sentences", "unknown-pages", "answered-questions")  # further lines of every report
_HUMAN, _ASKED, _LESS = ("reference",), ("guesses", "answerable"), {"higher_is_better": False}


def _answers(base: str, attribute: str, label: str, *parameters: Parameter, buzzes: bool = False) -> Family:
    needs = ("guesses", "buzzes") if buzzes else ("guesses",)
    return Family(base, f"sqa.metrics.qa:{attribute}", label, "answers", needs=needs, parameters=parameters)


def _kept(text: str) -> int:
    """Parse a number of guesses.  Raises ValueError if a run stores fewer."""
    if int(text) > KEPT:
        raise ValueError(f"a run keeps the first {KEPT} guesses of each step")
    return int(text)


def _same(name: str, *values: str, pattern: str = "") -> Parameter:
    """Define a parameter whose values equal their text."""
    return Parameter(name, {value: value for value in values}, pattern)


_SECONDS = ((_same("side", "seconds"),), {"side": "lag"}, {"seconds": {"label": "Lag of facts, s", "unit": "seconds"}})
_ASKED_OF = (_same("about", "name", "number", "date"), _same("file", pattern=r".+\.jsonl"))
_CURVE = _same("curve", "xqb-interface", pattern=r".+\.json")  # default: qanta2018
FAMILIES: dict[str, Family] = {
    family.base: family
    for family in (
        _answers("ew", "ExpectedWins", "EW", _CURVE, Parameter("end", {"answer-at-end": "answer"}), buzzes=True),
        _answers(
            "oracle-ew", "OracleExpectedWins", "oracle EW", _CURVE, Parameter("never", {"curve-end": "curve-end"})
        ),
        _answers("stable-ew", "StableExpectedWins", "stable EW", _CURVE, Parameter("at", {"last-wrong": "last-wrong"})),
        _answers("accuracy", "Accuracy", "accuracy", Parameter("at", {"10": 10}, _NUMBER_BUT.format(1), _kept)),
        _answers("mrr", "ReciprocalRank", "MRR", Parameter("top", {}, _NUMBER_BUT.format(KEPT), _kept)),
        Family("bleu", f"{_TEXTS}.bleu:Bleu", "BLEU", "quality", "0-100", 2, needs=_HUMAN),
        Family("chrf", f"{_TEXTS}.bleu:ChrF", "chrF", "quality", "0-100", 2, needs=_HUMAN),
        Family("ter", f"{_TEXTS}.bleu:Ter", "TER", "quality", "per 100 words", 2, False, _HUMAN),
        Family(
            "names",
            f"{_TEXTS}.names:Names",
            "Names kept",
            "quality",
            needs=_HUMAN,
            parameters=(_same("side", "copied", "invented"),),
            shown={"copied": {"label": "Copied names kept"}, "invented": {"label": "Names invented"} | _LESS},
        ),
        Family(
            "facts",
            _FACTS,
            "Facts",
            "quality",
            needs=_HUMAN,
            parameters=(_same("side", "invented", "timed"),),
            shown={"invented": {"label": "Facts invented"} | _LESS, "timed": {"label": "Facts timed"}},
        ),
        Family("facts-lag", _FACTS, "Lag of facts", "lag", "words", 3, False, _HUMAN, *_SECONDS),
        Family("answered", _ANSWERS, "Questions answered", "quality", needs=_HUMAN, parameters=_ASKED_OF),
        Family(
            "answered-lag", _ANSWERS, "Lag of answers", "lag", "words", 2, False, _HUMAN, _ASKED_OF, {"side": "lag"}
        ),
        Family("negations", f"{_TEXTS}.names:Negations", "Negations", "quality", needs=_HUMAN),
        Family(
            "lbleu",
            f"{_TEXTS}.latency_bleu:LatencyBleu",
            "Latency BLEU",
            "quality",
            "0-100",
            2,
            needs=_HUMAN,
            parameters=(_same("sum", "reward"),),
            shown={"reward": {"label": "Latency BLEU, reward", "unit": "points"}},
        ),
        *(family_of(formula) for formula in FORMULAS.values() if formula.of_runs),
        Family("ne", "sqa.metrics.revision:NormalizedErasure", "NE", "lag", "per word", 3, False),
        Family("answer-lag", "sqa.metrics.qa:AnswerLag", "answer lag", "lag", "words", 2, False, _ASKED),
    )
}

# all names that `build` accepts, except names with a file or a number
ALL: tuple[str, ...] = tuple(name for family in FAMILIES.values() for name in family.names())
ALL += tuple(f"{name}{ALIASES}" for family in FAMILIES.values() if family.kind == "answers" for name in family.names())
# Default metrics of a run, without ter, which is slow on questions.
DEFAULT: tuple[str, ...] = tuple(
    "ew ew@answer-at-end ew@xqb-interface oracle-ew oracle-ew@curve-end stable-ew accuracy accuracy@10 mrr bleu chrf "
    "al al@reference laal laal@reference ap dal".split()
)


def parse(name: str) -> Measure:
    """Parse the name of a metric.  Raises ConfigError, with the reason or the nearest name, if the name is invalid."""
    family = FAMILIES.get(str(name).partition(SIGN)[0])
    try:
        measure = family.read(name) if family else None
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
    near = {family.label.lower(): base for base, family in FAMILIES.items()} | {each: each for each in ALL}
    return f"; nearest is {near[get_close_matches(folded, near, n=1, cutoff=0.0)[0]]!r}"


def problems(names: Iterable[str], where: str = "metrics") -> list[str]:
    """Return one line per unknown or repeated name; empty if `build` accepts all names."""
    lines, seen = [], set()
    for index, name in enumerate(names):
        if name in seen:
            lines.append(f"{where}[{index}]: {name!r} is listed twice")
        elif name not in ALL:
            try:
                called = _built(name).name
            except (ConfigError, DataError) as error:
                lines += [f"{where}[{index}]: {problem}" for problem in str(error).splitlines()]
            else:
                if called in ALL:
                    lines.append(f"{where}[{index}]: {name!r} has the name {called!r} of another metric")
        seen.add(name)
    return lines


def located(name: str, folder: Path | None) -> str:
    """Return a metric's name with its file, if any, resolved in `folder` (`ew@curve.json`, `mine.py:build`)."""
    if not is_own(name):
        measure, sign, file = name.partition(SIGN)
        return f"{measure}{sign}{beside(file, folder)}" if file.endswith((".json", ".jsonl")) else name
    formula, target = _split(name)
    return f"{formula}{SIGN}{own.located(target, folder)}" if formula else own.located(target, folder)


def is_own(name: object) -> bool:
    """Return True for "module:build", "file.py:build" and "al@file.py:build"."""
    return isinstance(name, str) and ":" in name and not name.endswith(".json")


def is_variant(name: str) -> bool:
    """Return True if a metric has a parameter with a value other than the default."""
    return SIGN in name


def _built(name: str) -> BuiltMetric:
    if not is_own(name):
        return parse(name).build()
    from sqa.metrics.own_metrics import own_latency, own_metric

    formula, target = _split(name)
    return own_latency(formula, target) if formula else own_metric(target)


def _split(name: str) -> tuple[str, str]:
    """Split "al@file.py:build" into ("al", "file.py:build"); the formula is "" if there is none."""
    formula, _, target = name.partition(SIGN)
    return (formula, target) if formula in FORMULAS else ("", name)


def build(names: Sequence[str] = DEFAULT) -> list[BuiltMetric]:
    """Build the metrics of these names, in order.  Raises ConfigError with all unknown or repeated names."""
    wrong = problems(names)
    if wrong:
        raise ConfigError(wrong)
    return [_built(name) for name in names]


def aliased(names: Sequence[str]) -> tuple[str, ...]:
    """Return the variants of `names` that match answers as Quizbowl does, except variants that are in `names`.

    Only metrics of answers have such a variant.
    """
    measures = [parse(name) for name in names if not is_own(name)]
    answering = (m for m in measures if m.family.kind == "answers" and not m.aliases)
    return tuple(f"{measure}{ALIASES}" for measure in answering if f"{measure}{ALIASES}" not in names)


def collect(traces: Sequence[QuestionTrace], metric: Metric) -> Floats:
    """Return the statistics of every question, (n, d), one row per trace.  Raises NotComputable without traces."""
    if not traces:
        raise NotComputable(f"{metric.name}: there is no question to score")
    return np.stack([metric.stats(trace) for trace in traces])  # (n, d)
