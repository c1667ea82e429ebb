"""The board: registration queues, workers finish each evaluation once, the leaderboard, files, submissions."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import board_task
import pytest
from board_task import model
from sqlalchemy import select, update

from sqa.core.errors import ConfigError, DataError
from sqa.data.datasets import load_questions
from sqa.files.store import Store
from sqa.run import pipeline
from sqa.run.config import DatasetConfig
from sqa_services.board import queue, sqa_task, worker
from sqa_services.board.board import Board, BoardConfig, NotFound, Taken
from sqa_services.board.files import Files, as_lines
from sqa_services.board.storage import EVALUATIONS, SCORES
from sqa_services.board.task import load_tasks

LEASE = 60.0


def add_data(board: Board, name: str = "data", perturb: bool = True) -> dict:
    return board.register_dataset("toy", name, board_task.EXAMPLES, ["casing"] if perturb else [])


def states(board: Board) -> list[tuple[str, str, str, str]]:
    return [(e["model"], e["dataset"], e["prefix"], e["state"]) for e in board.evaluations("toy")]


# --------------------------------------------------------------------------------------------------- registration


def test_each_registration_queues_what_it_makes_possible(board: Board) -> None:
    assert board.register_model("toy", "m1", "submission", model("m1"))["queued"] == 0
    assert add_data(board)["queued"] == 2
    assert board.register_model("toy", "m2", "submission", model("m2"))["queued"] == 2
    assert add_data(board, "more", perturb=False)["queued"] == 2
    assert len(states(board)) == 6 and set(states(board)) >= {
        ("m1", "data", "robustness", "queued"),
        ("m2", "more", "", "queued"),
    }
    assert board.evaluations("sqa-es") == []


def test_names_are_unique_and_plain(board: Board) -> None:
    add_data(board)
    with pytest.raises(Taken, match="has a 'data' already"):
        add_data(board)
    for name in ("", "A", "../x", "a" * 64, "a\n"):
        with pytest.raises(ConfigError, match="a name is"):
            board.register_model("toy", name, "submission", model("m"))
    with pytest.raises(ConfigError, match="marks perturbed copies"):
        add_data(board, "robustness-x")
    with pytest.raises(NotFound, match="no task 'tou', did you mean 'toy'"):
        board.register_model("tou", "m", "submission", model("m"))
    with pytest.raises(ConfigError, match="its kind"):
        board.register_model("toy", "m", "pickle", model("m"))
    assert board.models("toy") == []


def test_a_name_taken_leaves_the_first_ones_file(board: Board) -> None:
    board.register_model("toy", "m", "submission", model("first"))
    with pytest.raises(Taken):
        board.register_model("toy", "m", "submission", model("second"))
    assert json.loads(board.files.read("models/toy/m.submission"))["name"] == "first"


def test_tasks_are_checked() -> None:
    assert set(load_tasks(["board_task:make"])) == {"sqa-es", "sqa-pl", "toy"}
    for target in ("board_task:nothing", "nowhere:make", "board_task:not_a_task", ":"):
        with pytest.raises(ConfigError, match="task "):
            load_tasks([target])


def test_other_databases_are_refused(tmp_path: Path) -> None:
    for url in ("nonsense", "mysql://localhost/x", "sqlite+what:///x"):
        with pytest.raises(ConfigError, match="--db"):
            Board.open(BoardConfig(tmp_path, db=url))
    with pytest.raises(ConfigError, match="--files"):
        Board.open(BoardConfig(tmp_path, files="what://x"))


# -------------------------------------------------------------------------------------------------------- workers


def test_a_worker_evaluates_everything_once(board: Board) -> None:
    add_data(board)
    board.register_model("toy", "right", "submission", model("right"))
    board.register_model("toy", "half", "submission", model("half", answers={"eins": "a", "": "x"}))
    assert worker.work(board, until_empty=True) == 4
    assert {state for *_, state in states(board)} == {"done"}
    by_name = {(e["model"], e["prefix"]): e["result"] for e in board.evaluations("toy")}
    assert by_name["right", ""]["pretty_perf"] == "100.0 %" and by_name["half", ""]["perf"] == 33.33
    assert by_name["right", ""]["job"] == {"examples_per_second": 6.0, "memory_utilization": 1.0}
    assert by_name["right", "robustness"]["robustness"] == 0.0  # upper case is not among its answers
    assert by_name["half", "robustness"]["robustness"] == 50.0
    assert worker.work(board, until_empty=True) == 0
    lines = board.files.read_lines("predictions/toy/half/data.jsonl")
    assert lines[0] == {"id": "1", "label": "a"}


def test_what_a_model_does_wrong_is_its_result(board: Board) -> None:
    add_data(board)
    board.register_model("toy", "bad", "submission", model("bad", refusal="no \x00 such \ud800 thing"))
    board.register_model("toy", "good", "submission", model("good"))
    assert worker.work(board, until_empty=True) == 3  # the fourth cannot begin
    outcomes = {(e["model"], e["prefix"]): (e["state"], e["error"]) for e in board.evaluations("toy")}
    assert outcomes["bad", ""] == ("failed", "no \\x00 such ? thing")
    assert outcomes["bad", "robustness"] == ("failed", "the evaluation on the original data failed")
    assert outcomes["good", "robustness"] == ("done", None)


def test_a_mistake_of_the_program_ends_the_worker_and_is_given_up(board: Board) -> None:
    add_data(board, perturb=False)
    board.register_model("toy", "m", "submission", model("m", mistake="oh"))
    for _ in range(queue.MAX_ATTEMPTS):
        with pytest.raises(ValueError, match="oh"):
            worker.work(board, until_empty=True, lease_seconds=0.05, poll_seconds=0.05)
    assert worker.work(board, until_empty=True, lease_seconds=0.05, poll_seconds=0.05) == 0
    [row] = board.evaluations("toy")
    assert row["state"] == "failed" and f"died {queue.MAX_ATTEMPTS} times" in row["error"]


def test_a_lost_lease_writes_nothing(board: Board) -> None:
    add_data(board, perturb=False)
    board.register_model("toy", "m", "submission", model("m"))
    first = queue.claim(board.engine, LEASE)
    assert queue.claim(board.engine, LEASE) is None and queue.renew(board.engine, first, LEASE)
    with board.engine.begin() as connection:
        connection.execute(update(EVALUATIONS).values(lease_until=0.0))
    second = queue.claim(board.engine, LEASE)
    assert second.id == first.id and second.lease != first.lease
    assert not queue.renew(board.engine, first, LEASE) and not queue.finish(board.engine, first, {"by": "first"})
    assert not queue.fail(board.engine, first, "late")
    assert queue.finish(board.engine, second, {"by": "second"})
    assert not queue.finish(board.engine, second, {"by": "second again"})
    with board.engine.connect() as connection:
        assert connection.execute(select(SCORES.c.result)).scalars().all() == [{"by": "second"}]


def test_perturbed_data_wait_for_the_original(board: Board) -> None:
    add_data(board)
    board.register_model("toy", "m", "submission", model("m"))
    original = queue.claim(board.engine, LEASE)
    assert original.prefix == "" and queue.claim(board.engine, LEASE) is None
    queue.finish(board.engine, original, {})
    assert queue.claim(board.engine, LEASE).prefix == "robustness"


# ---------------------------------------------------------------------------------------------------- leaderboard


def test_leaderboard(board: Board) -> None:
    add_data(board)
    for name, answers in (("best", {"eins": "a", "zwei": "b", "DREI": "c", "EINS": "a"}), ("half", {"": "a"})):
        board.register_model("toy", name, "submission", model(name, answers=answers))
    worker.work(board, until_empty=True)
    board.register_model("toy", "new", "submission", model("new"))
    ranked = board.leaderboard("toy")
    assert [row["model"] for row in ranked["rows"]] == ["best", "half", "new"] and ranked["refusal"] is None
    best, half, new = ranked["rows"]
    assert best["metrics"]["robustness"] == 50.0 and half["metrics"]["robustness"] == 100.0
    rate = 50.0 / (100.0 - 33.33)
    assert best["dynascore"] == pytest.approx(0.5 * 100 + 0.5 * 50 / rate)
    assert new["missing"] == ["accuracy", "robustness"] and new["dynascore"] is None
    assert board.leaderboard("toy", {"robustness": 1.0})["rows"][0]["model"] == "half"
    assert "memory_utilization is the same" in board.leaderboard("toy", {"memory_utilization": 1.0})["refusal"]
    with pytest.raises(NotFound, match="no data set 'other'"):
        board.leaderboard("toy", datasets=["other"])
    assert board.export("toy")["leaderboard"] == ranked


def test_examples_are_found_by_name_and_prefix(board: Board) -> None:
    add_data(board)
    assert [e["id"] for e in board.examples("toy", "data")] == ["1", "2", "3"]
    assert [e["text"] for e in board.examples("toy", "robustness-data")] == ["EINS", "ZWEI"]
    for name in ("fairness-data", "other", "robustness-other"):
        with pytest.raises(NotFound):
            board.examples("toy", name)


# ---------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("where", ["folder", "memory://board-test"])
def test_files(where: str, tmp_path: Path) -> None:
    files = Files(str(tmp_path / "files") if where == "folder" else where)
    files.write("a/b.jsonl", as_lines([{"x": "ü"}, {"x": 2}]))
    assert files.read_lines("a/b.jsonl") == [{"x": "ü"}, {"x": 2}]
    files.write("a/b.jsonl", b"")
    assert files.read_lines("a/b.jsonl") == []
    with pytest.raises(DataError, match="is missing"):
        files.read("a/c")


# ------------------------------------------------------------------------------------------ the task of questions


def submission(page: str | None = None, suffix: str = "") -> bytes:
    rows = []
    for q in load_questions("mini-es"):
        for step, word in enumerate(q.reference_text.split()):
            g = min(step + 3, len(q.words))
            row = {"question": q.id + suffix, "step": step, "token": word, "g": g, "guess": page or q.page}
            rows.append(row | {"buzz": step == 40})
    return as_lines(rows)


def test_submissions_are_evaluated_like_runs(board: Board) -> None:
    board.register_dataset("sqa-es", "mini", "mini-es", ["casing"])
    board.register_model("sqa-es", "right", "submission", submission() + submission(suffix="_casing"))
    board.register_model("sqa-es", "wrong", "submission", submission("Nowhere"))
    worker.work(board, until_empty=True)
    evaluations = {(e["model"], e["prefix"]): e for e in board.evaluations("sqa-es")}
    metadata = json.loads(evaluations["right", ""]["result"]["metadata_json"])
    assert metadata["qa_accuracy"] == 1.0 and metadata["corpus_bleu"] == pytest.approx(100)
    tags = {row["tag"]: row["n"] for row in metadata["perf_by_tag"]}
    assert tags["sentences:4"] == 45 and sum(n for tag, n in tags.items() if tag.startswith("category:")) == 45
    assert evaluations["right", "robustness"]["result"]["robustness"] == 100.0
    assert evaluations["wrong", ""]["result"]["perf"] == 0.0
    assert (
        evaluations["wrong", "robustness"]["state"] == "failed"
        and "has no rows" in evaluations["wrong", "robustness"]["error"]
    )


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "no rows"),
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "1: lists and objects lie more than"),
        (b'{"question": 1}', "1: question: Input should be a valid string"),
        (b'{"question": "q", "g": ' + b"1" * 5000 + b"}", "1: "),
    ],
)
def test_what_can_be_no_submission_is_refused(data: bytes, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        sqa_task.check_model("submission", data)


def test_what_can_be_no_config_is_refused() -> None:
    with pytest.raises(ConfigError, match="expected a mapping"):
        sqa_task.check_model("config", b"[]")
    silent = b"dataset: {name: mini-es}\ntranslator: {name: 'doubles:build_translator'}\n"
    with pytest.raises(ConfigError, match="needs a guesser and a buzzer"):
        sqa_task.check_model("config", silent)


CONFIG = b"""dataset: {name: mini-es}
translator: {name: "doubles:build_translator", k: 2}
guesser: {name: "doubles:build_guesser"}
buzzer: {name: "doubles:build_buzzer"}
"""


def test_runs_are_evaluated_on_the_boards_questions(board: Board, tmp_path: Path) -> None:
    from doubles import write_questions

    questions = write_questions(tmp_path / "q.jsonl", 70)
    board.register_dataset("sqa-es", "echo", str(questions), ["diacritics"])
    board.register_model("sqa-es", "copy", "config", CONFIG)
    assert worker.work(board, until_empty=True) == 2
    original, perturbed = board.evaluations("sqa-es")
    metadata = json.loads(original["result"]["metadata_json"])
    assert metadata["qa_accuracy"] == pytest.approx(47 / 70)  # Spain and France of Spain, France, Atlantis
    config = dataclasses.replace(sqa_task.config_of(CONFIG), dataset=DatasetConfig(str(questions)))
    alone = pipeline.run(config, Store(tmp_path / "runs"), progress=False)
    for name, value in (("ew", "ew"), ("oracle_ew", "oracle-ew"), ("corpus_bleu", "bleu"), ("dal", "dal")):
        [metric] = [metric for metric in alone.metrics if metric.name == value]
        assert metadata[name] == metric.score(alone.stats[value].sum(axis=0))
    assert original["result"]["job"]["examples_per_second"] > 0
    board.register_model("sqa-es", "again", "config", CONFIG)
    worker.work(board, until_empty=True)
    [again] = [row for row in board.evaluations("sqa-es") if (row["model"], row["prefix"]) == ("again", "")]
    assert "examples_per_second" not in again["result"]["job"]  # all was in the store
    assert perturbed["result"]["robustness"] == 100.0


def test_questions_of_another_language_are_refused(board: Board) -> None:
    with pytest.raises(DataError, match="is in 'pl', the task in 'es'"):
        board.register_dataset("sqa-es", "mini", "mini-pl")
