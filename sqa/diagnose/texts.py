"""Texts of a trace for alignment: sentences with their translations, with long sentences cut into pieces.

The time of an alignment is cubic in the length of a sentence, and its memory is quadratic.  Long sentences (`is_long`)
are therefore cut into pieces of at most PIECE_SOURCE and PIECE_TARGET words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby, pairwise

import numpy as np

from sqa.core.trace import QuestionTrace
from sqa.data.priors import folded

LONG_SOURCE, LONG_TARGET = 100, 250  # words; no sentence of the project's data sets is longer
PIECE_SOURCE, PIECE_TARGET = (
    40,
    100,
)  # words; nine tenths of the links of bundled questions equal those in whole sentences
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
