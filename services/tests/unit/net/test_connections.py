"""Connections that stall, idle, crowd or speak nonsense: each ends in time, and the log stays short."""

import logging
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
import requests
from stand_ins.http_server import serving_app
from stand_ins.processes import free_port, listens, wait_until
from starlette.applications import Starlette

from sqa.core.errors import ConfigError
from sqa_services.net import connections
from sqa_services.net.address import Address
from sqa_services.net.connections import Bounded, bind, most_connections
from sqa_services.net.server import application, reply, tornado_page

LONG = "x" * (8 << 20)


def app(**address) -> Starlette:
    async def answer(request):
        return reply("here")

    async def long(request):
        return reply(LONG)

    async def body(request):
        return reply(str(len(await request.body())))

    routes = [("GET", "/", answer), ("GET", "/long", long), ("PUT", "/body", body)]
    return application(Address(max_body=1000, **address), routes, tornado_page)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that a test can wait for."""
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.3)
    monkeypatch.setattr(connections, "IDLE_SECONDS", 0.3)
    monkeypatch.setattr(connections, "TAKE_SECONDS", 0.3)


@pytest.fixture
def opened() -> Iterator[Callable[..., socket.socket]]:
    with ExitStack() as stack:

        def connect(url: str, sent: bytes = b"") -> socket.socket:
            host, port = url.removeprefix("http://").split(":")
            connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=20))
            connection.sendall(sent)
            return connection

        yield connect


def ended(connection: socket.socket) -> bool:
    """Whether the server hangs up, which it must do within the socket's time."""
    try:
        while connection.recv(1 << 16):
            pass
    except ConnectionResetError:
        pass
    return True


GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\n", GET, GET + b"GET"])
def test_a_connection_without_a_whole_request_is_closed(quick, opened, sent: bytes) -> None:
    """One that says nothing, half a head, nothing after an answer, half a further head."""
    with serving_app(app()) as url:
        assert ended(opened(url, sent))


def test_an_answer_that_is_not_taken_is_given_up(quick, opened) -> None:
    with serving_app(app()) as url:
        lazy = opened(url, b"GET /long HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(1.5)
        with pytest.raises((ConnectionResetError, AssertionError)):
            got = 0
            while part := lazy.recv(1 << 20):
                got += len(part)
            assert got >= len(LONG)
        assert len(requests.get(f"{url}/long", timeout=30).text) == len(LONG)


def test_a_slow_body_is_given_up(opened) -> None:
    with serving_app(app(body_seconds=0.3)) as url:
        slow = opened(url, b"PUT /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf")
        assert slow.recv(100).startswith(b"HTTP/1.1 408")


LONG_HEAD = GET[:-2] + b"X: " + b"a" * 20_000


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00\x01", GET[:-2] + b"Host: b\r\n\r\n", LONG_HEAD])
def test_nonsense_is_a_400_or_the_end(opened, sent: bytes) -> None:
    with serving_app(app()) as url:
        try:
            assert opened(url, sent).recv(1000).startswith(b"HTTP/1.1 400")
        except ConnectionResetError:
            assert len(sent) > 9_999  # it was still speaking
        assert requests.get(url, timeout=30).text == "here"


BROKEN = b"PUT /body HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("address", [{}, {"token": "secret-secret-secret"}], ids=["a body is read", "refused at once"])
@pytest.mark.parametrize("apart", [False, True], ids=["with the head", "after the head"])
def test_a_request_that_breaks_off_has_one_answer(
    opened, address, apart: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer to its head was on its way, or sent, when the 400 was: a traceback of fourteen lines in the log."""
    with caplog.at_level(logging.ERROR), serving_app(app(**address)) as url:
        connection = opened(url, BROKEN if apart else BROKEN + b"ZZ\r\n")
        if apart:
            time.sleep(0.3)
            connection.sendall(b"ZZ\r\n")
        said = b""
        while part := connection.recv(1000):
            said += part
        assert said.count(b"HTTP/1.1") == 1 and said[9:12] == (b"401" if address and apart else b"400")
        assert requests.get(url, headers={"Authorization": "Bearer secret-secret-secret"}, timeout=30).text == "here"
    assert not caplog.records


def test_beyond_the_limit_requests_are_answered_503(opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "most_connections", lambda: 4)
    with serving_app(app()) as url:
        silent = [opened(url) for _ in range(8)]
        asked = opened(url, GET)
        assert asked.recv(100).startswith(b"HTTP/1.1 503")
        for one in silent:
            one.close()
        assert ended(asked) or requests.get(url, timeout=30).text == "here"


def test_as_many_connections_as_there_are_files(monkeypatch: pytest.MonkeyPatch) -> None:
    for files, most in ((1024, 768), (1 << 20, connections.CONNECTIONS), (100, 16)):
        monkeypatch.setattr(connections.resource, "getrlimit", lambda _, files=files: (files, files))
        assert most_connections() == most


def test_a_port_in_use_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(ConfigError, match="cannot be listened on"):
        bind("127.0.0.1", other.getsockname()[1])


def test_the_log_is_bounded(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    handler = Bounded(lines=3)
    record = logging.LogRecord("sqa_services.net", logging.ERROR, "", 0, "a line\nof %s", ("x" * 10_000,), None)
    for _ in range(1000):
        handler.emit(record)
    said = capsys.readouterr().err
    assert said.count("\n") == 3 and len(said) < 7000 and said.startswith("sqa: a line of x")
    now = time.monotonic()
    monkeypatch.setattr("sqa_services.net.connections.time.monotonic", lambda: now + 61)
    handler.emit(record)
    assert "997 messages were left out" in capsys.readouterr().err


def test_a_server_process_ends_well(tmp_path) -> None:
    """SIGTERM with a request under way: no traceback, exit 0."""
    port = free_port()
    program = (
        "from sqa_services.net.address import Address\nfrom sqa_services.net.connections import run_app\n"
        "from sqa_services.net.server import application, tornado_page\n"
        f"here = Address(port={port})\nrun_app(application(here, [], tornado_page), here)"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: listens(port), process)
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(b"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf")
        time.sleep(0.3)
        process.terminate()
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0 and "Traceback" not in said
