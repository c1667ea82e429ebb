"""The bounded client: no redirects elsewhere, no endless answers, each thread its own connections."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from stand_ins.http_server import anything, serving_app
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from sqa.core.errors import DataError
from sqa.net.client import Failed, Http
from sqa_services.protocols.iwslt.client import EvaluationService


async def answer(request: Request) -> Response:
    path = request.url.path
    if path == "/long":
        return Response(b"x" * 6000)
    if path.startswith("/hop"):
        left = int(path[4:])
        return RedirectResponse(f"/hop{left - 1}") if left else Response("there")
    if path == "/away":
        return RedirectResponse("ftp://elsewhere/")
    return Response(request.method + (await request.body()).decode() + request.headers.get("Authorization", ""))


def test_requests_within_limits() -> None:
    http = Http(10.0, 5000, "secret")
    with serving_app(anything(answer)) as url:
        assert http.ask("PUT", url, b" body ").text == "PUT body Bearer secret"
        assert http.ask("GET", f"{url}/hop1").status == 307  # told, not followed
        with pytest.raises(Failed, match="more than 5000 bytes"):
            http.ask("GET", f"{url}/long")
        with pytest.raises(DataError, match="the server answered 307"):
            EvaluationService(f"{url}/hop1#").corpus_info()
    with pytest.raises(Failed, match="the connection failed") as raised:
        http.ask("GET", url)
    assert raised.value.again


def test_an_answer_that_drips_ends_in_time() -> None:
    import asyncio

    async def drip(request: Request) -> Response:
        async def parts():
            for _ in range(60):
                yield b"x"
                await asyncio.sleep(0.05)

        return StreamingResponse(parts())

    with serving_app(anything(drip)) as url, pytest.raises(Failed, match=r"no whole reply in 0\.5 seconds"):
        Http(0.5).ask("GET", url)


def test_streams_follow_so_many_redirects_and_none_to_another_scheme() -> None:
    http = Http(10.0)
    with serving_app(anything(answer)) as url:
        with http.stream(f"{url}/hop3", {}, redirects=3) as reply:
            assert reply.text == "there"
        with http.stream(f"{url}/hop3", {}, redirects=2) as reply:
            assert reply.status_code == 307
        with pytest.raises(Failed, match="leads to 'ftp://elsewhere/'"), http.stream(f"{url}/away", {}, redirects=3):
            pass


def test_an_https_address_is_not_left_for_http() -> None:
    with pytest.raises(Failed, match="not followed"):
        Http(1.0)._redirected("https://a.example/x", "http://a.example/y")


def test_threads_share_an_object_but_no_connection() -> None:
    http, seen = Http(10.0), set()

    def request(_: int) -> str:
        seen.add((threading.get_ident(), id(http._session)))
        return http.ask("GET", url).text

    with serving_app(anything(answer)) as url, ThreadPoolExecutor(4) as pool:
        assert set(pool.map(request, range(40))) == {"GET"}
    assert len(seen) == len({thread for thread, _ in seen})


def test_how_a_connection_failed_is_told(monkeypatch) -> None:
    http = Http(5.0, 5000)
    with serving_app(anything(answer)) as url:
        assert http.ask("GET", url).headers["content-length"] == "3"
        with pytest.raises(Failed) as large:
            http.ask("GET", f"{url}/long")
        with pytest.raises(Failed) as insecure:
            http.ask("GET", url.replace("http:", "https:"))
    with pytest.raises(Failed) as absent:
        http.ask("GET", url)
    assert [raised.value.kind for raised in (large, insecure, absent)] == ["large", "insecure", "absent"]


def test_a_netrc_is_read_only_where_it_is_wanted(monkeypatch, tmp_path) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving_app(anything(answer)) as url:
        ways = (("", False), ("secret", True), ("", True))
        clients = [Http(5.0, token=token, proxies=True, netrc=netrc) for token, netrc in ways]
        bodies = [client.ask("GET", url).text for client in clients]
    assert bodies[:2] == ["GET", "GETBearer secret"] and bodies[2].startswith("GETBasic ")
