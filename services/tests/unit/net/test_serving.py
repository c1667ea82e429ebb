"""A server's connections: limited number, responses to invalid requests, clean exit."""

import socket
import subprocess
import sys
import time

import pytest
import requests
from stand_ins.http_server import anything, serving_app
from stand_ins.processes import free_port, listens, wait_until

from sqa.core import ConfigError
from sqa_services.net import server
from sqa_services.net.server import bind, reply

GET = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def here(request):
    return reply("here")


def asked(url: str, sent: bytes = b"") -> socket.socket:
    host, port = url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=20)
    connection.sendall(sent)
    return connection


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x02\x00\x01", GET[:-2] + b"Host: b\r\n\r\n"])
def test_invalid_request_gets_400(sent: bytes) -> None:
    with serving_app(anything(here)) as url, asked(url, sent) as connection:
        assert connection.recv(1000).startswith(b"HTTP/1.1 400")
        assert requests.get(url, timeout=30).text == "here"


def test_requests_beyond_the_limit_get_503(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "CONNECTIONS", 4)
    with serving_app(anything(here)) as url:
        silent = [asked(url) for _ in range(8)]
        with asked(url, GET) as connection:
            assert connection.recv(100).startswith(b"HTTP/1.1 503")
        for one in silent:
            one.close()
        wait_until(lambda: requests.get(url, timeout=30).text == "here")


def test_port_in_use_is_a_config_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(ConfigError, match="cannot listen on"):
        bind("127.0.0.1", other.getsockname()[1])


def test_server_process_exits_cleanly() -> None:
    """SIGTERM during a request gives exit status 0 and no traceback."""
    port = free_port()
    program = (
        "from sqa_services.net.guard import Address\nfrom sqa_services.net.server import run_app\n"
        "from sqa_services.net.server import application, tornado_page\n"
        f"here = Address(port={port})\nrun_app(application(here, [], tornado_page), here)"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: listens(port), process)
    half = b"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf"
    with asked(f"http://127.0.0.1:{port}", half):
        time.sleep(0.3)
        process.terminate()
        _, said = process.communicate(timeout=60)
    assert process.returncode == 0 and "Traceback" not in said
