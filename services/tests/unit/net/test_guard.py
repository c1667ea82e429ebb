"""Who may ask a server: by host name, by origin, by token."""

from __future__ import annotations

from base64 import b64encode

import pytest
import requests
from stand_ins.http_server import serving_app

from sqa_services.net.address import ANY_NAME, Names, address_problems
from sqa_services.net.guard import Guard, given_name, given_token
from sqa_services.net.server import application, reply, tornado_page


def app(names: Names, token: str | None = None) -> Guard:
    async def answer(request):
        return reply("here")

    inner = application([("GET", "/", answer), ("POST", "/", answer)], {}, lambda: None)
    return Guard(inner, token, 1000, names, page=tornado_page)


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("localhost:123", True),
        ("LOCALHOST", True),
        ("127.0.0.1", True),
        ("[::1]:8080", True),
        ("evil.example", False),
        ("evil.example:12321", False),
        ("localhost.evil.example", False),
        ("[::2]", False),
        ("", False),
    ],
)
def test_names_on_loopback(host: str, allowed: bool) -> None:
    assert Names.of("127.0.0.1").allow(host.encode()) == allowed
    assert ANY_NAME.allow(host.encode())


def test_names_beyond_loopback_are_those_given() -> None:
    assert Names.of("0.0.0.0").allow(b"anything")
    assert Names.of("0.0.0.0", ["Eval.example.org"]).allow(b"eval.example.org:443")
    assert not Names.of("0.0.0.0", ["eval.example.org"]).allow(b"localhost")
    assert Names.of("::1", ["box.local"]).allow(b"box.local")


def test_requests_under_other_names_and_of_other_sites_are_refused() -> None:
    with serving_app(app(Names.of("127.0.0.1"))) as url:
        own = url.removeprefix("http://")
        for headers, status in (
            ({}, 200),
            ({"Host": "evil.example"}, 400),
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Origin": f"http://{own}"}, 200),
            ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
            ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
            ({"Sec-Fetch-Site": "same-origin"}, 200),
        ):
            assert requests.post(url, headers=headers, timeout=30).status_code == status, headers


def test_every_server_checks_names() -> None:
    """Board, IWSLT, QANTA: the same guard with the names of their address (SimulEval's in its own tests)."""
    from sqa_services.protocols.iwslt.corpus import TextCorpus
    from sqa_services.protocols.iwslt.http import ServeConfig, make_app
    from sqa_services.protocols.qanta_http import QantaConfig
    from sqa_services.protocols.qanta_http import make_app as make_qanta

    corpus = TextCorpus((("a",),), ("b",))
    for made in (make_app(corpus, ServeConfig()), make_qanta(None, QantaConfig())):
        assert made.names == Names.of("127.0.0.1")
    with serving_app(make_app(corpus, ServeConfig())) as url:
        assert requests.get(url, timeout=30).status_code == 200
        assert requests.get(url, headers={"Host": "evil.example"}, timeout=30).status_code == 400
    assert not make_app(corpus, ServeConfig(host="0.0.0.0", token="t")).names.known


def test_tokens() -> None:
    basic = b"Basic " + b64encode(b"ann:secret")
    assert [given_token(h) for h in (b"Bearer secret", b"bearer secret", basic, b"", b"Basic ?", b"secret")] == [
        *[b"secret"] * 3,
        *[b""] * 3,
    ]
    assert given_name(basic) == b"ann" and given_name(b"Bearer x") == b""
    with serving_app(app(ANY_NAME, "secret")) as url:
        assert requests.get(url, timeout=30).status_code == 200  # reads
        assert requests.post(url, timeout=30).status_code == 401
        assert requests.post(url, auth=("any", "secret"), timeout=30).status_code == 200
        assert requests.post(url, headers={"Authorization": "Bearer wrong"}, timeout=30).status_code == 401


def test_addresses() -> None:
    assert address_problems("127.0.0.1", 0, None) == []
    assert len(address_problems("0.0.0.0", 99_999, None)) == 2
