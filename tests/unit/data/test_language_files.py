"""The files of data/languages: each is complete and has the format that its readers expect."""

import re
from dataclasses import fields

import pytest
import snowballstemmer

from sqa.core import every, language_of, values
from sqa.core.languages import Language
from sqa.data.sentences import LANGUAGES
from sqa.metrics.quality.names import spelled

# English is only a target language and needs no tables for perturbations, which change the source.
TARGETS = {"en": {"given_names", "genders", "agreeing", "sounds", "fillers"}}


OPTIONAL = set("letters halves dotted_ordinals small_numbers capital_nouns possessive nominatives contractions".split())
OPTIONAL |= set("modals titles pronouns no_names dotted particles other_names".split())  # of translations, in English


@pytest.mark.parametrize("code", [each.code for each in every() if each.function_words])
def test_language_file_is_complete(code):
    language = language_of(code)
    missing = {field.name for field in fields(language) if not getattr(language, field.name)} - OPTIONAL
    missing -= TARGETS.get(code, set())
    assert not missing, f"data/languages/{code}.toml lacks {', '.join(sorted(missing))}; es.toml has them all"


def test_unknown_language_has_empty_tables():
    assert language_of("xx") == Language("xx")


@pytest.mark.parametrize("of", every(), ids=lambda of: of.code)
def test_tables_have_the_expected_format(of):
    assert language_of(of.code) is of and of.code in LANGUAGES | {"lb"}
    assert not of.stemmer or of.stemmer in snowballstemmer.algorithms()
    assert all(word == word.lower() for word in of.function_words | of.endings)
    assert all(re.fullmatch(r"\d+:[^:]+", entry) for entry in of.numbers.split())
    assert len(of.small_numbers.split()) in (0, 20) and len(of.dates.split()) in (0, 19)
    for word in re.split(r"[\s,*:\d]+", f"{of.numbers} {of.small_numbers} {of.ones} {of.dates}"):
        assert spelled(word) == word, f"{word} is compared as {spelled(word)}"
    assert all(len(set(group.split())) > 1 for group in of.given_names)
    assert all(of.genders[of.genders[word]] for word in of.genders)


@pytest.mark.parametrize("of", [each for each in every() if each.dates], ids=lambda of: of.code)
def test_numbers_and_dates_are_read(of):
    for index, names in enumerate(of.dates.split()):
        name = names.split(",")[0].rstrip("*")
        assert values([name], of.code) == [(f"month-{index + 1}" if index < 12 else f"day-{index - 11}", 0, 0)]
    for entry in of.numbers.split():
        number, _, stems = entry.partition(":")
        [(value, _, _)] = values([stems.split(",")[0].rstrip("*")], of.code)
        assert value == f"{float(number):.12g}"
