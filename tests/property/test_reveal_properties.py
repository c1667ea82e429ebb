"""Invariants of prefixes and traces over random questions and random valid emissions."""

from __future__ import annotations

import numpy as np
from doubles import question
from hypothesis import given
from hypothesis import strategies as st

from sqa.core.trace import check_emissions, emissions_rows, emissions_table, hypotheses, prefixes
from sqa.core.types import Emission, Question

WORD = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=6)


@st.composite
def cases(draw: st.DrawFn, revising: bool = False) -> tuple[Question, tuple[Emission, ...]]:
    sentences = draw(st.lists(st.lists(WORD, min_size=1, max_size=5), min_size=1, max_size=4))
    emissions: list[Emission] = []
    for i, sentence in enumerate(sentences):
        written, g, ended = 0, 0, False
        for token in draw(st.lists(WORD, max_size=6)):
            g = draw(st.integers(g, len(sentence)))
            ended = ended or (g == len(sentence) and draw(st.booleans()))
            erase = draw(st.integers(0, written)) if revising else 0
            token = "" if erase and draw(st.booleans()) else token
            emissions.append(Emission(i, token, g, ended, erase))
            written += bool(token) - erase
    return question(sentences=[" ".join(sentence) for sentence in sentences]), tuple(emissions)


@given(cases())
def test_append_only_steps_grow(case: tuple[Question, tuple[Emission, ...]]) -> None:
    q, emissions = case
    steps = prefixes(q, emissions)
    assert steps.append_only and steps.texts == tuple(" ".join(steps.words[: t + 1]) for t in range(len(emissions)))
    assert np.all(np.diff(steps.fraction) >= 0) and np.all((steps.fraction >= 0) & (steps.fraction <= 1))
    assert np.all(np.diff(steps.source_words) >= 0)


@given(cases(revising=True))
def test_positions_last_text_and_table_under_revision(case: tuple[Question, tuple[Emission, ...]]) -> None:
    q, emissions = case
    check_emissions(q, emissions)
    steps = prefixes(q, emissions)
    for chars, words in zip(steps.source_chars, steps.source_words, strict=True):
        assert chars == len(" ".join(q.words[:words]))
    assert not emissions or steps.texts[-1] == " ".join(filter(None, hypotheses(q, emissions)))
    assert emissions_rows(emissions_table({q.id: emissions})) == ({q.id: emissions} if emissions else {})
