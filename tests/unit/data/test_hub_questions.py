"""Question files on the Hugging Face hub, read by huggingface_hub from a local server."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from refusals import refused
from tables import tables_of

from sqa.core.errors import ConfigError
from sqa.data import datasets
from sqa.files.hub import MAX_QUESTIONS
from sqa.pipeline.config import DatasetConfig

TABLES = tables_of(__file__)

COMMIT = "0123456789abcdef" * 2 + "01234567"
TEXTS = {"source": "Nombra este río.", "reference": "Name this river.", "page": "Ebro", "language": "es"}
FILES = {"es/rivers.jsonl": json.dumps(TEXTS).encode(), "latin.jsonl": b"\xff\n"}
SIZES = {"huge.jsonl": MAX_QUESTIONS + 1, "endless.jsonl": None}
ADDRESS = f"hf://datasets/lab/questions@{COMMIT}/es/rivers.jsonl"


@dataclass
class Hub:
    """A local hub with one data set at one commit, and a client that uses this hub."""

    folder: Path
    asked: list[str] = field(default_factory=list)  # method and path of every request for a file

    def __enter__(self) -> "Hub":
        hub = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                if "/resolve/" in self.path:  # newer versions of huggingface_hub also request other URLs
                    hub.asked.append(f"{self.command} {self.path}")
                repository, _, place = self.path.partition("/resolve/")
                commit, _, name = place.partition("/")
                known = repository == "/datasets/lab/questions"
                wrong = "" if known else "RepoNotFound"
                wrong = wrong or ("" if commit == COMMIT else "RevisionNotFound")
                wrong = wrong or ("" if name in FILES | SIZES else "EntryNotFound")
                body = FILES.get(name, b"")
                size = SIZES.get(name, len(body))
                self.send_response(404 if wrong else 200)
                headers = {"X-Error-Code": wrong} if wrong else {"X-Repo-Commit": COMMIT, "ETag": f'"{name}"'}
                if size is not None:
                    headers["Content-Length"] = str(size)
                for header in headers.items():
                    self.send_header(*header)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            do_GET = do_HEAD

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def sqa(self, *arguments: str, code: str = "") -> subprocess.CompletedProcess[str]:
        """Run `sqa` or Python code in a new process, because huggingface_hub reads HF_ENDPOINT when it is imported."""
        own = {"HF_ENDPOINT": f"http://127.0.0.1:{self._server.server_port}", "HF_HOME": str(self.folder / "hub")}
        env = os.environ | own
        command = [sys.executable, *(("-c", code) if code else ("-m", "sqa")), *arguments]
        return subprocess.run(command, env=env, cwd=self.folder, capture_output=True, text=True, timeout=120)


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with Hub(tmp_path) as server:
        yield server


def test_second_read_needs_no_server(tmp_path: Path) -> None:
    with Hub(tmp_path) as server:
        first = server.sqa("questions", ADDRESS)
    requests = len(server.asked)
    second = server.sqa("questions", ADDRESS)
    assert (first.returncode, first.stdout) == (0, "Nombra este río.\n"), first.stderr
    assert (second.returncode, second.stdout) == (0, first.stdout), second.stderr
    assert len(server.asked) == requests > 0
    assert set(server.asked) <= {
        f"{m} /datasets/lab/questions/resolve/{COMMIT}/es/rivers.jsonl" for m in ("HEAD", "GET")
    }


def test_config_names_a_file_on_the_hub(hub: Hub) -> None:
    (hub.folder / "fixed.txt").write_text("Name this river.\n")
    (hub.folder / "run.yaml").write_text(
        f"dataset: {{name: '{ADDRESS}'}}\ntranslator: {{name: fixed, text: fixed.txt}}\nmetrics: [bleu]\n"
    )
    done = hub.sqa("run", "run.yaml", "--runs", "runs")
    assert done.returncode == 0, done.stderr
    assert ADDRESS in (hub.folder / "runs" / "run" / "config.yaml").read_text()


REFUSED = TABLES["refused"]
EACH = """
import sys
from sqa.cli import main
for address in sys.argv[1:]:
    sys.argv = ["sqa", "questions", address]
    try:
        main()
    except SystemExit as end:
        print(end.code)
"""


def test_error_names_address_and_reason(hub: Hub) -> None:
    done = hub.sqa(*REFUSED, code=EACH)
    assert done.stdout.split() == ["3"] * len(REFUSED), done.stderr
    for line, (address, says) in zip(done.stderr.splitlines(), REFUSED.items(), strict=True):
        assert says in line and address.rpartition("/")[2] in line
    assert not [request for request in hub.asked if request.startswith("GET") and "latin" not in request]


def test_invalid_repository_name_is_refused() -> None:
    refused(
        ConfigError,
        "^dataset.name: .*repo_id: 'a--b/questions'",
        datasets.load_questions,
        ADDRESS.replace("lab", "a--b"),
    )


def test_offline_without_a_copy_is_an_error(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = hub.sqa("questions", ADDRESS)
    assert done.returncode == 3 and f"{ADDRESS}: the Hugging Face hub did not provide it: Cannot reach" in done.stderr
    assert len(done.stderr.splitlines()) == 1 and not hub.asked


@pytest.mark.parametrize(("place", "says"), TABLES["address_without_a_commit_is_refused"])
def test_address_without_a_commit_is_refused(place: str, says: str) -> None:
    address = f"hf://datasets/{place}"
    remedy = "; write hf://datasets/.*@COMMIT/.* with the 40 hexadecimal digits"
    refused(ConfigError, f"^name: 'hf://.*: {says}{remedy}", DatasetConfig, address)
    refused(ConfigError, f"^dataset.name: 'hf://.*: {says}{remedy}", datasets.load_questions, address)
