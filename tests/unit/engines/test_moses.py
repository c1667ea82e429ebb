"""A Moses server over XML-RPC: a real server on loopback that answers as mosesserver does, or does not."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
            try:
                for i in range(len(answer)) if drip else [slice(None)]:
                    connection.sendall(answer[i : i + 1] if drip else answer)
                    if over.wait(drip):
                        return
                over.wait(5 if drip else 0)
            except OSError:
                return  # the client has left

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/RPC2"
        finally:
            over.set()
            thread.join()


def http_answer(body: bytes, status: str = "200 OK", length: int | None = None) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body) if length is None else length}\r\n\r\n".encode() + body


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


ANSWERS = {
    "a fault": (raises_fault, "fault -503: Missing source text line two$"),
    "a text": (lambda request: "text", "expected a struct with a string 'text'"),
    "nothing": (lambda request: None, "expected a struct with a string 'text'"),
}


@pytest.mark.parametrize(("translate", "message"), ANSWERS.values(), ids=ANSWERS)
def test_another_kind_of_answer(translate, message):
    with xmlrpc_server(translate) as url:
        fails(url, message)


def test_no_server_and_another_path():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    fails(f"http://127.0.0.1:{port}/RPC2", "start mosesserver")
    with xmlrpc_server(raises_fault) as url:
        fails(url.replace("RPC2", "other"), "HTTP status 404")


INT = b"<methodResponse><params><param><value><int>x</int></value></param></params></methodResponse>"
NO_XML = "not an XML-RPC answer"
BROKEN = {  # what is sent, a byte every so many seconds, what is said, other keys
    "drips": (http_answer(b"<" * 500), 0.01, "in 0.5 seconds", {"timeout": 0.5}),
    "hangs up": (b"", 0.0, "the connection", {}),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.2\r\n", 0.0, "the connection", {}),
    "cut short": (http_answer(b"<methodResponse>", length=500), 0.0, "484", {}),
    "endless": (http_answer(b"x" * 5000), 0.0, "more than 1000 bytes, refused", {}),
    "garbage": (http_answer(b"\xff\xfe\x00garbage"), 0.0, NO_XML, {}),
    "a number": (http_answer(INT), 0.0, NO_XML, {}),
    "entities": (http_answer(b'<!DOCTYPE a [<!ENTITY b "b">]><methodResponse/>'), 0.0, "declares XML entities", {}),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_server_that_answers_badly(what, monkeypatch):
    monkeypatch.setattr(moses, "MAX_ANSWER", 1000)
    answer, drip, match, keys = BROKEN[what]
    with raw_server(answer, drip) as url:
        fails(url, match, **keys)


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
