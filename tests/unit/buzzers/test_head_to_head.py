"""Games between a system and recorded opponents: points, word counts and excluded questions."""

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doubles import question, write_questions
from refusals import refused

from experiments.studies import head_to_head as h2h
from sqa.core.errors import ConfigError, DataError
from sqa.core.trace import QuestionTrace
from sqa.core.types import Buzz, Emission, Guess
from sqa.data import datasets, human_buzzes

NEVER = np.inf


def opponents(*heard_right: tuple[int, bool]) -> h2h.Opponents:
    heard, right = zip(*heard_right, strict=True)
    return h2h.Opponents(np.array(heard), np.array(right))


def as_published(play: h2h.Play, heard: int, right: bool) -> int:
    """Return the points against one opponent, as in simulate_game of qanta/buzzer/eval.py (Pinafore/qb)."""
    if play.buzz < heard:
        return 10 if play.right else (-15 if right else -5)
    if right:
        return -10
    return 15 if play.right_at_end else 5


def test_points_follow_the_published_rule() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        them = h2h.Opponents(rng.integers(1, 9, 6), rng.random(6) < 0.6)
        play = h2h.Play(float(rng.integers(1, 10)), bool(rng.random() < 0.5), bool(rng.random() < 0.5), NEVER)
        expected = [as_published(play, h, r) for h, r in zip(them.heard.tolist(), them.right.tolist(), strict=True)]
        assert h2h.points(play, them).tolist() == expected


def test_measures_equal_hand_computed_values() -> None:
    play = h2h.Play(buzz=4, right=True, right_at_end=True, first_right=3)
    them = opponents((5, True), (9, False), (4, True), (2, False), (3, True))
    actual = {name: total / weight for name, (total, weight) in h2h.measures(play, them).items()}
    # The points are +10, +10, -10 (tie), +15, -10. A perfect buzzer answers at word 3 and loses only the tie there.
    assert actual["points"] == pytest.approx(15 / 5)
    assert (actual["beaten"], actual["lost-to"], actual["neither"]) == pytest.approx((0.6, 0.4, 0.0))
    assert (actual["buzzes-first"], actual["right-when-first"], actual["beatable"]) == pytest.approx((0.4, 1.0, 0.8))
    assert sum(actual[f"{value:+d}"] for value in h2h.POINTS) == pytest.approx(1)


def trace(page: str, guesses: list[str], buzz_at: int | None) -> QuestionTrace:
    emissions = [Emission(0, "w", 1, False), Emission(0, "w", 2, False), Emission(1, "w", 1, False)][: len(guesses)]
    buzzes = tuple(Buzz(0.0, step == buzz_at) for step in range(len(guesses)))
    return QuestionTrace(question(page=page), tuple(emissions), tuple((Guess(g, 1.0),) for g in guesses), buzzes)


def test_play_counts_the_words_of_all_sentences() -> None:
    assert h2h.play_of(trace("Spain", ["France", "Spain", "Spain"], 2)) == h2h.Play(3.0, True, True, 2.0)
    assert h2h.play_of(trace("Spain", ["Spain", "Spain", "France"], None)) == h2h.Play(NEVER, False, False, 1.0)
    assert h2h.play_of(trace("Spain", [], None)) == h2h.Play(NEVER, False, False, NEVER)


def buzz_file(path: Path, *rows: tuple[str, int, int, bool]) -> str:
    listed = [
        {"qid": qid, "rel_pos": word / words, "word_index": word, "n_words": words, "correct": correct, "game": i}
        for i, (qid, word, words, correct) in enumerate(rows)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in listed))
    return str(path)


def test_opponents_hear_the_word_they_buzz_on(tmp_path: Path) -> None:
    source = buzz_file(tmp_path / "b.jsonl", ("q", 2, 5, True), ("q", 5, 5, False), ("other", 0, 9, True))
    loaded = human_buzzes.load_buzzes(source)
    actual = h2h.opponents_of(loaded, [question("q")], first_word=0)
    assert list(actual) == ["q"]
    assert (actual["q"].heard.tolist(), actual["q"].right.tolist()) == ([3, 5], [True, False])
    assert h2h.opponents_of(loaded, [question("q")], first_word=1)["q"].heard.tolist() == [2, 5]
    with pytest.raises(DataError, match="buzzes on other count 9 words, but the question has 5"):
        h2h.opponents_of(loaded, [question("other")], first_word=0)
    with pytest.raises(DataError, match="needs the columns word_index and n_words"):
        h2h.opponents_of(replace(loaded, word=None), [question("q")], first_word=0)


# --- overlap ---------------------------------------------------------------------------------------------------------

TEXT = "this river flows through cracow and warsaw before it reaches the baltic sea near gdansk in the north"


def training(path: Path, *texts: str) -> str:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return str(path)


def test_repeated_question_is_found(tmp_path: Path) -> None:
    asked = [question("a", [TEXT]), question("b", ["an entirely other text about some mountains of the far south"])]
    changed = TEXT.upper().replace(" AND ", ", and ") + " for ten points name this river"
    source = training(tmp_path / "t.jsonl", "nothing in common with any of them at all", changed)
    [actual] = h2h.nearest(asked, [source]).values()
    assert (actual.question, actual.text, actual.excluded) == ("a", f"{source}:1", True) and actual.share == 1.0
    quoted = training(tmp_path / "q.jsonl", "it reaches the baltic sea near gdansk " + " ".join(map(str, range(40))))
    [actual] = h2h.nearest(asked, [quoted]).values()
    assert not actual.excluded and actual.runs == 2
    (tmp_path / "bad.jsonl").write_text('{"title": "x"}\n')
    refused(DataError, "record 0: has no text", h2h.nearest, asked, [str(tmp_path / "bad.jsonl")])


# --- the command -----------------------------------------------------------------------------------------------------


def config(tmp_path: Path, **changes: Any) -> Path:
    """Write a config with nine questions and return its path; q0 is also in the training data and q1 has no buzz."""
    questions = write_questions(tmp_path / "questions.jsonl", 9)
    texts = {q.id: q.text for q in datasets.load_questions(str(questions))}
    rows = [(id, word, len(text.split()), word % 2 == 0) for id, text in texts.items() for word in (3, 8) if id != "q1"]
    parts = {kind: {"name": f"doubles:build_{kind}"} for kind in ("guesser", "buzzer")}
    mapping = {"name": "mine", "dataset": str(questions), "buzzes": buzz_file(tmp_path / "buzzes.jsonl", *rows)}
    mapping |= {"training": [training(tmp_path / "training.jsonl", texts["q0"], "something else")]}
    mapping |= {"contestants": [{"label": "keyword", **parts}], "metrics": ["ew", "accuracy"], "resamples": 50}
    path = tmp_path / "mine.yaml"
    path.write_text(json.dumps(mapping | changes))
    return path


def test_head_to_head_command_prints_the_points(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    h2h.main(config(tmp_path), tmp_path / "runs")
    printed = capsys.readouterr()
    text = (tmp_path / "runs" / "mine" / "head_to_head.csv").read_text()
    assert printed.out.startswith(text.replace(",", "\t"))
    lines = list(csv.DictReader(text.splitlines()))
    values = {line["metric"]: float(line["value"]) for line in lines}
    assert {line["n"] for line in lines} == {"7"}
    assert "7 of 9 questions, 14 opponents; 1 without a recorded buzz, 1 in the training data" in printed.err
    assert values["beaten"] + values["lost-to"] + values["neither"] == pytest.approx(1, abs=1e-5)
    assert values["points"] == pytest.approx(sum(v * values[f"{v:+d}"] for v in h2h.POINTS), abs=1e-4)
    # 4 of the 7 answers are Spain or France, which appear at word 8 of 9. The third answer never appears.
    assert values["accuracy"] == pytest.approx(4 / 7, abs=1e-5)
    assert "ew" in values and values["beatable"] >= values["beaten"]
    assert (tmp_path / "runs" / "mine" / "left_out.csv").read_text().splitlines()[1].split(",")[0] == "q0"
    h2h.main(config(tmp_path, opponents="first", buzzes=str(tmp_path / "buzzes.jsonl")), tmp_path / "runs")
    assert "opponents:first" in capsys.readouterr().out


BAD: list[tuple[type[Exception], str, dict[str, Any]]] = [
    (ConfigError, "first_word: must be 0 or 1, got 2", {"first_word": 2, "resamples": 0}),
    (ConfigError, "contestants: at least one", {"contestants": []}),
    (ConfigError, "oponents", {"oponents": "all"}),
    (ConfigError, "'ews'", {"metrics": ["ews"]}),
]


@pytest.mark.parametrize(("kind", "message", "changes"), BAD)
def test_invalid_configs_are_refused(
    kind: type[Exception], message: str, changes: dict[str, Any], tmp_path: Path
) -> None:
    refused(kind, message, h2h.main, config(tmp_path, **changes), tmp_path / "runs")


def test_questions_without_buzzes_are_refused(tmp_path: Path) -> None:
    elsewhere = config(tmp_path, buzzes=buzz_file(tmp_path / "other.jsonl", ("x", 1, 2, True)))
    refused(DataError, "no question has a recorded buzz", h2h.main, elsewhere, tmp_path / "runs")


@pytest.mark.mirror
def test_real_questions_match_the_buzzes() -> None:
    questions = datasets.load_questions("human-buzzes")
    assert len(questions) == 2569 and questions[0].language == "en"
    actual = h2h.opponents_of(human_buzzes.load_buzzes("human-buzzes", "clip"), questions, first_word=0)
    assert len(actual) == 2569
