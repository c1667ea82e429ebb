"""Planted errors: the change of each kind, the random choice, and the counting of detected errors."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from recorded import recorded
from refusals import refused

from experiments.planted import found
from experiments.planted.learn import RATES, Signals, fit
from experiments.planted.materials import KINDS, Text, plant
from sqa.core.errors import DataError
from sqa.core.trace import QuestionTrace
from sqa.core.types import Question
from sqa.data.datasets import load_questions
from sqa.diagnose.signals import GROUPS, SIGNS


def test_planted_errors_match_reference() -> None:
    """The bundled detectors were trained on these errors, which depend only on the seed and the texts."""
    questions = [q for q in load_questions("mini-es") if len(q.reference) == len(q.sentences)]
    texts = [Text(q.id, q.sentences, tuple(tuple(line.split()) for line in q.reference)) for q in questions]
    sentences = (zip(each.words, each.kinds, strict=True) for each in plant(texts, RATES, tuple(KINDS), 0))
    lines = (" ".join(f"{word}[{kind}]" if kind else word for word, kind in sentence) for sentence in sentences)
    with recorded(Path(__file__)) as keep:
        keep("planted/mini-es", "\n".join(lines))


@pytest.mark.parametrize("language", ["es", "pl"])
def test_handmade_errors_are_in_the_bundled_questions(language: str) -> None:
    errors = []
    for question, lines in found.handmade(language):
        for line, reference in zip(lines, question.reference, strict=True):
            before, kept = reference.split(), [word for word, kind in line if not kind]
            kinds = {kind for _, kind in line} - {""}
            assert len(kinds) <= 1 and all(word in before for word in kept)
            assert ([word for word, _ in line] != before) == bool(kinds)
            errors += kinds
    assert len(errors) >= 70 and min(map(errors.count, errors)) >= 7


def test_error_is_marked_where_it_is_visible() -> None:
    given = [line for _, lines in found.handmade("es") for line in lines]
    marked = {(tuple(word for word, kind in line if kind), kind) for line in given for _, kind in line if kind}
    assert (("stopped",), "negation") in marked  # the missing "never" stood before this word
    assert (("Rome", "Hannibal"), "swapped") in marked and (("marble",), "adjective") in marked


def test_each_handmade_error_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def judged(traces: list[QuestionTrace], *_: object) -> list[SimpleNamespace]:
        flags = [[emission.token in ("Rome", "Hannibal", "Lima") for emission in trace.emissions] for trace in traces]
        return [SimpleNamespace(hallucinated=row) for row in flags]

    monkeypatch.setattr(found, "step_errors", judged)
    given = found.handmade("es")
    judgement = found.of_words(given, found.diagnosed("es", "words", given, None), together=True)
    every, *kinds = found.lines_of("es", "words", judgement)
    assert every[2:5] == ["all", "72", "1"] and int(every[5]) > 2
    assert every[6:] == [f"{2 / int(every[5]):.3f}", "0.014"]  # both words of one error
    assert next(line for line in kinds if line[2] == "swapped")[3:] == ["8", "1", "n/a", "n/a", "0.125"]


def test_planted_words_and_dropped_clauses_are_counted(monkeypatch):
    question = Question("q", "d", "es", (("uno", "dos"), ("tres",)), ("one two", "three four"), "Page")
    lines = [[("one", ""), ("new", "inserted"), ("other", "inserted"), ("two", "")], [("three", "")]]
    omitted = SimpleNamespace(kind="omission", sentence=1)
    errors = [SimpleNamespace(hallucinated=[True, True, False, False, False], findings=[omitted])]
    words = list(found.lines_of("es", "words", found.of_words([(question, lines)], errors, together=False)))
    assert words == [
        ["es", "words", "all", "2", "1", "2", "0.500", "0.500"],
        ["es", "words", "inserted", "2", "1", "n/a", "n/a", "0.500"],
    ]
    assert found.of_sentences([(question, lines)], errors) == [("", False, (0, 0)), ("dropped", True, (0, 1))]


def test_mismatched_line_error_names_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found, "FILE", tmp_path / "handmade.tsv")
    for line, message in (
        ("2\tLondon", "handmade.tsv:1: 'London' must occur once"),
        ("2\te", "handmade.tsv:1: 'e' must occur once in the sentence"),
        ("9\tLima", "no bundled question has"),
    ):
        found.FILE.write_text(f"noun\tes\tmini-001\t{line}\tParis\n", encoding="utf-8")
        refused(DataError, message, found.handmade, "es")


def table(kind: str, texts: int = 30) -> Signals:
    """Return the signals of texts with one wrong word, whose first signal is 51, and three correct words with 50."""
    signals = np.zeros((4 * texts, len(GROUPS["words"])))
    signals[:, 0] = 50.0
    signals[::4, 0] = 51.0
    kinds = np.array([kind if i % 4 == 0 else "" for i in range(4 * texts)])
    return Signals(signals, kinds, np.repeat([f"{kind}{i}" for i in range(texts)], 4))


def test_probability_is_the_share_of_wrong_words() -> None:
    """Half of the words whose first signal is 51 are wrong, and all other words are correct."""
    given = table("noun", 60)
    given.signals[1::4, 0] = 51.0
    p = fit(given).probabilities(given.signals)
    assert p[::4] == pytest.approx(0.5, abs=0.1) and p[2::4].max() < 0.1


def test_training_is_effective_and_deterministic() -> None:
    given = table("noun")
    network = fit(given)
    p = network.probabilities(given.signals)
    assert p[::4].min() > 0.9 and p[1::4].max() < 0.1
    assert fit(given).record() == network.record()
    for name, inner in zip(GROUPS["words"], np.moveaxis(network.inner, 1, 0), strict=True):
        sign = SIGNS.get(name)  # 0 allows both signs, None requires zero weights
        assert sign == 0 or (not inner.any() if sign is None else (sign * inner >= 0).all())
    assert not set(GROUPS["words"]) <= set(SIGNS)
