"""services/nginx.conf does what docs/trust.md states, with a real nginx in front of an evaluation server."""

import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import requests
from needs import nginx
from stand_ins.iwslt_loopback import serving, translate
from stand_ins.processes import free_port, listens, wait_until

from sqa.core import ROOT
from sqa_services.protocols.iwslt.client import EvaluationService
from sqa_services.protocols.iwslt.corpus import TextCorpus

pytestmark = pytest.mark.needs("nginx")
CORPUS = TextCorpus((("uno", "dos", "tres"), ("cuatro",)), ("one two three", "four"))
LIMITED = 20  # concurrent requests per address
HALF_HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"
HALF_BODY = b"PUT /hypo?sent_id=0 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf"
BROKEN_CHUNK = b"PUT /hypo?sent_id=0 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n"


def configuration(folder: Path, port: int, server: str) -> str:
    """Return the published configuration adapted to a test: no TLS, a free port, and timeouts of 1 s."""
    text = (ROOT / "services" / "nginx.conf").read_text(encoding="utf-8")
    changes = {"listen 443 ssl": f"listen 127.0.0.1:{port}", "http://127.0.0.1:12321": server}
    changes |= {"_timeout 15s": "_timeout 1s", "_timeout 30s": "_timeout 1s"}
    for published, changed in changes.items():
        assert published in text
        text = text.replace(published, changed)
    text = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("ssl_"))
    paths = "".join(
        f"{name}_temp_path {folder / name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    head = f"daemon off;\nmaster_process off;\npid {folder / 'pid'};\nerror_log stderr;\nevents {{}}\n"
    return f"{head}http {{\naccess_log off;\n{paths}{text}\n}}\n"


@contextmanager
def proxy(folder: Path, server: str) -> Iterator[str]:
    """Run nginx in front of a server and yield its URL."""
    port = free_port()
    (folder / "nginx.conf").write_text(configuration(folder, port, server), encoding="utf-8")
    command = [str(nginx()), "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: listens(port), process)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Yield the URLs of an evaluation server and of its proxy."""
    with serving(CORPUS) as server, proxy(tmp_path_factory.mktemp("nginx"), server) as url:
        yield server, url


@pytest.fixture
def opened(urls: tuple[str, str]) -> Iterator[Callable[[bytes], socket.socket]]:
    """Yield a function that connects to the proxy and sends bytes."""
    with ExitStack() as stack:

        def connect(sent: bytes) -> socket.socket:
            port = int(urls[1].rpartition(":")[2])
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            connection.sendall(sent)
            return connection

        yield connect


def test_proxied_client_has_the_direct_scores(urls: tuple[str, str]) -> None:
    scores = []
    for url, session in zip(urls, ("direct", "proxied"), strict=True):
        service = EvaluationService(url, session=session)
        assert translate(service) == len(CORPUS)
        scores.append(service.get_scores())
    assert scores[0] == scores[1] and scores[0]["BLEU"] is not None


@pytest.mark.parametrize("sent", [HALF_HEAD, HALF_BODY], ids=["head", "body"])
def test_stalled_request_is_closed(opened: Callable[[bytes], socket.socket], sent: bytes) -> None:
    connection = opened(sent)  # the client's timeout of 20 s is longer than nginx's
    while connection.recv(1000):
        pass


def test_large_body_is_refused_before_sending(opened: Callable[[bytes], socket.socket]) -> None:
    head = HALF_BODY.partition(b"Content-Length")[0] + b"Content-Length: %d\r\n\r\n" % (17 << 20)
    assert b" 413 " in opened(head).recv(1000)


def test_server_size_limit_applies_behind_the_proxy(urls: tuple[str, str]) -> None:
    assert requests.put(f"{urls[1]}/hypo?sent_id=0", data=b"x" * (2 << 20), timeout=30).status_code == 413


@pytest.mark.parametrize("sent", [BROKEN_CHUNK, b"\x16\x03\x01\x02\x00\x01\r\n", HALF_HEAD + b"X: " + b"a" * 20_000])
def test_invalid_request_gets_400(opened: Callable[[bytes], socket.socket], sent: bytes) -> None:
    assert b" 400 " in opened(sent).recv(1000)


def test_requests_per_address_are_limited(urls: tuple[str, str], opened: Callable[..., socket.socket]) -> None:
    held = [opened(HALF_BODY) for _ in range(LIMITED)]
    wait_until(lambda: requests.get(urls[1], timeout=30).status_code == 503)
    for connection in held:
        connection.close()
    wait_until(lambda: requests.get(urls[1], timeout=30).status_code == 200)


def test_foreign_host_names_are_refused(urls: tuple[str, str]) -> None:
    assert requests.get(urls[1], headers={"Host": "evil.example"}, timeout=30).status_code == 400
    assert requests.post(urls[1], headers={"Origin": "http://evil.example"}, timeout=30).status_code == 403
