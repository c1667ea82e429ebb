"""Chat models behind a local server that follows or violates the protocol."""

import gzip
import socket

import pytest
from refusals import refused
from stand_ins import chat_server as chat
from stand_ins.chat_server import WORDS, Answer, Behaviour, ChatServer, completion, error, failing, pages

from sqa.core import ConfigError, guesses_per_word
from sqa.net.chat import Budget, EndpointError
from sqa.net.endpoint import Endpoint, EndpointConfig

KEY = "sk-secret-0123456789"


# --------------------------------------------------------------------------------------------------------- the protocol


def test_requests_follow_the_protocol(guesser_of, monkeypatch):
    monkeypatch.setenv("SOME_KEY", KEY)
    other = {"temperature": None, "seed": None, "token_limit": "max_completion_tokens"}
    other |= {"extra": {"response_format": {"type": "json_object"}}}
    with ChatServer(key=KEY) as server:
        for options in ({}, other):
            guesser = guesser_of(server, endpoint={"api_key_env": "SOME_KEY", **options})
            assert pages(guesser.guess([" ".join(WORDS)], 3)[0]) == ["Spain", "Rico", "Cerro"]
    request, bare = server.requests
    assert (request["model"], request["temperature"], request["seed"]) == ("tiny", 0.0, 0)
    assert request["max_tokens"] == 600 and "response_format" not in request
    prompt = request["messages"][0]["content"]
    assert prompt.endswith(f"Question so far: {' '.join(WORDS)}") and "the 10 likeliest" in prompt
    assert server.keys == [f"Bearer {KEY}"] * 2
    assert set(bare) == {"model", "messages", "max_completion_tokens", "response_format"}


def test_invalid_reply_is_empty_and_reported_once(guesser_of, capsys):
    with ChatServer(chat.nonsense) as server:
        guesser = guesser_of(server)
        assert guesses_per_word(guesser, WORDS[:4], 5) == [[], [], [], []]
    assert guesser.unusable == 4
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "sqa: llm: unusable reply, no guesses (1 so far): not JSON; it begins 'I think it is Spain, or perhaps not.'"
    ]


def test_content_in_parts_is_joined():
    listed = [
        {"type": "thinking", "thinking": []},
        {"type": "text", "text": "The "},
        {"type": "text", "text": "Danube"},
    ]
    with ChatServer(lambda prompt, number: completion(listed)) as server:
        endpoint = Endpoint(EndpointConfig(server.base_url, "tiny"), Budget(1))
        assert endpoint.complete("?").text == "The Danube"


SILENT = [*map(completion, (None, "", [{"type": "refusal"}])), error(400, "blocked", "content_filter")]


@pytest.mark.parametrize("answer", SILENT)
def test_empty_replies_yield_no_guesses(guesser_of, answer):
    with ChatServer(lambda prompt, number: answer) as server:
        guesser = guesser_of(server)
        assert guesser.guess(["Spain"], 5) == [[]] and guesser.unusable == 1


# --------------------------------------------------------------------------------------------------- transient failures


FAILURES = {
    "429": error(429, "slow down"),
    "Retry-After": error(429, "slow down", headers={"Retry-After": "0.01"}),
    "Retry-After nonsense": error(429, "slow down", headers={"Retry-After": "nonsense"}),
    "Retry-After a date": error(503, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
    "502": Answer(b"<html>bad gateway</html>", 502),
    "cut short": Answer(b"half", headers={"Content-Length": "1000"}),
    "hung up": Answer(b"", hang_up=True),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_transient_failures_are_retried(guesser_of, failure):
    with ChatServer(failing(1, failure)) as server:
        assert pages(guesser_of(server).guess(["Spain"], 5)[0]) == ["Spain"]
    assert len(server.prompts) == 2


# --------------------------------------------------------------------------------------------------- permanent failures


HTML, MOVED = Answer(b"<html>welcome</html>"), Answer(b"", 307, {"Location": "http://elsewhere.invalid/"})
BUSY = error(429, "quota", headers={"Retry-After": "3600"})
LASTING: dict[str, tuple[Behaviour | Answer, str, int, dict]] = {  # behaviour, message, requests, options
    "500 for ever": (
        error(500),
        r"^http://127.0.0.1:.*500 \(no luck\).* 2 retries.*run again to continue$",
        3,
        {},
    ),
    "another protocol": (HTML, "not a chat-completions answer, it begins '<html>welcome", 1, {}),
    "half of the JSON": (Answer(b'{"choices": [{"mess'), "an incomplete response.; gave up after 2 retries", 3, {}),
    "no choices": (Answer(b'{"choices": []}'), "not a chat-completions answer", 1, {}),
    "an error in a success": (Answer(b'{"error": {"message": "overloaded"}}'), "it begins .*overloaded", 1, {}),
    "cut short for ever": (Answer(b"half", headers={"Content-Length": "9"}), "the connection broke", 2, {"retries": 1}),
    "slow": (
        chat.slow,
        "no complete response in 0.2 seconds",
        2,
        {"timeout": 0.2, "retries": 1},
    ),
    "dripping": (
        chat.dripping,
        "no complete response in 0.3 seconds",
        1,
        {"timeout": 0.3, "retries": 0},
    ),
    "huge": (chat.huge, "refused a response of more than 1048576 bytes", 1, {}),
    "refused": (error(400, "no temperature"), r"HTTP 400 \(no temperature\)", 1, {}),
    "a pause too long": (BUSY, "HTTP 429 .quota., Retry-After 3600", 1, {}),
    "a wrong model": (error(404, "no `tiny` here"), r"HTTP 404 \(no `tiny` here\); does it have the model", 1, {}),
    "moved, not followed": (MOVED, "HTTP 307, it has moved", 1, {}),
}


@pytest.mark.parametrize("what", LASTING)
def test_permanent_failures_are_reported(guesser_of, what):
    answer, says, requests, options = LASTING[what]
    kind = ConfigError if what in ("a wrong model", "moved, not followed") else EndpointError
    with ChatServer(answer if callable(answer) else lambda prompt, number: answer) as server:
        guesser = guesser_of(server, endpoint={"retries": 2, **options})
        refused(kind, says, guesser.guess, ["Spain"], 5)
    assert len(server.prompts) == requests


@pytest.mark.needs("llm")
def test_unreachable_endpoint_is_reported(guesser_of):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    guesser = guesser_of(f"http://127.0.0.1:{port}/v1", endpoint={"backoff": 60.0})
    refused(EndpointError, "unreachable .*; start the server, or correct base_url", guesser.guess, ["Spain"], 1)


# -------------------------------------------------------------------------------------------------------------- the key


@pytest.mark.parametrize("key", [None, "two words", "line\nbreak", "clé"])
def test_invalid_key_is_neither_sent_nor_shown(guesser_of, monkeypatch, key):
    monkeypatch.delenv("SOME_KEY", raising=False)
    if key:
        monkeypatch.setenv("SOME_KEY", key)
    message = "does not hold a key" if key else "the environment variable SOME_KEY is not set"
    with ChatServer() as server:
        guesser = guesser_of(server, endpoint={"api_key_env": "SOME_KEY"})
        said = refused(ConfigError, message, guesser.guess, ["Spain"], 1)
    assert server.prompts == [] and (key is None or key not in said)


def test_wrong_key_error_does_not_show_the_key(guesser_of, monkeypatch):
    monkeypatch.setenv("SOME_KEY", KEY)
    with ChatServer(key="another") as server:
        guesser = guesser_of(server, endpoint={"api_key_env": "SOME_KEY"})
        said = refused(ConfigError, r"HTTP 401 .* is the key in \$SOME_KEY right\?", guesser.guess, ["Spain"], 1)
        assert KEY not in said and "***" in said
        refused(ConfigError, "name the variable of its key in api_key_env", guesser_of(server).guess, ["Spain"], 1)
    assert len(server.prompts) == 2


def test_key_is_in_no_file_even_if_a_reply_repeats_it(guesser_of, monkeypatch, tmp_path, capfd):
    monkeypatch.setenv("SOME_KEY", KEY)
    with ChatServer(lambda prompt, number: completion(f"your key is {KEY}")) as server:
        guesser = guesser_of(server, endpoint={"api_key_env": "SOME_KEY"})
        assert guesser.guess(["Spain"], 1) == [[]]
    assert all(KEY.encode() not in path.read_bytes() for path in tmp_path.iterdir())
    assert KEY not in capfd.readouterr().err + guesser.fingerprint() + repr(guesser.config)


def test_only_the_configured_key_is_sent(guesser_of, monkeypatch, tmp_path):
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password other\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in ("SOME_KEY", "OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, KEY if name == "SOME_KEY" else "another-secret")
    with ChatServer(key=KEY) as server:
        assert guesser_of(server, endpoint={"api_key_env": "SOME_KEY"}).guess(["Spain"], 1) != [[]]
        refused(ConfigError, "HTTP 401", guesser_of(server).guess, ["Peru"], 1)
    assert server.keys == [f"Bearer {KEY}", None]
    assert not any("another-secret" in value for headers in server.headers for value in headers.values())


def test_compression_bomb_is_not_unpacked(guesser_of):
    bomb = Answer(gzip.compress(b"x" * (64 << 20)), headers={"Content-Encoding": "gzip"})
    with ChatServer(lambda prompt, number: bomb) as server:
        refused(EndpointError, "not a chat-completions answer", guesser_of(server).guess, ["Spain"], 1)
