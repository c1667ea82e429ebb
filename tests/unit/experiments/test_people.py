"""Agreement with people, on planted data."""

import numpy as np
import pytest

from experiments.studies import people
from sqa.core import Mean, means


def agreeing(seed: int, noise: float, sign: float = 1.0) -> dict[str, float]:
    """Return the agreement of a measure that is the human score with noise, for four systems and 200 sentences."""
    rng = np.random.default_rng(seed)
    human = rng.normal(size=(4, 200)) + np.arange(4)[:, None]
    rule = sign * human + noise * rng.normal(size=human.shape)
    stats = [np.stack([means(row) for row in table]) for table in (human, rule)]
    both = [people.compared_pairs(Mean("x"), table, np.ones(200)) for table in stats]
    told, right = (table.sum(axis=0) for _, table in people.concordance(stats[0], Mean("x"), stats[1]))
    return {
        "tau": people.tau(*both),
        "spa": people.soft(*both),
        "told": told[0] / told[1],
        "right": right[0] / right[1],
    }


def test_the_same_scores_agree_fully():
    assert agreeing(0, 0.0) == {"tau": 1.0, "spa": 1.0, "told": 1.0, "right": 1.0}
    assert agreeing(0, 0.0, -1.0)["tau"] == -1.0 and agreeing(0, 0.0, -1.0)["right"] == 0.0


def test_random_scores_do_not_agree():
    found = [agreeing(seed, 1000.0) for seed in range(20)]
    for name, chance in (("tau", 0.0), ("spa", 0.5), ("right", 0.5)):
        assert np.mean([each[name] for each in found]) == pytest.approx(chance, abs=0.15)


def test_sentences_without_facts_are_ties():
    human = np.stack([means(np.array([0.0, -1.0])), means(np.array([-1.0, 0.0]))])
    facts = np.array([[[1.0, 1.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]]])
    told, right = (table.sum(axis=0).tolist() for _, table in people.concordance(human, Mean("facts"), facts))
    assert told == [1, 2] and right == [1, 1]
