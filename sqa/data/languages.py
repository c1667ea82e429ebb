"""Language codes: one code per language, whatever names models, tokenizers and programs use.

A line of data/language_codes.txt has the ISO 639-1 code of a language, its ISO 639-3 codes (of a macrolanguage also
those of its usual members), and its English name if programs use it.
"""

from functools import cache

from sqa.core.paths import DATA

Pair = tuple[str | None, str | None]  # source and target code of a translator; None if unknown


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
