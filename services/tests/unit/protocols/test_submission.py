"""Submissions to a shared task: all problems are reported at once, and a valid file is scored like a run."""

import json
from pathlib import Path

import pytest

from sqa.core import Question
from sqa.data.datasets import load_questions
from sqa.metrics.qa import curve_named
from sqa_services.protocols import submission

QUESTIONS = "mini-es"


def rows(answered: bool = True) -> list[dict]:
    lines = []
    for question in load_questions(QUESTIONS):
        for step, word in enumerate(question.reference_text.split()):
            row = {"question": question.id, "step": step, "token": word, "g": min(step + 3, len(question.words))}
            if answered:
                row |= {"guess": question.page, "buzz": step == 4}
            lines.append(row)
    return lines


def run(folder: Path, lines: list[object], as_json: bool = True) -> int:
    path = folder / "submission.jsonl"
    path.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return submission.main(str(path), QUESTIONS, as_json)


def scores(capsys: pytest.CaptureFixture[str]) -> dict[str, dict]:
    return {row["metric"]: row for row in json.loads(capsys.readouterr().out)["scores"]}


def test_valid_submission_is_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, list(rows())) == 0
    by_metric = scores(capsys)
    curve = curve_named("qanta2018")
    questions = load_questions(QUESTIONS)
    fraction = [len(" ".join(q.words[:7])) / len(q.text) for q in questions]
    expected = sum(float(curve(f)) for f in fraction) / len(questions)
    assert by_metric["ew"]["value"] == pytest.approx(expected, abs=0.01)
    assert by_metric["accuracy"]["value"] == 1
    assert by_metric["al"]["value"] > 0 and by_metric["bleu"]["value"] > 0
    assert run(tmp_path, list(rows(answered=False))) == 0
    unanswered = scores(capsys)
    assert unanswered["ew"]["value"] is None and "no guesser ran" in unanswered["ew"]["refusal"]
    assert unanswered["al"] == by_metric["al"]


def test_problems_of_all_lines_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = rows()
    first, third = sorted({row["question"] for row in good})[:3:2]
    last = max(i for i, row in enumerate(good) if row["question"] == third)
    good[3] |= {"token": "two words"}
    sizes = {question.id: len(question.words) for question in load_questions(QUESTIONS)}
    good[12] |= {"g": sizes[good[12]["question"]] + 1}
    good[20] |= {"g": 1}
    good[last] |= {"step": 77}
    lines = [*good, "{\n", {"question": "nobody", "step": 0, "token": "a", "g": 1, "guess": "", "buzz": True}, [1]]
    row = good[0]
    lines += [row | {"step": True}, row | {"g": -1}, row | {"g": 1.5}, row | {"guess": "two\nlines"}, row | {"x": 1}]
    lines += [{key: row[key] for key in row if key != missing} for missing in ("token", "buzz")]
    assert run(tmp_path, lines) == 1
    problems = "\n".join(json.loads(capsys.readouterr().out)["problems"])
    for said in (
        "4: token: one word",
        "13: g: must be in",
        "21: g: must be in",
        f"{third} is at step",
        "not JSON",
        "the set has no 'nobody'",
        "Expected `object`, got `array`",
        "Expected `int`, got `bool` - at `$.step`",
        "Expected `int` >= 0 - at `$.g`",
        "Expected `int`, got `float` - at `$.g`",
        "guess: a page title without control characters expected",
        "unknown field `x`",
        "guess, buzz: a row has both or neither",
        "missing required field `token`",
    ):
        assert said in problems, (said, problems)
    assert f"step: {first} is at" not in problems  # not reported, because one row of this question cannot be read


def test_question_may_be_empty_but_not_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = rows()
    first = good[0]["question"]
    others: list[object] = [row for row in good if row["question"] != first]
    assert run(tmp_path, others, as_json=False) == 1
    assert f"question {first}: has no rows" in capsys.readouterr().err
    nothing = {"question": first, "step": 0, "token": "", "g": 0, "guess": "", "buzz": False}
    assert run(tmp_path, [nothing, *others], as_json=False) == 0
    assert capsys.readouterr().out.startswith("metric\tvalue\tsignature\new\t")


def test_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert submission.main("", "", schema=True) == 0
    row = json.loads(capsys.readouterr().out)["$defs"]["Row"]
    assert row["required"] == ["question", "step", "token", "g"]


def test_word_belongs_to_the_sentence_last_read() -> None:
    [question] = load_questions(QUESTIONS, 1)
    first = len(question.sentences[0])
    lines = [
        {"question": question.id, "step": step, "token": "x", "g": g} for step, g in enumerate((0, first, first + 1))
    ]
    problems: list[str] = []
    [trace] = submission.traces_of(map(json.dumps, lines), [question], problems)
    assert [(e.sentence, e.g) for e in trace.emissions] == [(0, 0), (0, first), (1, 1)] and not problems


@pytest.mark.parametrize("token", ["laser</s>", "&quot;laser", "la\u00adser", "la\ufffder", "▁laser", "la@@"])
def test_token_that_is_no_word_is_refused(token: str) -> None:
    question = Question("q", "t", "es", (("el", "láser"),), ("the laser",), "Laser")
    problems: list[str] = []
    line = {"question": "q", "step": 0, "token": token, "g": 1}
    submission.traces_of([json.dumps(line), json.dumps(line | {"token": "R&D", "step": 1})], [question], problems)
    assert len(problems) == 1 and problems[0].startswith("1: token: ") and "write the words" in problems[0]
