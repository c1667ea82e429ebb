"""Single changes to a text in the study of fact metrics, and the words that each may change."""

import random

import pytest
from doubles import question

from experiments.studies.fact_changes import CONTRAST

TEXT = "The big river of Ana Botella had 12 old bridges in the north."
CHANGES = {each.name: each for each in (*CONTRAST["minor"], *CONTRAST["critical"])}


@pytest.mark.parametrize(
    ("name", "touched"),
    [
        ("spelling", {"river", "bridges"}),
        ("synonym", {"big"}),
        ("order", {"big", "river", "of", "old", "bridges", "in", "the"}),
        ("entity", {"Ana", "Botella"}),
        ("number", {"12"}),
    ],
)
def test_change_affects_only_words_of_its_kind(name: str, touched: set[str]) -> None:
    before, seen = TEXT.split(), set()
    for seed in range(60):
        after = list(CHANGES[name].change(question(sentences=[TEXT]), random.Random(seed)).words)
        if name == "order":
            [start, *_] = [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
            assert after == [*before[:start], before[start + 1], before[start], *before[start + 2 :]]
            seen |= {*before[start : start + 2]}
        else:
            seen |= set(before) - set(after)
            assert len(set(after) - set(before)) <= 1 and after != before
    assert seen == touched


def test_negation_is_inserted_or_removed() -> None:
    negation = CHANGES["negation"].change
    once = negation(question(sentences=[TEXT]), random.Random(0))
    assert " ".join(once.words) == TEXT.replace("had", "had not")
    assert " ".join(negation(once, random.Random(0)).words) == TEXT
