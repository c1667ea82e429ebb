"""The trace of one question: emissions, guesses and buzzes, and their columns on disk.

A *step* is one emission.  Its text is every target word of the question so far, joined by single spaces.  Its
source position is that of equation 1 of Han, Carpuat and Boyd-Graber (2022): the lengths of the finished source
sentences plus the words read of the current one.  Expected wins use the position in CHARACTERS, as a fraction of the
source text.

A translator that revises retracts the last words of its sentence and replaces them by others.  Its steps are still
one word each: the first step of a revision shows the text without the retracted words and with one new word.

Only this file names the columns.  Logically the trace is one table with the key (question_id, step).  On disk it is
one file per stage and block of questions, so that several guessers share one translation.

A question without target words has no rows; the list of questions determines which questions exist.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate, chain, pairwise
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from sqa.core.answers import is_right
from sqa.core.errors import TraceError
from sqa.core.types import GREATEST_SMALL, Bools, Buzz, Emission, Floats, Guess, Ints, Question

SCHEMA_VERSION = 1

T = TypeVar("T")
# Column -> kind.  "i2", "i4", "f8" and "?" are numpy types, "text" is a text or None.  A kind in brackets, "[f8]",
# means that every row holds a list.
Schema = Mapping[str, str]

_STEP = {"question_id": "text", "step": "i4"}
EMISSIONS = {**_STEP, "sentence": "i2", "token": "text", "g": "i4", "ended": "?", "erase": "i2"}
GUESSES = {**_STEP, "page": "[text]", "score": "[f8]"}
BUZZES = {**_STEP, "score": "f8", "buzz": "?"}
SCORES = {"question_id": "text", "metric": "text", "stats": "[f8]", "refusal": "text"}  # refusal: None if stats exist

Emissions = tuple[Emission, ...]
Guesses = Sequence[tuple[Guess, ...]]
Buzzes = tuple[Buzz, ...]
Right = Callable[[str, str], bool]  # (guessed page, question's page) -> whether the guess is right


@dataclass(frozen=True)
class QuestionTrace:
    """All events of one question; the input of every metric.  Validated on construction.

    Attributes:
        question: The question.
        emissions: The n emissions, in order.
        guesses: The guesses of each emission, n entries of at most 50, best first; None if no guesser ran.
        buzzes: The buzzes of each emission, n entries; None if no buzzer ran.

    Raises:
        TraceError: If an emission breaks a rule, or the number of guesses or buzzes is not n.

    Examples:
        >>> question = Question("q1", "mine", "es", (("Buenos", "días."),), ("Hello.",), "Greeting")
        >>> QuestionTrace(question, (Emission(0, "Hello.", g=2, ended=True),)).fraction
        array([1.])
    """

    question: Question
    emissions: Emissions
    guesses: Guesses | None = None
    buzzes: Buzzes | None = None

    def __post_init__(self) -> None:
        check_emissions(self.question, self.emissions)
        for name, rows in (("guesses", self.guesses), ("buzzes", self.buzzes)):
            if rows is not None and len(rows) != len(self.emissions):
                raise TraceError(f"{len(rows)} {name} for {len(self.emissions)} emissions", self.question.id)

    @cached_property
    def prefixes(self) -> Prefixes:
        """Texts, words and source positions of the steps."""
        return prefixes(self.question, self.emissions)

    @property
    def source_words(self) -> Ints:
        """Source words read at each step, (n,) int64, including earlier sentences (equation 1)."""
        return self.prefixes.source_words

    @property
    def fraction(self) -> Floats:
        """Fraction of source characters read at each step, (n,) float64 in 0..1."""
        return self.prefixes.fraction

    @cached_property
    def rank(self) -> Ints:
        """Rank of the first right guess at each step, (n,) int64, from 1; 0 if none is right."""
        if (asked := self.question.asked) is None:
            return self._rank_by(is_right)
        from sqa.core.quizbowl import takes

        return self._rank_by(lambda guess, _: takes(guess, asked.answers))

    def judged(self, rule: str, right: Right) -> QuestionTrace:
        """Return the trace with `rank` and `correct` determined by another rule.

        Args:
            rule: Name of the rule; the result is cached under this name.
            right: Function that returns whether a guessed page is right for the question's page.

        Returns:
            A trace of the same events.

        Raises:
            TraceError: If no guesser ran.
        """
        traces: dict[str, QuestionTrace] = self.__dict__.setdefault("_judged", {})
        if rule not in traces:
            trace = copy(self)
            trace.__dict__.pop("_judged", None)
            trace.__dict__.pop("correct", None)
            trace.__dict__["rank"] = self._rank_by(right)  # overrides the cached property
            traces[rule] = trace
        return traces[rule]

    def _rank_by(self, right: Right) -> Ints:
        if self.guesses is None:
            raise TraceError("no guesser ran on this trace", self.question.id)
        page = self.question.page
        if isinstance(self.guesses, StoredGuesses):
            rank = self.guesses.rank_where(lambda title: right(title, page))
        else:
            matches = cache(lambda title: right(title, page))
            ranks = (next((i for i, guess in enumerate(row, 1) if matches(guess.page)), 0) for row in self.guesses)
            rank = np.fromiter(ranks, dtype=np.int64, count=len(self.guesses))
        rank.flags.writeable = False
        return rank

    @cached_property
    def correct(self) -> Bools:
        """Whether the top guess at each step is right, (n,) bool."""
        correct: Bools = self.rank == 1
        correct.flags.writeable = False
        return correct

    @cached_property
    def hypotheses(self) -> list[str]:
        """Final translation of each source sentence; "" if nothing was written."""
        return hypotheses(self.question, self.emissions)


# --------------------------------------------------------------------------------------- texts and source positions


@dataclass(frozen=True)
class Prefixes:
    """The steps of one question.  All arrays have shape (n,), n = number of emissions, and are read-only.

    words         every token, in the order written; for an append-only trace text t is " ".join(words[: t + 1]),
                  else a token may be "" (a write that only retracts)
    append_only   no emission retracts anything
    source_words  int64, source words read at each step, 0 .. number of source words (equation 1)
    source_chars  int64, len(" ".join(source[:source_words])), 0 .. len(question.text)
    fraction      float64, source_chars / len(question.text), 0 .. 1; never decreasing
    """

    words: tuple[str, ...]
    append_only: bool
    source_words: Ints  # (n,)
    source_chars: Ints  # (n,)
    fraction: Floats  # (n,)
    emissions: tuple[Emission, ...]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Target text visible at each step, n strings without the retracted words."""
        if self.append_only:
            return tuple(accumulate(self.words, lambda text, word: f"{text} {word}"))
        texts, seen = [], list[str]()
        for e in self.emissions:
            del seen[len(seen) - e.erase :]
            seen += [e.token] if e.token else []
            texts.append(" ".join(seen))
        return tuple(texts)


def prefixes(question: Question, emissions: Sequence[Emission]) -> Prefixes:
    """Return the texts and source positions of the steps; `emissions` must be valid (see `check_emissions`)."""
    finished = (0, *accumulate(len(sentence) for sentence in question.sentences))  # words before sentence i
    source_words = np.array([finished[e.sentence] + e.g for e in emissions], dtype=np.int64)
    ends = np.cumsum([len(word) + 1 for word in question.words], dtype=np.int64) - 1  # end of each word, spaces counted
    chars_at = np.concatenate([[0], ends])  # chars_at[i] = len(" ".join(words[:i]))
    source_chars = chars_at[source_words]
    fraction = source_chars / chars_at[-1] if len(emissions) else np.zeros(0)
    for array in (source_words, source_chars, fraction):
        array.flags.writeable = False
    words, append_only = tuple(e.token for e in emissions), all(e.erase == 0 for e in emissions)
    return Prefixes(words, append_only, source_words, source_chars, fraction, tuple(emissions))


def hypotheses(question: Question, emissions: Sequence[Emission]) -> list[str]:
    """Return the final translation of each source sentence; "" if it is empty or completely retracted."""
    return [" ".join(emissions[step].token for step in steps) for steps in final_steps(question, emissions)]


def final_steps(question: Question, emissions: Sequence[Emission]) -> list[list[int]]:
    """Return for each source sentence the steps that wrote the words of its final translation."""
    final: list[list[int]] = [[] for _ in question.sentences]
    for step, e in enumerate(emissions):
        steps = final[e.sentence]
        del steps[len(steps) - e.erase :]
        if e.token:
            steps.append(step)
    return final


def by_sentence(question: Question, words: Iterable[tuple[str, int, bool, int]]) -> Iterator[Emission]:
    """Invert equation 1: yield an emission for each (token, source words read of the question, ended, erase)."""
    lengths, sentence = [len(sentence) for sentence in question.sentences], 0
    starts = (0, *accumulate(lengths))[:-1]
    for token, read, ended, erase in words:
        while sentence + 1 < len(starts) and starts[sentence + 1] < read:
            sentence += 1
        is_over = ended and sentence + 1 == len(starts)
        yield Emission(sentence, token, min(read - starts[sentence], lengths[sentence]), is_over, erase)


# ------------------------------------------------------------------------------------------------------- checks


def check_emissions(question: Question, emissions: Sequence[Emission]) -> None:
    """Raise TraceError at the first emission that breaks a rule.

    Sentences must exist and be in order.  g is in 0..|S_i| and does not decrease within a sentence.  A sentence that
    has ended was read completely and stays ended.  A token has no white space, and is empty only if words are
    retracted.  No write retracts words of another sentence.
    """
    if not question.words:
        raise TraceError("the question has no words", question.id)
    if len(question.sentences) > GREATEST_SMALL:
        many = f"has {len(question.sentences)} sentences; the maximum is {GREATEST_SMALL}"
        raise TraceError(many, question.id)
    at, g, ended, written = 0, 0, False, 0
    for step, e in enumerate(emissions):
        if not at <= e.sentence < len(question.sentences):
            wrong = f"sentence must be in {at}..{len(question.sentences) - 1}, got {e.sentence}"
            raise TraceError(wrong, question.id, step)
        if e.sentence > at:
            at, g, ended, written = e.sentence, 0, False, 0
        size, most = len(question.sentences[at]), min(written, GREATEST_SMALL)
        problem = ""
        if not g <= e.g <= size:
            problem = f"g must be in {g}..{size} (words read of sentence {at}, never decreasing), got {e.g}"
        elif e.ended and e.g < size:
            problem = f"sentence {at} has ended but only {e.g} of its {size} words were read"
        elif ended and not e.ended:
            problem = f"sentence {at} had ended before this step"
        elif not (e.token.split() == [e.token] or (e.token == "" and e.erase)):
            problem = f"a token must be one word without spaces, got {e.token!r}"
        elif not 0 <= e.erase <= most:
            problem = f"erase must be in 0..{most} (words of sentence {at} so far), got {e.erase}"
        if problem:
            raise TraceError(problem, question.id, step)
        g, ended, written = e.g, e.ended, written - e.erase + bool(e.token)


def check_guesses(question: Question, steps: int, guesses: Sequence[Sequence[Guess]], n: int) -> None:
    """Raise TraceError unless there is one list of at most `n` guesses per step, pages distinct, best first."""
    if len(guesses) != steps:
        raise TraceError(f"the guesser answered {len(guesses)} of {steps} prefixes", question.id)
    for step, row in enumerate(guesses):
        if len(row) > n or len({guess.page for guess in row}) != len(row):
            raise TraceError(f"expected at most {n} guesses on distinct pages, got {len(row)}", question.id, step)
        scores = [guess.score for guess in row]
        if not all(map(math.isfinite, scores)) or any(a < b for a, b in pairwise(scores)):
            raise TraceError("guesses must be sorted by finite scores, best first", question.id, step)


def check_buzzes(question: Question, steps: int, buzzes: Sequence[Buzz]) -> None:
    """Raise TraceError unless there is one finite buzz score per step."""
    if len(buzzes) != steps:
        raise TraceError(f"the buzzer answered {len(buzzes)} of {steps} steps", question.id)
    for step, buzz in enumerate(buzzes):
        if not math.isfinite(buzz.score):
            raise TraceError(f"a buzz score must be finite, got {buzz.score}", question.id, step)


# ---------------------------------------------------------------------------------------------------- to tables


@dataclass(frozen=True, slots=True)
class Column:
    """The values of one column in the order of the rows."""

    kind: str
    values: NDArray[Any]  # (n,) numbers; for texts, indices into `words`, -1 = None
    words: tuple[str, ...] = ()  # the distinct texts
    offsets: NDArray[np.int32] | None = None  # (rows + 1,): the list of row i is values[offsets[i] : offsets[i + 1]]

    @classmethod
    def of(cls, kind: str, rows: Sequence[Any]) -> Column:
        """Return a column of values, or of sequences of values if the kind is a list."""
        if kind.startswith("["):
            offsets = np.cumsum([0, *map(len, rows)], dtype=np.int32)
            return replace(cls.of(kind[1:-1], [*chain.from_iterable(rows)]), kind=kind, offsets=offsets)
        if kind != "text":
            return cls(kind, np.array(rows, dtype=kind))
        words: dict[str, int] = {}
        indices = (-1 if text is None else words.setdefault(text, len(words)) for text in rows)
        return cls(kind, np.fromiter(indices, np.int32, len(rows)), tuple(words))

    def to_list(self) -> list[Any]:
        """Return the values of the rows as Python objects, lists if the kind is a list."""
        flat = self.values.tolist()
        if self.kind.strip("[]") == "text":
            flat = [None if index < 0 else self.words[index] for index in flat]
        return flat if self.offsets is None else [flat[a:b] for a, b in pairwise(self.offsets.tolist())]


Table = Mapping[str, Column]  # output of a stage, as stored


def table_of(schema: Schema, rows: Iterable[Sequence[Any]]) -> Table:
    """Convert rows, whose values are in the order of the schema, to columns."""
    columns = [*zip(*rows, strict=True)] or [()] * len(schema)
    return {name: Column.of(kind, values) for (name, kind), values in zip(schema.items(), columns, strict=True)}


def emissions_table(rows: Mapping[str, Sequence[Emission]]) -> Table:
    """Convert emissions by question id to a table with the EMISSIONS schema."""
    steps = _steps(rows)
    return table_of(EMISSIONS, ((id, step, e.sentence, e.token, e.g, e.ended, e.erase) for id, step, e in steps))


def guesses_table(rows: Mapping[str, Sequence[Sequence[Guess]]]) -> Table:
    """Convert guesses by question id to a table with the GUESSES schema."""
    steps = _steps(rows)
    return table_of(GUESSES, ((id, step, [g.page for g in row], [g.score for g in row]) for id, step, row in steps))


def buzzes_table(rows: Mapping[str, Sequence[Buzz]]) -> Table:
    """Convert buzzes by question id to a table with the BUZZES schema."""
    return table_of(BUZZES, ((id, step, buzz.score, buzz.buzz) for id, step, buzz in _steps(rows)))


def _steps(rows: Mapping[str, Sequence[T]]) -> Iterator[tuple[str, int, T]]:
    return ((id, step, value) for id, values in rows.items() for step, value in enumerate(values))


@dataclass(frozen=True, slots=True)
class Score:
    """Additive statistics of one metric on one question, or the reason why the metric refused it."""

    stats: tuple[float, ...] | None
    refusal: str | None = None


def scores_table(rows: Mapping[str, Mapping[str, Score]]) -> Table:
    """Convert scores by question id and metric name to a table with the SCORES schema."""
    flat = ((id, name, score) for id, scores in rows.items() for name, score in scores.items())
    return table_of(SCORES, ((id, name, score.stats or (), score.refusal) for id, name, score in flat))


# -------------------------------------------------------------------------------------------------- from tables


def emissions_rows(table: Table) -> dict[str, Emissions]:
    """Invert `emissions_table`; questions without rows are absent."""
    columns = (table[name].to_list() for name in ("sentence", "token", "g", "ended", "erase"))
    return _by_question(table, [Emission(*row) for row in zip(*columns, strict=True)])


def guesses_rows(table: Table) -> dict[str, StoredGuesses]:
    """Invert `guesses_table`; the steps of a question must be adjacent."""
    pages, scores, offsets = table["page"], table["score"].values, table["page"].offsets
    assert offsets is not None
    guesses = {}
    for id, rows in _by_question(table, range(len(offsets) - 1)).items():
        if rows[-1] - rows[0] != len(rows) - 1:
            raise TraceError("its steps are not adjacent", id)
        starts = offsets[rows[0] : rows[-1] + 2]
        part = slice(starts[0], starts[-1])
        guesses[id] = StoredGuesses(pages.words, pages.values[part], scores[part], starts - starts[0])
    return guesses


def buzzes_rows(table: Table) -> dict[str, Buzzes]:
    """Invert `buzzes_table`."""
    columns = (table[name].to_list() for name in ("score", "buzz"))
    return _by_question(table, [Buzz(*row) for row in zip(*columns, strict=True)])


def scores_rows(table: Table) -> dict[str, dict[str, Score]]:
    """Invert `scores_table`."""
    rows: dict[str, dict[str, Score]] = {}
    for id, name, stats, refusal in zip(*(table[name].to_list() for name in SCORES), strict=True):
        rows.setdefault(id, {})[name] = Score(tuple(stats) if refusal is None else None, refusal)
    return rows


def _by_question(table: Table, values: Sequence[T]) -> dict[str, tuple[T, ...]]:
    rows: dict[str, list[T]] = {}
    keys = (table[name].to_list() for name in ("question_id", "step"))
    for id, step, value in zip(*keys, values, strict=True):
        steps = rows.setdefault(id, [])
        if step != len(steps):
            raise TraceError(f"expected step {len(steps)}, got {step}", id, step)
        steps.append(value)
    return {id: tuple(steps) for id, steps in rows.items()}


class StoredGuesses(Sequence[tuple[Guess, ...]]):
    """The guesses of n steps, best first; equal to the tuple of tuples that it represents.

    The guesses are kept as columns and become Guess objects when a step is indexed.  A run has a million guesses,
    and most metrics need only the rank of the right page at each step.
    """

    __slots__ = ("_pages", "_scores", "_starts", "_titles")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, titles: Sequence[str], pages: Ints, scores: Floats, starts: Ints) -> None:
        """Create the sequence; step i has the guesses starts[i] .. starts[i + 1] - 1.

        pages: (N,) indices into `titles`.  scores: (N,) float64.
        """
        self._titles, self._pages, self._scores, self._starts = titles, pages, scores, starts

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, index: int) -> tuple[Guess, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[Guess, ...]]: ...
    def __getitem__(self, index: int | slice) -> tuple[Guess, ...] | list[tuple[Guess, ...]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        step = range(len(self))[index]
        part = slice(self._starts[step], self._starts[step + 1])
        titles = map(self._titles.__getitem__, self._pages[part].tolist())
        return tuple(Guess.many(titles, self._scores[part].tolist()))

    def __iter__(self) -> Iterator[tuple[Guess, ...]]:
        return map(self.__getitem__, range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __repr__(self) -> str:
        return f"StoredGuesses({tuple(self)!r})"

    def rank_where(self, is_right: Callable[[str], bool]) -> Ints:
        """Return the rank (from 1) of the first right guess of each step, (n,) int64; 0 if no guess is right."""
        rank = np.zeros(len(self), dtype=np.int64)
        right = [page for page in np.unique(self._pages).tolist() if is_right(self._titles[page])]
        indices = np.flatnonzero(np.isin(self._pages, right))
        steps = np.searchsorted(self._starts, indices, side="right") - 1
        indices, steps = indices[::-1], steps[::-1]  # the first guess of a step is written last
        rank[steps] = indices - self._starts[steps] + 1
        return rank
