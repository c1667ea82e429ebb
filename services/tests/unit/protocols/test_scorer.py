"""The server of the SCORE/EVAL protocol: additive statistics, sacrebleu's scores, one reply for every line."""

from __future__ import annotations

import gc
import io
import tracemalloc
from pathlib import Path

import pytest
import sacrebleu
from stand_ins.cdec import read_score, read_stats, score_line

from sqa.core.errors import ConfigError
from sqa_services.protocols.external import HANDSHAKE
from sqa_services.protocols.scorer import (
    LINE_LIMIT,
    NO_REFERENCE,
    UNKNOWN,
    Scorer,
    ScorerConfig,
    backend,
    serve,
)

HYPOTHESES = ["The cat sat on the mat.", "a dog, ran far away today", "nothing in common", "", "one"]
REFERENCES = [
    ["The cat sat on a mat.", "the dog ran far away from here", "some other words here", "an empty one", "one"],
    ["A cat was sitting.", "a dog ran off", "nothing", "what is this", "one two three four five"],
    ["x", "y", "z", "", "w"],
]
CORPUS = {
    "bleu": sacrebleu.corpus_bleu,
    "chrf": sacrebleu.corpus_chrf,
    "ter": sacrebleu.corpus_ter,
}


def scorer(metric: str, each: bool = False) -> Scorer:
    return Scorer(backend(ScorerConfig(metric)), each)


def talk(server: Scorer, data: bytes) -> list[str]:
    replies = io.BytesIO()
    serve(server, io.BytesIO(data), replies)
    return replies.getvalue().decode().splitlines()


@pytest.mark.parametrize("metric", CORPUS)
@pytest.mark.parametrize("references", [1, 2, 3])
def test_summed_statistics_give_the_score_of_the_corpus(metric: str, references: int) -> None:
    server = scorer(metric)
    total: list[float] = []
    for i, hypothesis in enumerate(HYPOTHESES):
        line = " ||| ".join(["SCORE", *(refs[i] for refs in REFERENCES[:references]), hypothesis])
        stats = [float(word) for word in server.reply(line).split()]
        total = [a + b for a, b in zip(total or [0.0] * len(stats), stats, strict=True)]
    score = float(server.reply("EVAL ||| " + " ".join(map(repr, total))))
    assert score == CORPUS[metric](HYPOTHESES, REFERENCES[:references]).score


@pytest.mark.parametrize("metric", CORPUS)
def test_what_cdec_sends_and_reads(metric: str) -> None:
    server = scorer(metric)
    size = server.backend.size
    for line in (
        HANDSHAKE,
        HANDSHAKE.replace("SCORE", "EVAL"),  # cdec of 2011
        score_line(["a b"], ""),
        score_line([""], "a b"),
        score_line([""], ""),
        score_line(["a", "b", "c", "d"], "a b c d"),
    ):
        reply = server.reply(line)
        assert len(read_stats(reply)) == size, line
    assert read_score(server.reply("EVAL ||| " + " ".join(["1e+00"] * size))) > 0


def test_the_two_dialects_of_eval() -> None:
    stats = "5 5 5 4 3 2 5 4 3 2"
    bad = "5 5 0 0 0 0 5 4 3 2"
    total = scorer("bleu").reply(f"EVAL ||| {stats} ||| {bad}")
    each = scorer("bleu", each=True).reply(f"EVAL ||| {stats} ||| {bad}").split("\n")
    assert len(each) == 3 and each[2] == total
    assert float(each[0]) == pytest.approx(100) and float(each[1]) == 0
    assert scorer("bleu", each=True).reply(f"EVAL ||| {stats}").count("\n") == 1
    assert scorer("bleu", each=True).reply(f"SING ||| {stats}") == each[0]


def test_nonsense_gets_one_line_each_and_the_server_goes_on() -> None:
    lines = [
        b"",
        b"HELLO",
        b"SCORE",
        b"SCORE ||| only one field",
        b"EVAL",
        b"EVAL |||",
        b"EVAL ||| 1 2 3",
        b"EVAL ||| 1 2 3 4 5 6 7 8 9 x",
        b"EVAL ||| nan 2 3 4 5 6 7 8 9 10",
        b"EVAL ||| inf 2 3 4 5 6 7 8 9 10",
        b"\xff\xfe SCORE",
        b"SCORE ||| " + b"x " * LINE_LIMIT + b" ||| y",
        b"|||" * 1000,
        b"SCORE ||| a ||| a",
    ]
    replies = talk(scorer("bleu"), b"\n".join(lines) + b"\n")
    assert len(replies) == len(lines)
    assert all(reply.startswith("Error: ") for reply in replies[:-1])
    assert replies[:4] == [UNKNOWN, UNKNOWN, NO_REFERENCE, NO_REFERENCE]
    assert replies[-1] == "1 1 1 0 0 0 1 0 0 0"


@pytest.mark.parametrize(
    ("metric", "stats", "problem"),
    [
        ("bleu", "5 5 9 4 3 2 5 4 3 2", "9 of 5"),
        ("bleu", "5 5 5 4 3 2 -5 4 3 2", "a number below 0"),
        ("bleu", "0 5 5 4 3 2 5 4 3 2", "5 of 0"),
        ("chrf", " ".join(["5 4 5"] * 6), "5 of 4"),
        ("ter", "-1 4", "a number below 0"),
    ],
)
def test_statistics_that_no_segments_have_are_refused(metric: str, stats: str, problem: str) -> None:
    """EVAL gave BLEU of 180 and worse for them."""
    assert scorer(metric).reply(f"EVAL ||| {stats}").startswith(f"Error: {scorer(metric).backend.name} stats that no")
    assert scorer(metric).reply(f"EVAL ||| {stats}").endswith(problem)


def test_statistics_as_a_client_rounds_them_are_taken() -> None:
    stats = "1.23457e+06 1.2e+06 1.23457e+06 1.2e+06 1.1e+06 1e+06 1.234565e+06 1.2e+06 1.1e+06 1e+06"
    assert read_score(scorer("bleu").reply(f"EVAL ||| {stats}")) > 99


def test_line_ends_and_a_last_line_without_one() -> None:
    assert talk(scorer("bleu"), b"score ||| a ||| a\r\nSCORE ||| a ||| a") == ["1 1 1 0 0 0 1 0 0 0"] * 2


def test_nobody_reads_any_more() -> None:
    class Closed(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: object) -> int:
            raise BrokenPipeError

    assert not serve(scorer("bleu"), io.BytesIO(b"SCORE ||| a ||| a\n" * 3), Closed())


def test_every_reply_is_flushed_before_the_next_request_is_read() -> None:
    order: list[str] = []

    class Requests(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            order.append("read")
            return super().readline(size)

    class Replies(io.BytesIO):
        def flush(self) -> None:
            order.append("flush")

    serve(scorer("bleu"), Requests(b"SCORE ||| a ||| a\n" * 2), Replies())
    assert order == ["read", "flush", "read", "flush", "read"]


def test_memory_does_not_grow_with_the_lines() -> None:
    server = scorer("bleu")

    def run(first: int, last: int) -> int:
        for i in range(first, last):
            server.reply(f"SCORE ||| word{i} is the reference number {i} ||| word{i} is hypothesis {i}")
        server.backend._forget()
        gc.collect()  # else it counts what waits for the next collection, whosever it is
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = run(0, 300)
        assert run(300, 900) - before < 20_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "options,message",
    [
        ({"metric": "blue"}, "there are bleu, chrf, ter, meteor"),
        ({"metric": "bleu", "arguments": ("-l", "en")}, "takes no further arguments"),
        ({"metric": "chrf", "word_order": -1}, ">= 0"),
    ],
)
def test_wrong_configs(options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ScorerConfig(**options)


def test_meteor_without_java_or_jar_is_one_clear_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="no java on PATH"):
        backend(ScorerConfig("meteor"))
    java = tmp_path / "java"
    java.touch(mode=0o755)
    monkeypatch.setenv("SQA_METEOR_JAR", str(tmp_path / "none.jar"))
    with pytest.raises(ConfigError, match="jar is not there"):
        backend(ScorerConfig("meteor"))
