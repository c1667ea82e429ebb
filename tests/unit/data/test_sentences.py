"""Sentence splitting: sentence ends, exceptions, and no lost word."""

import pytest

from sqa.data import sentences

SENTENCES = [  # language, sentences; the sentences are joined with spaces
    ("pl", "Zwiedził m.in. Kraków, np. Wawel, oraz tzw. Drogę Królewską.", "Potem wrócił do domu."),
    ("pl", "Malarz ur. 1838 i jego uczeń św. Albert żyli w XIX w. w Krakowie.", "Obaj malowali."),
    ("pl", "Muzyka lat 80. XX wieku wraca do mody.", "Nikt nie wie dlaczego."),
    ("pl", "Bitwa odbyła się w 1410 r.", "Wygrał ją król."),
    ("es", "El Sr. Pérez vive en los EE. UU. desde niño.", "Nunca volvió a casa."),
    ("es", "Murió en el siglo I a. C. en Roma.", "Era un poeta."),
    ("es", "Subió al Mt. Rainier y al monte St. Helens.", "Luego bajó deprisa."),
    ("es", "¿Quién lo pintó?", "¡Nadie lo sabe todavía!"),
    ("en", "Dr. Smith met Mt. Everest's guide, J. R. Brown.", "They went up together."),
    ("en", 'He said "I am here."', "She did not answer."),
    ("en", "It ended there. 1999.", "Then it began again."),  # a number is not a sentence
    ("en", "Wow! That was all there is."),  # one word is not a sentence
]


@pytest.mark.parametrize(("language", "expected"), [(language, expected) for language, *expected in SENTENCES])
def test_sentences_end_as_listed(language: str, expected: list[str]) -> None:
    assert [" ".join(words) for words in sentences.split(" ".join(expected), language)] == expected


def test_spaces_collapse_and_empty_text_is_empty() -> None:
    text = "  One\u00a0word \n and\tmore.  Then  another one. "
    assert sentences.split(text, "en") == (("One", "word", "and", "more."), ("Then", "another", "one."))
    assert sentences.split(" \n ", "en") == ()


def test_half_width_voicing_mark_is_no_word() -> None:
    assert sentences.split("ｶﾞｲﾄﾞ ﾊﾟﾝ", "ja") == (("ｶﾞ", "ｲ", "ﾄﾞ", "ﾊﾟ", "ﾝ"),)


def test_each_piece_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression test: the words merged so far were counted again for each one-letter sentence."""
    counted: list[int] = []
    monkeypatch.setattr(sentences, "_lettered", lambda words: counted.append(len(words)) or 1)
    assert [*map(len, sentences.split("A. " * 400, "es"))] == [400]
    assert sum(counted) == 400
