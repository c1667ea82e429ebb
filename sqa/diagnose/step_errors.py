"""Step-wise errors: words of a translation that hurt question answering, and source words without translation.

The method follows Section 7 of Han, Carpuat and Boyd-Graber (2022).  A word aligner (sqa/diagnose/alignment.py) links
the words of every source sentence with those of its translation.  A detector (sqa/diagnose/detector.py) gives the
probability that each word is wrong.  Links, probabilities and the ranks of the answer give three kinds of findings:

    hallucination  adjacent target content words that are probably wrong, with the probability
    omission       a stretch of the source whose content words no target word translates (under-translation)
    drop           a step at which the log reciprocal rank fell, at a translated word or a function word

    from sqa.diagnose.alignment import load_aligner
    from sqa.diagnose.detector import load_detector
    from sqa.diagnose.step_errors import ranked, step_errors
    from sqa.pipeline.folder import open_run

    run = open_run(Path("runs/xqb-es-wait6-bm25"))
    aligner = load_aligner("es-en")
    errors = step_errors(run.traces, aligner, detector=load_detector("es"))  # .log_mrr, .unaligned: an entry per step
    worst_first = ranked(finding for question in errors for finding in question.findings)

Without a detector, an unaligned content word counts as wrong, with no probability.

Log MRR is the natural logarithm of 1 / rank among the first `top` guesses, or `floor` if the answer is not among them.

Every shown word is judged once, in the longest text that shows it.  The time of an alignment is cubic in the length of
a sentence, and its memory is quadratic.  Long sentences (`is_long`) are therefore cut into pieces of at most
PIECE_SOURCE and PIECE_TARGET words.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby, pairwise
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from sqa.core import ConfigError, Count, Floats, Positive, QuestionTrace, checked
from sqa.data.priors import folded, is_content, strip_edges
from sqa.diagnose.alignment import Alignment, HmmAligner
from sqa.diagnose.detector import Detector
from sqa.metrics.qa import log_reciprocal_rank

LONG_SOURCE, LONG_TARGET = 100, 250  # words; no sentence of the project's data sets is longer
# words of a piece; nine tenths of the links of bundled questions equal those in whole sentences
PIECE_SOURCE, PIECE_TARGET = 40, 100
AHEAD = 5  # unread source words that a text of a long sentence keeps, since the aligner may use them

Words = tuple[str, ...]
Pair = tuple[Words, Words]  # words of a source sentence and of its translation


@dataclass(frozen=True, slots=True)
class Text:
    """Displayed text of a sentence or part of a sentence, with the step that wrote each word."""

    sentence: int
    start: int  # source words of the sentence before this text
    source: Words
    words: Words
    steps: tuple[int, ...]
    judged: frozenset[int]  # steps whose word is judged in this text
    final: bool

    @property
    def pair(self) -> Pair:
        """Source words and target words."""
        return self.source, self.words


def texts_of(trace: QuestionTrace) -> list[Text]:
    """Return the final translation of each sentence, and its earlier texts from which words were then retracted.

    Each word, retracted or not, is judged once, in the longest text that showed it.  A sentence without target words
    has an empty final text.
    """
    texts: list[Text] = []
    steps = list(enumerate(trace.emissions))
    by_sentence = {number: list(rows) for number, rows in groupby(steps, key=lambda row: row[1].sentence)}
    begin = 0  # source words of the question before the sentence
    for number, source in enumerate(trace.question.sentences):
        words: list[str] = []
        wrote: list[int] = []
        for step, emission in by_sentence.get(number, []):
            if emission.erase:
                kept = len(words) - emission.erase
                read = max(int(trace.source_words[step - 1]) - begin, 0)
                seen = source[: read + AHEAD] if is_long(source, words) else source
                shown = Text(number, 0, seen, tuple(words), tuple(wrote), frozenset(wrote[kept:]), False)
                texts += (piece for piece in _pieces(shown) if piece.judged)
                del words[kept:], wrote[kept:]
            if emission.token:
                words.append(emission.token)
                wrote.append(step)
        texts += _pieces(Text(number, 0, source, tuple(words), tuple(wrote), frozenset(wrote), True))
        begin += len(source)
    return texts


def is_long(source: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether a sentence or its translation is too long to be aligned whole."""
    return len(source) > LONG_SOURCE or len(words) > LONG_TARGET


def _pieces(text: Text) -> Iterator[Text]:
    """Yield a text, or the pieces of a long text.

    The cuts lie on a path through the words that both sides share, such as names and numbers.  Along the path, a piece
    ends when its shares of PIECE_SOURCE and PIECE_TARGET add up to 1.
    """
    if not is_long(text.source, text.words):
        yield text
        return
    shared = SequenceMatcher(None, _keys(text.source, "source"), _keys(text.words, "target")).get_matching_blocks()
    corners = [(0, 0), *((block.a + n, block.b + n) for block in shared for n in (0, block.size))]  # to both ends
    sources, targets = np.array(corners).T
    lengths = sources / PIECE_SOURCE + targets / PIECE_TARGET
    ends = np.minimum(np.arange(np.ceil(lengths[-1]) + 1), lengths[-1])
    cuts = zip(*(np.interp(ends, lengths, side).astype(int).tolist() for side in (sources, targets)), strict=True)
    for (i, j), (after_i, after_j) in pairwise(cuts):
        steps = text.steps[j:after_j]
        source, words, judged = text.source[i:after_i], text.words[j:after_j], text.judged.intersection(steps)
        yield Text(text.sentence, text.start + i, source, words, steps, judged, text.final)


def _keys(words: Words, side: str) -> list[str]:
    """Return the words in the form in which both sides are compared; short words are unlike all others."""
    forms = map(folded, words)
    return [form if len(form) > 2 or form.isdigit() else f"{side} {n}" for n, form in enumerate(forms)]


# ------------------------------------------------------------------------------------------------------------- findings

HALVED = math.log(2)  # nats: loss when the reciprocal rank halves
TINY = 1e-9  # nats: greatest difference of logarithms between processors
Chance = Annotated[float, Meta(gt=0, le=1)]
Kind = Literal["hallucination", "omission", "drop"]
KINDS: tuple[Kind, ...] = ("hallucination", "omission", "drop")
TARGET = "en"  # all translations are English
SIZE_WEIGHT = 0.1  # nats added to a finding's severity per invented or lost content word


@dataclass(frozen=True, slots=True)
@checked
class DiagnoseConfig:
    """Thresholds of findings."""

    probability: Annotated[Chance, "minimum probability, 0..1, that a hallucinated content word is wrong"] = 0.5
    trust: Annotated[Chance, "minimum trust of a link, 0..1 (sqa/diagnose/alignment.py)"] = 0.5
    drop: Annotated[Positive, "nats: minimum decrease of log MRR at a drop; ln 2 = rank 1 to 2"] = HALVED
    omission_words: Annotated[Count, "minimum lost content words of an omission; names count twice"] = 3
    top: Annotated[int, "number of guesses searched for the answer"] = 50
    floor: Annotated[float, "log reciprocal rank of an answer outside the first `top` guesses"] = -4.0


@dataclass(frozen=True, slots=True)
class SourceSpan:
    """Words start .. stop - 1 of the question's source, 0-based over all its sentences."""

    start: int
    stop: int
    words: tuple[str, ...]  # words of the span; for a drop only the words aligned with the target word


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An error of a system.  Ranks are 1-based, or None if the answer is not among the guesses or no guesser ran."""

    question: str  # question id
    kind: Kind
    sentence: int  # 0-based sentence
    first: int  # first step (0-based emission); omission: first step after its span was read
    last: int  # last step; omission: last step of its sentence
    read: int  # source words of the question read at `first`
    words: tuple[str, ...] = ()  # target words of the finding; () for an omission
    span: SourceSpan | None = None  # source words of the finding; None if there are none (hallucinations)
    rank_before: int | None  # rank of the answer before the finding (omission: before its span was read)
    rank_after: int | None  # rank after `last`
    loss: float  # decrease of log MRR in nats; negative if it increased, 0 if no guesser ran
    size: int = 0  # number of wrong or lost content words, names counted twice; 0 for a drop
    probability: float | None = None  # highest probability that a word is wrong, 0 to 1; None without a detector

    @property
    def severity(self) -> float:
        """Sort key of findings: lost log MRR plus SIZE_WEIGHT per wrong or lost content word, times the probability.

        The lost log MRR of an omission does not count, since other words caused it.
        """
        lost = 0.0 if self.kind == "omission" else max(self.loss, 0.0)
        return (1.0 if self.probability is None else self.probability) * (lost + SIZE_WEIGHT * self.size)


@dataclass(frozen=True, slots=True)
class StepErrors:
    """The errors of one question; `log_mrr`, `unaligned` and `hallucinated` have one entry per step (emission)."""

    question: str
    log_mrr: tuple[float, ...] | None  # from `floor` to 0; None if no guesser ran
    unaligned: tuple[bool, ...]  # whether the step's word is unaligned
    hallucinated: tuple[bool, ...]  # whether a content word is probably wrong, or unaligned without a detector
    links: tuple[tuple[int, ...], ...]  # aligned source words (0-based in the question) of the step's word
    findings: tuple[Finding, ...]  # findings in the order of their first step
    probability: tuple[float, ...] | None = None  # probability that a content word is wrong, else 0; None: no detector


# ------------------------------------------------------------------------------------------------------ entry points


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Sort findings by severity, then by question and step; severities are rounded to be equal on every processor."""
    return sorted(findings, key=lambda f: (-round(f.severity, 9), f.question, f.first, f.kind))


def step_errors(
    traces: Iterable[QuestionTrace],
    aligner: HmmAligner,
    config: DiagnoseConfig | None = None,
    detector: Detector | None = None,
) -> list[StepErrors]:
    """Return the errors of each question, in order; all sentences are aligned together."""
    config, listed = config or DiagnoseConfig(), list(traces)
    for language in {trace.question.language for trace in listed}:
        if aligner.pair != f"{language}-{TARGET}":
            raise ConfigError(f"the aligner is for {aligner.pair}, but the questions need {language}-{TARGET}")
    texts = [texts_of(trace) for trace in listed]
    pairs = list(dict.fromkeys(text.pair for of_trace in texts for text in of_trace))
    aligned = aligner.align(pairs)
    judged = [None] * len(aligned) if detector is None else detector.words(pairs, aligned)
    results = dict(zip(pairs, zip(aligned, judged, strict=True), strict=True))
    return [_of_question(trace, of_trace, results, config) for trace, of_trace in zip(listed, texts, strict=True)]


# --------------------------------------------------------------------------------------------------------- one question


def _of_question(
    trace: QuestionTrace,
    texts: Sequence[Text],
    results: Mapping[Pair, tuple[Alignment, Floats | None]],
    config: DiagnoseConfig,
) -> StepErrors:
    question, n = trace.question, len(trace.emissions)
    starts = np.cumsum([0, *map(len, question.sentences)])
    unaligned = [False] * n  # steps that only retract write no word
    wrong = [0.0] * n
    links: list[tuple[int, ...]] = [()] * n
    ranks = _Ranks(trace, config)
    findings: list[Finding] = []
    judged = all(results[text.pair][1] is not None for text in texts)
    for text in texts:
        alignment, probabilities = results[text.pair]
        start = int(starts[text.sentence]) + text.start
        linked: dict[int, list[int]] = {}
        for s, t in alignment.links:
            linked.setdefault(t, []).append(start + s)
        for index, step in enumerate(text.steps):
            if step in text.judged:
                unaligned[step] = alignment.target[index] < config.trust
                wrong[step] = float(unaligned[step] if probabilities is None else probabilities[index])
                links[step] = tuple(linked.get(index, ()))
        if text.final:
            findings += _omissions(trace, text, alignment, start, ranks, config)
    content = [is_content(emission.token, TARGET) for emission in trace.emissions]
    wrong = [p * counts for p, counts in zip(wrong, content, strict=True)]
    hallucinated = [p >= config.probability for p in wrong]
    between = [bad and not counts for bad, counts in zip(unaligned, content, strict=True)]
    findings += _hallucinations(trace, between, hallucinated, wrong if judged else None, ranks)
    findings += _drops(trace, links, hallucinated, ranks, config)
    findings.sort(key=lambda f: (f.first, f.kind))
    steps = (ranks.logs, tuple(unaligned), tuple(hallucinated), tuple(links))
    return StepErrors(question.id, *steps, tuple(findings), tuple(wrong) if judged else None)


class _Ranks:
    """Ranks of the answer at each step, and losses of log MRR between steps; step -1 is before any word."""

    def __init__(self, trace: QuestionTrace, config: DiagnoseConfig) -> None:
        self.trace = trace
        self.logs: tuple[float, ...] | None = None
        self._floor, self._ranks = config.floor, None
        if trace.guesses is not None:
            self._ranks = [int(rank) if 0 < rank <= config.top else None for rank in trace.rank]
            self.logs = tuple(map(float, log_reciprocal_rank(trace.rank, config.top, config.floor)))

    def at(self, step: int) -> int | None:
        """Return the rank at a step, or None if the answer is not listed."""
        return None if self._ranks is None or step < 0 else self._ranks[step]

    def loss(self, before: int, after: int) -> float:
        """Return the decrease of log MRR from one step to another, in nats."""
        if self.logs is None:
            return 0.0
        first, last = (self._floor if step < 0 else self.logs[step] for step in (before, after))
        return first - last

    def around(self, before: int, first: int, last: int) -> dict[str, Any]:
        """Return the position, the ranks and the loss of a finding at steps `first` to `last`, as fields of Finding.

        The ranks and the loss compare step `before` with `last`.
        """
        read = int(self.trace.source_words[first]) if first >= 0 else 0
        ranks = {"rank_before": self.at(before), "rank_after": self.at(last), "loss": self.loss(before, last)}
        return {"question": self.trace.question.id, "first": first, "last": last, "read": read, **ranks}


def _size(content: Iterable[bool], names: Iterable[bool]) -> int:
    return sum(1 + name for counts, name in zip(content, names, strict=True) if counts)


def _hallucinations(
    trace: QuestionTrace,
    between: Sequence[bool],
    hallucinated: Sequence[bool],
    wrong: Sequence[float] | None,
    ranks: _Ranks,
) -> Iterator[Finding]:
    """Yield a finding per sequence of probably wrong words, including unaligned function words `between` them."""
    emissions = trace.emissions
    suspect = [bad or empty for bad, empty in zip(hallucinated, between, strict=True)]
    runs = groupby(range(len(emissions)), key=lambda step: (emissions[step].sentence, suspect[step]))
    for (sentence, bad), steps in runs:
        content = [step for step in steps if hallucinated[step]]
        if not bad or not content:
            continue
        first, last = content[0], content[-1]
        words = tuple(emissions[step].token for step in range(first, last + 1))
        yield Finding(
            kind="hallucination",
            sentence=sentence,
            words=words,
            size=_size(hallucinated[first : last + 1], (is_name(word, False) for word in words)),
            probability=None if wrong is None else max(wrong[step] for step in content),
            **ranks.around(first - 1, first, last),
        )


def _drops(
    trace: QuestionTrace,
    links: Sequence[tuple[int, ...]],
    hallucinated: Sequence[bool],
    ranks: _Ranks,
    config: DiagnoseConfig,
) -> Iterator[Finding]:
    """Yield a finding for each step at which log MRR falls, except steps of hallucinated words."""
    source = trace.question.words
    for step, emission in enumerate(trace.emissions):
        if hallucinated[step] or ranks.loss(step - 1, step) < config.drop - TINY:
            continue
        at = links[step]
        words = (emission.token,) if emission.token else ()
        span = SourceSpan(at[0], at[-1] + 1, tuple(source[i] for i in at)) if at else None
        where = ranks.around(step - 1, step, step)
        yield Finding(kind="drop", sentence=emission.sentence, words=words, span=span, **where)


def _omissions(
    trace: QuestionTrace, text: Text, alignment: Alignment, start: int, ranks: _Ranks, config: DiagnoseConfig
) -> Iterator[Finding]:
    """Yield a finding for each stretch of a source sentence that its final translation omits.

    A stretch begins and ends with a lost content word and contains no translated content word.
    """
    question = trace.question
    content = [is_content(word, question.language) for word in text.source]
    for first, stop in _stretches(content, [trust < config.trust for trust in alignment.source]):
        words = text.source[first:stop]
        names = [is_name(word, text.start + first + i == 0) for i, word in enumerate(words)]
        size = _size(content[first:stop], names)
        if size < config.omission_words:
            continue
        span = SourceSpan(start + first, start + stop, words)
        where = ranks.around(*_around(trace, text.sentence, span.start, span.stop))
        yield Finding(kind="omission", sentence=text.sentence, span=span, size=size, **where)


def _stretches(content: Sequence[bool], lost: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Yield (first, stop) of every run of lost content words; function words between them are ignored."""
    indices = [index for index, counts in enumerate(content) if counts]
    for gone, run in groupby(indices, key=lambda index: lost[index]):
        if gone:
            positions = list(run)
            yield positions[0], positions[-1] + 1


def _around(trace: QuestionTrace, sentence: int, start: int, stop: int) -> tuple[int, int, int]:
    """Return three steps around the reading of source words start .. stop - 1 of the question.

    The steps are the last one before the first word was read (-1: none), the first one after all words were read, and
    the last one of the sentence.  The latter two are at most the last step of the trace, or -1 if it has no steps.
    """
    end = len(trace.emissions) - 1
    before = int(np.searchsorted(trace.source_words, start, side="right")) - 1
    after = min(int(np.searchsorted(trace.source_words, stop, side="left")), end)
    so_far = [step for step, emission in enumerate(trace.emissions) if emission.sentence <= sentence]
    return before, after, max(after, so_far[-1] if so_far else -1)


def is_name(word: str, begins_sentence: bool) -> bool:
    """Return whether a word looks like a name or a number: it has a digit, or a capital inside a sentence."""
    bare = strip_edges(word)
    return any(c.isdigit() for c in bare) or (bare[:1].isupper() and not begins_sentence)
