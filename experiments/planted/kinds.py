"""Kinds of errors, each planted in one sentence by random numbers of its own.

name       a name replaced by a name of another text
number     the digits of a number changed
noun       a content word without a capital replaced by one of another text
inserted   a content word of another text put in
garbled    letters of a content word dropped, doubled, exchanged or changed
copied     a content word replaced by a source word near its place, left untranslated
repeated   two to four words said twice
dropped    a clause left out (three words or more between commas, or in the middle)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sqa.data.priors import form, is_content, similar, strip_edges

TARGET = "en"
SHORTEST = 4  # letters of a word that is garbled
CLAUSE = (4, 9)  # words of a clause that is dropped, in the middle of a sentence


class Planted(NamedTuple):
    """What stands in place of the words from `start` to `stop` of a sentence: wrong words, or nothing."""

    start: int
    stop: int
    words: list[str]


@dataclass(frozen=True, slots=True)
class Unrelated:
    """Words of other texts."""

    names: Sequence[str]
    nouns: Sequence[str]


Kind = Callable[[Sequence[str], list[str], Unrelated, np.random.Generator], Planted | None]


def unrelated(lines: Sequence[Sequence[str]]) -> Unrelated:
    """The names and other content words of sentences."""
    bare = [(j, strip_edges(word)) for line in lines for j, word in enumerate(line) if is_content(word, TARGET)]
    named = [word for j, word in bare if j and word[:1].isupper()]
    return Unrelated(named, [word for _, word in bare if word.islower() and len(word) > 2])


def _pick(positions: Sequence[int], rng: np.random.Generator) -> int | None:
    return int(positions[rng.integers(len(positions))]) if len(positions) else None


def _edged(word: str, new: str) -> str:
    """`new` with the punctuation that stands around `word`."""
    bare = strip_edges(word)
    return word.replace(bare, new, 1) if bare else new


def _replaced(line: list[str], position: int | None, new: str | None) -> Planted | None:
    if position is None or new is None:
        return None
    return Planted(position, position + 1, [_edged(line[position], new)])


def _unrelated_word(pool: Sequence[str], have: Sequence[str], rng: np.random.Generator) -> str | None:
    """A word of the pool that neither text has."""
    forms = {form(word, TARGET) for word in have}
    for index in rng.permutation(len(pool))[:20]:
        if form(pool[index], TARGET) not in forms and not any(similar(word, pool[index]) for word in have):
            return pool[index]
    return None


def _name(source: Sequence[str], line: list[str], others: Unrelated, rng: np.random.Generator) -> Planted | None:
    positions = [j for j, w in enumerate(line) if j and strip_edges(w)[:1].isupper() and is_content(w, TARGET)]
    return _replaced(line, _pick(positions, rng), _unrelated_word(others.names, [*source, *line], rng))


def _number(source: Sequence[str], line: list[str], others: Unrelated, rng: np.random.Generator) -> Planted | None:
    position = _pick([j for j, w in enumerate(line) if any(c.isdigit() for c in w)], rng)
    if position is None:
        return None
    word = list(strip_edges(line[position]))
    at = _pick([i for i, c in enumerate(word) if c.isdigit()], rng)
    assert at is not None
    word[at] = str((int(word[at]) + int(rng.integers(1, 9))) % 10) if word[at].isdecimal() else "7"
    new = "".join(word)
    return _replaced(line, position, new) if new not in map(strip_edges, source) else None


def _nouns(line: Sequence[str]) -> list[int]:
    return [j for j, w in enumerate(line) if is_content(w, TARGET) and strip_edges(w).islower()]


def _noun(source: Sequence[str], line: list[str], others: Unrelated, rng: np.random.Generator) -> Planted | None:
    return _replaced(line, _pick(_nouns(line), rng), _unrelated_word(others.nouns, [*source, *line], rng))


def _inserted(source: Sequence[str], line: list[str], others: Unrelated, rng: np.random.Generator) -> Planted | None:
    pool = others.names if rng.random() < 0.3 else others.nouns
    new, position = _unrelated_word(pool, [*source, *line], rng), int(rng.integers(len(line) + 1))
    return None if new is None else Planted(position, position, [new])


def _garbled(source: Sequence[str], line: list[str], others: Unrelated, rng: np.random.Generator) -> Planted | None:
    positions = [
        j
        for j, w in enumerate(line)
        if is_content(w, TARGET) and strip_edges(w).isalpha() and len(strip_edges(w)) >= SHORTEST
    ]
    position = _pick(positions, rng)
    if position is None:
        return None
    word = strip_edges(line[position])
    for _ in range(int(rng.integers(1, 4))):
        word = _misspelt(word, rng)
    same = any(form(word, TARGET) == form(other, TARGET) for other in (*source, *line))
    return None if same else _replaced(line, position, word)


def _misspelt(word: str, rng: np.random.Generator) -> str:
    at, letter = int(rng.integers(1, len(word))), "aeioutnrslcdm"[rng.integers(13)]
    how = rng.integers(5)
    if how == 0 and len(word) > SHORTEST:
        return word[:at] + word[at + 1 :]
    if how == 1:
        return word[:at] + word[at - 1] + word[at:]
    if how == 2:
        return word[:at] + word[at : at + 2] + word[at:]
    if how == 3 and at + 1 < len(word):
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    return word[:at] + letter + word[at + 1 :]


def _copied(source: Sequence[str], line: list[str], others: Unrelated, rng: np.random.Generator) -> Planted | None:
    foreign = [
        i
        for i, w in enumerate(source)
        if len(strip_edges(w)) >= SHORTEST and strip_edges(w).islower() and not any(similar(w, other) for other in line)
    ]
    at = _pick(foreign, rng)
    if at is None or not _nouns(line):
        return None
    about = at * len(line) / len(source)
    position = min(_nouns(line), key=lambda j: abs(j - about))
    return _replaced(line, position, strip_edges(source[at]))


def _repeated(source: Sequence[str], line: list[str], others: Unrelated, rng: np.random.Generator) -> Planted | None:
    size = int(rng.integers(2, 5))
    positions = [j for j in range(len(line) - size + 1) if any(is_content(w, TARGET) for w in line[j : j + size])]
    position = _pick(positions, rng)
    if position is None:
        return None
    stop = position + size
    return Planted(stop, stop, [strip_edges(word) for word in line[position:stop]])


def _dropped(source: Sequence[str], line: list[str], others: Unrelated, rng: np.random.Generator) -> Planted | None:
    size = int(rng.integers(*CLAUSE))
    if len(line) < 2 * size:
        return None
    position = int(rng.integers(len(line) - size + 1))
    return Planted(position, position + size, [])


KINDS: dict[str, Kind] = {
    "name": _name,
    "number": _number,
    "noun": _noun,
    "inserted": _inserted,
    "garbled": _garbled,
    "copied": _copied,
    "repeated": _repeated,
    "dropped": _dropped,
}
WORDS = tuple(kind for kind in KINDS if kind != "dropped")  # kinds of which a word can be pointed at
