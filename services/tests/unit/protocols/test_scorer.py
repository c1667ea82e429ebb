"""The server of the SCORE/EVAL protocol: additive statistics, sacrebleu's scores, one reply per line."""

import io
from pathlib import Path

import pytest
import sacrebleu
from tables import tables_of

from sqa.core import ConfigError
from sqa_services.protocols.scorer import LINE_LIMIT, NO_REFERENCE, UNKNOWN, Scorer, main, serve

TABLES = tables_of(__file__)

HYPOTHESES = ["The cat sat on the mat.", "a dog, ran far away today", "nothing in common", "", "one"]
REFERENCES = TABLES["references"]
CORPUS = {"bleu": sacrebleu.corpus_bleu, "chrf": sacrebleu.corpus_chrf, "ter": sacrebleu.corpus_ter}


def talk(server: Scorer, data: bytes) -> list[str]:
    replies = io.BytesIO()
    serve(server, io.BytesIO(data), replies)
    return replies.getvalue().decode().splitlines()


@pytest.mark.parametrize("metric", CORPUS)
@pytest.mark.parametrize("references", [1, 2, 3])
def test_summed_statistics_give_the_corpus_score(metric: str, references: int) -> None:
    server = Scorer(metric)
    total: list[float] = []
    for i, hypothesis in enumerate(HYPOTHESES):
        line = " ||| ".join(["SCORE", *(refs[i] for refs in REFERENCES[:references]), hypothesis])
        stats = [float(word) for word in server.reply(line).split()]
        total = [a + b for a, b in zip(total or [0.0] * len(stats), stats, strict=True)]
    score = float(server.reply("EVAL ||| " + " ".join(map(repr, total))))
    assert score == CORPUS[metric](HYPOTHESES, REFERENCES[:references]).score


def test_eval_adds_groups_and_sing_accepts_only_one() -> None:
    server, stats, bad = Scorer("bleu"), "5 5 5 4 3 2 5 4 3 2", "5 5 0 0 0 0 5 4 3 2"
    assert server.reply(f"EVAL ||| {stats} ||| {bad}") == server.reply("EVAL ||| 10 10 5 4 3 2 10 8 6 4")
    assert float(server.reply(f"SING ||| {stats}")) == pytest.approx(100)
    assert server.reply(f"SING ||| {stats} ||| {bad}").startswith("Error: ")


def test_invalid_lines_get_one_error_line_each() -> None:
    lines = [
        b"",
        b"SCORE",
        b"SCORE ||| only one field",
        b"EVAL |||",
        b"EVAL ||| 1 2 3",
        b"EVAL ||| 1 2 3 4 5 6 7 8 9 x",
        b"EVAL ||| inf 2 3 4 5 6 7 8 9 10",
        b"EVAL ||| -1 2 3 4 5 6 7 8 9 10",
        b"\xff\xfe SCORE",
        b"SCORE ||| " + b"x " * LINE_LIMIT + b" ||| y",
        b"|||" * 1000,
        b"SCORE ||| a ||| a",
    ]
    replies = talk(Scorer("bleu"), b"\n".join(lines) + b"\n")
    assert len(replies) == len(lines)
    assert all(reply.startswith("Error: ") for reply in replies[:-1])
    assert replies[:3] == [UNKNOWN, NO_REFERENCE, NO_REFERENCE]
    assert replies[-1] == "1 1 1 0 0 0 1 0 0 0"


def test_missing_java_gives_a_one_line_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="no java is on PATH"):
        main("meteor")


def test_unknown_metric_is_refused() -> None:
    for metric, arguments, problem in (
        ("blue", (), "choose from bleu"),
        ("bleu", ("-l", "en"), "no further arguments"),
    ):
        with pytest.raises(ConfigError, match=problem):
            main(metric, arguments)
