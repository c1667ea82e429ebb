"""The leaderboard: its data sets, ranks of models, and marks for copies."""

import json
from dataclasses import replace

import board_task
import numpy as np
import pytest
from board_task import RIGHT, model
from sqlalchemy import update

from sqa.core.errors import ConfigError
from sqa_services.board import worker
from sqa_services.board.board import Board
from sqa_services.board.sqa_task import spanish
from sqa_services.board.standing.rank import MOST_KEPT, rank
from sqa_services.board.storage import ABOUT, VERSION

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


def test_data_without_copies_rank_by_accuracy(board: Board) -> None:
    board.register_dataset("toy", "plain", board_task.EXAMPLES)
    for name, label in (("one", "a"), ("none", "x")):
        board.register_model("toy", name, "submission", model(answers={"eins": label}))
    worker.work(board, until_empty=True)
    ranked = board.leaderboard("toy")
    assert [(row["model"], row["rank"]) for row in ranked["rows"]] == [("one", 1), ("none", 2)]


def test_equal_models_share_a_rank(board: Board) -> None:
    filled(board)
    board.register_model("toy", "twin", "submission", model(answers=BEST))
    worker.work(board, until_empty=True)
    rows = {row["model"]: row for row in board.leaderboard("toy", {"accuracy": 1.0})["rows"]}
    assert [rows[name]["rank"] for name in ("best", "twin", "half")] == [1, 1, 3]
    assert rows["best"]["interval"] is None  # label accuracy is not a sum that can be resampled


@pytest.mark.parametrize("version", [1, VERSION + 1])
def test_board_of_another_version_is_refused(board: Board, version: int) -> None:
    with board.engine.begin() as connection:
        connection.execute(update(ABOUT).values(value=str(version)))
    with pytest.raises(ConfigError, match=f"has version {version} of the board's tables"):
        Board.open(board.config)


@pytest.mark.parametrize(
    ("kind", "owner", "marked"),
    [("submission", "bob", True), ("submission", "ann", False), ("config", "bob", False)],
)
def test_copy_of_another_owners_answers_is_marked(kind: str, owner: str, marked: bool) -> None:
    models = [
        {"id": number, "name": name, "kind": its_kind, "owner": its_owner, "created": 0.0}
        for number, (name, its_kind, its_owner) in enumerate([("first", "submission", "ann"), ("second", kind, owner)])
    ]
    result = {"metadata_json": '{"accuracy": 50.0}', "job": {}, "implausible": [], "digest": "same"}
    about = {"dataset": "data", "prefix": "", "finished": 0.0, "result": result}
    done = [{"id": row["id"], "model": row["name"], **about} for row in reversed(models)]
    ranked = rank(board_task.make(), models, done, ["data"], {"accuracy": 1.0}, lambda _: {}, {})
    reasons = {row["model"]: row["implausible"] for row in ranked["rows"]}
    assert reasons["first"] == [] and bool(reasons["second"]) == marked


def test_ranks_follow_paired_differences() -> None:
    """The models have 10, 9 and 0 of 20 questions correct; the first two do not differ significantly."""
    right = np.arange(20) < np.array([[10], [9], [0]])
    stats = np.stack([right, np.ones((3, 20))], axis=-1).astype(float)
    models = [{"id": i, "name": f"m{i}", "kind": "config", "owner": None, "created": 0.0} for i in range(3)]
    done = [
        {"id": i, "model": f"m{i}", "dataset": "data", "prefix": "", "finished": 0.0}
        | {"result": {"metadata_json": json.dumps({"qa_accuracy": rows[:, 0].mean()})}}
        for i, rows in enumerate(stats)
    ]
    for row in done:
        row["result"] |= {"job": {}, "implausible": [], "digest": str(row["id"])}
    task = replace(spanish(), perf_metric="qa_accuracy")
    details = {row["id"]: stats[row["id"]].tolist() for row in done}
    standings = dict.fromkeys(range(MOST_KEPT))
    ranked = rank(task, models, done, ["data"], {"qa_accuracy": 1.0}, lambda _: details, standings)
    assert {row["model"]: row["places"] for row in ranked["rows"]} == {"m0": [1, 2], "m1": [1, 2], "m2": [3, 3]}
    assert len(standings) == 1  # the full cache was emptied first
