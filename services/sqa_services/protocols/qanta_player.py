"""A guesser and a buzzer that answer texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqa.core.errors import ConfigError
from sqa.core.interfaces import Buzzer, Guesser, guesses_per_word
from sqa.run.pipeline import N_GUESSES


@dataclass(frozen=True, slots=True)
class Act:
    """What is answered to a text."""

    guess: str  # a page's title, "" = none
    buzz: bool


class Player:
    """Answers texts.  Called from one thread."""

    def __init__(self, guesser: Guesser, buzzer: Buzzer) -> None:
        """A buzzer that needs the right answer: ConfigError."""
        if getattr(buzzer, "oracle", False):
            raise ConfigError("--buzzer: it needs the right answer, which a QANTA server does not know")
        self._guesser, self._buzzer = guesser, buzzer

    def act(self, texts: Sequence[str]) -> list[Act]:
        """An act for each text, which depends on that text alone; texts with the same beginning share the work."""
        words = [tuple(text.split()) for text in texts]
        by_text: dict[tuple[str, ...], Act] = {(): Act("", False)}
        longest: tuple[str, ...] = ()
        acts: list[Act] = []
        for text in sorted(set(words) - {()}, reverse=True):  # a text that begins another one comes right after it
            if longest[: len(text)] != text:
                longest, acts = text, self._acts(text)
            by_text[text] = acts[len(text) - 1]
        return [by_text[text] for text in words]

    def _acts(self, words: Sequence[str]) -> list[Act]:
        """The act after each word."""
        history = guesses_per_word(self._guesser, words, N_GUESSES)
        buzzes = self._buzzer.decide(history)
        pairs = zip(history, buzzes, strict=True)
        return [Act(guesses[0].page if guesses else "", bool(buzz.buzz)) for guesses, buzz in pairs]
