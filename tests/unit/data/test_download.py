"""Downloads from a local server that disconnects or sends wrong bytes, and checksums."""

import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from msgspec.structs import replace
from refusals import refused

from sqa.core import ChecksumError, ConfigError, DataError
from sqa.data import download

BODY = bytes(i * i % 251 for i in range(300_000))


@dataclass
class Home:
    """The state of a server that sends `body`; `plan` lists the fault of each request."""

    body: bytes = BODY
    plan: list[str] = field(default_factory=list)
    requests: int = 0
    url: str = ""


@pytest.fixture
def home() -> Iterator[Home]:
    state = Home()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.requests += 1
            fault = state.plan.pop(0) if state.plan else "none"
            if fault.isdigit():
                self.send_error(int(fault))
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(state.body)))
            self.end_headers()
            self.wfile.write(state.body[:98_304] if fault == "break" else state.body)

        def log_message(self, format: str, *args: object) -> None:
            """Suppress the log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}/set.bin"
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def item(home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> download.Entry:
    """Return the only entry of the manifest; the cache is empty, there is no mirror, and retries do not wait."""
    digest = hashlib.sha256(BODY).hexdigest()
    entry = download.Entry("set", "sub/set.bin", home.url, None, None, digest, len(BODY), "CC0-1.0", 1, "", "")
    monkeypatch.setattr(download, "entries", lambda: (entry,))
    monkeypatch.setattr(download, "WAIT", 0.0)
    monkeypatch.setenv("SQA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SQA_MIRROR", raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    return entry


def cached(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "data" / "sub" / "set.bin"


def test_file_is_downloaded_once(home: Home, item: download.Entry, tmp_path: Path) -> None:
    assert download.where("set") is None
    path = download.path_of("set")
    assert path == cached(tmp_path) and path.read_bytes() == BODY
    assert download.path_of("sub/set.bin") == path
    assert home.requests == 1
    assert [child.name for child in path.parent.iterdir()] == ["set.bin"]


def test_busy_server_is_asked_again(home: Home, item: download.Entry) -> None:
    home.plan = ["503", "429"]
    assert download.path_of("set").read_bytes() == BODY
    assert home.requests == 3


def test_failed_download_leaves_no_file(home: Home, item: download.Entry, tmp_path: Path) -> None:
    for plan, message, requests in ((["break"], "IncompleteRead", 1), (["500"] * 10, "500", 4), (["404"], "404", 1)):
        home.plan, home.requests = plan, 0
        refused(DataError, f"set: .* could not be downloaded .*{message}.*; try again", download.path_of, "set")
        assert home.requests == requests and not cached(tmp_path).exists()
        assert not list(tmp_path.rglob("*.partial"))


@pytest.mark.parametrize("body", [BODY[::-1], BODY + b"more"])
def test_wrong_bytes_are_deleted(home: Home, item: download.Entry, tmp_path: Path, body: bytes) -> None:
    home.body = body
    refused(ChecksumError, "the manifest says 300000 bytes", download.path_of, "set")
    assert list(cached(tmp_path).parent.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "changes", "environment", "error", "message"),
    [
        ("sett", {}, {}, ConfigError, "did you mean 'set'"),
        ("set", {"home": "http://127.0.0.1:9/set.bin"}, {}, DataError, "set SQA_MIRROR to a folder that holds sub/set"),
        ("set", {"home": None, "how": "made of two files"}, {}, DataError, r"needs a mirror.*\(made of two"),
        ("set", {}, {"SQA_CACHE": __file__}, DataError, "cannot be written"),
        ("set", {}, {"SQA_MIRROR": "/no/such/folder"}, ConfigError, "SQA_MIRROR: /no/such/folder is not a folder"),
    ],
)
def test_unavailable_file_errors_name_the_remedy(item, monkeypatch, name, changes, environment, error, message):
    monkeypatch.setattr(download, "entries", lambda: (replace(item, **changes),))
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    refused(error, message, download.path_of, name)


def test_mirror_has_priority_and_is_checked(home, item, tmp_path, monkeypatch):
    mirrored = tmp_path / "mirror" / "sub" / "set.bin"
    mirrored.parent.mkdir(parents=True)
    mirrored.write_bytes(BODY)
    monkeypatch.setenv("SQA_MIRROR", str(tmp_path / "mirror"))
    assert download.path_of("set") == mirrored
    mirrored.write_bytes(BODY[:-1] + b"!")
    refused(ChecksumError, r"sub/set\.bin: 300000 bytes with sha256 .* delete it", download.path_of, "set")
    assert home.requests == 0


def test_verify_finds_missing_and_wrong_copies(home: Home, item: download.Entry, tmp_path: Path) -> None:
    assert [status.state for status in download.verify(["set"])] == ["missing"]
    target = cached(tmp_path)
    target.parent.mkdir(parents=True)
    target.write_bytes(BODY[::-1])
    assert [(status.state, status.path) for status in download.verify()] == [("wrong", str(target))]
    refused(ChecksumError, "delete it and fetch it again", download.path_of, "set")
    target.write_bytes(BODY)
    assert [status.state for status in download.verify()] == ["ok"] and home.requests == 0


def test_manifest_is_complete() -> None:
    items = download.read_manifest(download.MANIFEST)
    assert len({item.name for item in items}) == len({item.path for item in items}) == len(items)
    for item in items:
        assert item.home or item.how, f"{item.name}: has neither `home` nor `how`"
        assert len(item.sha256) == len(item.first) == len(item.last) == 64
        assert item.size > 0 and item.licence
        assert item.home is None or (item.commit and item.commit in item.home and item.home.startswith("https://"))


def test_faulty_manifest_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "manifest.yaml"
    for text in ("files:\n- name: a\n", "files: [", "[]"):
        path.write_text(text)
        refused(DataError, r"manifest\.yaml", download.read_manifest, path)
