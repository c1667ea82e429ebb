"""Sentence splitting: where a sentence ends, where it does not, and that no word is lost."""

import pytest

from sqa.data import sentences


def joined(text: str, language: str) -> list[str]:
    return [" ".join(words) for words in sentences.split(text, language)]


@pytest.mark.parametrize(
    ("language", "first", "second"),
    [
        ("pl", "Zwiedził m.in. Kraków, np. Wawel, oraz tzw. Drogę Królewską.", "Potem wrócił do domu."),
        ("pl", "Malarz ur. 1838 i jego uczeń św. Albert żyli w XIX w. w Krakowie.", "Obaj malowali."),
        ("pl", "Muzyka lat 80. XX wieku wraca do mody.", "Nikt nie wie dlaczego."),
        ("pl", "Autorem jest J. R. R. Tolkien.", "Jego syn też pisał."),
        ("pl", "Bitwa odbyła się w 1410 r.", "Wygrał ją król."),
        ("pl", "Czy to prawda?", "Tak mówią starzy ludzie."),
        ("es", "El Sr. Pérez vive en los EE. UU. desde niño.", "Nunca volvió a casa."),
        ("es", "Murió en el siglo I a. C. en Roma.", "Era un poeta."),
        ("es", "Cría animales, p. ej. Lamas y alpacas.", "Vende la lana."),
        ("es", "Subió al Mt. Rainier y al monte St. Helens.", "Luego bajó deprisa."),
        ("es", "¿Quién lo pintó?", "¡Nadie lo sabe todavía!"),
        ("en", "Dr. Smith met Mt. Everest's guide, J. R. Brown.", "They went up together."),
        ("en", 'He said "I am here."', "She did not answer."),
    ],
)
def test_two_sentences(language: str, first: str, second: str) -> None:
    assert joined(f"{first} {second}", language) == [first, second]


def test_a_crumb_is_no_sentence() -> None:
    assert joined("It ended there. 1999. Then it began again.", "en") == [
        "It ended there. 1999.",
        "Then it began again.",
    ]
    assert joined("Wow! That was all there is.", "en") == ["Wow! That was all there is."]


def test_white_space_is_collapsed_and_empty_text_has_no_sentence() -> None:
    assert joined("  One\u00a0word \n and\tmore.  Then  another one. ", "en") == [
        "One word and more.",
        "Then another one.",
    ]
    assert sentences.split(" \n ", "en") == ()
