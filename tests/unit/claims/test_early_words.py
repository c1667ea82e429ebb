"""Translation words that an even pace places before their source word."""

import pytest

from experiments.validity import early_words
from sqa.diagnose.alignment import Alignment


class Aligner:
    """An aligner that links each target word to the source word at the same position."""

    def align(self, pairs):
        return [Alignment(tuple((i, i) for i in range(len(source))), (), ()) for source, _ in pairs]


def test_rounding_up_hides_words_placed_early(monkeypatch):
    """The target words at .75, 1.5 and 2.25 are aligned with source words 1, 2 and 3; the one at 3 is unaligned."""
    pair = ("a b c".split(), "He Lima was Rome".split())
    monkeypatch.setattr(early_words, "segments", lambda _: [[pair]] * 2)
    monkeypatch.setattr(early_words, "load_aligner", lambda _: Aligner())
    rows = {row.cell[2]: (row.value, row.n) for row in early_words.early("xqb-es")}
    assert rows == {
        "words shown before their source word": (0, 2),
        "names shown before their source word": (0, 2),
        "words placed before their source word": (pytest.approx(3 / 4), 2),
        "names placed before their source word": (1, 2),  # only Lima is aligned and is not the first word
    }
