"""Rule-based facts of a text (names, numbers and dates), and their occurrence in another text.

A *name* is a run of words with capitals and of particles between them, without preceding titles.  The first word of a
sentence counts if another one with a capital follows, or if it is neither a function word nor a word of the bundled
parallel texts.  A *number* is written in digits or in number words from two on, including ordinals and scales; a *date*
is a month or a weekday.  The rules are for English, where only names have capitals; for German, only numbers are facts.

Another text has a name if it has each of the name's words, in any order, or an alternative name (`other_names` of
English, the bundled aliases of answers, initials); words are compared without case, accents and endings of inflection.
It has a number if it has one of the same value, in words, digits or Roman numerals, each read by the rules of its own
language.  A *source* also has a fact if the bundled priors of the word aligner link one of its words to the fact's:
"Londres" to "London".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Literal

from sqa.core import bundled, every, language_of, roman, values
from sqa.data.priors import bundled_priors, form
from sqa.metrics.quality.names import INITIALS, ends_sentence, plain, spelled

Kind = Literal["name", "number", "date"]

LINKED, LINKS = 0.1, 2  # minimum share and number of a source form's occurrences linked to a target form
TARGETS = ("es-en", "pl-en")  # priors whose English words are not names at the beginning of a sentence
_PARTS = re.compile(r"[-‐‑–—/]+")
_OUTSIDE = re.compile(r"^[^\w$€£]+|[^\w%]+$")
_SIGNED = re.compile(r"[-–]\d")
_QUOTE = re.compile(r"^[\"“”«„‘'(\[]")
_BREAK = re.compile(r"[.,;:!?)\]”»\"]['\"”»)\]]*$")
ACRONYM = 5  # maximum number of letters of an acronym
_SHORT = 3  # maximum length of uninformative words in headlines, and of acronyms that are also other words
_STEM = 4  # minimum letters of a common stem, which must also have at least half of the longer word's
_ADVERBS = ("ly", "ing", "ed")


@dataclass(frozen=True, slots=True)
class Fact:
    """A name, a number or a date of a text."""

    kind: Kind
    text: str  # as written
    words: tuple[str, ...]  # a name's words, in the form of `spelled`; () for other facts
    value: str  # of a number, time or date: "2000", "20:30", "month-11"; "" for a name
    first: int  # index of the fact's first word in the text
    last: int  # index of its last word

    @property
    def key(self) -> tuple[Kind, tuple[str, ...]]:
        """The key that a fact shares with its repetitions."""
        return self.kind, self.words or (self.value,)


@dataclass(frozen=True)
class Text:
    """A text whose words are split at hyphens and dashes into parts, which are then compared."""

    words: tuple[str, ...]
    language: str
    parts: tuple[str, ...]  # parts in the form of `spelled`
    written: tuple[str, ...]  # the same parts as written
    at: tuple[int, ...]  # index of each part's word
    values: tuple[tuple[str, int, int], ...] = ()  # (value, first and last part)
    indices: Mapping[str, int] = field(default_factory=dict)  # part -> first index

    @classmethod
    def of(cls, words: Sequence[str], language: str) -> Text:
        """Split the words of a text; in languages other than "en", "es" and "pl" only digits are numbers."""
        cut = _initials_joined([(part, at) for at, word in enumerate(words) for part in _parts(word)], words)
        written, at = tuple(part for part, _ in cut), tuple(at for _, at in cut)
        parts = tuple(map(spelled, written))
        capital = [
            spelled(part) not in language_of("en").modals or (part[0].isupper() and not begins)
            for part, begins in zip(written, _begins(words, at), strict=True)
        ]
        counted = values(parts, language, capital, written)
        taken = {index for _, first, last in counted for index in range(first, last + 1)}
        for index, part in enumerate(written):
            number = roman(part.lower()) if part.isupper() and index not in taken else None
            if number and (len(part) > 1 or (language != "en" and part != "I")):
                counted.append((str(number), index, index))
        indices = {part: parts.index(part) for part in parts}
        return cls(tuple(words), language, parts, written, at, tuple(sorted(counted, key=lambda v: v[1])), indices)

    def index_of(self, word: str, acronym: bool = False) -> int | None:
        """Return the index of the first part that is a form of a word; an `acronym` needs capitals (US, not us)."""
        if acronym:
            indices = (index for index, part in enumerate(self.parts) if part == word)
            return next((index for index in indices if self.written[index].isupper()), None)
        if word in self.indices:
            return self.indices[word]
        return next((index for part, index in self.indices.items() if same_name(part, word)), None)

    def phrase(self, words: Sequence[str]) -> int | None:
        """Return the index of the last part of the first occurrence of a phrase; None if it does not occur."""
        size = len(words)
        if size == 1 and len(words[0]) <= _SHORT:
            return self.index_of(words[0], acronym=True)
        starts = (p for p, part in enumerate(self.parts) if part == words[0])
        return next((p + size - 1 for p in starts if self.parts[p : p + size] == tuple(words)), None)


def _parts(word: str) -> Iterator[str]:
    """Yield the parts of a word: no marks outside, typographic variants as plain letters, dotted initials joined.

    The sign of a number and a time of day stay: -5, 8:30.
    """
    word = plain(word)
    sign = _SIGNED.match(word)
    for n, cut in enumerate(_PARTS.split(word[1:] if sign else word)):
        if part := _OUTSIDE.sub("", cut):
            yield f"-{part}" if sign and n == 0 else part


def _initials_joined(parts: Sequence[tuple[str, int]], words: Sequence[str]) -> list[tuple[str, int]]:
    """Join the initials of successive words, "J." and "K.", to "JK" at the last of them."""
    joined: list[tuple[str, int]] = []
    letters = False  # whether the last part consists of such initials
    for part, at in parts:
        initial = len(part) == 1 and part.isupper() and words[at] == f"{part}."
        if initial and letters:
            joined[-1] = (joined[-1][0] + part, at)
        else:
            joined.append((part, at))
        letters = initial
    return joined


def _begins(words: Sequence[str], at: Sequence[int]) -> Iterator[bool]:
    """Yield whether each part begins a sentence or a quotation."""
    starts, begins, last = [], True, -1
    for word in words:
        starts.append(begins or bool(_QUOTE.match(word) and word[0] not in "(["))
        if any(map(str.isalnum, word)) or ends_sentence(word):
            begins = ends_sentence(word)
    for word_at in at:
        yield starts[word_at] and word_at != last
        last = word_at


@cache
def _endings() -> frozenset[str]:
    """Return the endings of inflection of all languages, and no ending."""
    return frozenset({""}).union(*(each.endings for each in every()))


@lru_cache(maxsize=1 << 16)
def same_name(a: str, b: str) -> bool:
    """Return whether two words are forms of one name: equal, or a common stem with endings of inflection."""
    if a == b:
        return True
    least = max(_STEM, (max(len(a), len(b)) + 1) // 2)
    stems = (stem for stem in range(least, min(len(a), len(b)) + 1) if a[:stem] == b[:stem])
    return any(a[stem:] in _endings() and b[stem:] in _endings() for stem in stems)


# ------------------------------------------------------------------------------------------------------- extraction


def extract(text: Text) -> list[Fact]:
    """Return the facts of a text, in order, with repetitions."""
    facts: list[Fact] = []
    taken: set[int] = set()
    for number, first, last in text.values:
        if roman(text.parts[first]):
            continue  # "John VI" is a name
        kind: Kind = "date" if number.startswith(("month", "day")) else "number"
        if kind == "date" and not text.written[first][0].isupper():
            continue
        facts.append(Fact(kind, " ".join(text.written[first : last + 1]), (), number, text.at[first], text.at[last]))
        taken |= set(range(first, last + 1))
    begins = list(_begins(text.words, text.at))
    for run in _runs(text, taken) if not language_of(text.language).capital_nouns else ():
        run = _trimmed(text, run, begins)
        content = tuple(text.parts[index] for index in run if text.written[index][0].isupper() or _coded(text, index))
        if content and not (len(content) == 1 and (len(content[0]) == 1 or content[0] in language_of("en").no_names)):
            written = " ".join(text.written[index] for index in run)
            facts.append(Fact("name", written, content, "", text.at[run[0]], text.at[run[-1]]))
    return sorted(facts, key=lambda fact: (fact.first, fact.last))


def _coded(text: Text, index: int) -> bool:
    """Return whether a part has a capital or a digit: iPhone, B2."""
    return any(c.isupper() or c.isdigit() for c in text.written[index])


def _runs(text: Text, taken: set[int]) -> Iterator[list[int]]:
    """Yield runs of parts with capitals, joined by particles; punctuation ends a run.

    Most words of a headline have capitals, and it ends without a full stop, so only its uncommon words count as names.
    """
    run: list[int] = []
    long = [part for part in text.written if len(part) > _SHORT and part.isalpha()]
    capitals = sum(part[0].isupper() for part in long)
    headline = 4 * len(long) <= 5 * capitals and len(long) > _SHORT and not ends_sentence(text.words[-1])
    for index, part in enumerate(text.written):
        capital = index not in taken and _coded(text, index) and not (headline and _common(text.parts[index]))
        word = text.words[text.at[index]]
        if run and ((_QUOTE.match(word) and text.at[index] != text.at[run[-1]]) or _ended(text, run[-1], index)):
            yield run
            run = []
        if capital:
            run.append(index)
        elif run and not (part in language_of("en").particles and _continues(text, index, taken)):
            yield run
            run = []
        elif run:
            run.append(index)
    if run:
        yield run


def _ended(text: Text, last: int, index: int) -> bool:
    """Return whether punctuation separates two parts; the full stop of an abbreviation (St., J.) does not."""
    word = text.words[text.at[last]]
    if text.at[last] == text.at[index]:
        return False
    initials = INITIALS.fullmatch(word) and spelled(plain(word)) not in _alternatives()
    return bool(_BREAK.search(word)) and (not word.endswith(".") or (ends_sentence(word) and not initials))


def _continues(text: Text, index: int, taken: set[int]) -> bool:
    """Return whether a name continues after a particle: "de la Condamine"."""
    after = range(index + 1, min(index + 3, len(text.written)))
    later = next((later for later in after if text.written[later] not in language_of("en").particles), None)
    return later is not None and later not in taken and text.written[later][0].isupper()


def _trimmed(text: Text, run: Sequence[int], begins: Sequence[bool]) -> list[int]:
    """Remove leading titles, function words and ordinary words that begin a sentence from a run.

    Which words are ordinary is known for English; elsewhere, each word that begins a sentence is removed.
    """
    run, english = list(run), text.language == "en"
    while run:
        part, written = text.parts[run[0]], text.written[run[0]]
        acronym = len(part) > 1 and written.isupper()  # "us" is a pronoun, but "US" is a name
        function = not acronym and part in language_of(text.language).function_words
        ordinary = _common(part) and (len(run) == 1 or part.endswith(_ADVERBS)) if english else not acronym
        opening = begins[run[0]] and ordinary
        if not (function or opening or part in language_of("en").titles or not written[0].isalnum()):
            return run
        run = run[1:]
    return run


@lru_cache(maxsize=1 << 16)
def _common(part: str) -> bool:
    """Return whether a word occurs in the parallel texts of the priors."""
    return any(form(part, "en") in priors.target for priors in map(bundled_priors, TARGETS) if priors)


# --------------------------------------------------------------------------------------------------------- matching


@dataclass(frozen=True, slots=True)
class Located:
    """A fact of a human translation, with its positions in the translation and the source."""

    fact: Fact
    target: int | None  # index of the word that completes it in the translation; None: missing there
    source: int | None  # index of the word that completes it in the source; None: unknown


@dataclass(frozen=True, slots=True)
class Judged:
    """Facts of a translation and of the human translation; a repeated fact counts once, at its first occurrence."""

    expected: tuple[Located, ...]  # facts of the human translation
    written: tuple[Fact, ...]  # facts of the translation
    invented: tuple[Fact, ...]  # facts of the translation that neither the human translation nor the source has


@lru_cache(maxsize=2048)
def judge(
    source: tuple[str, ...], target: tuple[str, ...], reference: tuple[str, ...], language: str, into: str = "en"
) -> Judged:
    """Compare the facts of a translation with those of the human translation.

    Args:
        source: Words of the source.
        target: Words of the translation.
        reference: Words of the human translation.
        language: Language of the source.
        into: Language of both translations.
    """
    read, written, human = Text.of(source, language), Text.of(target, into), Text.of(reference, into)
    expected = tuple(Located(fact, find(fact, written), counterpart(fact, read)) for fact in _once(extract(human)))
    facts = _once(extract(written))
    return Judged(expected, facts, tuple(fact for fact in facts if not _supported(fact, human, read)))


def _once(facts: Sequence[Fact]) -> tuple[Fact, ...]:
    first: dict[object, Fact] = {}
    for fact in facts:
        first.setdefault(fact.key, fact)
    return tuple(first.values())


def _supported(fact: Fact, reference: Text, source: Text) -> bool:
    """Return whether one of two texts has a fact, or together they have each of its words."""
    if find(fact, reference) is not None or find(fact, source) is not None:
        return True
    return (
        bool(fact.words)
        and not _acronym(fact)
        and all(reference.index_of(word) is not None or _read_as(word, source) is not None for word in fact.words)
    )


def _read_as(word: str, source: Text) -> int | None:
    """Return the index of the part of a source text that equals a word of a name or is linked to it."""
    return linked(word, source) if (same := source.index_of(word)) is None else same


@cache
def lexicon_digest() -> str:
    """Return a digest of the priors and aliases that define counterparts."""
    digests = [priors.digest[:8] for priors in map(bundled_priors, TARGETS) if priors]
    return "+".join([*digests, bundled().name.removeprefix("aliases-")])


@cache
def _alternatives() -> dict[str, frozenset[str]]:
    """Return a dict that maps each name to its alternative names."""
    names_of: dict[str, set[str]] = {}
    groups = [line.split("/") for line in language_of("en").other_names]
    groups += [[page, *names] for page, names in (*bundled().forms.items(), *bundled().titles.items())]
    for group in groups:
        for name in group:
            names_of.setdefault(name, set()).update(alternative for alternative in group if alternative != name)
    return {name: frozenset(alternatives) for name, alternatives in names_of.items()}


def find(fact: Fact, text: Text) -> int | None:
    """Return the index of the word that completes a fact in a text; None if the fact is not in it."""
    if fact.value:
        index = next((last for number, _, last in text.values if number == fact.value), None)
        if index is None and fact.value == "1":  # words for one are too frequent to be facts
            index = next(
                (n for n, part in enumerate(text.parts) if part in language_of(text.language).ones.split()), None
            )
    else:
        index = _name_index(fact, text)
    return None if index is None else text.at[index]


def _acronym(fact: Fact) -> bool:
    return len(fact.words) == 1 and 1 < len(fact.text) <= ACRONYM and fact.text.isupper()


def _needs_capitals(fact: Fact) -> bool:
    """Return whether a fact is an acronym that is another word in lower case: US, UN, WHO."""
    return _acronym(fact) and (len(fact.text) == 2 or any(fact.words[0] in each.function_words for each in every()))


def _name_index(fact: Fact, text: Text) -> int | None:
    indices = [_word_index(word, text, _needs_capitals(fact)) for word in fact.words]
    if None not in indices:
        return max(index for index in indices if index is not None)
    for alternative in sorted(_alternatives().get(" ".join(fact.words), ())):
        index = text.phrase(alternative.split())
        if index is not None:
            return index
    return _initials_index(fact, text)


def _word_index(word: str, text: Text, acronym: bool) -> int | None:
    """Return the index of a name's word in a text; a Roman numeral also occurs as a number: XXI and 21st."""
    if (index := text.index_of(word, acronym)) is not None or not (number := roman(word)):
        return index
    return next((last for value, _, last in text.values if value == str(number)), None)


def _initials_index(fact: Fact, text: Text) -> int | None:
    """Return the index of the last part that matches a name by initials: HRW for Human Rights Watch, or vice versa."""
    if len(fact.words) > 1:
        return text.index_of("".join(word[0] for word in fact.words), acronym=True)
    if not _acronym(fact):
        return None
    [word] = fact.words
    first = [part[0] for part in text.written]
    starts = (start for start in range(len(first)) if first[start : start + len(word)] == [*word.upper()])
    start = next(starts, None)
    return None if start is None else start + len(word) - 1


def counterpart(fact: Fact, source: Text) -> int | None:
    """Return the index of the source word that completes a fact, found by spelling or else by the links of the priors.

    At least half of a name's words must be found; the last word found completes the name.
    """
    index = find(fact, source)
    if index is not None or fact.value:
        return index
    if _acronym(fact):
        return None
    indices = [_read_as(word, source) for word in fact.words]
    matched = [index for index in indices if index is not None]
    return source.at[max(matched)] if matched and 2 * len(matched) >= len(indices) else None


def linked(word: str, source: Text) -> int | None:
    """Return the index of the source part with the largest share of prior links to a target word.

    Returns None if the number or the share of links is too small (LINKS, LINKED).
    """
    priors = bundled_priors(f"{source.language}-en")
    if priors is None:
        return None
    target, best, index = form(word, "en"), LINKED, None
    without = language_of(source.language).function_words
    for part, at in source.indices.items():
        stem = form(source.written[at], source.language)
        links = priors.links.get((stem, target), 0) if part not in without else 0
        if links >= LINKS and links / priors.source[stem] > best:
            best, index = links / priors.source[stem], at
    return index
