"""The leaderboard: its data sets, ranks and intervals of models."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import board_task
import pytest
from board_task import RIGHT, Row, model, submission

from sqa.core import ConfigError, Question
from sqa.data.datasets import load_questions
from sqa.data.own_questions import record_of
from sqa_services.board import worker
from sqa_services.board.board import Board
from sqa_services.board.storage import VERSION, as_lines

BEST = RIGHT | {"EINS": "a"}


def filled(board: Board) -> None:
    board.register_dataset("toy", "data", board_task.EXAMPLES, ["casing"])
    board.register_model("toy", "best", "submission", model(answers=BEST))
    board.register_model("toy", "half", "submission", model(answers={"": "a"}))
    worker.work(board, until_empty=True)


OTHER = json.dumps([{"id": "9", "text": "neun", "label": "a"}, {"id": "8", "text": "acht", "label": "x"}])


def test_metrics_are_means_over_data_sets(board: Board) -> None:
    filled(board)
    assert board.leaderboard("toy")["weights"]["robustness"] == 1.0
    board.register_dataset("toy", "other", OTHER)
    worker.work(board, until_empty=True)
    ranked = board.leaderboard("toy")
    assert ranked["datasets"] == ["data", "other"] and ranked["rows"][0]["metrics"]["accuracy"] == (100 + 50) / 2
    assert ranked["weights"]["robustness"] == 0.0  # one data set has no copies
    alone = board.leaderboard("toy", datasets=["other", "other"])
    assert alone["datasets"] == ["other"] and {row["metrics"]["accuracy"] for row in alone["rows"]} == {50.0}


def test_equal_models_share_a_rank(board: Board) -> None:
    filled(board)
    board.register_model("toy", "twin", "submission", model(answers=BEST))
    worker.work(board, until_empty=True)
    rows = {row["model"]: row for row in board.leaderboard("toy", "accuracy=1")["rows"]}
    assert [rows[name]["rank"] for name in ("best", "twin", "half")] == [1, 1, 3]
    assert rows["best"]["interval"] is None  # label accuracy is not a sum that can be resampled


@pytest.mark.parametrize("version", [1, VERSION + 1])
def test_board_of_another_version_is_refused(board: Board, version: int) -> None:
    board.database.rows(f"PRAGMA user_version = {version}")
    with pytest.raises(ConfigError, match=f"has version {version} of the board's tables"):
        Board.open(board.config)


def honest(late: float, q: Question, i: int) -> Iterator[Row]:
    """Yield rows of a wait-3 copier that answers every second question correctly after the share `late` of it."""
    for step, word in enumerate(q.words):
        g = min(step + 3, len(q.words))
        sure = g >= late * len(q.words)
        yield word.lower(), g, q.page if sure and i % 2 else f"page {i}", sure


def changed(answers: int, q: Question, i: int) -> Iterator[Row]:
    """Yield the rows of `honest` with one changed letter in each word, and with other answers to some questions."""
    for word, g, guess, buzz in honest(0.75, q, i):
        yield word[:-1] + "x", g, f"page of {answers}" if i < answers else guess.upper(), buzz


def ranks(board: Board) -> dict[str, tuple[int | None, str]]:
    worker.work(board, until_empty=True)
    return {row["model"]: (row["rank"], row["note"]) for row in board.leaderboard("sqa-es", "ew=1")["rows"]}


def test_changed_copies_have_no_rank(board: Board) -> None:
    board.register_dataset("sqa-es", "mini", "mini-es")
    models = {"first": partial(honest, 0.75), "later": partial(honest, 0.9)}
    models |= {"copy": partial(changed, 2), "similar": partial(changed, 3)}  # 43 and 42 of 45 answers are equal
    for name, of in models.items():
        board.register_model("sqa-es", name, "submission", as_lines(submission(of)))
    before = ranks(board)
    assert before["copy"] == (None, "copy of first")
    assert sorted(before[name] for name in ("first", "later", "similar")) == [(1, ""), (2, ""), (3, "")]
    assert [row["dynascore"] for row in board.leaderboard("sqa-es", "ew=1")["rows"] if row["note"]] == [None]
    board.remove("sqa-es", "first")
    board.register_model("sqa-es", "late", "submission", as_lines(submission(partial(changed, 1))))
    assert ranks(board)["copy"] == ranks(board)["late"] == (None, "copy of first")
    board.register_model("sqa-es", "first", "submission", as_lines(submission(models["first"])))
    assert ranks(board) == before | {"late": (None, "copy of first")}  # the resubmission is not a copy


def test_small_data_sets_have_no_copies(board: Board, tmp_path: Path) -> None:
    lines = as_lines(map(record_of, load_questions("mini-es")[:9]))
    (tmp_path / "few.jsonl").write_bytes(lines)
    board.register_dataset("sqa-es", "few", str(tmp_path / "few.jsonl"))
    for name in ("first", "copy"):
        board.register_model("sqa-es", name, "submission", as_lines(submission(partial(honest, 0.75))))
    assert {note for _, note in ranks(board).values()} == {""}


def test_models_of_one_data_set_have_intervals(board: Board) -> None:
    board.register_dataset("sqa-es", "mini", "mini-es")
    for name, late in (("first", 0.75), ("later", 0.9)):
        board.register_model("sqa-es", name, "submission", as_lines(submission(partial(honest, late))))
    worker.work(board, until_empty=True)
    first, later = board.leaderboard("sqa-es", "ew=4,dal=1")["rows"]
    assert (first["rank"], later["rank"]) == (1, 2)
    low, high = first["interval"]
    assert low < first["metrics"]["ew"] < high and not first["run_here"]
    board.register_dataset("sqa-es", "again", "mini-es")
    worker.work(board, until_empty=True)
    assert board.leaderboard("sqa-es", "ew=1")["rows"][0]["interval"] is None  # a mean over two data sets
