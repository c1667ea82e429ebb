"""Questions and answers by a language model: faulty servers, resumed and repeated runs, requests."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from refusals import refused
from stand_ins.chat_server import Answer, ChatServer, completion, error

from sqa.core import ConfigError
from sqa.net.chat import Budget, Cache, CachedChat, EndpointError
from sqa.net.endpoint import Endpoint, EndpointConfig
from sqa.questions import measures
from sqa.questions.ask import Asked, ask, pairs_of
from sqa.questions.files import QuestionFile
from sqa.questions.make import make
from sqa.questions.model import Asking, ModelMaker, ModelReader, estimate_asking, estimate_making
from sqa.questions.texts import Segment, Translated

PAIR = "es-en"
MANY = [f"Then Zq{n:03}a met Zq{n:03}b , and they saw {n} ships ." for n in range(30)]
FEW = MANY[:8]
NAME = re.compile(r"zq\w+", re.IGNORECASE)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


def listener(prompt: str, number: int) -> Answer:
    """Ask about the names of a passage by their number, and answer such questions."""
    if "\nPassage: " in prompt:
        names = NAME.findall(prompt.partition("\nPassage: ")[2])
        written = [{"question": f"Who is number {n}?", "answer": name, "kind": "who"} for n, name in enumerate(names)]
        return completion(json.dumps({"questions": written}), prompt)
    text, _, question = prompt.rpartition("\nText: ")[2].partition("\nQuestion: ")
    names = dict(enumerate(NAME.findall(text)))
    return completion(f"Here it is: {json.dumps({'answer': names.get(int(question.split()[3][:-1]), '')})}", prompt)


def faulty(prompt: str, number: int) -> Answer:
    """Fail, stall, truncate, answer in prose or repeat itself for a tenth of the requests, but never a third time."""
    right = listener(prompt, number)
    content = json.loads(right.body)["choices"][0]["message"]["content"]
    if number % 10 or "Reply number 2" in prompt:
        return right
    repeated = content * 3
    if '"questions"' in content:
        repeated = json.dumps({"questions": [q for q in json.loads(content)["questions"] for _ in range(3)]})
    return (
        error(500),
        completion(repeated),
        completion(content[: len(content) // 2]),
        completion("I do not know, but perhaps it was Napoleon."),
        replace(right, wait=0.8),
    )[number // 10 % 5]


def asking(server: ChatServer, folder: Path, limit: int = 5000) -> Asking:
    config = EndpointConfig(
        base_url=server.base_url,
        model="tiny",
        requests_per_minute=600_000.0,
        concurrency=16,
        backoff=0.01,
        timeout=0.4,
    )
    return Asking(CachedChat(Endpoint(config, Budget(limit)), Cache(folder / "replies")))


def made(server: ChatServer, folder: Path, references: Sequence[str] = FEW, limit: int = 5000) -> QuestionFile:
    maker = ModelMaker(asking(server, folder, limit), ("es", "en"), "tiny", 2)
    return make(maker, references, [], PAIR, 3)


def system(references: Sequence[str]) -> Translated:
    """Return the references as a translation; word n is written after n + 2 words of the source."""
    texts = [(n, r, tuple(r.split())) for n, r in enumerate(references)]
    return Translated("a", [Segment(f"a:{n}", w, tuple(range(2, 13)), 12.0, reference=r) for n, r, w in texts], "words")


def answered(
    server: ChatServer, folder: Path, questions: QuestionFile, references: Sequence[str] = FEW, **options: bool
) -> tuple[Asked, Asking]:
    model = asking(server, folder)
    return ask(system(references), questions, ModelReader(model, "en", "tiny"), **options), model


def moments(asked: Asked) -> list[list[float | None]]:
    return [[answer.at for answer in answers] for answers in asked.answers]


def test_faulty_server_loses_and_doubles_no_question(tmp_path):
    names = NAME.findall(" ".join(MANY))
    with ChatServer(faulty) as server:
        questions = made(server, tmp_path, MANY)
        asked, model = answered(server, tmp_path, questions, MANY)
    assert len(server.requests) >= 500
    assert [q.answers[0] for q in questions.questions] == names and moments(asked) == [[3.0, 5.0]] * len(MANY)
    assert questions.header["problems"].keys() >= {"repeated", "no JSON", "broken JSON"}
    assert not sum(questions.header["dropped"].values())
    assert model.problems["no JSON"] and model.problems["broken JSON"] and not model.problems["given up"]
    assert set(model.model.chat.budget.faults) == {"HTTP 500", "no complete response in time"}


def test_second_run_offline_has_equal_bytes(tmp_path):
    with ChatServer(faulty) as server:
        questions = made(server, tmp_path)
        asked, _ = answered(server, tmp_path, questions)
    again = made(server, tmp_path)
    asked_again, model = answered(server, tmp_path, questions)
    assert again.text() == questions.text() and model.model.chat.budget.spent == 0
    assert list(measures.records([asked_again])) == list(measures.records([asked]))


def test_interrupted_run_continues(tmp_path):
    def dies(prompt: str, number: int) -> Answer:
        return listener(prompt, number) if number <= 30 else error(400)

    with ChatServer(dies) as server:
        refused(EndpointError, "run again to continue", made, server, tmp_path)
        server.behaviour = listener
        before = len(server.prompts)
        assert len(made(server, tmp_path).questions) == 16
        done = server.prompts[:30]
        assert not set(done) & set(server.prompts[before:]) and len(server.prompts[before:]) < 80


def test_requests_are_estimated_and_limited(tmp_path):
    with ChatServer(listener) as server:
        maker = ModelMaker(asking(server, tmp_path), ("es", "en"), "tiny", 2)
        most, tokens = estimate_making(maker, FEW, [])
        questions = made(server, tmp_path)
        assert len(server.requests) <= most == 8 * 9 and tokens > 9 * 8 * 100
        start = len(server.requests)
        asked, _ = answered(server, tmp_path, questions)
        sent = len(server.requests) - start
        expected, _ = estimate_asking(pairs_of(system(FEW), questions), every_word=False)
        assert 0.5 * expected <= sent <= expected
        assert sum(a.readings for of in asked.answers for a in of) >= sent
        refused(ConfigError, "--limit-requests: 8 more", made, server, tmp_path / "other", FEW, 5)


def test_every_word_agrees_with_bisection(tmp_path):
    with ChatServer(listener) as server:
        questions = made(server, tmp_path)
        asked, _ = answered(server, tmp_path, questions)
        exhaustive, _ = answered(server, tmp_path, questions, every_word=True)
    assert moments(asked) == moments(exhaustive) == [[3.0, 5.0]] * len(FEW)


def test_wrong_replies_are_given_up_and_counted(tmp_path):
    with ChatServer(lambda prompt, number: completion('{"answers": 1}')) as server:
        questions = made(server, tmp_path)
    assert not questions.questions and questions.header["problems"] == {"another form": 24, "given up": 8}


def test_long_answers_are_not_right(tmp_path):
    def lists(prompt: str, number: int) -> Answer:
        if "\nPassage: " in prompt:
            return listener(prompt, number)
        return completion(json.dumps({"answer": " ".join(NAME.findall(" ".join(FEW)))}))

    with ChatServer(lists) as server:
        questions = made(server, tmp_path)
    assert questions.header["dropped"]["unread"] == 16
