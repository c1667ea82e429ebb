"""Planted errors: what each kind does to a sentence, what is drawn, and how finding them is counted."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from recorded import recorded
from refusals import refused

from experiments.planted import found, materials
from experiments.planted.learn import RATES, SERVED, Signals, fit
from experiments.planted.materials import KINDS, Text, plant, rng_for
from experiments.planted.once import best_threshold, row, unseen
from sqa.core.errors import DataError
from sqa.core.registry import SCORERS
from sqa.core.trace import QuestionTrace
from sqa.core.types import Question
from sqa.data.datasets import load_questions
from sqa.diagnose.signals import GROUPS, SIGNS
from sqa.diagnose.step_errors import DiagnoseConfig


def test_what_is_planted_is_as_recorded() -> None:
    """The shipped detectors learnt from it: kinds, places and words, by seed and text alone."""
    questions = [q for q in load_questions("mini-es") if len(q.reference) == len(q.sentences)]
    texts = [Text(q.id, q.sentences, tuple(tuple(line.split()) for line in q.reference)) for q in questions]
    sentences = (zip(each.words, each.kinds, strict=True) for each in plant(texts, RATES, tuple(KINDS), 0))
    lines = (" ".join(f"{word}[{kind}]" if kind else word for word, kind in sentence) for sentence in sentences)
    with recorded(Path(__file__)) as keep:
        keep("planted/mini-es", "\n".join(lines))


def test_an_unrelated_word_is_like_no_word_of_either_text() -> None:
    drawn = {materials.unrelated_word(["Goethe", "Viennese"], ["Lima", "Vienna"], rng_for(seed)) for seed in range(9)}
    assert drawn == {"Goethe"} and materials.unrelated_word(["Viennese"], ["Lima", "Vienna"], rng_for(0)) is None


@pytest.mark.parametrize("language", ["es", "pl"])
def test_handmade_errors_stand_in_the_bundled_questions(language: str) -> None:
    errors = []
    for question, lines in found.handmade(language):
        for line, reference in zip(lines, question.reference, strict=True):
            before, kept = reference.split(), [word for word, kind in line if not kind]
            kinds = {kind for _, kind in line} - {""}
            assert len(kinds) <= 1 and all(word in before for word in kept)
            assert ([word for word, _ in line] != before) == bool(kinds)
            errors += kinds
    assert len(errors) >= 70 and min(map(errors.count, errors)) >= 7


def test_an_error_is_marked_where_it_is_seen() -> None:
    given = [line for _, lines in found.handmade("es") for line in lines]
    marked = {(tuple(word for word, kind in line if kind), kind) for line in given for _, kind in line if kind}
    assert (("stopped",), "negation") in marked  # "never" was left out before it
    assert (("Rome", "Hannibal"), "swapped") in marked and (("marble",), "adjective") in marked


def test_handmade_errors_are_counted_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    def judged(traces: list[QuestionTrace], *_: object) -> list[SimpleNamespace]:
        flags = [[emission.token in ("Rome", "Hannibal", "Lima") for emission in trace.emissions] for trace in traces]
        return [SimpleNamespace(hallucinated=row) for row in flags]

    monkeypatch.setattr(found, "step_errors", judged)
    given = found.handmade("es")
    judgement = found.of_words(given, found.diagnosed("es", "words", given, None), together=True)
    every, *kinds = found.lines_of("es", "words", judgement)
    assert every[2:5] == ["all", "72", "1"] and int(every[5]) > 2
    assert every[6:] == [f"{2 / int(every[5]):.3f}", "0.014"]  # of one error both words
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


def test_the_command_uses_the_given_threshold(monkeypatch, capsys):
    def judged(traces: list[QuestionTrace], _: object, config: DiagnoseConfig, *__: object) -> list[SimpleNamespace]:
        return [SimpleNamespace(hallucinated=[config.probability < 0.5] * len(one.emissions)) for one in traces]

    monkeypatch.setattr(found, "step_errors", judged)
    for options, hits in ([], "0"), (["--probability", "0.2"], "72"):
        found.main(["es", "--detector", "words", *options])
        assert capsys.readouterr().out.splitlines()[1].split("\t")[:5] == ["es", "words", "all", "72", hits]


def test_a_line_that_does_not_fit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found, "FILE", tmp_path / "handmade.tsv")
    for line, message in (
        ("2\tLondon", "handmade.tsv:1: 'London' must be"),
        ("2\te", "handmade.tsv:1: 'e' must be in the sentence once"),
        ("9\tLima", "no bundled question has"),
    ):
        found.FILE.write_text(f"noun\tes\tmini-001\t{line}\tParis\n", encoding="utf-8")
        refused(DataError, message, found.handmade, "es")


def table(kind: str, texts: int = 30) -> Signals:
    """A wrong word per text, whose first signal is 51, and three right ones with 50."""
    signals = np.zeros((4 * texts, len(GROUPS["words"])))
    signals[:, 0] = 50.0
    signals[::4, 0] = 51.0
    kinds = np.array([kind if i % 4 == 0 else "" for i in range(4 * texts)])
    return Signals(signals, kinds, np.repeat([f"{kind}{i}" for i in range(texts)], 4))


def test_training_is_effective_and_deterministic() -> None:
    given = table("noun")
    network = fit(given)
    p = network.probabilities(given.signals)
    assert p[::4].min() > 0.9 and p[1::4].max() < 0.1
    assert fit(given).record() == network.record()
    for name, inner in zip(GROUPS["words"], np.moveaxis(network.inner, 1, 0), strict=True):
        sign = SIGNS.get(name)  # 0: may count both ways
        assert sign == 0 or (not inner.any() if sign is None else (sign * inner >= 0).all())
    assert not set(GROUPS["words"]) <= set(SIGNS)


def test_each_text_is_judged_by_an_unseen_kinds_network() -> None:
    one, other = table("name", 2), table("noun", 2)
    test = Signals(
        *(np.concatenate([getattr(t, part) for t in (one, other)]) for part in ("signals", "kinds", "texts"))
    )
    says: Any = [SimpleNamespace(probabilities=lambda s, p=p: np.full(len(s), p)) for p in (0.25, 0.75, 0.5)]
    judged = unseen(test, {"name": says[0], "noun": says[1]}, says[2])
    assert judged.tolist() == [0.25] * 8 + [0.75] * 8


def test_counts_at_a_threshold() -> None:
    p, planted = np.array([0.9, 0.8, 0.7, 0.1]), np.array([True, False, True, False])
    assert row("es", "words", "all", 0.75, p, planted)[3:] == ["0.750", "2", "2", "1", "0.500", "0.500"]
    assert best_threshold(p, planted) == 0.7
    assert row("es", "words", "none", 0.95, p, np.zeros(4, dtype=bool))[-2:] == ["n/a", "n/a"]


def test_every_group_of_signals_is_served_by_a_scorer() -> None:
    assert sorted(group for groups in SERVED.values() for group in groups) == sorted(GROUPS)
    assert set(SERVED) == set(SCORERS.names())
