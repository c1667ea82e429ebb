"""The agent service of SimulEval 1.1.4: SimulEval's client with our server, and our client with SimulEval's server."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import requests
from stand_ins.http_server import anything, serving_app
from stand_ins.processes import ENVIRONMENT, free_port, listens, wait_until
from stand_ins.simuleval_command import write_lines

from sqa.core.errors import ConfigError, RemoteProtocolError
from sqa.core.paths import ROOT
from sqa.core.registry import TRANSLATORS
from sqa.data.datasets import load_questions
from sqa.pipeline.engine import stream
from sqa_services.net.address import Address
from sqa_services.net.server import reply
from sqa_services.simuleval.agent import SimulevalConfig
from sqa_services.simuleval.agent import build as build_agent
from sqa_services.simuleval.server import agent_of, make_app
from sqa_services.simuleval.service import SimulevalServiceConfig, SimulevalServiceTranslator, build

pytestmark = pytest.mark.needs("simul")
ECHO = "{name: 'doubles:build_translator', k: 3}"
AGENT = ROOT / "services" / "tests" / "simuleval_copier.py"
SIMULEVAL = ROOT / "services" / "tests" / "simuleval_mended.py"


WORD = {"index": 0, "content": "x", "finished": False, "is_empty": False, "data_type": "text", "config": {}}


def echo(question):
    """Return the emissions of the copying translator, run in this process."""
    name = "doubles:build_translator"
    return stream(TRANSLATORS.build(name, TRANSLATORS.config_class(name)(k=3)), question)


# -------------------------------------------------------------------------------- SimulEval's client, our service


def test_simuleval_remote_eval_drives_our_service(tmp_path) -> None:
    """`simuleval --remote-eval` in a separate process gives the words, delays and scores of our run."""
    [question] = load_questions("mini-es", limit=1)
    source = write_lines(tmp_path / "source", [" ".join(sentence) for sentence in question.sentences])
    target = write_lines(tmp_path / "target", question.reference)
    with serving_app(make_app(agent_of(ECHO), Address())) as url:
        command = [sys.executable, SIMULEVAL, "--remote-eval", "--remote-port", url.rpartition(":")[2]]
        command += ["--remote-address", "127.0.0.1", "--no-progress-bar", "--output", tmp_path / "out"]
        command += ["--source", source, "--target", target, "--latency-metrics", "AL"]
        command += ["--source-type", "text", "--target-type", "text"]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-2000:]
    rows = [json.loads(row) for row in (tmp_path / "out" / "instances.log").read_text().splitlines()]
    for index, row in enumerate(rows):
        expected = [(e.token, e.g) for e in echo(question) if e.sentence == index]
        assert list(zip(row["prediction"].split(), row["delays"], strict=True)) == expected
    assert len(rows) == len(question.sentences) and "AL" in done.stdout


def test_service_checks_requests_and_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    address = Address(token="secret-secret-secret", max_body=1000)
    changes = ({"content": 5}, {"config": 5}, {"data_type": "speech"}, {"data_type": "speech_text"}, {"unknown": 1})
    bad = [b"\xff", b"[]", b"{}", b"[" * 500, *(json.dumps(WORD | change).encode() for change in changes)]
    with serving_app(make_app(agent_of(ECHO), address)) as url:
        assert requests.get(url, timeout=30).json() == {"info": "TranslatorAgent[text -> text]"}
        for method, path in (("POST", "/reset"), ("PUT", "/input"), ("GET", "/output")):
            assert requests.request(method, url + path, timeout=30).status_code == 401
        assert requests.get(url, headers={"Host": "evil.example"}, timeout=30).status_code == 400
        inside = url.replace("http://", "http://any:secret-secret-secret@")  # SimulEval's client takes no token
        for body in bad:
            assert requests.put(f"{inside}/input", data=body, timeout=30).status_code == 500, body
        assert requests.put(f"{inside}/input", data=b"x" * 2000, timeout=30).status_code == 413
        with pytest.raises(ConfigError, match="url: run folders keep it, so it must not contain a password"):
            SimulevalServiceConfig(url=inside)
        monkeypatch.setenv("THEIR_TOKEN", "secret-secret-secret")
        ours = build(SimulevalServiceConfig(url=url, token_env="THEIR_TOKEN"))
        assert list(ours.translate(iter(["a", "b"]))) == ["a", "b"]
    for arguments in (("", ""), (ECHO, "agent.py:A"), (ECHO, "", ["--k", "3"])):
        with pytest.raises(ConfigError, match="give exactly one of them|no --agent was given"):
            agent_of(*arguments)


WORDS = ["a", "b", "c", "d", "e"]


@contextmanager
def clients(*users: str) -> Iterator[list[SimulevalServiceTranslator]]:
    """Yield clients of a copying service, each with a user in its address."""
    with serving_app(make_app(agent_of(ECHO), Address())) as url:
        yield [build(SimulevalServiceConfig(url=url.replace("//", f"//{user}"))) for user in users]


def test_next_client_gets_no_words_of_a_lost_client(monkeypatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr("sqa_services.simuleval.server.time", SimpleNamespace(monotonic=lambda: clock[0]))
    with clients("") as [translator]:
        assert next(translator.translate(iter(WORDS))) == "a"  # this client sends no further request
        clock[0] += 11
        assert list(translator.translate(iter(["x", "y"]))) == ["x", "y"]


@pytest.mark.parametrize("users", [("", ""), ("ann:@", "bob:@")])
def test_second_client_is_refused_without_effect(users: tuple[str, str]) -> None:
    """The refused client gets no words of the first client, whether or not their addresses contain a user."""
    with clients(*users) as [first, second]:
        under_way = first.translate(iter(WORDS))
        assert next(under_way) == "a"
        with pytest.raises(RemoteProtocolError, match="HTTP 409"):
            list(second.translate(iter(["x", "y"])))
        other = second._service.url  # SimulEval's client ignores the response to a reset and continues
        assert requests.put(f"{other}/input", data=json.dumps(WORD), timeout=30).status_code == 409
        assert requests.get(f"{other}/output", timeout=30).status_code == 409
        assert list(under_way) == WORDS[1:]
        assert list(second.translate(iter(["x", "y"]))) == ["x", "y"]


def test_client_with_a_user_may_restart_at_once() -> None:
    with clients("ann:@") as [translator]:
        assert next(translator.translate(iter(WORDS))) == "a"
        assert list(translator.translate(iter(["x", "y"]))) == ["x", "y"]


def test_sentence_length_is_limited(monkeypatch) -> None:
    monkeypatch.setattr("sqa_services.simuleval.server.MAX_SEGMENTS", 3)
    with clients("") as [translator], pytest.raises(RemoteProtocolError, match="HTTP 413"):
        list(translator.translate(iter(WORDS)))


# -------------------------------------------------------------------------------- our client, SimulEval's service


@pytest.fixture
def standalone() -> Iterator[str]:
    """Yield the URL of `simuleval --standalone`."""
    port = free_port()
    command = [sys.executable, str(SIMULEVAL), "--standalone", "--agent", str(AGENT)]
    command += ["--remote-port", str(port), "--source", os.devnull, "--target", os.devnull]
    server = subprocess.Popen(command, env=ENVIRONMENT)
    try:
        wait_until(lambda: listens(port), server)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(60)


def test_our_translator_drives_simuleval_service(standalone: str) -> None:
    """The emissions equal those of the same agent in this process."""
    questions = load_questions("mini-es", limit=2)
    served = build(SimulevalServiceConfig(url=standalone))
    local = build_agent(SimulevalConfig(f"{AGENT}:W"))
    assert served.translate_batch(questions) == local.translate_batch(questions)
    assert stream(served, questions[0]) == stream(local, questions[0])


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("no json", "expected JSON, got 'no json'"),
        ('{"content": 5, "finished": true, "is_empty": false}', "a text segment with content"),
        ('{"content": "a", "finished": "yes"}', "a text segment with content"),
        ("x" * (9 << 20), "a response of more than 8388608 bytes"),
        ('{"content": [], "finished": false, "is_empty": true}', "did not finish within 10000 steps"),
    ],
)
def test_service_errors_are_reported(monkeypatch, content, problem) -> None:
    async def answer(request):
        return reply(content if request.url.path == "/output" else "")

    if "10000" in problem:
        monkeypatch.setattr("sqa_services.simuleval.agent.PATIENCE", 5)
        problem = problem.replace("10000", "5")
    with serving_app(anything(answer)) as url, pytest.raises(RemoteProtocolError, match=problem):
        list(build(SimulevalServiceConfig(url=url)).translate(iter(["a"])))
