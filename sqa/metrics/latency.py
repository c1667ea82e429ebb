"""Latency in source units: AL, LAAL, YAAL, AP, DAL, ATD and offsets, under five public conventions.

    gamma = |y| / |x|
    AL    = 1/tau sum_{i<=tau} (d_i - (i-1)/gamma),  tau = first i with d_i >= |x|, else all        (Ma et al. 2019)
    LAAL  = AL with |y| = the longer of hypothesis and reference                                  (Papi et al. 2022)
    AP    = sum d_i / (|x| |y|)                                                            (Cho and Esipova 2016)
    DAL   = 1/|y| sum (d'_i - (i-1)/gamma),  d'_1 = d_1,  d'_i = max(d_i, d'_{i-1} + 1/gamma)
                                                              (Arivazhagan et al. 2019; Cherry and Foster 2019)
    YAAL  = LAAL over the words with d_i < |x| only; a sentence without one has no value     (Polak et al. 2025)
    LongYAAL = LAAL over the words before the recording's end: of long-form text, where a segment's end is not that end
    ATD   sqa/metrics/token_delay.py                                                          (Kano et al. 2023)
    start offset d_1,  end offset d_last - |x|,  RTF d_last / |x|,  chunks: number of words           (SimulEval 1.1)

d_i is the number of source units read before target word i was written.  All but AP, RTF and chunks are in source
units (AL is negative when the output runs ahead of the diagonal), AP is a share of the source (above 1 only when |y| is
a shorter reference).  What |x|, |y| and d_i are differs between releases of the public scorers: that is a `Convention`.
All sums are float64; all scorers before SimulEval 1.1 worked in float32 and differ from these in the seventh digit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from sqa import __version__
from sqa.core.errors import ConfigError, NotComputable
from sqa.core.trace import QuestionTrace
from sqa.core.types import Bools, Floats, Ints
from sqa.metrics.delays import Delays, divide, pack, running_maximum
from sqa.metrics.measure import Family, MeanMetric, Parameter, sentence_references


@dataclass(frozen=True, slots=True)
class Formula:
    """A latency, and all that a report, a figure and a scorer's table need to know of it."""

    name: str  # the metric's, "al"
    label: str  # as the public scorers print it
    compute: Callable[[Delays, Convention], Floats]  # the value of each sentence (S,), nan = undefined
    unit: str = "words"  # of the value, for delays in words: "words", "0-1"
    digits: int = 2  # after the point, in tables
    reference: str = "none"  # |y*| of a run's sentence: "none", or its share of the "question"'s, see `trace_delays`
    of_runs: bool = True  # a metric of runs too; False: of logs only (`sqa latency`)

    def __call__(self, delays: Delays, convention: Convention | None = None) -> Floats:
        return self.compute(delays, SIMULEVAL_1_1 if convention is None else convention)


@dataclass(frozen=True, slots=True)
class Convention:
    """How one public scorer reads delays and lengths; SimulEval 1.1's rules where nothing else is said.

    `eos`, `clip` and `late` concern the input, the others the formulas.
    """

    name: str
    source: str  # where the rules were read
    eos: bool = False  # the end is a source unit and a target token: |x|+1, d = g + ended, one more d = |x|+1
    clip: bool = False  # a delay above |x| counts as |x|
    late: int = 0  # added to every delay below |x| (1: the off-by-one of the first release)
    al_reference: str = "length"  # |y| of AL, given a reference; "capped": the ideal stops at |y|-1 words; "ignored"
    ap_reference: bool = True  # AP divides by the reference length when one is given
    cut: str = "first"  # AL leaves out words after the "first" with d >= |x|, or those whose "previous" word has it
    formulas: tuple[str, ...] = ("al", "ap", "dal")  # keys of FORMULAS: what the scorer knows


SIMULEVAL_1_1 = Convention(
    "simuleval-1.1",
    "facebookresearch/SimulEval 536de82, evaluator/scorers/latency_scorer.py",
    formulas=("al", "laal", "ap", "dal", "atd", "start-offset", "end-offset", "chunks", "rtf"),
)
OMNISTEVAL_0_1_10 = Convention(
    "omnisteval-0.1.10",
    "OmniSTEval 0.1.10, omnisteval/scoring.py",
    formulas=("al", "laal", "ap", "dal", "yaal", "long-yaal"),
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
    """Delays (N,) as the convention counts them, and |x| for each of them (N,)."""
    source = delays.source[delays.sentence]  # (N,)
    read = np.where(delays.flat < source, delays.flat + convention.late, delays.flat)
    return (np.minimum(read, source) if convention.clip else read), source


def _counted(delays: Delays, read: Floats, source: Floats, cut: str) -> Bools:
    """Which words AL sums over (N,): up to and including the first that had seen the whole source."""
    before: Bools = np.concatenate(([False], (read >= source)[:-1])) & (delays.index > 0)  # (N,) so had the one before
    return ~before if cut == "previous" else _before_first(before, delays.index)


def _before_first(reached: Bools, index: Ints) -> Bools:
    """Which words (N,) come before the first one of their sentence that has `reached` (N,)."""
    so_far = np.cumsum(reached)  # (N,) over all sentences
    first = np.flatnonzero(index == 0)  # (sentences with words,)
    earlier: Ints = np.repeat((so_far - reached)[first], np.diff(np.append(first, len(reached))))  # (N,)
    before: Bools = so_far == earlier
    return before


def _mean_lag(delays: Delays, read: Floats, counted: Bools, target: Floats, steps: Ints | Floats) -> Floats:
    """Mean lag (S,) of the `counted` words (N,) behind the diagonal, `steps` (N,) words along it, |y| = target (S,)."""
    per_word = np.where(delays.source > 0, divide(delays.source, target), np.nan)[delays.sentence]  # (N,) 1/gamma
    beyond = (delays.index == 0) & (read > delays.source[delays.sentence])  # then the lag is d_1, whatever gamma is
    lag = np.where(beyond, read, read - steps * per_word)
    return divide(delays.total(np.where(counted, lag, 0.0)), delays.total(counted.astype(np.float64)))


def _lagging(delays: Delays, convention: Convention, target: Floats, cap: Floats | None = None) -> Floats:
    """AL with |y| = target (S,); `cap` (S,) is the last index that the diagonal reaches."""
    read, source = _read(delays, convention)
    steps = delays.index if cap is None else np.minimum(delays.index, cap[delays.sentence])
    return _mean_lag(delays, read, _counted(delays, read, source, convention.cut), target, steps)


def average_lagging(delays: Delays, convention: Convention = SIMULEVAL_1_1) -> Floats:
    """AL of each sentence (S,), source units; nan for a sentence without words.

    With `al_reference` "capped" the diagonal stands still after |y*| words, as SimulEval 1.0.2 had it.
    """
    if convention.al_reference == "ignored":
        return _lagging(delays, convention, delays.hypothesis)
    target: Floats = np.where(np.isnan(delays.reference), delays.hypothesis, delays.reference)
    return _lagging(delays, convention, target, target - 1 if convention.al_reference == "capped" else None)


def length_adaptive_average_lagging(delays: Delays, convention: Convention = SIMULEVAL_1_1) -> Floats:
    """LAAL of each sentence (S,), source units; equals AL when no reference length is given."""
    return _lagging(delays, convention, np.fmax(delays.hypothesis, delays.reference))


def yet_another_average_lagging(
    delays: Delays, convention: Convention = OMNISTEVAL_0_1_10, long_form: bool = False
) -> Floats:
    """YAAL of each sentence (S,), source units; nan where no word was written before the source had ended.

    With `long_form` (LongYAAL) words after the segment's end count, too.  Words from the recording's end on never do.
    """
    read, source = _read(delays, convention)
    ended = np.zeros(len(read), dtype=bool) if long_form else read >= source
    if delays.recording_end is not None:
        ended |= read >= delays.recording_end[delays.sentence]  # nan: not known, so never
    counted = _before_first(ended, delays.index)
    return _mean_lag(delays, read, counted, np.fmax(delays.hypothesis, delays.reference), delays.index)


def average_proportion(delays: Delays, convention: Convention = SIMULEVAL_1_1) -> Floats:
    """AP of each sentence (S,), a share; above 1 when |y*| is shorter than the hypothesis."""
    read, _ = _read(delays, convention)
    target = delays.hypothesis
    if convention.ap_reference:
        target = np.where(np.isnan(delays.reference), target, delays.reference)
    values = divide(delays.total(read), delays.source * target)
    return np.where(delays.hypothesis > 0, values, np.nan)


def differentiable_average_lagging(delays: Delays, convention: Convention = SIMULEVAL_1_1) -> Floats:
    """DAL of each sentence (S,), source units; the hypothesis length is |y| in every convention.

    The recursion unrolls: d'_i - (i-1)/gamma is the running maximum of d_j - (j-1)/gamma over j <= i.
    """
    read, _ = _read(delays, convention)
    per_word = divide(delays.source, delays.hypothesis)[delays.sentence]  # (N,) 1/gamma
    lag = running_maximum(read - delays.index * per_word, delays.index)
    values = divide(delays.total(lag), delays.hypothesis)
    return np.where(delays.source > 0, values, np.nan)


def _first_and_last(delays: Delays) -> tuple[Floats, Floats]:
    """d_1 and d_last of each sentence (S,), nan for a sentence without words."""
    ends = np.full((2, len(delays.source)), np.nan)
    starts = delays.index == 0
    ends[0, delays.sentence[starts]] = delays.flat[starts]
    ends[1, delays.sentence] = delays.flat  # the last assignment stays
    return ends[0], ends[1]


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
        Formula("laal", "LAAL", length_adaptive_average_lagging, reference="question"),
        Formula("yaal", "YAAL", yet_another_average_lagging, reference="question"),
        Formula(
            "long-yaal",
            "LongYAAL",
            lambda delays, convention: yet_another_average_lagging(delays, convention, long_form=True),
            reference="question",
        ),
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
    """Whether a reference's length, where there is one, is |y| (or bounds it) in a formula under a convention."""
    by_convention = {"al": convention.al_reference != "ignored", "ap": convention.ap_reference}
    return by_convention.get(formula.name, formula.reference != "none")


def listing(formula: str) -> list[Convention]:
    """The conventions whose scorers know a formula; none for a new one, which any convention may be taken for."""
    return [convention for convention in CONVENTIONS.values() if formula in convention.formulas]


def usual_convention(formula: str) -> str:
    """The convention that a formula's plain name means: the first that lists it; SimulEval 1.1's for a new one."""
    return next((convention.name for convention in listing(formula)), SIMULEVAL_1_1.name)


def scored_by(convention: Convention) -> tuple[str, ...]:
    """The formulas that a log is scored with: the convention's, and new ones whose usual convention it is."""
    new = (name for name in FORMULAS if not listing(name) and usual_convention(name) == convention.name)
    return (*convention.formulas, *new)


def family_of(formula: Formula) -> Family:
    """The metrics of runs by a formula: by convention, by characters, of whole questions, by sentences' references."""
    usual = usual_convention(formula.name)
    lengths = [Parameter("lengths", {"reference": "sentence"})]
    variants = {convention.name: convention.name for convention in listing(formula.name) if convention.name != usual}
    return Family(
        formula.name,
        "sqa.metrics.latency:Latency",
        formula.label,
        "lag",
        formula.unit,
        formula.digits,
        higher_is_better=False,
        parameters=(
            Parameter("convention", variants),
            Parameter("per", {"char": "char"}),
            Parameter("stream", {"question": "question"}),
            *(lengths if takes_reference(formula, CONVENTIONS[usual]) else []),
        ),
        arguments={"formula": formula.name, "convention": usual},
        shown={"reference": {"needs": ("reference",)}},
    )


def trace_delays(
    trace: QuestionTrace, convention: Convention, reference: str, unit: str = "word", stream: str = "sentence"
) -> Delays:
    """The delays of one question's sentences, in source words, as the convention wants them.

    With `unit` "char" a token counts once per character and |y*| is in characters, as SimulEval does for languages
    without blanks; delays stay source words.  With `stream` "question" the whole question is one long sentence, its
    delays those of equation 1.  With `reference` "question", a sentence's |y*| is its share of the question's human
    translation, |reference| * |x_i| / |x|: the two sides need not have equally many sentences.  With "sentence" it is
    the length of the sentence's own human translation, as in the log that `sqa export` writes.  A convention that
    counts the end of the sentence gives every sentence one more token, so a sentence without words still has a delay
    there.  A retracted word has no single delay: NotComputable.
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
        return pack(rows, lengths, [len(t if unit == "char" else t.split()) + convention.eos for t in texts])
    size = sum(map(len, question.reference)) if unit == "char" else len(question.reference_text.split())
    per_word = size / len(question.words)  # reference units per source word
    return pack(rows, lengths, [per_word * len(part) + convention.eos for part in parts])


@dataclass(frozen=True, slots=True)
class Latency(MeanMetric):
    """The mean of one formula over all sentences with a value, in the formula's unit; resampled by question.

    stats = [sum over sentences, number of sentences with a value, number of sentences without one].
    """

    formula: str | Formula  # a key of FORMULAS, or one of your own
    convention: str | Convention = SIMULEVAL_1_1.name  # a key of CONVENTIONS, or one of your own
    per: str = "word"  # what a delay belongs to: a target "word" or "char"
    stream: str = "sentence"  # what is one sequence: a "sentence", or a whole "question"
    lengths: str = ""  # |y*|: the `Formula.reference`, or "sentence": each human sentence's, as SimulEval has it
    _formula: Formula = field(init=False, repr=False, compare=False)
    _convention: Convention = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        formula = FORMULAS[self.formula] if isinstance(self.formula, str) else self.formula
        convention = CONVENTIONS[self.convention] if isinstance(self.convention, str) else self.convention
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
    def family(self) -> Family:
        return family_of(self._formula)

    def signature(self) -> str:
        return (
            f"{self._formula.name}|conv:{self._convention.name}|unit:{self.per}|mean:{self.stream}|resample:question"
            f"|ref:{self._formula.reference}|v:{__version__}"
        )

    def stats(self, trace: QuestionTrace) -> Floats:
        """(3,): [sum, sentences with a value, sentences without one]."""
        self.require(trace)
        delays = trace_delays(trace, self._convention, self._formula.reference, self.per, self.stream)
        values = self._formula(delays, self._convention)  # (S,)
        defined = ~np.isnan(values)
        return np.array([values[defined].sum(), defined.sum(), (~defined).sum()], dtype=np.float64)
