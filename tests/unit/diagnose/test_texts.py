"""Texts for alignment: only long sentences are cut into pieces."""

import numpy as np
import pytest

from sqa.core import Emission, Question, QuestionTrace
from sqa.data.datasets import load_questions
from sqa.diagnose.alignment import load_aligner
from sqa.diagnose.step_errors import LONG_SOURCE, PIECE_SOURCE, PIECE_TARGET, step_errors, texts_of

WORDS = [f"w{n}" for n in range(10_000)]


def trace_of(source: list[str], writes: list[Emission]) -> QuestionTrace:
    question = Question("q", "tests", "es", (("Antes.",), tuple(source)), ("Before.", "x"), "Page")
    return QuestionTrace(question, (Emission(0, "Before.", 1, False), *writes))


def written(words: list[str], lag: int, total: int) -> list[Emission]:
    return [Emission(1, word, min(n + lag, total), False) for n, word in enumerate(words, start=1)]


def test_ordinary_sentence_stays_whole() -> None:
    source = WORDS[:LONG_SOURCE]
    trace = trace_of(source, [*written(source, 0, 100), Emission(1, "x", 100, False, 3), Emission(1, "y", 100, False)])
    _, retracted, final = texts_of(trace)
    assert retracted.pair == (tuple(source), tuple(source)) and retracted.judged == {98, 99, 100}
    assert final.pair == (tuple(source), (*source[:-3], "x", "y")) and final.start == 0


@pytest.mark.parametrize(("sources", "targets"), [(101, 3), (3, 251), (10_000, 9_000), (500, 10_000), (1000, 0)])
def test_pieces_are_short_and_complete(sources: int, targets: int) -> None:
    source, target = WORDS[:sources], [f"t{n}" for n in range(targets)]
    trace = trace_of(source, written(target, 2, sources))
    pieces = texts_of(trace)[1:]
    assert [word for piece in pieces for word in piece.source] == source
    assert [word for piece in pieces for word in piece.words] == target
    assert [piece.start for piece in pieces] == np.cumsum([0, *(len(piece.source) for piece in pieces)])[:-1].tolist()
    assert all(len(piece.source) <= PIECE_SOURCE and len(piece.words) <= PIECE_TARGET for piece in pieces)
    assert all(piece.judged == set(piece.steps) and piece.final for piece in pieces)


def test_long_sentences_are_cut_at_shared_words() -> None:
    """Half of the source has no translation."""
    names = [f"Name{n}" if n % 7 == 0 else f"palabra{n}" for n in range(2000)]
    target = [word.replace("palabra", "word") for word in names[:500] + names[1500:]]
    for piece in texts_of(trace_of(names, written(target, 1500, 2000)))[1:]:
        found = {word for word in piece.words if word.startswith("Name")}
        assert found <= set(piece.source)


def test_retractions_in_long_sentences_stay_short() -> None:
    """Each word is judged once, and the texts do not grow with the sentence."""
    writes = []
    for n, word in enumerate(WORDS[:3000], start=1):
        writes += [Emission(1, f"{word}?", n, False), Emission(1, word, n, False, 1)]
    pieces = texts_of(trace_of(WORDS[:3000], writes))[1:]
    judged = [step for piece in pieces for step in piece.judged]
    assert sorted(judged) == list(range(1, 6001))
    ends = [piece for piece in pieces if not piece.final]
    assert len(ends) == 3000 and max(len(piece.source) + len(piece.words) for piece in ends) < 200
    assert all(piece.words[-1].rstrip("?") in piece.source for piece in ends)


def test_joined_sentences_keep_most_links() -> None:
    """Compare the links of all bundled questions, joined into one sentence, with those of separate sentences."""
    questions = load_questions("mini-es")
    pairs = [(s, tuple(t.split())) for q in questions for s, t in zip(q.sentences, q.reference, strict=True)]
    source, target = ([word for pair in pairs for word in pair[side]] for side in (0, 1))
    aligner = load_aligner("es-en", seeds=[0])
    [errors] = step_errors([trace_of(source, written(target, len(source), len(source)))], aligner)
    found = {(i - 1, step - 1) for step, links in enumerate(errors.links) if step for i in links}
    expected, starts = set(), (0, 0)
    for (words, written_words), alignment in zip(pairs, aligner.align(pairs), strict=True):
        expected |= {(starts[0] + i, starts[1] + j) for i, j in alignment.links}
        starts = starts[0] + len(words), starts[1] + len(written_words)
    assert len(source) > 1500 and len(found & expected) > 0.9 * max(len(found), len(expected))
