"""Texts with human translations, and errors planted in them.  All random draws depend only on (seed, text id).

name       a name replaced by a name of another text
number     a number with one changed digit
noun       a lower-case content word replaced by a content word of another text
inserted   an inserted content word of another text
garbled    a content word with dropped, doubled, exchanged or changed letters
copied     a content word replaced by an untranslated source word from a nearby position
repeated   two to four repeated words
dropped    four to eight omitted consecutive words
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil
from typing import NamedTuple

import numpy as np

from sqa.data.datasets import load_questions
from sqa.data.priors import form, is_content, similar, strip_edges
from sqa.data.texts import load_parallel
from sqa.files.store import digest

TARGET = "en"
SHORTEST = 4  # letters of the shortest word that is garbled
WORDS_DROPPED = (4, 9)  # number of consecutive words that are dropped: at least 4, below 9
SENTENCES = 5  # sentences per text of a parallel corpus, as many as a question has
# parallel text other than XQB: human translations of news and of encyclopedias
TRAINING = {"es": ("newstest2011", "newstest2012", "flores-dev"), "pl": ("ntrex128", "flores-dev")}
NEIGHBOURS = 10  # number of other texts from which unrelated words are drawn


@dataclass(frozen=True, slots=True)
class Text:
    """Sentences, each with a human translation."""

    id: str
    sources: tuple[tuple[str, ...], ...]
    lines: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Corrupted:
    """A sentence pair of a text, and the errors planted in it."""

    text: str  # id of the text
    source: tuple[str, ...]
    words: tuple[str, ...]
    kinds: tuple[str, ...]  # per word, the kind of the error planted there, "" = none


def rng_for(*key: object) -> np.random.Generator:
    """Return a random number generator that depends only on the key."""
    return np.random.default_rng(int(digest(list(key))[:16], 16))


def references(language: str) -> Iterator[Text]:
    """Yield XQB's questions that have as many English as source sentences."""
    for question in load_questions(f"xqb-{language}"):
        if len(question.reference) == len(question.sentences):
            lines = tuple(tuple(line.split()) for line in question.reference)
            yield Text(question.id, question.sentences, lines)


def parallel(language: str, name: str) -> Iterator[Text]:
    """Yield a development or test set of the translators, cut into texts of SENTENCES sentences."""
    pairs = ((tuple(s.split()), tuple(t.split())) for s, t, _ in load_parallel(f"{language}-en", name))
    rows, number = (pair for pair in pairs if all(pair)), 0
    while block := list(islice(rows, SENTENCES)):
        yield Text(f"{name}-{number}", tuple(s for s, _ in block), tuple(t for _, t in block))
        number += 1


def training(language: str, limit: int) -> list[Text]:
    """Return the first `limit` texts of each training corpus of a language."""
    return [text for name in TRAINING[language] for text in islice(parallel(language, name), limit)]


# ----------------------------------------------------------------------------------------------------- kinds of errors


class Planted(NamedTuple):
    """Replacement of a sentence's words `start` to `stop` (exclusive) with wrong words, or with none."""

    start: int
    stop: int
    words: list[str]


@dataclass(frozen=True, slots=True)
class Unrelated:
    """Names and content words of other texts."""

    names: Sequence[str]
    nouns: Sequence[str]


Kind = Callable[[Sequence[str], list[str], Unrelated, np.random.Generator], Planted | None]


def unrelated(lines: Sequence[Sequence[str]]) -> Unrelated:
    """Return the names in the sentences and their lower-case content words of at least three letters."""
    bare = [(j, strip_edges(word)) for line in lines for j, word in enumerate(line) if is_content(word, TARGET)]
    named = [word for j, word in bare if j and word[:1].isupper()]
    return Unrelated(named, [word for _, word in bare if word.islower() and len(word) > 2])


def _pick(positions: Sequence[int], rng: np.random.Generator) -> int | None:
    return int(positions[rng.integers(len(positions))]) if len(positions) else None


def _replaced(line: list[str], position: int | None, new: str | None) -> Planted | None:
    """Return a replacement of the word at `position` that keeps the punctuation around it."""
    if position is None or new is None:
        return None
    word, bare = line[position], strip_edges(line[position])
    return Planted(position, position + 1, [word.replace(bare, new, 1) if bare else new])


def unrelated_word(pool: Sequence[str], have: Sequence[str], rng: np.random.Generator) -> str | None:
    """Return a random word of the pool that resembles no word in `have`, or None if 20 draws find none."""
    forms = {form(word, TARGET) for word in have}
    for index in rng.permutation(len(pool))[:20]:
        if form(pool[index], TARGET) not in forms and not any(similar(word, pool[index]) for word in have):
            return pool[index]
    return None


def _name(source: Sequence[str], line: list[str], others: Unrelated, rng: np.random.Generator) -> Planted | None:
    positions = [j for j, w in enumerate(line) if j and strip_edges(w)[:1].isupper() and is_content(w, TARGET)]
    return _replaced(line, _pick(positions, rng), unrelated_word(others.names, [*source, *line], rng))


def _number(source: Sequence[str], line: list[str], others: Unrelated, rng: np.random.Generator) -> Planted | None:
    position = _pick([j for j, w in enumerate(line) if any(c.isdigit() for c in w)], rng)
    if position is None:
        return None
    word = list(strip_edges(line[position]))
    digits = [i for i, c in enumerate(word) if c.isdigit()]
    at = digits[rng.integers(len(digits))]
    word[at] = str((int(word[at]) + int(rng.integers(1, 9))) % 10) if word[at].isdecimal() else "7"
    new = "".join(word)
    return _replaced(line, position, new) if new not in map(strip_edges, source) else None


def _nouns(line: Sequence[str]) -> list[int]:
    return [j for j, w in enumerate(line) if is_content(w, TARGET) and strip_edges(w).islower()]


def _noun(source: Sequence[str], line: list[str], others: Unrelated, rng: np.random.Generator) -> Planted | None:
    return _replaced(line, _pick(_nouns(line), rng), unrelated_word(others.nouns, [*source, *line], rng))


def _inserted(source: Sequence[str], line: list[str], others: Unrelated, rng: np.random.Generator) -> Planted | None:
    pool = others.names if rng.random() < 0.3 else others.nouns
    new, position = unrelated_word(pool, [*source, *line], rng), int(rng.integers(len(line) + 1))
    return None if new is None else Planted(position, position, [new])


def _garbled(source: Sequence[str], line: list[str], others: Unrelated, rng: np.random.Generator) -> Planted | None:
    words = [(j, strip_edges(w)) for j, w in enumerate(line) if is_content(w, TARGET)]
    position = _pick([j for j, w in words if w.isalpha() and len(w) >= SHORTEST], rng)
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
    plain = [(i, w) for i, w in enumerate(source) if len(strip_edges(w)) >= SHORTEST and strip_edges(w).islower()]
    at = _pick([i for i, w in plain if not any(similar(w, other) for other in line)], rng)
    if at is None or not _nouns(line):
        return None
    about = at * len(line) / len(source)
    position = min(_nouns(line), key=lambda j: abs(j - about))
    return _replaced(line, position, strip_edges(source[at]))


def _repeated(source: Sequence[str], line: list[str], others: Unrelated, rng: np.random.Generator) -> Planted | None:
    size = int(rng.integers(2, 5))
    stops = [j for j in range(size, len(line) + 1) if any(is_content(w, TARGET) for w in line[j - size : j])]
    stop = _pick(stops, rng)
    return None if stop is None else Planted(stop, stop, [strip_edges(word) for word in line[stop - size : stop]])


def _dropped(source: Sequence[str], line: list[str], others: Unrelated, rng: np.random.Generator) -> Planted | None:
    size = int(rng.integers(*WORDS_DROPPED))
    if len(line) < 2 * size:
        return None
    position = int(rng.integers(len(line) - size + 1))
    return Planted(position, position + size, [])


KINDS: dict[str, Kind] = {
    kind.__name__.strip("_"): kind
    for kind in (_name, _number, _noun, _inserted, _garbled, _copied, _repeated, _dropped)
}
WORDS = tuple(kind for kind in KINDS if kind != "dropped")  # kinds that leave wrong words in the text


# ------------------------------------------------------------------------------------------------------------ planting


def plant(texts: Sequence[Text], errors: Sequence[int | float], kinds: Sequence[str], seed: int) -> list[Corrupted]:
    """Return the sentences of the texts with planted errors.

    For each text, one of `errors` is drawn, which is a number of errors or a share of the text's words, and a kind for
    each error.  If an error of that kind is impossible (for example, if there is no number to change), another kind is
    used.
    """
    corrupted = []
    for text in texts:
        rng = rng_for(seed, text.id)
        order = rng_for(seed, text.id, "others").permutation(len(texts))[: NEIGHBOURS + 1]
        neighbours = [texts[i] for i in order if texts[i].id != text.id][:NEIGHBOURS]
        others = unrelated([line for other in neighbours for line in other.lines])
        rate = errors[rng.integers(len(errors))]
        count = rate if isinstance(rate, int) else ceil(rate * sum(map(len, text.lines)))
        corrupted += _planted(text, count, kinds, others, rng)
    return corrupted


def _planted(
    text: Text, count: int, kinds: Sequence[str], others: Unrelated, rng: np.random.Generator
) -> list[Corrupted]:
    lines, wrong = [list(line) for line in text.lines], [[""] * len(line) for line in text.lines]
    dropped: set[int] = set()
    for _ in range(count):
        for kind in (kinds[i] for i in rng.permutation(len(kinds))):
            number = int(rng.integers(len(lines)))
            # A sentence with dropped words gets no other error, so the missing words are known.
            planted = None if number in dropped else KINDS[kind](text.sources[number], lines[number], others, rng)
            if planted is not None:
                span = slice(planted.start, planted.stop)
                lines[number][span] = planted.words
                wrong[number][span] = [kind] * len(planted.words)
                if not planted.words:
                    dropped.add(number)
                break
    return [
        Corrupted(text.id, source, tuple(line), tuple(of_words))
        for source, line, of_words in zip(text.sources, lines, wrong, strict=True)
    ]
