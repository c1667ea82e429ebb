"""Names of metrics as values: measure, parameters, label, unit and direction.

    measure = parse("ew@xqb-interface@aliases")
    measure.base, measure.parameters, measure.aliases      "ew", {"curve": "xqb-interface"}, True
    measure.label, measure.unit, measure.higher_is_better  "EW@xqb-interface@aliases", "0-1", True
    str(measure)                                           the same name; parse(str(measure)) == measure
    measure.build()                                        the metric, which turns traces into numbers

A name is a family's base, followed by "@" and each parameter that is not the default.  A metric declares its family:

    @Family("ne", "NE", kind="lag", unit="per word")
    def erasure(trace):
        return numerator, denominator  # both are summed over questions

`TARGETS` in sqa/metrics/__init__.py names the modules of the metrics.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import accumulate
from typing import Any, Protocol

import numpy as np

from sqa.core import BuiltMetric, Floats, Kind, NotComputable, Question, QuestionTrace, ratio, ratio_many

KEPT = 50  # guesses per step that a run stores
SIGN, ALIASES = "@", "@aliases"  # separator of variants; variant that matches answers as Quizbowl does (`ByAliases`)
# Inputs that a metric may need -> (test of a trace, message if the test fails).
NEEDS: dict[str, tuple[Callable[[QuestionTrace], bool], str]] = {
    "guesses": (lambda trace: trace.guesses is not None, "no guesser ran on {id}"),
    "buzzes": (lambda trace: trace.buzzes is not None, "no buzzer ran on {id}"),
    "reference": (lambda trace: bool(trace.question.reference_text.strip()), "{id} has no human translation"),
    "answerable": (
        lambda trace: trace.question.asked is not None and trace.question.asked.answerable is not None,
        "question {id} has no earliest_answerable",
    ),
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a family's metrics.  Its default is omitted from names."""

    name: str  # name of a field of the metric's class
    choices: Mapping[str, Any] = field(default_factory=dict)  # text -> value
    pattern: str = ""  # regular expression for other texts
    type: Callable[[str], Any] = str  # converts such a text to its value

    def value(self, text: str) -> Any:
        """Return the value that a text in a metric's name stands for."""
        return self.choices[text] if text in self.choices else self.type(text)

    def text(self, value: Any) -> str:
        """Return the text that stands for a value in a metric's name."""
        return next((text for text, choice in self.choices.items() if choice == value), str(value))


def choices(name: str, *texts: str, pattern: str = "") -> Parameter:
    """Return a parameter whose values equal their text."""
    return Parameter(name, {text: text for text in texts}, pattern)


@dataclass(frozen=True, slots=True)
class Family:
    """The metrics of one base name, declared by decorating their class or function.

    A function returns (numerator, denominator) of a trace, and both are summed over questions (`Quotient`).  A metric
    with parameters, or with another score, is a class that inherits from `MeanMetric`.
    """

    base: str
    label: str  # in figures and tables
    settings: str = ""  # middle of the signature, in which {m.at} stands for the metric's field `at`
    version: int = 1  # end of the signature; increase it when the values change
    kind: Kind = "quality"
    unit: str = "0-1"
    digits: int = 3  # decimal places in tables
    higher_is_better: bool = True  # a lower lag is always better
    needs: tuple[str, ...] = ("reference",)  # keys of NEEDS
    parameters: tuple[Parameter, ...] = ()  # fields of the class, in the order in which names list them
    arguments: Mapping[str, Any] = field(default_factory=dict)  # arguments of the class, the same for all metrics
    shown: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # variant -> attributes above that it changes
    make: Any = field(default=None, repr=False)  # builds a metric: the class; set by the decoration

    def __call__(self, made: Any) -> Any:
        """Declare a class, or turn a function into a `Quotient`."""
        if isinstance(made, type):
            made.family = replace(self, make=made)  # type: ignore[attr-defined]
            return made
        return Quotient(made, self)

    def names(self) -> Iterator[str]:
        """Yield the base and each of its variants, except those with a file or a number."""
        yield self.base
        for parameter in self.parameters:
            yield from (f"{self.base}{SIGN}{text}" for text in parameter.choices)

    def read(self, name: str) -> Measure | None:
        """Parse a name of this family; return None for any other name."""
        grammar = re.escape(self.base)
        for number, parameter in enumerate(self.parameters):
            texts = [*map(re.escape, parameter.choices), parameter.pattern or "(?!)"]
            grammar += f"(?:{SIGN}(?P<p{number}>{'|'.join(texts)}))?"
        match = re.fullmatch(grammar + (f"(?P<aliases>{ALIASES})?" if self.kind == "answers" else ""), name)
        if match is None:
            return None
        written = match.groupdict()
        measure = Measure(
            self,
            {p.name: p.value(text) for n, p in enumerate(self.parameters) if (text := written[f"p{n}"]) is not None},
            written.get("aliases") is not None,
        )
        return measure if str(measure) == name else None


@dataclass(frozen=True, slots=True)
class Measure:
    """A family, its parameters that differ from the defaults, and the matching of answers."""

    family: Family
    parameters: Mapping[str, Any] = field(default_factory=dict)
    aliases: bool = False

    @classmethod
    def of(cls, metric: object, family: Family) -> Measure:
        """Return the measure of a built metric, derived from its fields."""
        own = fields(metric) if is_dataclass(metric) else ()
        usual = {each.name: each.default for each in own} | dict(family.arguments)
        given = {parameter.name: getattr(metric, parameter.name) for parameter in family.parameters}
        return cls(family, {name: value for name, value in given.items() if value != usual[name]})

    @property
    def base(self) -> str:
        return self.family.base

    @property
    def variants(self) -> tuple[str, ...]:
        """Texts of the parameters, as written after the base."""
        written = (p.text(self.parameters[p.name]) for p in self.family.parameters if p.name in self.parameters)
        return (*written, *([ALIASES.removeprefix(SIGN)] if self.aliases else []))

    def __str__(self) -> str:
        return SIGN.join((self.base, *self.variants))

    def _shown(self, key: str) -> Any:
        changed = (self.family.shown.get(variant, {}) for variant in self.variants)
        return next((change[key] for change in changed if key in change), getattr(self.family, key))

    @property
    def label(self) -> str:
        """Label in figures and tables: the family's label, followed by the variants that lack their own label."""
        unlabelled = [variant for variant in self.variants if "label" not in self.family.shown.get(variant, {})]
        return SIGN.join((self._shown("label"), *unlabelled))

    @property
    def unit(self) -> str:
        return str(self._shown("unit"))

    @property
    def higher_is_better(self) -> bool:
        return self.family.kind != "lag" and bool(self._shown("higher_is_better"))

    @property
    def needs(self) -> tuple[str, ...]:
        """Keys of NEEDS."""
        return tuple(self._shown("needs"))

    def build(self) -> BuiltMetric:
        """Build the metric."""
        metric: Any = self.family.make(**{**self.family.arguments, **self.parameters})
        built: BuiltMetric = ByAliases(metric) if self.aliases else metric
        return built


class MeanMetric(Protocol):
    """A metric of a family whose score is the sum of the first statistic divided by the sum of the second.

    Metrics with other scores override `score` and `score_many`.
    """

    family: Family = None  # type: ignore[assignment]  # set by the decoration

    def stats(self, trace: QuestionTrace) -> Floats: ...

    def signature(self) -> str:
        return f"{self.family.base}|{self.family.settings.format(m=self)}|version:{self.family.version}"

    @property
    def described(self) -> Measure:
        """The parsed name of the metric."""
        return Measure.of(self, self.family)

    @property
    def name(self) -> str:
        return str(self.described)

    @property
    def label(self) -> str:
        return self.described.label

    @property
    def unit(self) -> str:
        return self.described.unit

    @property
    def digits(self) -> int:
        return self.family.digits

    @property
    def kind(self) -> Kind:
        return self.family.kind

    @property
    def higher_is_better(self) -> bool:
        return self.described.higher_is_better

    def require(self, trace: QuestionTrace) -> None:
        """Raise NotComputable if a trace lacks the input that the metric needs."""
        for need in self.described.needs:
            has, message = NEEDS[need]
            if not has(trace):
                raise NotComputable(f"{self.name}: {message.format(id=trace.question.id)}")

    def score(self, stats: Floats) -> float:
        return ratio(stats, self.name)

    def score_many(self, stats: Floats) -> Floats:
        return ratio_many(stats)


class Quotient(MeanMetric):
    """A metric from a decorated function; stats = [numerator, denominator], (2,)."""

    def __init__(self, compute: Callable[[QuestionTrace], tuple[float, float]], family: Family) -> None:
        self.compute, self.family = compute, replace(family, make=lambda: self)

    def __call__(self) -> Quotient:
        """Return the metric, so that a user's function is a metric like a user's class."""
        return self

    def stats(self, trace: QuestionTrace) -> Floats:
        """Return [numerator, denominator] of one question.  Raises NotComputable without the required inputs."""
        self.require(trace)
        return np.array(self.compute(trace), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class ByAliases(MeanMetric):
    """A metric of answers that matches answers as Quizbowl does: `ew@aliases`.

    Everything else is as in the strict metric, including the positions of buzzes.  The rule is
    `sqa.core.quizbowl.Accepted` with the bundled tables (data/answers).
    """

    strict: MeanMetric

    @property
    def family(self) -> Family:  # type: ignore[override]
        return self.strict.family

    @property
    def described(self) -> Measure:
        return replace(self.strict.described, aliases=True)

    @property
    def rule(self) -> Any:
        from sqa.core import bundled  # imported here, since most runs need no tables

        return bundled()

    def signature(self) -> str:
        settings, _, version = self.strict.signature().rpartition("|")
        return f"{settings}|match:{self.rule.name}|{version}"

    def stats(self, trace: QuestionTrace) -> Floats:
        """Return the strict metric's statistics (d,) of the rejudged trace.  Raises NotComputable if no guesser ran."""
        self.strict.require(trace)
        return self.strict.stats(trace.judged(self.rule.name, self.rule.is_right))


def lines(trace: QuestionTrace) -> tuple[str, str]:
    """Return (hypothesis, reference) of one question, one line each; raises NotComputable if there is no reference."""
    reference = trace.question.reference_text
    if not reference.strip():
        raise NotComputable(f"{trace.question.id} has no human translation")
    return " ".join(sentence for sentence in trace.hypotheses if sentence), reference


def sentence_references(question: Question) -> list[str]:
    """Return the human translation of each source sentence.

    If the numbers of sentences differ, the translation's words are divided in proportion to the source words.
    """
    if len(question.reference) == len(question.sentences):
        return list(question.reference)
    words, total = question.reference_text.split(), len(question.words)
    ends = [round(len(words) * read / total) for read in accumulate(map(len, question.sentences))]
    return [" ".join(words[start:end]) for start, end in zip([0, *ends], ends, strict=False)]
