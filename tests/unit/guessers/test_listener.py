"""Listening questions: reading the files, answering from the partial translation, and scoring by time."""

import json
from dataclasses import replace
from pathlib import Path

import jsonschema_rs
import pytest
from refusals import refused
from tables import tables_of

import sqa
from sqa.core import DATA, Asked, ConfigError, DataError, Emission, Guess, Question, QuestionTrace
from sqa.data.datasets import load_questions
from sqa.metrics.qa import AnswerLag

TABLES = tables_of(__file__)

FOLDER = DATA / "listening"
FILE = FOLDER / "questions.jsonl"
FINDER = f"{Path(__file__).parents[2] / 'stand_ins' / 'finder.py'}:Finder"
SCHEMA = json.loads((FOLDER / "schema.json").read_text(encoding="utf-8"))
RECORDS = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def run(reveal: str, runs: Path, guesser: str = FINDER) -> dict[str, float]:
    translator = {"name": "fixed", "text": "reference", "reveal": reveal}
    buzzer = {"name": "oracle"}
    config = {"name": "heard", "dataset": {"name": str(FILE)}, "translator": translator, "guesser": guesser}
    config |= {"buzzer": buzzer, "metrics": ["ew", "oracle-ew", "accuracy", "answer-lag"]}
    return {name: float(value) for name, value in sqa.run(config, runs=runs, progress=False).metrics.items()}


def test_longer_wait_delays_the_listeners_answer(tmp_path: Path) -> None:
    paced, late = (run(reveal, tmp_path) for reveal in ("diagonal", "full"))
    assert paced["accuracy"] == late["accuracy"] == 1
    assert paced["ew"] > late["ew"] and paced["oracle-ew"] > late["oracle-ew"] > 0
    assert paced["answer-lag"] == pytest.approx(1 / 3) and late["answer-lag"] > 10


def test_answer_lag_is_undefined_without_right_answer(tmp_path: Path) -> None:
    (tmp_path / "nothing.txt").write_text("Nothing.\n" * len(RECORDS))
    translator = {"name": "fixed", "text": str(tmp_path / "nothing.txt"), "unit": "question"}
    config = {"name": "deaf", "dataset": {"name": str(FILE)}, "translator": translator, "guesser": FINDER}
    rows = sqa.run(config | {"metrics": ["answer-lag", "ew"]}, runs=tmp_path, progress=False).rows
    assert rows["answer-lag"].signature == "not computed: no question ends with a right answer"
    assert rows["ew"].signature == "not computed: no buzzer ran on harbour" and rows["ew"].value is None


def test_page_guesser_is_refused(tmp_path: Path) -> None:
    refused(ConfigError, "question harbour asks 'Who enlarged the harbour of the city", run, "full", tmp_path, "bm25")


# ------------------------------------------------------------------------------------------------------------- lags

QUESTION = Question("q", "d", "es", (("a", "b", "c", "d"),), ("x",), "P", asked=Asked("Who?", ("Peter", "Pedro"), 2))


def trace(question: Question, *answers: str) -> QuestionTrace:
    emissions = tuple(Emission(0, "w", g, False) for g in range(1, len(answers) + 1))
    return QuestionTrace(question, emissions, tuple((Guess(a, 1.0),) if a else () for a in answers), None)


def test_answer_lag_equals_hand_computed_value() -> None:
    metric = AnswerLag()
    assert metric.stats(trace(QUESTION, "", "Pedro", "Paul", "Peter")).tolist() == [2.0, 1.0]  # stable from word 4 on
    assert metric.stats(trace(QUESTION, "pedro", "Peter")).tolist() == [-1.0, 1.0]
    assert metric.stats(trace(QUESTION, "Peter", "Paul")).tolist() == [0.0, 0.0]
    for question in (replace(QUESTION, asked=None), replace(QUESTION, asked=Asked("Who?", ("Peter",)))):
        refused(Exception, "question q has no earliest_answerable", metric.stats, trace(question, "Peter"))


# ---------------------------------------------------------------------------------------------------- files, schema


def test_example_follows_its_schema() -> None:
    questions = load_questions(str(FILE))
    assert len(questions) == 6 and all(jsonschema_rs.is_valid(SCHEMA, record) for record in RECORDS)
    assert questions[0].page == "Clara Montes" and questions[0].asked is not None
    for question, record in zip(questions, RECORDS, strict=True):
        assert question.asked == Asked(record["question"], tuple(record["answers"]), record["earliest_answerable"])


WRONG = TABLES["wrong"]
# refused by the loader but not by the schema: an answer without a word, control characters, word counts
BEYOND = (["..."], "a\tb", 1000, [])


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in WRONG.items() for value in values])
def test_invalid_records_are_refused(key: str, value: object, tmp_path: Path) -> None:
    record = {**RECORDS[0], key: value}
    path = tmp_path / "q.jsonl"
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    refused(DataError, "record 0", load_questions, str(path))
    assert any(value == beyond for beyond in BEYOND) or not jsonschema_rs.is_valid(SCHEMA, record)


def test_question_needs_answers(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    plain = {"language": "es", "source": "Uno.", "reference": "One.", "question": "Who?"}
    path.write_text(json.dumps({**plain, "page": "P"}) + "\n", encoding="utf-8")
    refused(DataError, "answers: expected a list of texts, the right answers, got None", load_questions, str(path))
    del plain["question"]
    path.write_text(json.dumps({**plain, "answers": ["Peru", "Perú"]}) + "\n", encoding="utf-8")
    [question] = load_questions(str(path))
    assert question.asked == Asked("", ("Peru", "Perú")) and question.page == "Peru"
