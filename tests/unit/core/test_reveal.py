"""Prefixes and positions on cases small enough to count by hand."""

from __future__ import annotations

from doubles import echo, question

from sqa.core.trace import hypotheses, prefixes
from sqa.core.types import Emission

Q = question()  # "uno dos tres cuatro cinco": characters end at 3, 7, 12, 19, 25


def test_positions_count_finished_sentences_whole() -> None:
    # the second sentence is begun after one word of the first was read: equation 1 counts both
    words = [("a", 0, 0, False), ("b", 0, 1, False), ("c", 1, 0, False), ("d", 1, 3, True)]
    steps = prefixes(Q, tuple(Emission(s, token, g, ended) for token, s, g, ended in words))
    assert steps.source_words.tolist() == [0, 1, 2, 5]
    assert steps.source_chars.tolist() == [0, 3, 7, 25]
    assert steps.fraction.tolist() == [0, 3 / 25, 7 / 25, 1.0]
    assert steps.texts == ("a", "a b", "a b c", "a b c d")
    assert steps.append_only


def test_a_retraction_shows_the_text_after_it() -> None:
    emissions = (
        Emission(0, "a", 1, False),
        Emission(0, "b", 1, False),
        Emission(0, "c", 2, False, erase=2),
        Emission(1, "d", 1, False),
        Emission(1, "e", 2, False, erase=1),
    )
    steps = prefixes(Q, emissions)
    assert not steps.append_only
    assert steps.texts == ("a", "a b", "c", "c d", "c e")
    assert hypotheses(Q, emissions) == ["c", "e"]


def test_a_write_may_only_retract() -> None:
    emissions = (Emission(0, "a", 1, False), Emission(0, "", 2, False, erase=1), Emission(1, "b", 1, False))
    steps = prefixes(Q, emissions)
    assert steps.texts == ("a", "", "b")
    assert hypotheses(Q, emissions) == ["", "b"]


def test_no_emissions() -> None:
    steps = prefixes(Q, ())
    assert (steps.words, steps.texts, steps.fraction.tolist()) == ((), (), [])
    assert hypotheses(Q, ()) == ["", ""]


def test_copying_reaches_the_end() -> None:
    assert prefixes(Q, echo(Q)).source_chars.tolist() == [3, 7, 12, 19, 25]
