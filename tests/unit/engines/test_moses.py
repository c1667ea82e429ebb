"""A Moses server over XML-RPC: a real server on loopback that answers as mosesserver does, or does not."""

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from xmlrpc.client import Fault, dumps
from xmlrpc.server import SimpleXMLRPCRequestHandler, SimpleXMLRPCServer

import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from smt.engines import moses
from smt.engines.moses import MosesConfig, MosesServer, parse
from sqa.core.errors import ConfigError, DataError, RemoteProtocolError


class Handler(SimpleXMLRPCRequestHandler):
    rpc_paths = ("/RPC2",)

    def log_message(self, *arguments):
        return


@contextmanager
def xmlrpc_server(translate: Callable) -> Iterator[str]:
    with SimpleXMLRPCServer(("127.0.0.1", 0), Handler, allow_none=True) as server:
        server.register_function(translate, "translate")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/RPC2"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def raw_server(answer: bytes, drip: float = 0.0) -> Iterator[str]:
    """Reads a request, sends `answer` (a byte every `drip` seconds), and keeps the connection open if `drip`."""
    over = threading.Event()

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(5)
            received = b""
            while b"</methodCall>" not in received:
                received += connection.recv(65536)
            with suppress(OSError):  # the client has left
                for part in (answer[i : i + 1] for i in range(len(answer))) if drip else [answer]:
                    connection.sendall(part)
                    if over.wait(drip):
                        return
                over.wait(5 if drip else 0)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/RPC2"
        finally:
            over.set()
            thread.join()


def http_answer(body: bytes, length: int | None = None) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body) if length is None else length}\r\n\r\n".encode() + body


def client(url: str, **keys) -> MosesServer:
    return MosesServer(MosesConfig(**{"url": url, "tokenize": "none", "timeout": 5.0, **keys}))


def test_words_of_many_texts_and_the_bar_on_the_wire():
    """As contrib/server/mosesserver.cpp answers: a struct with the text, blank at its end, and perhaps more."""
    seen = []

    def mosesserver(request: dict) -> dict:
        seen.append(request)
        return {"text": request["text"].upper() + " ", "word-align": []}

    with xmlrpc_server(mosesserver) as url:
        words = client(url).words(["año <uno> & 2", "", " \t", "x\u000by|z"])
    assert words == [("AÑO", "<UNO>", "&", "2"), (), (), ("X", "Y|Z")]
    assert seen == [{"text": "año <uno> & 2"}, {"text": "x y&#124;z"}]


def test_moses_tokens(monkeypatch):
    pytest.importorskip("sacremoses")
    seen = []
    with xmlrpc_server(lambda request: seen.append(request["text"]) or {"text": "the author &apos;s book ."}) as url:
        assert client(url, tokenize="moses").words(["¿El libro del autor?"]) == [("the", "author's", "book.")]
    assert seen == ["¿ El libro del autor ?"]
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    refused(ConfigError, r"sacremoses: pip install 'sqa\[fairseq\]'", MosesServer, MosesConfig(tokenize="moses"))


# ----------------------------------------------------------------------------------------------- servers that fail


def fails(url: str, match: str, **keys) -> None:
    message = refused(RemoteProtocolError, match, client(url, **keys).words, ["uno"])
    assert message.startswith(url)


def raises_fault(request):
    raise Fault(-503, "Missing source text\nline two")


def test_another_kind_of_answer_no_server_and_another_path():
    for answer in ("text", None):
        with xmlrpc_server(lambda request, answer=answer: answer) as url:
            fails(url, "expected a struct with a string 'text'")
    with xmlrpc_server(raises_fault) as url:
        fails(url, "fault -503: Missing source text line two$")
        fails(url.replace("RPC2", "other"), "HTTP status 404")
    fails(url, "start mosesserver")


INT = b"<methodResponse><params><param><value><int>x</int></value></param></params></methodResponse>"
NO_XML = "not an XML-RPC answer"
BROKEN = {  # what is sent, what is said
    "drips": (http_answer(b"<" * 500), "in 0.5 seconds"),
    "hangs up": (b"", "the connection"),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n", "the connection"),
    "cut short": (http_answer(b"<methodResponse>", length=500), "484"),
    "endless": (http_answer(b"x" * 5000), "more than 1000 bytes, refused"),
    "garbage": (http_answer(b"\xff\xfe\x00garbage"), NO_XML),
    "a number": (http_answer(INT), NO_XML),
    "entities": (http_answer(b'<!DOCTYPE a [<!ENTITY b "b">]><methodResponse/>'), "declares XML entities"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_server_that_answers_badly(what, monkeypatch):
    monkeypatch.setattr(moses, "MAX_ANSWER", 1000)
    answer, match = BROKEN[what]
    with raw_server(answer, drip=0.01 * (what == "drips")) as url:
        fails(url, match, timeout=0.5 if what == "drips" else 5.0)


GOOD = dumps(({"text": "the answer é", "word-align": [{"source-word": 0}]},), methodresponse=True).encode()


@given(st.data())
def test_damaged_answers_never_escape_as_anything_else(data):
    body = bytearray(GOOD)
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(body) - 1))
        body[at : at + data.draw(st.integers(0, 12))] = data.draw(st.binary(max_size=6))
    try:
        parse(bytes(body), "http://x/RPC2")
    except RemoteProtocolError as error:
        assert str(error).startswith("http://x/RPC2: ")


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://x/RPC2", "http:///RPC2", "http://x:99999/RPC2"])
def test_invalid_settings(url):
    refused(ConfigError, "url: expected something like", MosesConfig, url=url)
    refused(ConfigError, "timeout: must be > 0", MosesConfig, timeout=0)
    refused(ConfigError, "n: ", MosesConfig, policy="hold", n=-1)
    refused(DataError, "at most 20000", client("http://127.0.0.1:9/RPC2").words, ["x" * 20_001])
