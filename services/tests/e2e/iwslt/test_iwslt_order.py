"""Participants read the source in order, and the server keeps every word that it confirmed."""

import asyncio
import json
import os
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import doubles
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stand_ins.asked import Asked, ask

from sqa.core.errors import DataError
from sqa.core.types import Question
from sqa_services.net.address import Address
from sqa_services.net.database import Database
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
counts = st.one_of(st.none(), st.integers(0, 4))


def counted(name: str, count: int | None) -> str:
    return "" if count is None else f"&{name}={count}"


reads = st.builds(
    lambda key, number, count: Asked("GET", "/src", f"{key}={number}{counted('read', count)}".encode()),
    st.sampled_from(("sent_id", "instance_id")),
    numbers,
    counts,
)
writes = st.builds(
    lambda key, number, count, text: Asked(
        "PUT", "/hypo", f"{key}={number}{counted('written', count)}".encode(), text.encode()
    ),
    st.sampled_from(("sent_id", "instance_id")),
    numbers,
    counts,
    texts,
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
        *(Asked("GET", path) for path in ("/", "/result", "/progress", "/end", "/start", "/sessions/eve/result")),
        *(Asked(method, path) for method in ("POST", "DELETE") for path in ("/", "/sessions/ann")),
        Asked("GET", "/get", b"info=%7B%22sent_id%22%3A%20null%7D"),
    ]
)
asked = st.one_of(reads, writes, results, guided, sent, others)
steps = st.lists(
    st.tuples(asked, st.sampled_from(("", "/sessions/ann")), st.sampled_from(("", "", "restart", "full disk"))),
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

    def __init__(self, dialect: str, folder: Path) -> None:
        address = Address(token=OWN)
        self.config = ServeConfig(dialect, address=address, participants=(("ann", ANN),), journal=folder / "journal")
        self.told = Told()
        self.start()

    def start(self) -> None:
        self.app = make_app(scorer().corpus(), self.config, scorer())

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
        return set(json.loads((await self.ask(Asked("GET", "/sessions/ann/progress"), OWN))[1])["finished"])


@contextmanager
def full_disk() -> Iterator[None]:
    """Make every database write fail."""

    def writing(*_: Any) -> None:
        raise DataError("journal: database or disk is full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "writing", writing)
        yield


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=int(os.environ.get("SQA_FUZZ", "50")))
@given(steps=steps)
def test_responses_reveal_nothing_too_early(dialect: str, steps: list[tuple[Asked, str, str]]) -> None:
    """Refused requests change nothing, and a restarted server has the state of the previous one."""

    async def run(folder: Path) -> None:
        client = Client(dialect, folder)
        try:
            for request, base, event in steps:
                path = request.path if request.path.startswith("/sessions") else base + request.path
                request = request._replace(path=path)
                before = await client.state()
                with full_disk() if event == "full disk" else nullcontext():
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
                if event == "restart":
                    await client.end()
                    client.start()
                    assert await client.state() == after
        finally:
            await client.end()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_unread_sentence_cannot_be_finished_early(dialect: str) -> None:
    """Regression test: `</s>` for an unread last clue counted its whole source as read: EW .714 instead of .468."""

    async def run(folder: Path) -> None:
        client = Client(dialect, folder)
        for key in ("sent_id", "instance_id"):
            for extra in ("", "&written=0"):
                put = Asked("PUT", "/hypo", f"{key}=2{extra}".encode(), EOS.encode())
                assert (await client.ask(put))[0] == 409
        send = Asked("GET", "/send", b"hypo=" + quote(json.dumps({"2": EOS})).encode())
        assert (await client.ask(send))[0] == 409
        status, body = await client.ask(Asked("GET", "/result", b"instance_id=2"))
        assert status == 409 and "w2" not in body
        await client.ask(Asked("PUT", "/hypo", b"sent_id=0", EOS.encode()))
        shown = json.loads((await client.ask(Asked("GET", "/result", b"instance_id=0")))[1])
        assert (shown["source"], shown["source_length"], shown["metric"]) == ("", None, {})
        await client.end()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


REQUESTS = (
    Asked("GET", "/src", b"sent_id=0&read=1"),
    Asked("GET", "/src", b"instance_id=0&read=1"),
    Asked("PUT", "/hypo", b"sent_id=0&written=1", b"b c"),
    Asked("GET", "/send", b"hypo=" + quote('{"0": "b"}').encode()),
    Asked("GET", "/get", b"info=" + quote('{"sent_id": 0, "value": null}').encode()),
)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.path + request.query.decode()[:12])
def test_full_disk_loses_no_word(request_: Asked) -> None:
    """Regression test: a retry got status 200 without being saved, so a restarted server lost the word."""

    async def run(folder: Path) -> None:
        client = Client("iwslt-2020", folder)
        for first in (Asked("GET", "/src", b"sent_id=0"), Asked("PUT", "/hypo", b"sent_id=0", b"a")):
            assert (await client.ask(first))[0] == 200
        before = await client.state()
        with full_disk():
            for _ in range(2):
                assert (await client.ask(request_))[0] == 500
                assert await client.state() == before
        status, body = await client.ask(request_)
        assert status == 200 and ("segment" not in body or "w0x1" in body)
        after = await client.state()
        assert after != before
        await client.end()
        client.start()
        assert await client.state() == after
        await client.end()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


def test_refused_read_creates_no_sentence() -> None:
    """Regression test: a refused first read left the participant with a session that could not be reset."""

    async def run(folder: Path) -> None:
        client = Client("iwslt-2020", folder)
        for query in ("sent_id=1", "sent_id=0&read=3", "sent_id=99"):
            assert (await client.ask(Asked("GET", "/src", query.encode())))[0] in (409, 500)
        assert (await client.ask(Asked("POST", "/")))[0] == 200
        await client.end()
        with sqlite3.connect(folder / "journal") as journal:
            assert journal.execute("SELECT * FROM sentences").fetchall() == []
        journal.close()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))
