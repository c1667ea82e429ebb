"""Hidden questions: sessions of the evaluation server, which counts the words that clients read, as board models."""

import json
from pathlib import Path

import doubles
import pytest
import requests
from stand_ins.iwslt_loopback import serving
from typer.testing import CliRunner

from sqa.core.errors import ConfigError, DataError
from sqa.data.datasets import load_questions
from sqa_services.board import worker
from sqa_services.board.board import Board
from sqa_services.board.running import session_model
from sqa_services.cli.board import board_app
from sqa_services.net.address import Address
from sqa_services.protocols.iwslt.client import EvaluationService, TranslatorAgent, evaluate
from sqa_services.protocols.iwslt.http import ServeConfig
from sqa_services.protocols.iwslt.questions import corpus_of

GUESSER, BUZZER = "{name: 'doubles:build_guesser'}", "{name: 'doubles:build_buzzer'}"
ANN, BOB, OWN = "a" * 16, "b" * 16, "o" * 16
CONFIG = b"""dataset: {name: mini-es}
translator: {name: "doubles:build_translator", k: 2}
guesser: {name: "doubles:build_guesser"}
buzzer: {name: "doubles:build_buzzer"}
"""


def translate(url: str, token: str, k: int) -> None:
    service = EvaluationService(url, token=token)
    evaluate(lambda: TranslatorAgent(doubles.EchoTranslator(doubles.EchoConfig(k=k))), service)


def test_session_scores_equal_a_local_run(board: Board, tmp_path: Path) -> None:
    path = doubles.write_questions(tmp_path / "q.jsonl", 12)
    questions, journal = load_questions(str(path)), tmp_path / "out" / "journal.sqlite"
    people = (("ann", ANN), ("bob", BOB))
    config = ServeConfig(address=Address(token=OWN), journal=journal, participants=people)
    with serving(corpus_of(questions), config) as url:
        translate(url, ANN, 2)
        half = EvaluationService(url, token=BOB)
        half.get_src(0)
        with pytest.raises(DataError):  # otherwise a participant could read all sources and start again
            half.new_session()
        with pytest.raises(ConfigError, match="cannot be used"):
            session_model(journal, "ann", questions, GUESSER, BUZZER)  # the server holds the journal open
    board.register_dataset("sqa-es", "secret", str(path))
    where = ["--board", str(tmp_path / "board"), "register-session", "sqa-es"]
    options = ["--questions", str(path), "--guesser", GUESSER, "--buzzer", BUZZER]
    result = CliRunner().invoke(board_app, [*where, "ann-1", str(journal), "ann", *options], catch_exceptions=False)
    assert result.exit_code == 0 and json.loads(result.stdout)["kind"] == "session"
    board.register_model("sqa-es", "copy", "config", CONFIG)
    assert worker.work(board, until_empty=True) == 2
    rows = {row["model"]: row for row in board.leaderboard("sqa-es", {"ew": 1.0})["rows"]}
    assert rows["ann-1"]["metrics"]["ew"] > 0 and rows["ann-1"]["run_here"]
    for metric in ("ew", "oracle_ew", "qa_accuracy", "corpus_bleu", "al", "dal"):
        assert rows["ann-1"]["metrics"][metric] == rows["copy"]["metrics"][metric]
    with pytest.raises(DataError, match=r"session 'bob' has finished only 0 of \d+ sentences"):
        session_model(journal, "bob", questions, GUESSER, BUZZER)
    with pytest.raises(DataError, match="no session 'eve'; its sessions are ann, bob"):
        session_model(journal, "eve", questions, GUESSER, BUZZER)
    with pytest.raises(ConfigError, match="belongs to another corpus"):
        session_model(journal, "ann", questions[:-1], GUESSER, BUZZER)
    with pytest.raises(ConfigError, match="there is no file"):
        session_model(tmp_path / "none", "ann", questions)
    session = session_model(journal, "ann", questions, GUESSER, BUZZER)
    board.register_dataset("sqa-es", "mini", "mini-es")
    cannot = board.register_model("sqa-es", "ann-2", "session", session)["cannot"]
    assert list(cannot) == ["mini"] and "the session has other questions" in cannot["mini"][0]


def test_journal_counts_words_of_simuleval_clients(tmp_path: Path) -> None:
    path = doubles.write_questions(tmp_path / "q.jsonl", 1)
    [question], journal = load_questions(str(path)), tmp_path / "journal"
    with serving(corpus_of([question]), ServeConfig(journal=journal, dialect="simuleval-1.0.2")) as url:
        for number, sentence in enumerate(question.sentences):
            at = f"instance_id={number}"
            for word in sentence:
                assert requests.get(f"{url}/src?{at}", timeout=30).json()["segment"] == word
                requests.put(f"{url}/hypo?{at}", data=word.encode(), timeout=30)
            requests.get(f"{url}/src?{at}", timeout=30)
            requests.put(f"{url}/hypo?{at}", data=b"</s>", timeout=30)
    [head, row] = session_model(journal, "", [question], GUESSER, BUZZER).decode().splitlines()
    assert json.loads(head)["session"] == ""
    steps = json.loads(row)["steps"]
    assert [step["token"] for step in steps] == list(question.words)
    assert not any(step["ended"] for step in steps)  # when the client sends the last word, it has not yet read the end
    assert [step["g"] for step in steps] == [g for s in question.sentences for g in range(1, len(s) + 1)]
