"""Damage of equal numbers of words: what is removed or moved, and that nothing else changes."""

from experiments.studies import dose
from sqa.core import Question

TEXT = "The old king of Norway met Alice and Bob near the river"
LOWER = frozenset("the old king of met and near river".split())
QUESTION = Question("q", "d", "es", (("uno",),), (TEXT,), "Norway")


def text_of(kind: str) -> list[str]:
    text, changed = dose.damaged(QUESTION, kind, LOWER)
    assert changed == (0 if kind == dose.INTACT else 3)  # the text has three names
    return text.split()


def test_only_the_words_of_a_kind_are_removed() -> None:
    words = TEXT.split()
    assert text_of(dose.INTACT) == words
    assert text_of(dose.NAMES) == [word for word in words if word not in ("Norway", "Alice", "Bob")]
    for kind, allowed in ((dose.CONTENT, "old king met river"), (dose.FUNCTION, "The of and near the")):
        left = text_of(kind)
        gone = words.copy()
        for word in left:
            gone.remove(word)
        assert len(gone) == 3 and set(gone) <= set(allowed.split()), kind


def test_order_moves_as_many_words_as_there_are_names() -> None:
    moved = text_of(dose.ORDER)
    assert sorted(moved) == sorted(TEXT.split())
    assert sum(a != b for a, b in zip(moved, TEXT.split(), strict=True)) == 3


def test_kinds_with_fewer_words_are_damaged_in_full() -> None:
    text = "In 146 Rome defeated Carthage and did not rest near Athens or Sparta"
    question = Question("q", "d", "es", (("uno",),), (text,), "Rome")
    for kind, expected, changed in (
        (dose.NUMBERS, text.replace("146 ", ""), 1),
        (dose.NEGATION, text.replace("not ", ""), 1),
        (dose.ROLE, text.replace("Rome defeated Carthage", "Carthage defeated Rome"), 2),
    ):
        assert dose.damaged(question, kind, LOWER) == (expected, changed)
