"""The board's files on S3, with s3fs and moto's server on loopback; skipped if either is missing."""

import json
from pathlib import Path

import board_task
import pytest

pytestmark = pytest.mark.needs("s3fs", "moto")


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_board_runs_on_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import boto3
    from moto.server import ThreadedMotoServer

    from sqa_services.board import worker
    from sqa_services.board.board import Board, BoardConfig

    server = ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in (("ACCESS_KEY_ID", "x"), ("SECRET_ACCESS_KEY", "y"), ("DEFAULT_REGION", "us-east-1")):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    try:
        boto3.client("s3").create_bucket(Bucket="boards")  # unique, as servers in one process share buckets
        board = Board.open(BoardConfig(tmp_path, files="s3://boards/board", tasks=("board_task:make",)))
        board.register_dataset("toy", "data", board_task.EXAMPLES, ["casing"])
        board.register_model("toy", "m", "submission", json.dumps({"name": "m", "answers": {"": "a"}}).encode())
        assert worker.work(board, until_empty=True) == 2
        listed = boto3.client("s3").list_objects_v2(Bucket="boards", Prefix="board/")["Contents"]
        assert {entry["Key"] for entry in listed} == {
            "board/datasets/toy/data.jsonl",
            "board/datasets/toy/robustness-data.jsonl",
            "board/models/toy/m.submission",
            "board/predictions/toy/m/data.jsonl",
            "board/predictions/toy/m/robustness-data.jsonl",
        }
        board.engine.dispose()
    finally:
        server.stop()
