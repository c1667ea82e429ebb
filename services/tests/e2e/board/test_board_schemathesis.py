"""Fuzz the board's HTTP API with requests that schemathesis generates from its OpenAPI description."""

import os
import subprocess
import sys
from pathlib import Path

import board_task
import pytest
from stand_ins.board_server import serving

from sqa_services.board import worker
from sqa_services.board.board import Board


@pytest.mark.needs("schemathesis")
@pytest.mark.slow
def test_no_request_returns_500(board: Board, tmp_path: Path) -> None:
    board.register_dataset("toy", "data", board_task.EXAMPLES, ["casing"])
    board.register_model("sqa-es", "mini", "submission", b'{"question": "q", "step": 0, "token": "a", "g": 0}')
    board.register_dataset("sqa-es", "mini", "mini-es", ["casing"])  # the model has no score on it
    board.register_model("toy", "m", "submission", b'{"name": "m"}')
    worker.work(board, until_empty=True)
    with serving(board) as url:
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json"),
            *("--checks", "not_a_server_error,response_schema_conformance,content_type_conformance"),
            *("--mode", "all", "--max-examples", os.environ.get("SQA_SCHEMATHESIS_EXAMPLES", "15")),
            *("--seed", "1", "--generation-database", "none", "--request-timeout", "60"),
        ]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=580)
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-2000:]
