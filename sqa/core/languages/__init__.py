"""Language-specific data, one file per language: function words, numbers, dates, abbreviations, names, endings.

    language_of("pl").function_words       from pl.py; for an unknown language, all fields but `code` are empty

A file defines `LANGUAGE`, and the data that only one side of a translation needs (en.py, pl.py).  It is registered
by its name: `codes()` lists the files of this folder.  Languages that need no file of their own are in `REST`.
"""

import pkgutil
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Halves:
    """Words for halves in numbers, in the form of the field `numbers` of a language."""

    half: frozenset[str] = frozenset()  # half a million
    one_and_a_half: frozenset[str] = frozenset()  # as one word
    and_a_half: tuple[tuple[str, ...], ...] = ()  # two and a half


@dataclass(frozen=True, slots=True)
class Language:
    """Data of a language, spelled as in texts; the fields from `numbers` to `dates` are lower case without accents."""

    code: str  # ISO 639-1
    name: str = ""  # name in prompts of language models; "": the code
    stemmer: str = ""  # name of the Snowball stemmer
    letters: str = ""  # lower-case letters besides a to z
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
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


@cache
def language_of(code: str) -> Language:
    """Return the data of the language with this ISO 639-1 code."""
    if code in codes():
        language: Language = import_module(f"{__name__}.{code}").LANGUAGE
        return language
    return REST.get(code) or Language(code)


@cache
def every() -> tuple[Language, ...]:
    """Return all languages that have a file or an entry of `REST`."""
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


# --------------------------------------------------------------------------------------- parsers of the tables in files


def words(text: str) -> frozenset[str]:
    """Return the set of the words of a text."""
    return frozenset(text.split())


def pairs(text: str) -> Pairs:
    """Parse pairs: "rz>ż h>" -> (("rz", "ż"), ("h", ""))."""
    return tuple((left, right) for left, _, right in (pair.partition(">") for pair in text.split()))


def choices(text: str) -> dict[str, tuple[str, ...]]:
    """Parse choices: "and>i,oraz while>podczas_gdy" -> {"and": ("i", "oraz"), "while": ("podczas gdy",)}."""
    return {left: tuple(right.replace("_", " ").split(",")) for left, right in pairs(text)}


def both_ways(text: str) -> dict[str, str]:
    """Parse pairs, and map each word to the other: "a/b c/d_e" -> {a: b, b: a, c: "d e", "d e": c}.

    If a word occurs in several pairs, the first pair is used.
    """
    table: dict[str, str] = {}
    for pair in text.split():
        left, right = pair.replace("_", " ").split("/")
        table.setdefault(left, right)
        table.setdefault(right, left)
    return table
