"""Latency in source units: AL, LAAL, YAAL, AP, DAL, ATD and offsets, under five public conventions.

    gamma = |y| / |x|
    AL    = 1/tau sum_{i<=tau} (d_i - (i-1)/gamma),  tau = first i with d_i >= |x|, else all        (Ma et al. 2019)
    LAAL  = AL with |y| = the longer of hypothesis and reference                                  (Papi et al. 2022)
    AP    = sum d_i / (|x| |y|)                                                            (Cho and Esipova 2016)
    DAL   = 1/|y| sum (d'_i - (i-1)/gamma),  d'_1 = d_1,  d'_i = max(d_i, d'_{i-1} + 1/gamma)
                                                              (Arivazhagan et al. 2019; Cherry and Foster 2019)
    YAAL  = LAAL over the words with d_i < |x| only; undefined for a sentence without one        (Polak et al. 2025)
    LongYAAL = LAAL over the words before the end of the recording, for segments of long-form text
    ATD   sqa/metrics/token_delay.py                                                          (Kano et al. 2023)
    CW    = d_last / number of words with d_i > d_{i-1},  d_0 = 0                                (Gu et al. 2017)
    start offset d_1,  end offset d_last - |x|,  RTF d_last / |x|,  chunks: number of words           (SimulEval 1.1)

d_i is the number of source units read before target word i was written.  All but AP, RTF and chunks are in source
units.  AL is negative when the output runs ahead of the diagonal.  AP is a share of the source; it can exceed 1 if
|y| is a shorter reference.  The public scorers define |x|, |y| and d_i differently; a `Convention` holds these rules.
All sums are float64.  Scorers before SimulEval 1.1 used float32 and differ from these values in the seventh digit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from sqa.core import Bools, ConfigError, Floats, Ints, NotComputable, QuestionTrace
from sqa.metrics.delays import Delays, divide, pack, running_maximum
from sqa.metrics.measure import Family, MeanMetric, Parameter, sentence_references

VERSION = 1  # increase it when the values of a metric in this module change
VERSION_REFERENCE = 2  # the same for metrics whose |y*| is the length of each human sentence


@dataclass(frozen=True, slots=True)
class Formula:
    """A latency formula, with its label, unit and requirements for reports, figures and scorers' tables."""

    name: str  # name of the metric, "al"
    label: str  # label in the public scorers
    compute: Callable[[Delays, Convention], Floats]  # the value of each sentence (S,), nan = undefined
    unit: str = "words"  # unit of the value, for delays in words: "words", "0-1"
    digits: int = 2  # decimal places in tables
    reference: str = "none"  # |y*| of a run's sentence: "none", or "question" (see `trace_delays`)
    of_runs: bool = True  # True: also a metric of runs; False: only for logs (`sqa latency`)

    def __call__(self, delays: Delays, convention: Convention | None = None) -> Floats:
        return self.compute(delays, SIMULEVAL_1_1 if convention is None else convention)


@dataclass(frozen=True, slots=True)
class Convention:
    """A public scorer's rules for delays and lengths; the defaults are SimulEval 1.1's.

    `eos`, `clip` and `late` affect the input, the next three fields the formulas.
    """

    name: str
    source: str  # origin of the rules
    eos: bool = False  # the end is a source unit and a target token: |x|+1, d = g + ended, one more d = |x|+1
    clip: bool = False  # a delay above |x| counts as |x|
    late: int = 0  # added to every delay below |x| (1 reproduces the first release's off-by-one error)
    al_reference: str = "length"  # |y| of AL, given a reference; "capped": the diagonal stops at |y|-1 words; "ignored"
    ap_reference: bool = True  # AP divides by the reference length when one is given
    cut: str = "first"  # AL omits words after the "first" with d >= |x|, or words whose "previous" word has d >= |x|
    formulas: tuple[str, ...] = ("al", "ap", "dal")  # keys of FORMULAS that the scorer supports
    strips: bool = False  # blanks around a reference are not words; otherwise each single space ends one (SimulEval)


SIMULEVAL_1_1 = Convention(
    "simuleval-1.1",
    "facebookresearch/SimulEval 536de82, evaluator/scorers/latency_scorer.py",
    formulas=("al", "laal", "ap", "dal", "atd", "start-offset", "end-offset", "chunks", "rtf"),
)
OMNISTEVAL_0_1_10 = Convention(
    "omnisteval-0.1.10",
    "OmniSTEval 0.1.10, omnisteval/scoring.py",
    formulas=("al", "laal", "ap", "dal", "yaal", "long-yaal"),
    strips=True,
)
SIMULEVAL_1_0_2 = Convention(
    "simuleval-1.0.2",
    "facebookresearch/SimulEval v1.0.2, metrics/latency.py",
    eos=True,
    al_reference="capped",
    ap_reference=False,
    cut="previous",
)
IWSLT_2020_FINAL = Convention(
    "iwslt-2020-final",
    "facebookresearch/fairseq 50ecb32b, examples/simultaneous_translation/utils/latency.py",
    eos=True,
    clip=True,
    al_reference="ignored",
    ap_reference=False,
    cut="previous",
)
IWSLT_2020_FIRST = replace(
    IWSLT_2020_FINAL,
    name="iwslt-2020-first",
    source="facebookresearch/fairseq f04775e9 (the published guide), the same file",
    eos=False,
    late=1,
)
CONVENTIONS: dict[str, Convention] = {
    c.name: c for c in (SIMULEVAL_1_1, OMNISTEVAL_0_1_10, IWSLT_2020_FINAL, IWSLT_2020_FIRST, SIMULEVAL_1_0_2)
}


def _read(delays: Delays, convention: Convention) -> tuple[Floats, Floats]:
    """Return delays (N,) under the convention, and |x| for each of them (N,)."""
    source = delays.source[delays.sentence]  # (N,)
    read = np.where(delays.flat < source, delays.flat + convention.late, delays.flat)
    return (np.minimum(read, source) if convention.clip else read), source


def _counted(delays: Delays, read: Floats, source: Floats, cut: str) -> Bools:
    """Return which words (N,) AL sums over: up to and including the first one after the whole source was read."""
    before: Bools = np.concatenate(([False], (read >= source)[:-1])) & (delays.index > 0)  # (N,) d_{i-1} >= |x|
    return ~before if cut == "previous" else _before_first(before, delays.index)


def _before_first(reached: Bools, index: Ints) -> Bools:
    """Return which words (N,) come before the first word of their sentence for which `reached` (N,) is true."""
    so_far = np.cumsum(reached)  # (N,) over all sentences
    first = np.flatnonzero(index == 0)  # (sentences with words,)
    earlier: Ints = np.repeat((so_far - reached)[first], np.diff(np.append(first, len(reached))))  # (N,)
    before: Bools = so_far == earlier
    return before


def _mean_lag(delays: Delays, read: Floats, counted: Bools, target: Floats, steps: Ints | Floats) -> Floats:
    """Return the mean lag (S,) of the `counted` words (N,) behind the diagonal at `steps` (N,) words; |y| = target."""
    per_word = np.where(delays.source > 0, divide(delays.source, target), np.nan)[delays.sentence]  # (N,) 1/gamma
    beyond = (delays.index == 0) & (read > delays.source[delays.sentence])  # then the lag is d_1 for every gamma
    lag = np.where(beyond, read, read - steps * per_word)
    return divide(delays.total(np.where(counted, lag, 0.0)), delays.total(counted.astype(np.float64)))


def _lagging(delays: Delays, convention: Convention, target: Floats, cap: Floats | None = None) -> Floats:
    """Return AL with |y| = target (S,); `cap` (S,) is the last index that the diagonal reaches."""
    read, source = _read(delays, convention)
    steps = delays.index if cap is None else np.minimum(delays.index, cap[delays.sentence])
    return _mean_lag(delays, read, _counted(delays, read, source, convention.cut), target, steps)


def average_lagging(delays: Delays, convention: Convention = SIMULEVAL_1_1) -> Floats:
    """Return AL of each sentence (S,) in source units; nan for a sentence without words.

    If `al_reference` is "capped", the diagonal stops after |y*| words, as in SimulEval 1.0.2.
    """
    if convention.al_reference == "ignored":
        return _lagging(delays, convention, delays.hypothesis)
    target: Floats = np.where(np.isnan(delays.reference), delays.hypothesis, delays.reference)
    return _lagging(delays, convention, target, target - 1 if convention.al_reference == "capped" else None)


def length_adaptive_average_lagging(delays: Delays, convention: Convention = SIMULEVAL_1_1) -> Floats:
    """Return LAAL of each sentence (S,) in source units; it equals AL if there is no reference length."""
    return _lagging(delays, convention, np.fmax(delays.hypothesis, delays.reference))


def yet_another_average_lagging(
    delays: Delays, convention: Convention = OMNISTEVAL_0_1_10, long_form: bool = False
) -> Floats:
    """Return YAAL of each sentence (S,) in source units; nan if no word was written before the source ended.

    With `long_form` (LongYAAL), words after the end of the segment also count.  Words after the end of the recording
    never count.
    """
    read, source = _read(delays, convention)
    ended = np.zeros(len(read), dtype=bool) if long_form else read >= source
    if delays.recording_end is not None:
        ended |= read >= delays.recording_end[delays.sentence]  # nan if unknown, so never true
    counted = _before_first(ended, delays.index)
    return _mean_lag(delays, read, counted, np.fmax(delays.hypothesis, delays.reference), delays.index)


def average_proportion(delays: Delays, convention: Convention = SIMULEVAL_1_1) -> Floats:
    """Return AP of each sentence (S,), a share; it can exceed 1 if |y*| is shorter than the hypothesis."""
    read, _ = _read(delays, convention)
    target = delays.hypothesis
    if convention.ap_reference:
        target = np.where(np.isnan(delays.reference), target, delays.reference)
    values = divide(delays.total(read), delays.source * target)
    return np.where(delays.hypothesis > 0, values, np.nan)


def differentiable_average_lagging(delays: Delays, convention: Convention = SIMULEVAL_1_1) -> Floats:
    """Return DAL of each sentence (S,) in source units; the hypothesis length is |y| in every convention.

    The recursion unrolls: d'_i - (i-1)/gamma is the running maximum of d_j - (j-1)/gamma over j <= i.
    """
    read, _ = _read(delays, convention)
    per_word = divide(delays.source, delays.hypothesis)[delays.sentence]  # (N,) 1/gamma
    lag = running_maximum(read - delays.index * per_word, delays.index)
    values = divide(delays.total(lag), delays.hypothesis)
    return np.where(delays.source > 0, values, np.nan)


def _first_and_last(delays: Delays) -> tuple[Floats, Floats]:
    """Return d_1 and d_last of each sentence (S,), nan for a sentence without words."""
    ends = np.full((2, len(delays.source)), np.nan)
    starts = delays.index == 0
    ends[0, delays.sentence[starts]] = delays.flat[starts]
    ends[1, delays.sentence] = delays.flat  # the last assignment wins
    return ends[0], ends[1]


def consecutive_wait(delays: Delays, convention: Convention = SIMULEVAL_1_1) -> Floats:
    """Return CW of each sentence (S,), the mean number of source units read before a group of words; at least 1.

    CW is nan for a sentence without words, and for one whose words were all written before anything was read.
    """
    read, _ = _read(delays, convention)
    waits = np.where(delays.index > 0, np.diff(read, prepend=0.0), read)  # (N,) d_i - d_{i-1}
    return divide(delays.total(waits), delays.total((waits > 0).astype(np.float64)))


def _token_delay(delays: Delays, _: Convention) -> Floats:
    from sqa.metrics.token_delay import average_token_delay

    return average_token_delay(delays)


FORMULAS: dict[str, Formula] = {
    formula.name: formula
    for formula in (
        Formula("al", "AL", average_lagging),
        Formula("ap", "AP", average_proportion, unit="0-1", digits=3),
        Formula("dal", "DAL", differentiable_average_lagging),
        Formula("atd", "ATD", _token_delay),
        Formula("start-offset", "StartOffset", lambda delays, _: _first_and_last(delays)[0]),
        Formula("end-offset", "EndOffset", lambda delays, _: _first_and_last(delays)[1] - delays.source),
        Formula("cw", "CW", consecutive_wait),
        Formula("laal", "LAAL", length_adaptive_average_lagging, reference="question"),
        Formula("yaal", "YAAL", yet_another_average_lagging, reference="question"),
        Formula("long-yaal", "LongYAAL", partial(yet_another_average_lagging, long_form=True), reference="question"),
        Formula(
            "chunks",
            "NumChunks",
            lambda delays, _: np.where(delays.hypothesis > 0, delays.hypothesis, np.nan),
            of_runs=False,
        ),
        Formula(
            "rtf",
            "RTF",
            lambda delays, _: divide(_first_and_last(delays)[1], delays.source),
            unit="0-1",
            digits=3,
            of_runs=False,
        ),
    )
}


def takes_reference(formula: Formula, convention: Convention) -> bool:
    """Return whether a formula uses the reference length under a convention, as |y| or as a bound of |y|."""
    by_convention = {"al": convention.al_reference != "ignored", "ap": convention.ap_reference}
    return by_convention.get(formula.name, formula.reference != "none")


def listing(formula: str) -> list[Convention]:
    """Return the conventions whose scorers support a formula; none for a user's formula, which works with any."""
    return [convention for convention in CONVENTIONS.values() if formula in convention.formulas]


def usual_convention(formula: str) -> str:
    """Return the convention of a formula's plain name: the first that lists it, else SimulEval 1.1's."""
    return next((convention.name for convention in listing(formula)), SIMULEVAL_1_1.name)


def scored_by(convention: Convention) -> tuple[str, ...]:
    """Return the formulas in the table of a log: the convention's, and users' formulas that use it by default."""
    new = (name for name in FORMULAS if not listing(name) and usual_convention(name) == convention.name)
    return (*convention.formulas, *new)


def family_of(formula: Formula) -> Family:
    """Return the family of a formula's metrics of runs, with all variants of convention, unit, stream and length."""
    usual = usual_convention(formula.name)
    lengths = [Parameter("lengths", {"reference": "sentence"})]
    variants = {convention.name: convention.name for convention in listing(formula.name) if convention.name != usual}
    return Family(
        formula.name,
        formula.label,
        kind="lag",
        unit=formula.unit,
        digits=formula.digits,
        needs=(),
        parameters=(
            Parameter("convention", variants),
            Parameter("per", {"char": "char"}),
            Parameter("stream", {"question": "question"}),
            *(lengths if takes_reference(formula, CONVENTIONS[usual]) else []),
        ),
        arguments={"formula": formula.name, "convention": usual},
        shown={"reference": {"needs": ("reference",)}},
        make=Latency,
    )


def reference_size(text: str, unit: str, convention: Convention) -> int:
    """Return the number of characters, or of words as in SimulEval, which splits at each single space (at least 1)."""
    return len(text.strip()) if unit == "char" else (text.strip() if convention.strips else text).count(" ") + 1


def trace_delays(
    trace: QuestionTrace, convention: Convention, reference: str, unit: str = "word", stream: str = "sentence"
) -> Delays:
    """Return the delays of one question's sentences, in source words, under a convention.

    With `unit` "char" a token counts once per character and |y*| is in characters, as in SimulEval for languages
    without spaces.  Delays stay in source words.  With `stream` "question" the whole question is one long sentence
    with the delays of equation 1.

    With `reference` "question" a sentence's |y*| is its share of the question's human translation, since the numbers
    of sentences may differ:

        |reference| * |x_i| / |x|

    With "sentence" |y*| is the length of the sentence's own human translation, as in the log that `sqa export` writes.

    A convention that counts the end of the sentence adds a token to every sentence, so a sentence without words still
    has a delay.  Raises NotComputable for retracted words, which have no single delay.
    """
    question = trace.question
    whole = stream == "question"
    parts = [question.words] if whole else question.sentences
    last = len(question.sentences) - 1
    rows: list[list[float]] = [[] for _ in parts]
    for step, emission in enumerate(trace.emissions):
        if emission.erase:
            raise NotComputable(f"latency: {question.id} step {step} retracts words; a revised word has no delay")
        ended = convention.eos and emission.ended and (not whole or emission.sentence == last)
        delay = (int(trace.source_words[step]) if whole else emission.g) + ended
        rows[0 if whole else emission.sentence] += [delay] * (len(emission.token) if unit == "char" else 1)
    lengths = [len(part) + convention.eos for part in parts]
    if convention.eos:
        for row, length in zip(rows, lengths, strict=True):
            row.append(length)
    if reference == "none":
        return pack(rows, lengths)
    if reference == "sentence":
        texts = [question.reference_text] if whole else sentence_references(question)
        return pack(rows, lengths, [reference_size(text, unit, convention) + convention.eos for text in texts])
    size = sum(map(len, question.reference)) if unit == "char" else len(question.reference_text.split())
    per_word = size / len(question.words)  # reference units per source word
    return pack(rows, lengths, [per_word * len(part) + convention.eos for part in parts])


@dataclass(frozen=True, slots=True)
class Latency(MeanMetric):
    """The mean of a formula over all sentences with a value, in the formula's unit; resampled by question.

    stats = [sum over sentences, number of sentences with a value, number of sentences without one].
    """

    formula: str | Formula  # key of FORMULAS, or a user's formula
    convention: str = SIMULEVAL_1_1.name  # key of CONVENTIONS
    per: str = "word"  # unit of a delay: a target "word" or "char"
    stream: str = "sentence"  # unit of a sequence: a "sentence" or a whole "question"
    lengths: str = ""  # |y*|: `Formula.reference` if empty, or "sentence": length of each human sentence (SimulEval)
    _formula: Formula = field(init=False, repr=False, compare=False)
    _convention: Convention = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        formula = FORMULAS[self.formula] if isinstance(self.formula, str) else self.formula
        convention = CONVENTIONS[self.convention]
        if (defining := listing(formula.name)) and formula.name not in convention.formulas:
            has = ", ".join(c.name for c in defining)
            raise ConfigError(
                f"metrics.latency.convention: {formula.name} is not defined by {convention.name}; use {has}"
            )
        if formula.reference not in ("none", "question"):
            raise ConfigError(f"metrics.latency.reference: must be none or question, got {formula.reference!r}")
        if self.lengths and not takes_reference(formula, convention):
            raise ConfigError(f"{formula.name}@reference: its convention {convention.name} uses no reference")
        object.__setattr__(self, "_formula", replace(formula, reference=self.lengths or formula.reference))
        object.__setattr__(self, "_convention", convention)

    @property
    def family(self) -> Family:  # type: ignore[override]
        return family_of(self._formula)

    def signature(self) -> str:
        return (
            f"{self._formula.name}|conv:{self._convention.name}|unit:{self.per}|mean:{self.stream}|resample:question"
            f"|ref:{self._formula.reference}|version:{VERSION_REFERENCE if self.lengths else VERSION}"
        )

    def stats(self, trace: QuestionTrace) -> Floats:
        """Return [sum of values, number of sentences with a value, number of sentences without a value], (3,)."""
        self.require(trace)
        delays = trace_delays(trace, self._convention, self._formula.reference, self.per, self.stream)
        values = self._formula(delays, self._convention)  # (S,)
        defined = ~np.isnan(values)
        return np.array([values[defined].sum(), defined.sum(), (~defined).sum()], dtype=np.float64)
