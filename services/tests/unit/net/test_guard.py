"""Access checks of a server: host name, origin, token and body size."""

from base64 import b64encode
from functools import partial
from pathlib import Path

import pytest
import requests
from stand_ins.http_server import serving_app
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from tables import tables_of
from typer import Typer
from typer.testing import CliRunner

from sqa import cli
from sqa.core import ConfigError, DataError
from sqa_services.cli.protocols import Token
from sqa_services.net.guard import Address, given_token, json_page
from sqa_services.net.server import Route, application

TABLES = tables_of(__file__)

BASIC = "Basic " + b64encode(b"ann:secret").decode()


def app(**address) -> Starlette:
    async def answer(request):
        return PlainTextResponse(f"{len(await request.body())}")

    return application(
        Address(**address), [Route("GET", "/", answer, public=True), Route("POST", "/", answer)], json_page
    )


@pytest.mark.parametrize(("host", "names", "asked", "allowed"), TABLES["unknown_host_names_are_refused"])
def test_unknown_host_names_are_refused(host: str, names: tuple[str, ...], asked: str, allowed: bool) -> None:
    with serving_app(app(host=host, names=names, token="t" * 16)) as url:
        assert requests.get(url, headers={"Host": asked}, timeout=30).status_code == (200 if allowed else 400)


def test_requests_from_other_sites_are_refused() -> None:
    with serving_app(app()) as url:
        netloc = url.removeprefix("http://")
        for headers, status in (
            ({}, 200),
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Origin": f"http://{netloc}"}, 200),
            ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
            ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
            ({"Sec-Fetch-Site": "same-origin"}, 200),
        ):
            assert requests.post(url, headers=headers, timeout=30).status_code == status, headers


def test_missing_or_wrong_token_is_refused() -> None:
    given = [
        Headers({"authorization": value} if value else {})
        for value in (BASIC, "bearer secret", "", "Basic ?", "secret", "Digest secret")
    ]
    assert [given_token(headers) for headers in given] == [*[b"secret"] * 2, *[b""] * 4]
    with serving_app(app(token="secret-secret-secret")) as url:
        post = partial(requests.post, url, timeout=30)
        assert requests.get(url, timeout=30).status_code == 200  # reading needs no token
        assert post().status_code == 401 and post().headers["WWW-Authenticate"] == "Bearer"
        assert post(auth=("any", "secret-secret-secret")).status_code == 200
        assert post(headers={"Authorization": "Bearer wrong"}).status_code == 401


def test_body_size_is_limited() -> None:
    with serving_app(app(max_body=1000)) as url:
        for data, status in (("x" * 1000, 200), ("x" * 1001, 413), (iter([b"x" * 600] * 2), 413)):
            assert requests.post(url, data=data, timeout=30).status_code == status


def test_invalid_addresses_are_refused() -> None:
    for host in ("0.0.0.0", "::", "example.org"):
        with pytest.raises(ConfigError, match="give a --token"):
            Address(host=host)
        assert not Address(host=host, token="t" * 16).local
    for host in ("127.0.0.1", "::1", "localhost", "127.3.2.1"):
        assert Address(host=host).local
    with pytest.raises(ConfigError) as error:
        Address(port=-1, max_body=0, names=("a*b",))
    assert len(error.value.problems) == 3
    for host in ("0.0.0.0", "127.0.0.1"):
        with pytest.raises(ConfigError, match="a token must have at least 16 characters, got 15"):
            Address(host=host, token="t" * 15)


COMMANDS = (["serve", "iwslt"], ["client", "iwslt"])


@pytest.mark.parametrize("command", [*COMMANDS, ["board", "serve"]], ids=" ".join)
def test_token_on_the_command_line_is_refused(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Otherwise every user of the machine could see the token in `ps`."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr("sys.argv", ["sqa", *command, "--token", "t" * 16])
        cli.main()
    assert ended.value.code == 2 and "--token-file" in capsys.readouterr().err


def test_token_comes_from_a_file_or_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, app = [], Typer()

    @app.command()
    def serve(token: Token = None) -> None:
        given.append(token)

    run = partial(CliRunner().invoke, app, catch_exceptions=False)
    monkeypatch.delenv("SQA_TOKEN", raising=False)
    run([])
    monkeypatch.setenv("SQA_TOKEN", "set")
    run([])
    (tmp_path / "token").write_text("\ufeff written \n\n")
    run(["--token-file", str(tmp_path / "token")])
    assert given == [None, "set", "written"]
    for text in ("", "two words"):
        (tmp_path / "token").write_text(text)
        with pytest.raises(ConfigError, match="must contain exactly one token"):
            run(["--token-file", str(tmp_path / "token")])
    with pytest.raises(DataError, match="no such file|missing|cannot be read"):
        run(["--token-file", str(tmp_path / "none")])
