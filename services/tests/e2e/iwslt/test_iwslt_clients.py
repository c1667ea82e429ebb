"""Many clients at once, and bad ones among them: no cross-talk, every score the offline one, memory bounded."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests
from stand_ins.iwslt_loopback import serving

from sqa.core.trace import QuestionTrace
from sqa.core.types import Buzzer, Emission, Guesser, Question, guesses_per_word
from sqa.data.datasets import load_questions
from sqa.metrics import build, collect
from sqa.metrics.delays import pack
from sqa.metrics.latency import FORMULAS, IWSLT_2020_FINAL
from sqa.run.named import contestant_from
from sqa_services.bench.iwslt import Client, at_once, memory, server
from sqa_services.protocols.iwslt.client import EvaluationService
from sqa_services.protocols.iwslt.questions import KEYS, QuestionScorer


def expected(
    client: Client, questions: Sequence[Question], guesser: Guesser, buzzer: Buzzer
) -> tuple[dict[str, float], dict[str, float]]:
    """EW and its like, and the latencies, worked out from what the client meant to write; no server in it."""
    positions = [(q, i) for q in range(len(questions)) for i in range(len(questions[q].sentences))]
    last = positions[max(client.sentences)][0]
    traces = []
    for index, question in enumerate(questions[: last + 1]):
        emissions = []
        for number in client.sentences:
            owner, sentence = positions[number]
            if owner == index:
                source = question.sentences[sentence]
                pairs = zip(client.words(source), client.delays(source), strict=True)
                emissions += [Emission(sentence, w, min(d, len(source)), d > len(source)) for w, d in pairs]
        history = guesses_per_word(guesser, [e.token for e in emissions], 50)
        traces.append(QuestionTrace(question, tuple(emissions), tuple(map(tuple, history)), buzzer.decide(history)))
    scores = {KEYS[metric.name]: metric.score(collect(traces, metric).sum(axis=0)) for metric in build(tuple(KEYS))}
    sources = [questions[positions[number][0]].sentences[positions[number][1]] for number in client.sentences]
    delays = [[*client.delays(source), len(source) + 1] for source in sources]
    packed = pack(delays, [len(source) + 1 for source in sources])
    return scores, {key: float(FORMULAS[key.lower()](packed, IWSLT_2020_FINAL).mean()) for key in ("AL", "AP", "DAL")}


def test_many_clients_at_once_get_the_scores_of_one_alone() -> None:
    """A question each, of the first eight; all words, lengths and waits differ, and a wrong word read is an error."""
    questions, many = load_questions("mini-en", limit=8), 100
    guesser, buzzer = contestant_from()
    scorer = QuestionScorer(questions, guesser, buzzer)
    first = [0]
    for question in questions:
        first.append(first[-1] + len(question.sentences))
    clients = []
    for number in range(many):
        clients.append(Client(number, (first[number % 8],)))
    corpus = scorer.corpus()
    asked = (0, 37, many - 1)
    with serving(corpus, None, scorer) as url:
        results = asyncio.run(at_once(url, clients, corpus.sources))
        again = [EvaluationService(url, session=f"client-{n}").get_scores()["SoFar"] for n in asked]
    answered = 0
    for client, result in list(zip(clients, results, strict=True))[::5]:  # the words that each read were right, too
        scores, latencies = expected(client, questions, guesser, buzzer)
        assert {key: result[key] for key in scores} == scores, client
        assert {key: result[key] for key in latencies} == pytest.approx(latencies, rel=1e-6), client
        answered += scores["OracleEW"] > 0
    assert [{k: results[n][k] for k in again[0]} for n in asked] == again
    assert answered


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
            ("/src?sent_id=99999999999999999999", 500),
            ("/src?sent_id=1e3", 500),
            ("/src?sent_id=0&segment_size=x", 500),
            ("/result?instance_id=77", 500),
            ("/get?info=" + "[" * 2000, 500),
            ('/send?hypo={"9": "word"}', 500),
            ("/send?hypo={", 500),
            ("/send?hypo=[1]", 500),
            ('/send?hypo={"0": 5}', 500),
            ('/send?hypo={"a": "b"}', 500),
            ("/src", 400),
        ):
            assert requests.get(url + path, timeout=30).status_code == status, path
        for number in ("-1", "4", "x"):
            assert requests.put(f"{url}/hypo?sent_id={number}", data=b"word", timeout=30).status_code == 500
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
