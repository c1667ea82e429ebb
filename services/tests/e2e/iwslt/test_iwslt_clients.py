"""Many clients at once, and bad ones among them: no cross-talk, every score the offline one, memory bounded."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack, suppress
from itertools import accumulate, count
from pathlib import Path

import pytest
import requests
from stand_ins.iwslt_loopback import serving

from sqa.data.datasets import load_questions
from sqa.run.named import contestant_from
from sqa_services.bench import iwslt
from sqa_services.bench.iwslt import Client, at_once, memory, server
from sqa_services.protocols.iwslt.client import EvaluationService
from sqa_services.protocols.iwslt.questions import QuestionScorer


def test_many_clients_at_once_get_the_scores_of_one_alone() -> None:
    """A question each, of the first six; all words, lengths and waits differ, and a wrong word read is an error."""
    questions, many = load_questions("mini-en", limit=6), 60
    scorer = QuestionScorer(questions, *contestant_from())
    first = [0, *accumulate(len(question.sentences) for question in questions)]
    clients = [Client(number, (first[number % 6],)) for number in range(many)]
    corpus = scorer.corpus()
    with serving(corpus, None, scorer) as url:
        results = asyncio.run(at_once(url, clients, corpus.sources))
    alone = clients[::10]
    with serving(corpus, None, scorer) as url:
        for client in alone:
            assert asyncio.run(at_once(url, [client], corpus.sources)) == [results[client.number]]
    assert results[0]["requests"] == 2 * (len(corpus.sources[0]) + 1)
    assert len({tuple(result.items()) for result in results}) > 30 and any(row["OracleEW"] for row in results)


def test_a_rate_is_of_all_requests_of_all_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """In two seconds: 3 requests of each of 200 clients at once, 10 of all that come one after another."""

    async def together(_: str, clients: list[Client], __: object) -> list[dict[str, int]]:
        return [{"requests": 3}] * len(clients)

    async def apart(_: str, clients: list[Client], __: object) -> int:
        return 10

    monkeypatch.setattr(iwslt, "at_once", together)
    monkeypatch.setattr(iwslt, "one_by_one", apart)
    for alone, rate in ((False, 3 * iwslt.CLIENTS / 2), (True, 5.0)):
        monkeypatch.setattr(iwslt.time, "perf_counter", count(0.0, 2.0).__next__)
        assert iwslt.rate("nowhere", 0.0, [("a",)] * 4, alone) == rate


def test_bad_clients_harm_nobody(tmp_path: Path) -> None:
    """Many stall in a header or a body, send too much or leave, while a good one translates; the server stays small."""
    corpus = [question.sentences[0] for question in load_questions("mini-es", limit=4)]
    (tmp_path / "source").write_text("".join(" ".join(words) + "\n" for words in corpus), encoding="utf-8")
    files = ("--src-file", str(tmp_path / "source"), "--tgt-file", str(tmp_path / "source"))
    half = b"PUT /hypo?sent_id=0 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf"
    good = Client(3, (0, 1, 2, 3))
    with ExitStack() as stack:
        netloc, process = stack.enter_context(server("serve", "iwslt", *files))
        host, port = netloc.split(":")
        [before] = asyncio.run(at_once(netloc, [good], corpus))
        small = memory(process)
        for start in (half, b"GET /src") * 50:
            stack.enter_context(socket.create_connection((host, int(port)))).sendall(start)
        for number in range(50):  # vanish, with a word read
            EvaluationService(f"http://{netloc}", session=f"gone-{number}").get_src(0)
        for _ in range(3):
            with suppress(requests.ConnectionError):  # the server hung up on it
                megabytes = iter([b"x" * (1 << 20)] * 100)
                sent = requests.put(f"http://{netloc}/hypo?sent_id=0", data=megabytes, timeout=60)
                assert sent.status_code == 413
        assert requests.delete(f"http://{netloc}/sessions/client-3", timeout=30).status_code == 200
        assert asyncio.run(at_once(netloc, [good], corpus)) == [before]
        assert memory(process) - small < 48  # MiB
