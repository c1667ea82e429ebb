"""Texts of a trace for alignment: sentences with their translations, with long sentences cut into pieces.

The time of an alignment is cubic in the length of a sentence, and its memory is quadratic.  Long sentences (`is_long`)
are therefore cut into pieces of at most PIECE_SOURCE and PIECE_TARGET words.  They are cut at words that both sides
share, such as names and numbers, or else proportionally.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from sqa.core.trace import QuestionTrace
from sqa.core.types import Floats, Ints
from sqa.data.priors import folded

LONG_SOURCE, LONG_TARGET = 100, 250  # words; no sentence of the project's data sets is longer
PIECE_SOURCE, PIECE_TARGET = 40, 100  # words; 93% of the links of bundled questions equal the links in whole sentences
TAIL = 10  # words that a text of a long sentence keeps before the retracted words
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
                read = int(trace.source_words[step - 1]) - begin
                texts += _retracted(number, source, words, wrote, kept, read)
                del words[kept:], wrote[kept:]
            if emission.token:
                words.append(emission.token)
                wrote.append(step)
        final = Text(number, 0, source, tuple(words), tuple(wrote), frozenset(wrote), True)
        texts += _pieces(final, trace.source_words[wrote] - begin)
        begin += len(source)
    return texts


def is_long(source: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether a sentence or its translation is too long to be aligned whole."""
    return len(source) > LONG_SOURCE or len(words) > LONG_TARGET


def _retracted(
    number: int, source: Words, words: Sequence[str], wrote: Sequence[int], kept: int, read: int
) -> Iterator[Text]:
    """Yield the text before its words from `kept` on are retracted; for a long sentence only its end, in pieces."""
    start, stop, first = 0, len(source), 0
    if is_long(source, words):
        first = max(0, kept - TAIL)
        stop = min(len(source), max(read, 0) + AHEAD)
        start = max(0, first * stop // len(words) - TAIL)
    judged = frozenset(wrote[kept:])
    text = Text(number, start, source[start:stop], tuple(words[first:]), tuple(wrote[first:]), judged, False)
    for piece in _pieces(text, np.full(len(text.words), len(source))):
        if piece.judged:
            yield piece


# ------------------------------------------------------------------------------------------------------------ pieces


def _pieces(text: Text, read: Ints) -> Iterator[Text]:
    """Yield a text, or the pieces of a long text.  `read`: source words of the sentence read at each word."""
    if not is_long(text.source, text.words):
        yield text
        return
    anchors = _anchors(text.source, text.words)
    path = np.interp(
        np.arange(len(text.words)),
        [-1, *(j for _, j in anchors), len(text.words)],
        [-1, *(i for i, _ in anchors), len(text.source)],
    )
    path = np.maximum.accumulate(np.minimum(path, read)) if len(path) else path
    for i, after_i, j, after_j in _cut(anchors, path, 0, len(text.source), 0, len(text.words)):
        steps = text.steps[j:after_j]
        source, words, judged = text.source[i:after_i], text.words[j:after_j], text.judged.intersection(steps)
        yield Text(text.sentence, text.start + i, source, words, steps, judged, text.final)


def _cut(
    anchors: Sequence[tuple[int, int]], path: Floats, i: int, after_i: int, j: int, after_j: int
) -> Iterator[tuple[int, int, int, int]]:
    """Halve source words i .. after_i and target words j .. after_j until both are short enough."""
    sources, targets = after_i - i, after_j - j
    if sources <= PIECE_SOURCE and targets <= PIECE_TARGET:
        yield i, after_i, j, after_j
        return
    if sources * PIECE_TARGET >= targets * PIECE_SOURCE:
        middle = i + sources // 2
        other = min(max(int(np.searchsorted(path, middle)), j), after_j)
    else:
        other = j + targets // 2
        middle = min(max(int(np.ceil(path[other])), i), after_i)
    first, last = (bisect_left(anchors, (at, 0)) for at in (i + sources // 4, after_i - sources // 4))
    near = [
        (abs(a - middle) + abs(b - other), a, b)
        for a, b in anchors[first:last]
        if j + targets // 4 <= b <= after_j - targets // 4
    ]
    if near:
        _, middle, other = min(near)
    yield from _cut(anchors, path, i, middle, j, other)
    yield from _cut(anchors, path, middle, after_i, other, after_j)


def _anchors(source: Words, words: Words) -> list[tuple[int, int]]:
    """Return increasing positions (source, target) of words that occur equally often on both sides."""
    places: tuple[dict[str, list[int]], dict[str, list[int]]] = ({}, {})
    for side, found in zip((source, words), places, strict=True):
        for position, word in enumerate(side):
            if len(key := folded(word)) > 2 or key.isdigit():
                found.setdefault(key, []).append(position)
    pairs = [
        pair
        for key, at in places[0].items()
        if len(at) == len(places[1].get(key, []))
        for pair in zip(at, places[1][key], strict=True)
    ]
    return _rising(sorted(pairs))


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of sorted pairs whose second numbers increase."""
    ends: list[int] = []  # smallest last number of a subsequence, by length
    last: list[int] = []  # index of that subsequence's last pair, by length
    before: list[int] = []  # per pair, its predecessor in the longest subsequence that ends with it
    for index, (_, number) in enumerate(pairs):
        length = bisect_left(ends, number)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1], last[length : length + 1] = [number], [index]
    chosen = []
    index = last[-1] if last else -1
    while index >= 0:
        chosen.append(pairs[index])
        index = before[index]
    return chosen[::-1]
