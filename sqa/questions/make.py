"""Make questions about the segments of a reference translation, and drop those that would measure nothing.

A question is dropped for the first of these reasons, and the header of the file counts each:

    absent     its answer does not stand in the reference
    repeated   the segment has a question with this answer already
    unread     the reader does not answer it from the reference
    given      the reader answers it without any text
    before     the reader answers it from the segments before
    case       the reader does not answer it from the reference in lower case, as speech recognisers write
"""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqa.core import ConfigError
from sqa.questions.files import VERSION, QuestionFile, TextQuestion, languages
from sqa.questions.rules import ENGLISH, KINDS, Rules, clozes, located, negated, no_names, roles

DROPPED = ("absent", "repeated", "unread", "given", "before", "case")
BLOCK = 100  # segments whose questions are filtered together


class Reader(Protocol):
    """A reader, which answers questions from a text."""

    @property
    def name(self) -> str: ...

    @property
    def every_word(self) -> bool:
        """Whether it reads every prefix, since that costs little."""

    def right(self, asked: Sequence[tuple[TextQuestion, str]]) -> list[bool]:
        """Return whether each question is answered right from its text."""


class Maker(Protocol):
    """A writer of questions."""

    @property
    def name(self) -> str: ...

    @property
    def reader(self) -> Reader:
        """The reader for the filters."""

    @property
    def about(self) -> Mapping[str, Any]:
        """Further entries of the header, such as the prompt."""

    def questions(self, texts: Sequence[tuple[int, str, str]]) -> Iterable[TextQuestion]:
        """Yield questions about segments, given as (number, reference, source)."""


@dataclass
class RuleMaker:
    """Clozes of names, numbers, dates, roles and negations."""

    pair: tuple[str, str]
    kinds: Sequence[str] = KINDS
    about: Mapping[str, Any] = field(default_factory=dict)
    name = "rules"

    @property
    def reader(self) -> Reader:
        return Rules(self.pair[1])

    def questions(self, texts: Sequence[tuple[int, str, str]]) -> Iterator[TextQuestion]:
        """Yield the clozes of these kinds, in order, with repetitions."""
        made = (cloze for text in texts for maker in (clozes, roles, negated) for cloze in maker(*text, self.pair))
        return (cloze for cloze in made if cloze.kind in self.kinds)


def rule_maker(pair: str, references: Sequence[str], kinds: Sequence[str] = ()) -> RuleMaker:
    """Return the maker of clozes for a language pair; without `kinds`, of all kinds that the language permits.

    Raises ConfigError if names are requested in a language in which rules cannot find them.
    """
    codes = languages(pair)
    if wrong := [kind for kind in kinds if kind not in KINDS]:
        raise ConfigError(f"--kind: expected one of {', '.join(KINDS)}, got {wrong[0]!r}")
    reason = no_names(codes[1], references)
    refused = {"name": reason} if reason else {}
    refused |= dict.fromkeys(ENGLISH, "the rules are for English") if codes[1] != "en" else {}
    if wrong := [kind for kind in kinds if kind in refused]:
        raise ConfigError(f"--kind {wrong[0]}: {refused[wrong[0]]}; ask for number and date, or use --maker endpoint")
    if reason and not kinds:
        print(f"sqa: no questions about names: {reason}", file=sys.stderr)
    permitted = [kind for kind in KINDS if kind not in refused]
    return RuleMaker(codes, kinds or permitted, {"refused": refused} if refused else {})


def numbered(references: Sequence[str], sources: Sequence[str]) -> list[tuple[int, str, str]]:
    """Return (number, reference, source) of each segment; without sources, the source is ""."""
    return [*zip(range(len(references)), references, sources or [""] * len(references), strict=True)]


def make(maker: Maker, references: Sequence[str], sources: Sequence[str], pair: str, before: int) -> QuestionFile:
    """Return the questions of a text.

    Args:
        maker: The writer of the questions.
        references: The reference translation, one text per segment.
        sources: The source of each segment; empty: unknown.
        pair: Languages, such as es-en.
        before: Number of preceding segments from which a question must not be answered.
    """
    texts = numbered(references, sources)
    kept: list[TextQuestion] = []
    dropped = Counter[str](dict.fromkeys(DROPPED, 0))
    for start in range(0, len(texts), BLOCK):
        block = texts[start : start + BLOCK]
        kept += _filtered([*maker.questions(block)], references, texts, maker.reader, languages(pair), before, dropped)
    header = {
        "questions": len(kept),
        "segments": len(references),
        "words": sum(len(reference.split()) for reference in references),
        "pair": pair,
        "maker": maker.name,
        "kinds": dict(sorted(Counter(question.kind for question in kept).items())),
        "dropped": dict(dropped),
        "before": before,
        "version": VERSION,
        **maker.about,
    }
    return QuestionFile(header, kept)


def _filtered(
    questions: Sequence[TextQuestion],
    references: Sequence[str],
    texts: Sequence[tuple[int, str, str]],
    reader: Reader,
    pair: tuple[str, str],
    before: int,
    dropped: Counter[str],
) -> list[TextQuestion]:
    """Return the questions that no filter drops; count the others by reason."""
    kept: list[TextQuestion] = []
    seen = set[tuple[int, str, str]]()
    for question in questions:
        placed = question if question.reference else located(question, texts[question.segment][1:], pair)
        key = (question.segment, question.kind if question.maker == "rules" else "", question.answers[0].casefold())
        reason = "absent" if placed is None else "repeated" if key in seen else ""
        seen.add(key)
        dropped.update([reason] if reason else [])
        kept += [placed] if placed and not reason else []

    def earlier(q: TextQuestion) -> str:
        return " ".join(references[max(0, q.segment - before) : q.segment])

    for reason, text, wanted in (
        ("unread", lambda q: references[q.segment], True),
        ("given", lambda q: "", False),
        ("before", earlier, False),
        ("case", lambda q: references[q.segment].lower(), True),
    ):
        asked = [q for q in kept if reason != "before" or earlier(q)]
        right = dict(zip(map(id, asked), reader.right([(q, text(q)) for q in asked]), strict=True))
        passed = [q for q in kept if right.get(id(q), wanted) == wanted]
        dropped[reason] += len(kept) - len(passed)
        kept = passed
    return kept
