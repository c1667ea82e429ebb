"""Existing text as a translator: when its words appear, and files that do not fit."""

from __future__ import annotations

from refusals import refused

from smt.engines.fixed import FixedConfig, build
from sqa.core.errors import DataError
from sqa.core.types import Question

EVEN = Question("even", "test", "es", (("a", "b", "c", "d"), ("e", "f")), ("One two.", "Three."), "Page")
UNEVEN = Question("uneven", "test", "es", (("a", "b", "c", "d"), ("e", "f")), ("One two three.",), "Page")


def emissions(config, *questions):
    translator = build(config)
    translator.check(questions)
    return [[(e.sentence, e.token, e.g, e.ended) for e in es] for es in translator.translate_batch(questions)]


def test_full_reveals_sentence_by_sentence():
    assert emissions(FixedConfig(), EVEN) == [[(0, "One", 4, True), (0, "two.", 4, True), (1, "Three.", 2, True)]]


def test_diagonal_spreads_words_over_the_sentence():
    assert emissions(FixedConfig(reveal="diagonal"), EVEN) == [
        [(0, "One", 2, False), (0, "two.", 4, False), (1, "Three.", 2, False)]
    ]


def test_unequal_sentence_counts_are_spread_over_the_question():
    assert emissions(FixedConfig(reveal="diagonal"), UNEVEN) == [
        [(0, "One", 2, False), (0, "two", 4, False), (1, "three.", 2, False)]
    ]
    assert emissions(FixedConfig(), UNEVEN) == [[(0, "One", 4, True), (0, "two", 4, True), (1, "three.", 2, True)]]


def test_a_file_of_sentences(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("x y\n\nz\nw\n", encoding="utf-8")
    [first, second] = emissions(FixedConfig(str(path)), EVEN, UNEVEN)
    assert [token for _, token, _, _ in first] == ["x", "y"] and [token for _, token, _, _ in second] == ["z", "w"]


def test_a_file_with_a_line_too_few(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("x\ny\nz\n", encoding="utf-8")
    refused(DataError, "3 lines, expected 4", emissions, FixedConfig(str(path)), EVEN, UNEVEN)


def test_a_file_that_is_not_utf8(tmp_path):
    path = tmp_path / "out.txt"
    path.write_bytes("señal\n".encode("latin-1"))
    refused(DataError, "not UTF-8", build, FixedConfig(str(path)))


def test_a_missing_file():
    refused(DataError, "no such file", build, FixedConfig("nowhere.txt"))


def test_no_translation_at_all_shows_each_source_word_as_it_is_read():
    config = FixedConfig(text="source", reveal="diagonal")
    words = [(0, "a", 1), (0, "b", 2), (0, "c", 3), (0, "d", 4), (1, "e", 1), (1, "f", 2)]
    assert emissions(config, UNEVEN) == [[(*word, False) for word in words]]
    assert build(config).fingerprint() != build(FixedConfig(reveal="diagonal")).fingerprint()
