"""Words of a human translation that wait-k must write before it has read their source."""

from pathlib import Path

import pytest

from experiments.studies import words_ahead
from experiments.studies.words_ahead import ITEMS, WordsAheadConfig, counts, last_linked
from experiments.translation_sets import SetConfig
from sqa.diagnose.alignment import Alignment
from sqa.pipeline.config import load

SOURCE = "nació en la ciudad peruana de Lima".split()
TARGET = "He was born in the Peruvian city of Lima".split()
LAST = [0, 1, 1, 2, 3, 5, 4, 6, 7]  # last linked source word of each target word, from 1


def test_word_with_several_links_waits_for_the_last():
    links = ((0, 1), (0, 2), (1, 3), (4, 5), (3, 6), (6, 8), (2, 4), (5, 7), (1, 2))
    assert last_linked(Alignment(links, (), ()), 9) == [0, 1, 2, 2, 3, 5, 4, 6, 7]


@pytest.mark.parametrize(
    ("k", "rate", "ahead", "names"),
    [
        (1, 1.0, 0, 0),  # English has two words more, so g(j) = j suffices
        (1, 1.5, 3, 2),  # g(j) = 1 1 2 3 3 4 5 5 6; Peruvian needs 5 but has 4, "of" 6 but 5, Lima 7 but 6
        (3, 1.5, 0, 0),
    ],
)
def test_words_ahead_equal_hand_counts(k, rate, ahead, names):
    assert counts((SOURCE, TARGET), LAST, k, rate) == (ahead, 9, names, 2)


def test_full_input_has_no_words_ahead():
    assert counts((SOURCE, TARGET), LAST, 7, 2.0)[0] == 0


def test_words_ahead_of_bundled_questions_fall_with_k(monkeypatch):
    texts = words_ahead.segments(SetConfig("mini-es", "es-en"))[:2]
    [entry] = [s for s in load(ITEMS[0].path(), WordsAheadConfig).sets if s.name == "xqb-es"]
    monkeypatch.setattr(words_ahead, "segments", lambda _: texts)
    monkeypatch.setattr(words_ahead, "load", lambda *_: WordsAheadConfig((entry,), (1, 3, 9)))
    results = list(words_ahead.measure(ITEMS[0].path(), Path()))
    values = {row.key: row.value for row in results}
    assert len(values) == 12 and {row.n for row in results} == {2}
    for pace in ("1", "catch-up"):
        by_k = [values["es-en", "xqb-es", pace, k, "words-ahead"] for k in ("1", "3", "9")]
        assert by_k == sorted(by_k, reverse=True) and 0 < by_k[0] < 1
