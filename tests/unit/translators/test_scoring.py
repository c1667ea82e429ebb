"""Scores of the bundled Transformer for words of other translations."""

import math

import pytest
from refusals import refused

from smt.models.scoring import TransformerScorer, build
from sqa.core.errors import DataError

SOURCE = tuple("Por 10 puntos, nombre este país de América del Sur.".split())
GOOD = tuple("For 10 points, name this country in South America.".split())
BAD = tuple("For 10 points, name this bicycle in South America.".split())


@pytest.fixture(scope="module")
def scorer() -> TransformerScorer:
    return build("es-en")


def test_word_scores_do_not_depend_on_the_batch(scorer: TransformerScorer) -> None:
    pairs = [(SOURCE, GOOD), (SOURCE[:3], GOOD[:2]), ((), GOOD[:1]), (SOURCE, ())]
    together, alone = scorer.score(pairs), [scorer.score([pair])[0] for pair in pairs]
    for (_, target), a, b in zip(pairs, together, alone, strict=True):
        for x, y in zip(a, b, strict=True):
            assert len(x) == len(target)
            assert x == pytest.approx(y, abs=2e-3)
    assert scorer.score([]) == []


def test_source_raises_the_score_of_its_translation(scorer: TransformerScorer) -> None:
    good, bad = scorer.score([(SOURCE, GOOD), (SOURCE, BAD)])
    assert good.given[:5] == pytest.approx(bad.given[:5], abs=2e-3)  # only earlier words count
    assert good.given[5] > bad.given[5] + math.log(100)
    assert all(p == round(p, 3) for p in good.given) and any(p != round(p, 2) for p in good.given)
    assert good.given[5] - good.alone[5] > 1
    assert all(p <= 0 for p in (*good.given, *good.alone, *bad.given, *bad.alone))
    assert all(short >= 0 for short in (*good.short, *bad.short)) and bad.short[5] > good.short[5]


def test_greedy_words_have_the_best_scores(scorer: TransformerScorer) -> None:
    """Greedy decoding chooses the most likely pieces."""
    from smt.models.decode import decode_batch
    from smt.policies.waitk import FULL, Schedule

    [written] = decode_batch(scorer.writer, [SOURCE], Schedule(FULL))
    [scores] = scorer.score([(SOURCE, tuple(word.token for word in written))])
    assert sum(short < 1e-3 for short in scores.short) >= len(written) - 1  # a word may be spelt by other pieces


def test_too_long_texts_are_refused(scorer: TransformerScorer) -> None:
    long = GOOD * 200
    for pair in ((SOURCE, long), (long, GOOD)):
        refused(DataError, "pieces, but the model has 1024 positions: split it", scorer.score, [pair])
