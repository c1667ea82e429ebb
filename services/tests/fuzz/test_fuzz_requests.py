"""Fuzz every server except the board with corrupted requests.

The tests call the applications in process, as uvicorn does, so an application's exception reaches the test. The
documentation lists the requests that get status 500 on purpose, as from the original IWSLT and SimulEval servers.
"""

import asyncio
import io
import json
import logging
import random
from typing import Any
from urllib.parse import quote

import pytest
from fuzz import mutations as by
from fuzz.test_fuzz_files import COUNT, SEED
from stand_ins.asked import Asked, ask
from tables import tables_of

from sqa_services.net.server import LOG, tornado_page
from sqa_services.protocols.iwslt.corpus import TextCorpus
from sqa_services.protocols.iwslt.http import ServeConfig
from sqa_services.protocols.iwslt.http import make_app as iwslt_app
from sqa_services.protocols.scorer import Scorer, serve

TABLES = tables_of(__file__)

CORPUS = TextCorpus((("uno", "dos"), ("tres",)), ("one two", "three"))
METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "", "G\x00T", "get")
NUMBERS = ("0", "1", "-1", "2", "9" * 24, "1e3", "0x1", "", " 1 ", "٣", "1.0", "nan", "true", "\udc80", "a" * 5000)


def parsed(line: str) -> Asked:
    """Parse "METHOD PATH[?QUERY] [BODY]"."""
    method, url, *body = line.split(" ", 2)
    path, _, query = url.partition("?")
    return Asked(method, path, query.encode(), "".join(body).encode())


LINES = TABLES["lines"]
GOOD = {server: [parsed(line) for line in lines.split("\n")] for server, lines in LINES.items()}
TOO_LONG = "/sessions/" + "a" * 80 + "/src"
ODD_PATHS = ("/../src", TOO_LONG, "/\x00", "/sessions/../src", "/sessions/é/src", "", "*")


def corrupted(rng: random.Random, asked: Asked) -> Asked:
    """Return the request with up to three parts changed."""
    for _ in range(rng.randint(0, 3)):
        part = rng.choice(("method", "path", "number", "query", "body"))
        if part == "method":
            asked = asked._replace(method=rng.choice(METHODS))
        elif part == "path":
            near = ("/" + asked.path, asked.path + "/", asked.path + "x")
            asked = asked._replace(path=rng.choice((*near, *ODD_PATHS)))
        elif part == "number":
            name, _, _ = asked.query.partition(b"=")
            value = quote(rng.choice(NUMBERS), errors="surrogatepass").encode()
            more = rng.choice((b"", b"&segment_size=" + value))
            asked = asked._replace(query=(name or b"sent_id") + b"=" + value + more)
        else:
            before, equals, value = getattr(asked, part).rpartition(b"=" if part == "query" else b"\x00")
            try:
                value = by.json_document(rng, value)
            except (ValueError, RecursionError):  # not JSON, or already corrupted
                value = rng.choice(by.BYTES)(rng, value)
            asked = asked._replace(**{part: before + equals + (quote(value).encode() if part == "query" else value)})
    return asked


def served() -> list[Any]:
    """Return the server's application in each configuration to test."""
    configs = (ServeConfig(), ServeConfig(dialect="simuleval-1.0.2"), ServeConfig(strict=True))
    return [iwslt_app(CORPUS, config) for config in configs]


@pytest.mark.parametrize("name", GOOD)
def test_corrupted_requests_get_a_response(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, LOG.name)
    asyncio.run(_all_answered(name, served()))
    assert not caplog.records, "an error was logged"


async def _all_answered(name: str, apps: list[Any]) -> None:
    statuses: dict[int, int] = {}
    for number in range(COUNT):
        rng = random.Random(f"{SEED} {name} {number}")
        app, asked = rng.choice(apps), corrupted(rng, rng.choice(GOOD[name]))
        headers = (
            [] if rng.random() < 0.8 else [(rng.choice((b"origin", b"authorization", b"content-type")), b"\xff x:y")]
        )
        try:
            status, body = await asyncio.wait_for(ask(app, asked, headers), 10)
        except Exception as error:
            raise AssertionError(f"request {number} (SQA_FUZZ_SEED={SEED}): {asked!r:.600}") from error
        statuses[status] = statuses.get(status, 0) + 1
        on_purpose = body in (tornado_page(500).body, b"")
        assert status < 500 or status == 501 or on_purpose, (number, asked, status, body[:300])
    assert len(statuses) > 2, statuses  # the server refused some requests and accepted others
    for app in apps:
        status, _ = await ask(app, GOOD[name][0], [])
        assert status == 200


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
def test_each_corrupted_line_gets_one_reply(metric: str) -> None:
    """Each line gets one reply, and SCORE and EVAL still work after the corrupted lines."""
    good = [
        b"SCORE ||| the cat sat on a mat ||| a cat sat on a mat",
        b"SCORE ||| a ||| b ||| c",
        b"EVAL ||| 1 2 3 4 5 6 7 8 9 10",
        b"SING ||| 1 1 1",
    ]
    scorer = Scorer(metric)
    lines = []
    for number in range(COUNT // 5):  # fewer lines, because TER is slow
        rng = random.Random(f"{SEED} {metric} {number}")
        line = rng.choice(by.BYTES)(rng, rng.choice(good))
        if rng.random() < 0.5:
            line = line.replace(
                rng.choice((b"1", b"a", b"cat")), rng.choice((b"9" * 400, b"nan", b"-1", b"1e308", b"\xff", b"|||"))
            )
        lines.append(line[:5000].replace(b"\n", b" "))
    out = io.BytesIO()
    assert serve(scorer, io.BytesIO(b"\n".join([*lines, good[0]]) + b"\n"), out)
    replies = out.getvalue().split(b"\n")[:-1]
    assert len(replies) == len(lines) + 1 and all(len(reply) < 2000 for reply in replies)
    stats = replies[-1].split()
    assert len(stats) == scorer.size and all(float(value) >= 0 for value in stats)
    assert json.loads(scorer.reply("EVAL ||| " + " ".join(map(bytes.decode, stats)))) > 0
