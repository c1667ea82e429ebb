"""The HTTP client: limits on the size and time of responses, redirects, credentials and repeated requests."""

import pytest
from stand_ins.http_server import anything, serving_app
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from sqa.net import client
from sqa.net.client import Failed, Http, attempts


async def answer(request: Request) -> Response:
    path = request.url.path
    if path == "/long":
        return Response(b"x" * 6000)
    if path == "/away":
        return RedirectResponse("/long")
    return Response(request.method + (await request.body()).decode() + request.headers.get("Authorization", ""))


def test_responses_beyond_limits_are_failures() -> None:
    http = Http(10.0, 5000, "secret")
    with serving_app(anything(answer)) as url:
        reply = http.ask("PUT", url, b" body ")
        assert reply.text == "PUT body Bearer secret" and reply.headers["content-length"] == "22"
        assert http.ask("GET", f"{url}/away").status == 307  # reported, not followed
        with pytest.raises(Failed, match="more than 5000 bytes") as large:
            http.ask("GET", f"{url}/long")
        with pytest.raises(Failed) as insecure:
            http.ask("GET", url.replace("http:", "https:"))
    with pytest.raises(Failed, match="the connection failed") as absent:
        http.ask("GET", url)
    assert [raised.value.again for raised in (large, insecure, absent)] == [False, True, True]


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


def test_netrc_is_never_read(monkeypatch, tmp_path) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with serving_app(anything(answer)) as url:
        assert [Http(5.0, token=token).ask("GET", url).text for token in ("", "secret")] == ["GET", "GETBearer secret"]


def test_attempts_pause_longer_each_time(monkeypatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(client.time, "sleep", pauses.append)
    assert [*attempts(1.0, 3.0, number=4)] == [False, False, False, True] and pauses == [1.0, 2.0, 3.0]
    assert [*attempts(1.0, 3.0)] == [True]
    clock = iter([0.0, 1.0, 4.9, 5.0])
    monkeypatch.setattr(client.time, "monotonic", lambda: next(clock))
    assert [*attempts(1.0, 3.0, seconds=5.0)] == [False, False, True]
