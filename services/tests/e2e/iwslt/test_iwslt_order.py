"""Participants read the source in order."""

import asyncio
import json
import os
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import doubles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_ins.asked import Asked, ask

from sqa.core.types import Question
from sqa_services.net.address import Address
from sqa_services.protocols.iwslt.corpus import EOS
from sqa_services.protocols.iwslt.http import ServeConfig, make_app
from sqa_services.protocols.iwslt.questions import QuestionScorer

ANN, OWN = "ann-ann-ann-ann-", "organiser-organiser"
DIALECTS = ("iwslt-2020", "simuleval-1.0.2")
SIZES = ((3, 2, 2), (2,), (1, 3))  # words per sentence of each question
FIRST = (0, 0, 0, 3, 4, 4)  # index of the first sentence of each sentence's question
SOURCES = tuple(
    tuple(f"w{number}x{place}" for place in range(size))
    for number, size in enumerate(size for sizes in SIZES for size in sizes)
)


def scorer() -> QuestionScorer:
    """Return a scorer of questions in which no word occurs twice."""
    left, questions = list(SOURCES), []
    for number, sizes in enumerate(SIZES):
        sentences = tuple(left.pop(0) for _ in sizes)
        reference = tuple(f"r{number}x{place}" for place in range(len(sizes)))
        questions.append(Question(f"q{number}", "d", "es", sentences, reference, "Spain"))
    return QuestionScorer(questions, doubles.build_guesser(doubles.GuesserConfig()), None)


numbers = st.integers(0, len(SOURCES) - 1)
texts = st.sampled_from((EOS, "a", f"b {EOS}", f"{EOS} c", "", "a b"))
keys = st.sampled_from(("sent_id", "instance_id"))
reads = st.builds(lambda key, number: Asked("GET", "/src", f"{key}={number}".encode()), keys, numbers)
writes = st.builds(
    lambda key, number, text: Asked("PUT", "/hypo", f"{key}={number}".encode(), text.encode()), keys, numbers, texts
)
results = st.builds(lambda number: Asked("GET", "/result", f"instance_id={number}".encode()), numbers)
guided = st.builds(
    lambda number: Asked("GET", "/get", b"info=" + quote(json.dumps({"sent_id": number, "value": None})).encode()),
    numbers,
)
sent = st.builds(
    lambda words: Asked(
        "GET", "/send", b"hypo=" + quote(json.dumps({str(number): text for number, text in words.items()})).encode()
    ),
    st.dictionaries(numbers, texts, min_size=1, max_size=2),
)
others = st.sampled_from(
    [
        *(Asked("GET", path) for path in ("/", "/result", "/end", "/start", "/sessions/eve/result")),
        *(Asked(method, path) for method in ("POST", "DELETE") for path in ("/", "/sessions/ann")),
        Asked("GET", "/get", b"info=%7B%22sent_id%22%3A%20null%7D"),
    ]
)
asked = st.one_of(reads, writes, results, guided, sent, others)
steps = st.lists(
    st.tuples(asked, st.sampled_from(("", "/sessions/ann"))),
    max_size=40,
)


@dataclass
class Told:
    """The words that the server sent to a participant, and the finished sentences."""

    words: set[str] = field(default_factory=set)
    finished: set[int] = field(default_factory=set)

    def check(self, request: Asked, status: int, body: str) -> None:
        """Fail if a response reveals a word, reference or score too early; record the word that the server sent."""
        if status == 200 and request.path.endswith(("/src", "/get")) and "segment" in body:
            segment = json.loads(body)
            number = segment.get("sent_id", segment.get("instance_id"))
            assert self.finished.issuperset(range(FIRST[number], number)), (request, body)
            if segment["segment"] != EOS:
                place = len(self.words & set(SOURCES[number]))
                assert segment["segment"] in SOURCES[number][: place + 1], (request, body)
                self.words.add(segment["segment"])
        assert set(re.findall(r"w\dx\d", body)) <= self.words, (request, body)
        assert not re.search(r"r\dx\d", body), (request, body)
        if "source_length" in body and len(self.finished) < len(SOURCES):
            shown = json.loads(body)
            assert (shown["source_length"], shown["reference_length"], shown["metric"]) == (None, None, {}), body
        if "BLEU" in body and len(self.finished) < len(SOURCES):
            assert not re.search(r"\d\.\d", body), (request, body)


class Client:
    """A participant and an organiser, who send requests to an application in the same process."""

    def __init__(self, dialect: str) -> None:
        config = ServeConfig(dialect, address=Address(token=OWN), participants=(("ann", ANN),))
        self.told = Told()
        self.app = make_app(scorer().corpus(), config, scorer())

    async def end(self) -> None:
        async with self.app.router.lifespan_context(self.app):
            pass

    async def ask(self, request: Asked, token: str = ANN) -> tuple[int, str]:
        status, body = await ask(self.app, request, [(b"authorization", f"Bearer {token}".encode())])
        return status, body.decode()

    async def state(self) -> list[Any]:
        """Return the organiser's view of the session."""
        replies = []
        for number in range(len(SOURCES)):
            request = Asked("GET", "/sessions/ann/result", f"instance_id={number}".encode())
            replies.append(json.loads((await self.ask(request, OWN))[1]))
        return replies

    async def finished(self) -> set[int]:
        return {number for number, shown in enumerate(await self.state()) if EOS in shown["prediction"].split()}


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=int(os.environ.get("SQA_FUZZ", "50")))
@given(steps=steps)
def test_responses_reveal_nothing_too_early(dialect: str, steps: list[tuple[Asked, str]]) -> None:
    """Refused requests change nothing."""

    async def run() -> None:
        client = Client(dialect)
        try:
            for request, base in steps:
                path = request.path if request.path.startswith("/sessions") else base + request.path
                request = request._replace(path=path)
                before = await client.state()
                status, body = await client.ask(request)
                client.told.check(request, status, body)
                after = await client.state()
                partly = request.path.endswith("/send")  # if a request is refused in part, its first words are kept
                assert status == 200 or partly or after == before, request
                ended = await client.finished()
                for number in ended - client.told.finished:
                    written = client.told.finished | ended
                    assert written.issuperset(range(FIRST[number], number)), request
                client.told.finished = ended
        finally:
            await client.end()

    asyncio.run(run())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_unread_sentence_cannot_be_finished_early(dialect: str) -> None:
    """Regression test: `</s>` for an unread last clue counted its whole source as read: EW .714 instead of .468."""

    async def run() -> None:
        client = Client(dialect)
        for key in ("sent_id", "instance_id"):
            put = Asked("PUT", "/hypo", f"{key}=2".encode(), EOS.encode())
            assert (await client.ask(put))[0] == 409
        send = Asked("GET", "/send", b"hypo=" + quote(json.dumps({"2": EOS})).encode())
        assert (await client.ask(send))[0] == 409
        status, body = await client.ask(Asked("GET", "/result", b"instance_id=2"))
        assert status == 409 and "w2" not in body
        await client.ask(Asked("PUT", "/hypo", b"sent_id=0", EOS.encode()))
        shown = json.loads((await client.ask(Asked("GET", "/result", b"instance_id=0")))[1])
        assert (shown["source"], shown["source_length"], shown["metric"]) == ("", None, {})
        await client.end()

    asyncio.run(run())


def test_refused_read_creates_no_sentence() -> None:
    """Regression test: a refused first read left the participant with a session that could not be reset."""

    async def run() -> None:
        client = Client("iwslt-2020")
        for query in ("sent_id=1", "sent_id=0&segment_size=x", "sent_id=99"):
            assert (await client.ask(Asked("GET", "/src", query.encode())))[0] in (409, 500)
        assert (await client.ask(Asked("POST", "/")))[0] == 200
        await client.end()

    asyncio.run(run())
