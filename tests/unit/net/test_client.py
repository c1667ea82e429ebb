"""The HTTP client: limits on the size and time of responses, redirects, and credentials from netrc."""

import pytest
from stand_ins.http_server import anything, serving_app
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from sqa.net.client import Failed, Http


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


def test_responses_beyond_limits_are_failures() -> None:
    http = Http(10.0, 5000, "secret")
    with serving_app(anything(answer)) as url:
        reply = http.ask("PUT", url, b" body ")
        assert reply.text == "PUT body Bearer secret" and reply.headers["content-length"] == "22"
        assert http.ask("GET", f"{url}/hop1").status == 307  # reported, not followed
        with pytest.raises(Failed, match="more than 5000 bytes") as large:
            http.ask("GET", f"{url}/long")
        with pytest.raises(Failed) as insecure:
            http.ask("GET", url.replace("http:", "https:"))
    with pytest.raises(Failed, match="the connection failed") as absent:
        http.ask("GET", url)
    assert [raised.value.kind for raised in (large, insecure, absent)] == ["large", "insecure", "absent"]
    assert absent.value.again


def test_slow_response_fails_at_the_time_limit() -> None:
    import asyncio

    async def drip(request: Request) -> Response:
        async def parts():
            for _ in range(60):
                yield b"x"
                await asyncio.sleep(0.05)

        return StreamingResponse(parts())

    with serving_app(anything(drip)) as url, pytest.raises(Failed, match=r"no complete response in 0\.5 seconds"):
        Http(0.5).ask("GET", url)


def test_streams_follow_limited_redirects_of_one_scheme() -> None:
    http = Http(10.0)
    with serving_app(anything(answer)) as url:
        with http.stream(f"{url}/hop3", {}, redirects=3) as reply:
            assert reply.text == "there"
        with http.stream(f"{url}/hop3", {}, redirects=2) as reply:
            assert reply.status_code == 307
        with pytest.raises(Failed, match="leads to 'ftp://elsewhere/'"), http.stream(f"{url}/away", {}, redirects=3):
            pass


def test_netrc_is_read_only_on_request(monkeypatch, tmp_path) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving_app(anything(answer)) as url:
        ways = (("", False), ("secret", True), ("", True))
        clients = [Http(5.0, token=token, proxies=True, netrc=netrc) for token, netrc in ways]
        bodies = [client.ask("GET", url).text for client in clients]
    assert bodies[:2] == ["GET", "GETBearer secret"] and bodies[2].startswith("GETBasic ")
