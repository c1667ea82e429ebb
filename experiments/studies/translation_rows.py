"""The rows of the table of translators, and what was left out of it."""

from __future__ import annotations

from dataclasses import dataclass

from sqa.core.significance import Interval


@dataclass(frozen=True, slots=True)
class Row:
    """One translator at one k on one test set."""

    test: str
    unit: str  # of the segments: "questions" or "sentences"
    n: int  # segments
    label: str
    k: int | str | None  # None: the translator takes none
    intervals: dict[str, Interval]  # by metric; one that is undefined here (DAL of what retracts words) is absent
    signatures: dict[str, str]
    empty: float  # share of source sentences without a target word
    copied: float  # share of sentences of COPIED_FROM words or more that are their own translation
    looping: float  # share of sentences in whose translation a phrase or some letters come over and over (LOOP)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A translator, or (label "") a whole test set, that has no numbers."""

    test: str
    label: str
    reason: str
