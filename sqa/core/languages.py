"""Language-specific data: function words, numbers, dates, abbreviations, names, endings.

    language_of("pl").function_words       from data/languages/pl.toml; for a language without a file, all fields but
                                           `code` are empty

The keys of a file are the fields of `Language`.  es.toml has all that a source language needs.

A line of data/language_codes.txt has the ISO 639-1 code of a language, its ISO 639-3 codes (of a macrolanguage also
those of its usual members), and its English name if models, tokenizers or programs use it.
"""

import tomllib
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, TypeVar, get_type_hints

from sqa.core.paths import DATA

T = TypeVar("T")
Pairs = tuple[tuple[str, str], ...]
Pair = tuple[str | None, str | None]  # source and target code of a translator; None if unknown


@dataclass(frozen=True, slots=True)
class Halves:
    """Words for halves in numbers, in the form of the field `numbers` of a language."""

    half: frozenset[str] = frozenset()  # half a million
    one_and_a_half: frozenset[str] = frozenset()  # as one word
    and_a_half: tuple[tuple[str, ...], ...] = ()  # two and a half
    quarter: frozenset[str] = frozenset()  # a quarter of a million


@dataclass(frozen=True, slots=True)
class Language:
    """Data of a language, spelled as in texts; the fields from `numbers` to `dates` are lower case without accents."""

    code: str  # ISO 639-1
    name: str = ""  # name in prompts of language models; "": the code
    stemmer: str = ""  # name of the Snowball stemmer
    function_words: frozenset[str] = frozenset()  # articles, pronouns, prepositions, conjunctions, auxiliaries
    # sentences
    abbreviations: frozenset[str] = frozenset()  # in addition to sentence-splitter's; their full stop ends no sentence
    dotted_ordinals: bool = False  # "90." means ninetieth, and a Roman numeral after it is not a sentence
    # numbers and dates; a stem with a star takes an ending
    numbers: str = ""  # "VALUE:STEM,STEM ...", from two on, since "one" is often an article or a pronoun
    small_numbers: str = ""  # words for 0, 2, 3, ... 20 in order, if they are not inflected
    ones: str = ""  # words for 1, which count only at the end of a larger number
    halves: Halves = Halves()  # words for halves
    dates: str = ""  # the twelve months and the seven weekdays, Monday first
    # names
    capital_nouns: bool = False  # whether all nouns, not only names, are capitalised
    possessive: str = ""  # possessive suffix of a name, not included in `endings`: 's
    endings: frozenset[str] = frozenset()  # endings that inflection adds to the stem of a name
    nominatives: Pairs = ()  # usual ending of a name in another case -> its ending in the nominative
    # names in translations, in the form of `sqa.metrics.quality.names.spelled` except `dotted` and `particles`
    modals: frozenset[str] = frozenset()  # words that name a month only if they are capitalised inside a sentence
    titles: frozenset[str] = frozenset()  # words before a name; the rest of the name identifies the person or place
    pronouns: frozenset[str] = frozenset()  # words with a capital that are not names
    no_names: frozenset[str] = frozenset()  # pronouns and further such words
    dotted: frozenset[str] = frozenset()  # abbreviations whose full stop does not end a sentence
    particles: frozenset[str] = frozenset()  # words without a capital inside a name
    other_names: tuple[str, ...] = ()  # alternative names of one place or person, separated by slashes
    # perturbations of questions
    given_names: tuple[str, ...] = ()  # groups of names that may replace one another
    genders: Mapping[str, str] = field(default_factory=dict)  # gender word -> its counterpart
    agreeing: Mapping[str, str] = field(default_factory=dict)  # as `genders`, for words directly before a gender word
    contractions: Mapping[tuple[str, str], str] = field(default_factory=dict)  # two words -> their contraction
    sounds: Pairs = ()  # (as written, as misheard): spellings that sound nearly the same
    fillers: tuple[str, ...] = ()  # words with which speakers fill pauses


@cache
def codes() -> tuple[str, ...]:
    """Return the codes of the languages that have a file."""
    return tuple(sorted(path.stem for path in (DATA / "languages").glob("*.toml")))


@cache
def language_of(code: str) -> Language:
    """Return the data of the language with this ISO 639-1 code."""
    if code not in codes():
        return Language(code)
    table = tomllib.loads((DATA / "languages" / f"{code}.toml").read_text(encoding="utf-8"))
    return _parsed(Language, {"code": code, **table})


@cache
def every() -> tuple[Language, ...]:
    """Return all languages that have a file."""
    return tuple(map(language_of, codes()))


_JOINERS = "\u200c\u200d"  # zero-width characters inside Persian and Indic words


@cache
def _marks_a_letter(character: str) -> bool:
    return character in _JOINERS or unicodedata.category(character).startswith("M")


def marks(text: str) -> str:
    r"""Return the distinct marks and joiners of a text, sorted, for use with `\w` in a character class.

    Python's `\w` and `str.isalpha` exclude them, so words of Hindi, Thai, vocalised Arabic or decomposed Vietnamese
    would be split without them.
    """
    return "" if text.isascii() else "".join(sorted(filter(_marks_a_letter, set(text))))


# ---------------------------------------------------------------------------------------------------------------- codes


@cache
def _codes() -> dict[str, str]:
    """Return the ISO 639-1 code of each code and name."""
    lines = (DATA / "language_codes.txt").read_text(encoding="utf-8").splitlines()
    return {name: line.split()[0] for line in lines for name in line.split()}


def code_of(language: str) -> str:
    """Return the ISO 639-1 code of a language, given as spa, spa_Latn, es_XX, es-ES or Spanish.

    For an unknown language, return the first part of the given name in lower case.
    """
    first = language.strip().lower().replace("-", "_").partition("_")[0]
    return _codes().get(first, first)


def certain(language: object) -> str | None:
    """Return the code of an unambiguous language name; None for others, such as opus-mt's language families."""
    code = code_of(language) if isinstance(language, str) else None
    return code if code in _codes() else None


def certain_pair(source: object, target: object) -> Pair | None:
    """Return the codes of a pair as far as they are certain; None if neither is."""
    pair = certain(source), certain(target)
    return None if pair == (None, None) else pair


def pair_of(about: object) -> Pair | None:
    """Return the pair, such as es-en, in the `about` of a trained model's config.json; None if there is none.

    `about` is free text from converters and other people and has no other effect, so other content is not an error.
    """
    for keys in (("training", "corpus", "pair"), ("corpus", "pair"), ("training", "pair"), ("pair",)):
        value = about
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if isinstance(value, str) and value.count("-") == 1:
            return certain_pair(*value.split("-"))
    return None


# ------------------------------------------------------------------------------------------- parsers of values in files


def _parsed(kind: type[T], table: Mapping[str, Any]) -> T:
    """Return a `Language` or `Halves` from a table of a file; the type of a field determines its parser."""
    types = get_type_hints(kind)
    return kind(**{key: _PARSERS.get(types[key], types[key])(value) for key, value in table.items()})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _phrases(texts: list[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(text.split()) for text in texts)


def _pairs(text: str) -> Pairs:
    """Parse pairs: "rz>ż h>" -> (("rz", "ż"), ("h", ""))."""
    return tuple((left, right) for left, _, right in (pair.partition(">") for pair in text.split()))


def _contractions(pairs: list[str]) -> dict[tuple[str, str], str]:
    """Parse contractions: "de el>del" -> {("de", "el"): "del"}."""
    split = (pair.partition(">") for pair in pairs)
    return {(words.split()[0], words.split()[1]): contraction for words, _, contraction in split}


def _both_ways(text: str) -> dict[str, str]:
    """Parse pairs, and map each word to the other: "a/b c/d_e" -> {a: b, b: a, c: "d e", "d e": c}.

    If a word occurs in several pairs, the first pair is used.
    """
    table: dict[str, str] = {}
    for pair in text.split():
        left, right = pair.replace("_", " ").split("/")
        table.setdefault(left, right)
        table.setdefault(right, left)
    return table


_PARSERS: Mapping[Any, Callable[[Any], Any]] = {  # type of a field -> its parser, if it is not the type itself
    frozenset[str]: _words,
    tuple[str, ...]: tuple,
    tuple[tuple[str, ...], ...]: _phrases,
    Pairs: _pairs,
    Mapping[str, str]: _both_ways,
    Mapping[tuple[str, str], str]: _contractions,
    Halves: partial(_parsed, Halves),
}
