"""The fusion guesser: reciprocal rank by hand, ties, and the texts passed to its parts."""

from collections.abc import Sequence

import pytest

from guessers.fusion import FusionGuesser
from guessers.retrieval.bm25 import Bm25Config
from sqa.core.types import Guess
from sqa.pipeline.config import ComponentConfig

BM25 = ComponentConfig("bm25", Bm25Config())


class Fixed:
    """A guesser that names the same pages for every text, and none for a text without words."""

    def __init__(self, *guesses: tuple[str, float]) -> None:
        self.guesses = [Guess(*guess) for guess in guesses]
        self.seen: list[Sequence[str]] = []

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        return [self.guesses[:n] if text.split() else [] for text in texts]

    def check_texts(self, texts) -> None:
        self.seen += texts

    def fingerprint(self) -> str:
        return repr(self.guesses)


def fusion(*parts, constant=5.0) -> FusionGuesser:
    return FusionGuesser([(BM25, part) for part in parts], constant)


LEFT, RIGHT = Fixed(("a", 9.0), ("b", 3.0)), Fixed(("b", 0.5), ("c", 0.25), ("a", 0.125))


def test_reciprocal_rank_is_the_sum_over_the_guessers():
    [actual] = fusion(LEFT, RIGHT).guess(["word"], 5)
    assert [guess.page for guess in actual] == ["b", "a", "c"]
    assert [guess.score for guess in actual] == pytest.approx([1 / 7 + 1 / 6, 1 / 6 + 1 / 8, 1 / 7])
    [actual] = fusion(LEFT, RIGHT, constant=0.0).guess(["word"], 2)
    assert [guess.score for guess in actual] == pytest.approx([1 / 2 + 1, 1 + 1 / 3])


def test_equal_scores_are_ordered_by_title():
    one, two = Fixed(("z", 2.0), ("m", 1.0)), Fixed(("b", 2.0), ("a", 1.0))
    for n in range(1, 5):
        assert [guess.page for guess in fusion(one, two).guess(["x"], n)[0]] == ["b", "z", "a", "m"][:n]
    assert fusion(one, two).guess(["x"], 0) == [[]]


def test_pages_are_unknown_if_a_part_has_no_list():
    left = Fixed(("a", 1.0))
    both = fusion(left, RIGHT)
    assert both.pages is None
    both.check_texts(iter([["x"], ["x y"]]))
    assert left.seen == [["x"], ["x y"]]


def test_prefixes_are_fused_like_whole_texts():
    both = fusion(LEFT, RIGHT)
    assert both.guess_prefixes(["a", "b"], 2) == both.guess(["a", "a b"], 2) and both.guess_prefixes([], 2) == []
