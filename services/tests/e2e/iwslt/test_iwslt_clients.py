"""Many clients at once, and bad ones among them: no cross-talk, every score the offline one, memory bounded."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import accumulate
from pathlib import Path

import requests
from stand_ins.iwslt_loopback import serving

from sqa.data.datasets import load_questions
from sqa.run.named import contestant_from
from sqa_services.bench.iwslt import Client, at_once, memory, server
from sqa_services.protocols.iwslt.client import EvaluationService
from sqa_services.protocols.iwslt.questions import QuestionScorer


def test_many_clients_at_once_get_the_scores_of_one_alone() -> None:
    """A question each, of the first eight; all words, lengths and waits differ, and a wrong word read is an error."""
    questions, many = load_questions("mini-en", limit=8), 100
    scorer = QuestionScorer(questions, *contestant_from())
    first = [0, *accumulate(len(question.sentences) for question in questions)]
    clients = [Client(number, (first[number % 8],)) for number in range(many)]
    corpus = scorer.corpus()
    with serving(corpus, None, scorer) as url:
        results = asyncio.run(at_once(url, clients, corpus.sources))
    alone = clients[::9]
    with serving(corpus, None, scorer) as url:
        for client in alone:
            assert asyncio.run(at_once(url, [client], corpus.sources)) == [results[client.number]]
    assert len({tuple(result.items()) for result in results}) > 50 and any(row["OracleEW"] for row in results)


def test_bad_clients_harm_nobody(tmp_path: Path) -> None:
    """All that can go wrong at once, from many clients, while a good one translates; the server is small throughout."""
    corpus = [question.sentences[0] for question in load_questions("mini-es", limit=4)]
    with ExitStack() as stack:
        (tmp_path / "source").write_text("".join(" ".join(words) + "\n" for words in corpus), encoding="utf-8")
        files = ("--src-file", str(tmp_path / "source"), "--tgt-file", str(tmp_path / "source"))
        netloc, process = stack.enter_context(server("serve", "iwslt", *files))
        url, (host, port) = f"http://{netloc}", netloc.split(":")
        good = Client(3, (0, 1, 2, 3))
        [before] = asyncio.run(at_once(url, [good], corpus))
        small = memory(process, most=True)
        for _ in range(50):  # stall, in the middle of a body and of a header
            for start in (
                b"PUT /hypo?sent_id=0 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf",
                b"GET /src",
            ):
                stack.enter_context(socket.create_connection((host, int(port)))).sendall(start)
        for number in range(50):  # vanish, with a word read
            service = EvaluationService(url, session=f"gone-{number}")
            service.get_src(0)
            del service
        for _ in range(3):
            assert _huge(url) in (413, None)
        for path, status in (
            ("/src?sent_id=-1", 500),
            ("/src?sent_id=4", 500),
            ("/src?sent_id=1e3", 500),
            ("/src?sent_id=0&segment_size=x", 500),
            ("/result?instance_id=77", 500),
            ("/get?info=" + "[" * 2000, 500),
            ('/send?hypo={"9": "word"}', 500),
            ("/send?hypo={", 500),
            ('/send?hypo={"0": 5}', 500),
            ("/src", 400),
        ):
            assert requests.get(url + path, timeout=30).status_code == status, path
        assert requests.put(f"{url}/hypo?sent_id=4", data=b"word", timeout=30).status_code == 500
        assert requests.delete(f"{url}/sessions/client-3", timeout=30).status_code == 200
        assert requests.put(f"{url}/hypo?sent_id=0", data=b"\xff\xfe", timeout=30).status_code == 500
        [after] = asyncio.run(at_once(url, [good], corpus))
        grown = memory(process, most=True) - small
    assert after == before
    assert grown < 48, f"{grown:.0f} MiB more"


def _huge(url: str) -> int | None:
    """The status of a PUT of 100 MB, None if the server hung up on it."""
    try:
        return requests.put(f"{url}/hypo?sent_id=0", data=_megabytes(100), timeout=60).status_code
    except requests.ConnectionError:
        return None


def _megabytes(number: int) -> Iterator[bytes]:
    return iter([b"x" * (1 << 20)] * number)
