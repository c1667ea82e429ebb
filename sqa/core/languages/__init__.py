"""What is particular to a language, a file for each: function words, numbers, dates, abbreviations, names, endings.

    language_of("pl").function_words       of pl.py; of a language without a file all fields but `code` are empty

A file defines `LANGUAGE`, and what only one side of a translation needs (en.py, pl.py).  It is registered by its name:
`codes()` are the files of this folder.  Languages with no more than a stemmer or a name stand in `REST`.
"""

import pkgutil
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Language:
    """A language; texts are as they are written, but for `numbers` to `dates`: lower case, no accents."""

    code: str  # ISO 639-1
    name: str = ""  # what prompts of language models call it; "": its code
    stemmer: str = ""  # of Snowball
    letters: str = ""  # lower case, beyond a to z
    function_words: frozenset[str] = frozenset()  # articles, pronouns, prepositions, conjunctions, auxiliaries
    # sentences
    abbreviations: frozenset[str] = frozenset()  # before whose full stop no sentence ends, beyond sentence-splitter's
    dotted_ordinals: bool = False  # "90." is ninetieth, and the Roman numeral behind it no sentence
    # numbers and dates; a stem with a star takes an ending
    numbers: str = ""  # "VALUE:STEM,STEM ...", from two on: "one" is an article or a pronoun as often as a number
    small_numbers: str = ""  # 0, 2, 3, ... 20 in order, where they are not inflected
    ones: str = ""  # 1, which counts at the end of another number only
    dates: str = ""  # the twelve months and the seven weekdays, Monday first
    # names
    capital_nouns: bool = False  # a capital makes no name
    possessive: str = ""  # what a name takes that is no ending: 's
    endings: frozenset[str] = frozenset()  # that inflection adds to the stem of a name
    nominatives: Pairs = ()  # usual ending of a name in another case -> its ending in the nominative
    # perturbations of questions
    given_names: tuple[str, ...] = ()  # groups, within which names are exchanged
    genders: Mapping[str, str] = field(default_factory=dict)  # gender word -> its counterpart
    agreeing: Mapping[str, str] = field(default_factory=dict)  # the same of words just before such a word
    contractions: Mapping[tuple[str, str], str] = field(default_factory=dict)  # two words -> the one they become
    sounds: Pairs = ()  # as written, as misheard: spellings that sound nearly the same
    fillers: tuple[str, ...] = ()


@cache
def codes() -> tuple[str, ...]:
    """The languages that have a file."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


@cache
def language_of(code: str) -> Language:
    """The language of an ISO 639-1 code."""
    if code in codes():
        language: Language = import_module(f"{__name__}.{code}").LANGUAGE
        return language
    return REST.get(code) or Language(code)


@cache
def every() -> tuple[Language, ...]:
    """All languages that have a file or an entry of `REST`."""
    return tuple(map(language_of, sorted({*codes(), *REST})))


_WITHOUT_FILES = (
    Language("de", "German", "german", capital_nouns=True),
    Language("fi", "Finnish", "finnish"),
    Language("fr", stemmer="french"),
    Language("it", stemmer="italian"),
    Language("lb", capital_nouns=True),
    Language("pt", stemmer="portuguese"),
    Language("ru", "Russian", "russian"),
)
REST = {language.code: language for language in _WITHOUT_FILES}


_JOINERS = "\u200c\u200d"  # Persian and Indic words hold them


@cache
def _marks_a_letter(character: str) -> bool:
    return character in _JOINERS or unicodedata.category(character).startswith("M")


def marks(text: str) -> str:
    r"""Return the distinct marks and joiners of a text, sorted, to stand beside `\w` in a regular expression's class.

    Python's `\w` and `str.isalpha` leave them out, and words of Hindi, Thai, vocalised Arabic or decomposed Vietnamese
    fall apart without them.
    """
    return "" if text.isascii() else "".join(sorted(filter(_marks_a_letter, set(text))))


# ----------------------------------------------------------------------------------------- how files write their tables


def words(text: str) -> frozenset[str]:
    """What blanks separate."""
    return frozenset(text.split())


def pairs(text: str) -> Pairs:
    """ "rz>ż h>" -> (("rz", "ż"), ("h", ""))."""
    return tuple((left, right) for left, _, right in (pair.partition(">") for pair in text.split()))


def choices(text: str) -> dict[str, tuple[str, ...]]:
    """ "and>i,oraz while>podczas_gdy" -> {"and": ("i", "oraz"), "while": ("podczas gdy",)}."""
    return {left: tuple(right.replace("_", " ").split(",")) for left, right in pairs(text)}


def both_ways(text: str) -> dict[str, str]:
    """ "a/b c/d_e" -> {a: b, b: a, c: "d e", "d e": c}; the first of several pairs with a word counts."""
    table: dict[str, str] = {}
    for pair in text.split():
        left, right = pair.replace("_", " ").split("/")
        table.setdefault(left, right)
        table.setdefault(right, left)
    return table
