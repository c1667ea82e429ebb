"""Languages without a file of their own."""

from __future__ import annotations

from sqa.core.languages import Language

REST = {
    language.code: language
    for language in (
        Language("de", "German", "german", capital_nouns=True),
        Language("fi", "Finnish", "finnish"),
        Language("fr", stemmer="french"),
        Language("it", stemmer="italian"),
        Language("lb", capital_nouns=True),
        Language("pt", stemmer="portuguese"),
        Language("ru", "Russian", "russian"),
    )
}
