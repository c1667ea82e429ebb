"""`sqa board` commands, from the registration of data to the leaderboard."""

import json
from pathlib import Path

import board_task
import pytest
from board_task import RIGHT, model
from typer.testing import CliRunner

from sqa.core import ROOT, SqaError
from sqa_services.board.board import Board, BoardConfig
from sqa_services.cli.board import board_app

TASK = ("--task", "board_task:make")


def run(folder: Path, *arguments: str) -> str:
    result = CliRunner().invoke(
        board_app, ["--board", str(folder / "board"), *TASK, *arguments], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    return result.stdout


def test_commands_of_owners_work(tmp_path: Path) -> None:
    added = run(tmp_path, "register-dataset", "toy", "data", board_task.EXAMPLES, "--perturb", "casing")
    assert json.loads(added)["prefixes"] == ["robustness"]
    models = {
        "best": {"answers": RIGHT | {"EINS": "a"}},
        "half": {"answers": {"": "a"}},
        "m": {"refusal": "no such thing"},
    }
    for name, more in models.items():
        file = tmp_path / f"{name}.jsonl"
        file.write_bytes(model(name, **more))
        assert json.loads(run(tmp_path, "register-model", "toy", name, str(file)))["queued"] == 2
    run(tmp_path, "work", "--until-empty")
    run(tmp_path, "requeue", "toy", "m")
    board = Board.open(BoardConfig(tmp_path / "board", tasks=("board_task:make",)))
    states = {row["model"]: row["state"] for row in board.evaluations("toy")}
    assert states == {"best": "done", "half": "done", "m": "queued"}
    lines = [line.split("\t") for line in run(tmp_path, "leaderboard", "toy").splitlines()]
    assert lines[0][:3] == ["model", "dynascore", "accuracy"] and [row[0] for row in lines[1:]] == [*models]
    turned = json.loads(run(tmp_path, "leaderboard", "toy", "--weights", "robustness=1", "--dataset", "data", "--json"))
    assert [row["model"] for row in turned["rows"]] == ["half", "best", "m"]
    run(tmp_path, "delete", "toy", "m")
    assert [row["name"] for row in board.models("toy")] == ["best", "half"] and len(board.evaluations("toy")) == 4
    board.database.close()
    examples = run(tmp_path, "examples", "toy", "robustness-data").splitlines()
    assert json.loads(examples[0]) == {"id": "1_casing", "text": "EINS"}


def test_register_model_finds_configs_like_sqa_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("few.jsonl").write_text((ROOT / "docs/example/questions.jsonl").read_text("utf-8"), encoding="utf-8")
    run(tmp_path, "register-dataset", "sqa-es", "few", "few.jsonl")
    run(tmp_path, "register-model", "sqa-es", "bundled", "mini_es_wait6_bm25")
    entries = "entries: {a: {dataset: [mini-es]}, b: {like: a, translator: waitk}}"
    Path("both.yaml").write_text(entries, encoding="utf-8")
    for name, problem in (
        ("both.yaml:b", "dataset: expected a mapping"),
        ("nobody", "neither a file nor"),
    ):
        with pytest.raises(SqaError, match=problem):
            run(tmp_path, "register-model", "sqa-es", "other", name)
    board = Board.open(BoardConfig(tmp_path / "board"))
    assert [row["name"] for row in board.models("sqa-es")] == ["bundled"]
    board.database.close()
