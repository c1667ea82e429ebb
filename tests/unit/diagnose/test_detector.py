"""Signals of words, the network's arithmetic and files, and the bundled weights on simple cases."""

import json
import math
from dataclasses import asdict

import numpy as np
import pytest
from tables import tables_of

from sqa.core import DATA
from sqa.diagnose.alignment import Alignment, load_aligner
from sqa.diagnose.detector import FILE, Network, load_detector, read_networks
from sqa.diagnose.signals import GROUPS, WordScores, word_signals

TABLES = tables_of(__file__)

SOURCE = tuple("El poeta ecuatoriano Pablo Neruda vendió 4.500 libros en la ciudad de Potosí.".split())
GOOD = tuple("The Ecuadorian poet Pablo Neruda sold 4,500 books in the city of Potosi.".split())


def signals(*target: str) -> dict[str, list[float]]:
    """Return a dict that maps each signal to its values for the target words, which are all unaligned."""
    alignment = Alignment((), (0.0,) * len(SOURCE), (0.0,) * len(target))
    rows = word_signals(SOURCE, target, alignment, "es")
    return dict(zip(GROUPS["words"], rows.T.tolist(), strict=True))


@pytest.mark.parametrize(("target", "name", "expected"), TABLES["spelling_signals_have_the_listed_values"])
def test_spelling_signals_have_the_listed_values(target: str, name: str, expected: list[float]) -> None:
    assert signals(*target.split())[name] == expected


def test_model_scores_are_scaled_and_bounded() -> None:
    alignment = Alignment((), (0.0,) * len(SOURCE), (0.0,) * 2)
    scores = WordScores((-1.0, -300.0), (-2.0, -4.0), (0.0, 299.0))
    rows = word_signals(SOURCE, ("Old", "books"), alignment, "es", scores)
    assert rows.shape == (2, len(GROUPS["lm"]))
    by_name = dict(zip(GROUPS["lm"], rows.T.tolist(), strict=True))
    assert by_name["given"] == [-0.1, -2.5] and by_name["short"] == [0, 2.5]
    assert by_name["gain"] == [pytest.approx(0.1), pytest.approx(-2.1)]
    assert by_name["given_after"] == [-2.5, 0]


def network() -> Network:
    """Return an ensemble of two members that have one input signal and one hidden unit each."""
    weights = [1.0], [2.0], [[[0.5]], [[1.5]]], [[0.0]] * 2, [[1.0]] * 2, [0.0, 1.0], [0.25]
    return Network(*map(np.array, weights), slope=2.0, shift=-1.0)


def test_network_averages_its_members() -> None:
    logit = (math.tanh(0.5) + math.tanh(1.5) + 1) / 2 + 0.25 * 3
    assert network().logits(np.array([[3.0]])) == pytest.approx(logit)
    assert network().probabilities(np.array([[3.0]])) == pytest.approx(1 / (1 + math.exp(1 - 2 * logit)))
    record = {name: np.array(value).tolist() for name, value in asdict(network()).items()}
    again = Network.of(json.loads(json.dumps(record)), 1)
    assert again.probabilities(np.array([[3.0]])) == pytest.approx(network().probabilities(np.array([[3.0]])))


@pytest.mark.parametrize("language", ["es", "pl"])
def test_bundled_weights_fit_the_signals(language: str) -> None:
    assert set(read_networks(DATA / "models" / f"errors-{language}-en" / FILE)) == set(GROUPS)


def test_planted_errors_score_above_correct_words() -> None:
    """Compare three wrong words with content words that are correct."""
    bad = tuple("The socuatorian poet Pablo Neruda sold 7,100 books in the bicycle city of Potosi.".split())
    pairs = [(SOURCE, GOOD), (SOURCE, bad)]
    rows = load_detector("es").words(pairs, load_aligner("es-en").align(pairs))
    judged = dict(zip([*GOOD, *bad], np.concatenate(rows).tolist(), strict=True))
    wrong = {word: judged[word] for word in ("socuatorian", "7,100", "bicycle")}
    right = {word: judged[word] for word in ("poet", "Pablo", "Neruda", "books", "city", "Potosi.", "4,500")}
    assert min(wrong.values()) > max(right.values()) and max(right.values()) < 0.2
