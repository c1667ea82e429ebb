"""Existing text as a translator: when its words appear, and files that do not fit."""

from __future__ import annotations

import pytest
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


DIAGONAL = FixedConfig(reveal="diagonal")
SOURCE = FixedConfig(text="source", reveal="diagonal")  # no translation: each source word as it is read
SHOWN = [
    (FixedConfig(), EVEN, [(0, "One", 4, True), (0, "two.", 4, True), (1, "Three.", 2, True)]),
    (DIAGONAL, EVEN, [(0, "One", 2, False), (0, "two.", 4, False), (1, "Three.", 2, False)]),
    (FixedConfig(), UNEVEN, [(0, "One", 4, True), (0, "two", 4, True), (1, "three.", 2, True)]),
    (DIAGONAL, UNEVEN, [(0, "One", 2, False), (0, "two", 4, False), (1, "three.", 2, False)]),
    (SOURCE, UNEVEN, [(int(n > 3), word, n % 4 + 1, False) for n, word in enumerate("abcdef")]),
]


@pytest.mark.parametrize(("config", "question", "expected"), SHOWN)
def test_when_words_appear(config, question, expected):
    assert emissions(config, question) == [expected]


def test_files(tmp_path):
    path = tmp_path / "out.txt"
    config = FixedConfig(str(path))
    refused(DataError, "no such file", build, config)
    path.write_text("x y\n\nz\nw\n", encoding="utf-8")
    assert [[token for _, token, *_ in row] for row in emissions(config, EVEN, UNEVEN)] == [["x", "y"], ["z", "w"]]
    path.write_text("x\ny\nz\n", encoding="utf-8")
    refused(DataError, "3 lines, expected 4", emissions, config, EVEN, UNEVEN)
    path.write_bytes("señal\n".encode("latin-1"))
    refused(DataError, "not UTF-8", build, config)
