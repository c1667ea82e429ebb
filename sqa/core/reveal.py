"""What a guesser sees and when: the target text after each word, and the source position it stands for.

A *step* is one emission.  Its text is every target word of the question so far, joined by single blanks.  Its source
position is equation 1 of Han, Carpuat and Boyd-Graber (2022): the lengths of the finished source sentences plus the
words read of the current one.  Expected wins take the position in CHARACTERS, as a fraction of the source text.

A translator that revises retracts the last words of its sentence and writes others in their place.  Its steps are
still one word each: the first step of a revision shows the text without what was retracted and with one new word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np

from sqa.core.types import Emission, Floats, Ints, Question


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
        """The target text visible at each step, n strings; after a retraction the retracted words are gone."""
        if self.append_only:
            return tuple(accumulate(self.words, lambda text, word: f"{text} {word}"))
        return tuple(" ".join(seen) for seen in _visible(self.emissions))


def prefixes(question: Question, emissions: Sequence[Emission]) -> Prefixes:
    """The steps of `emissions` (valid for `question`: see `sqa.core.trace.check_emissions`)."""
    finished = (0, *accumulate(len(sentence) for sentence in question.sentences))  # words before sentence i
    source_words = np.array([finished[e.sentence] + e.g for e in emissions], dtype=np.int64)
    chars_at = _chars_at(question.words)
    source_chars = chars_at[source_words]
    fraction = source_chars / chars_at[-1] if len(emissions) else np.zeros(0)
    for array in (source_words, source_chars, fraction):
        array.flags.writeable = False
    return Prefixes(
        words=tuple(e.token for e in emissions),
        append_only=all(e.erase == 0 for e in emissions),
        source_words=source_words,
        source_chars=source_chars,
        fraction=fraction,
        emissions=tuple(emissions),
    )


def hypotheses(question: Question, emissions: Sequence[Emission]) -> list[str]:
    """The final translation of each source sentence, "" where nothing (or nothing lasting) was written."""
    final: list[list[str]] = [[] for _ in question.sentences]
    for e in emissions:
        _apply(e, final[e.sentence])
    return [" ".join(words) for words in final]


def by_sentence(question: Question, words: Iterable[tuple[str, int, bool, int]]) -> Iterator[Emission]:
    """Equation 1 inverted, of words (token, source words of the question read, has it ended, words retracted)."""
    lengths, sentence = [len(sentence) for sentence in question.sentences], 0
    starts = (0, *accumulate(lengths))[:-1]
    for token, read, ended, erase in words:
        while sentence + 1 < len(starts) and starts[sentence + 1] < read:
            sentence += 1
        is_over = ended and sentence + 1 == len(starts)
        yield Emission(sentence, token, min(read - starts[sentence], lengths[sentence]), is_over, erase)


def _apply(emission: Emission, words: list[str]) -> None:
    """Change the words that are visible by one write."""
    del words[len(words) - emission.erase :]
    if emission.token:
        words.append(emission.token)


def _chars_at(words: Sequence[str]) -> Ints:
    """chars_at[i] = len(" ".join(words[:i])), shape (len(words) + 1,)."""
    lengths = np.array([len(word) for word in words], dtype=np.int64)
    chars_at = np.zeros(len(words) + 1, dtype=np.int64)
    chars_at[1:] = np.cumsum(lengths) + np.arange(len(words))
    return chars_at


def _visible(emissions: Sequence[Emission]) -> list[list[str]]:
    """All target words visible at each step, retractions applied."""
    steps: list[list[str]] = []
    seen: list[str] = []
    for e in emissions:
        _apply(e, seen)
        steps.append(list(seen))
    return steps
