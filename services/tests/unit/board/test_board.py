"""The board: registration, queue and workers, leaderboard, files and submissions."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from board_task import Row, add_data, add_models, model, submission
from doubles import question, write_questions

from sqa.core import ConfigError, DataError, Question
from sqa.files import Store
from sqa.pipeline import DatasetConfig, engine, run_in
from sqa_services.board import queue, sqa_task, worker
from sqa_services.board.board import Board
from sqa_services.board.storage import as_lines, stored, stored_lines
from sqa_services.board.task import NotFound, Taken, load_tasks

LEASE = 60.0


def by_model(board: Board, task: str = "toy") -> dict[tuple[str, str], dict[str, Any]]:
    """Return a dict that maps (model, prefix) to the evaluation."""
    return {(row["model"], row["prefix"]): row for row in board.evaluations(task)}


# --------------------------------------------------------------------------------------------------- registration


def test_registration_queues_evaluations(board: Board) -> None:
    assert board.register_model("toy", "m1", "submission", model("m1"))["queued"] == 0
    assert add_data(board, "data", "casing")["queued"] == 2
    assert board.register_model("toy", "m2", "submission", model("m2"))["queued"] == 2
    assert add_data(board, "more")["queued"] == 2
    rows = [(e["model"], e["dataset"], e["prefix"], e["state"]) for e in board.evaluations("toy")]
    assert len(rows) == 6 and {("m1", "data", "robustness", "queued"), ("m2", "more", "", "queued")} <= {*rows}
    assert board.evaluations("sqa-es") == []


@pytest.mark.parametrize("name", ["", "A", "../x", "a" * 64, "a\n"])
def test_names_have_letters_digits_and_dashes(board: Board, name: str) -> None:
    with pytest.raises(ConfigError, match="a name is"):
        board.register_model("toy", name, "submission", model("m"))


def test_registered_entries_are_immutable(board: Board) -> None:
    add_data(board)
    add_models(board, m={})
    with pytest.raises(Taken, match="already has 'data'"):
        add_data(board)
    with pytest.raises(Taken):
        board.register_model("toy", "m", "submission", model("second"))
    assert json.loads(stored(board.files, "models/toy/m.submission"))["name"] == "m"
    with pytest.raises(ConfigError, match="marks perturbed copies"):
        add_data(board, "robustness-x")
    with pytest.raises(NotFound, match="no task 'tou', did you mean 'toy'"):
        board.register_model("tou", "m", "submission", model("m"))
    with pytest.raises(ConfigError, match="its kind"):
        board.register_model("toy", "other", "pickle", model("m"))
    assert len(board.models("toy")) == 1


def test_tasks_are_validated() -> None:
    assert set(load_tasks(["board_task:make"])) == {"sqa-es", "sqa-pl", "toy"}
    for target in ("board_task:nothing", "nowhere:make", "board_task:not_a_task", ":"):
        with pytest.raises(ConfigError, match="task "):
            load_tasks([target])


def test_later_copies_equal_those_of_registration(board: Board, tmp_path: Path) -> None:
    questions = str(write_questions(tmp_path / "q.jsonl", 6))
    board.register_dataset("sqa-es", "first", questions, ["typos", "names"], seed=3)
    board.register_dataset("sqa-es", "later", questions, seed=3)
    assert board.perturb("sqa-es", "later", ["typos", "names"])["prefixes"] == board.datasets("sqa-es")[0]["prefixes"]
    for prefix in board.datasets("sqa-es")[1]["prefixes"]:
        assert board.examples("sqa-es", f"{prefix}-later") == board.examples("sqa-es", f"{prefix}-first")


def test_later_copies_are_queued_and_scored(board: Board) -> None:
    add_data(board)
    add_models(board, right={}, half={"answers": {"": "a"}})
    worker.work(board, until_empty=True)
    assert board.perturb("toy", "data", ["casing"]) == {"prefixes": ["robustness"], "queued": 2}
    assert worker.work(board, until_empty=True) == 2
    assert by_model(board)["half", "robustness"]["result"]["robustness"] == 100.0
    assert add_data(board, "more", "casing")["queued"] == 4
    for kinds, problem in ((["casing"], "already has robustness copies"), ([], "at least one kind")):
        with pytest.raises(ConfigError, match=problem):
            board.perturb("toy", "data", kinds)
    with pytest.raises(ConfigError, match="without a prefix"):
        board.perturb("toy", "robustness-data", ["casing"])


# -------------------------------------------------------------------------------------------------------- workers


def test_worker_evaluates_everything_once(board: Board) -> None:
    add_data(board, "data", "casing")
    add_models(board, right={}, half={"answers": {"eins": "a", "": "x"}}, odd={"more": {"field": 1}})
    add_models(board, bad={"refusal": "no \x00 such \ud800 thing"})
    assert worker.work(board, until_empty=True) == 6  # two evaluations cannot start
    rows = by_model(board)
    results = {key: row["result"] for key, row in rows.items()}
    assert results["right", ""]["pretty_perf"] == "100.0 %" and results["half", ""]["perf"] == 33.33
    assert results["right", ""]["job"] == {"examples_per_second": 6.0, "memory_utilization": 1.0}
    assert results["right", "robustness"]["robustness"] == 0.0  # the model answers no upper-case text correctly
    assert results["half", "robustness"]["robustness"] == 50.0
    outcomes = {key: (row["state"], row["error"]) for key, row in rows.items()}
    assert outcomes.pop(("bad", "")) == ("failed", "no \\x00 such ? thing")
    assert outcomes.pop(("odd", "")) == ("failed", "response to '1': expected its id and a label")
    for name in ("bad", "odd"):
        assert outcomes.pop((name, "robustness")) == ("failed", "the evaluation on the original data failed")
    assert set(outcomes.values()) == {("done", None)}
    assert worker.work(board, until_empty=True) == 0
    assert stored_lines(board.files, "predictions/toy/half/data.jsonl")[0] == {"id": "1", "label": "a"}


def test_crashing_evaluation_fails_after_last_attempt(board: Board, monkeypatch) -> None:
    monkeypatch.setattr(queue, "MAX_ATTEMPTS", 3)
    add_data(board)
    add_models(board, m={"mistake": "oh"})
    for _ in range(3):
        with pytest.raises(ValueError, match="oh"):
            worker.work(board, until_empty=True, lease_seconds=0.05)
    assert worker.work(board, until_empty=True, lease_seconds=0.05) == 0
    [row] = board.evaluations("toy")
    assert row["state"] == "failed" and "died 3 times" in row["error"]


def test_worker_without_its_lease_writes_nothing(board: Board) -> None:
    add_data(board, "data", "casing")
    add_models(board, m={})
    first = queue.claim(board.database, LEASE)
    assert first.prefix == "" and queue.claim(board.database, LEASE) is None  # perturbed copies wait for the originals
    assert queue.renew(board.database, first, LEASE)
    with board.database.writing() as db:
        db.execute("UPDATE evaluations SET lease_until = 0 WHERE state = 'running'")
    second = queue.claim(board.database, LEASE)
    assert second.id == first.id and second.lease != first.lease
    assert not queue.renew(board.database, first, LEASE) and not queue.finish(board.database, first, {"by": "first"})
    assert not queue.fail(board.database, first, "late")
    assert queue.finish(board.database, second, {"by": "second"})
    assert not queue.finish(board.database, second, {"by": "second again"})
    assert board.evaluations("toy", "done")[0]["result"] == {"by": "second"}
    assert queue.claim(board.database, LEASE).prefix == "robustness"


# ---------------------------------------------------------------------------------------------------- leaderboard


def test_leaderboard_ranks_by_dynascore(board: Board) -> None:
    add_data(board, "data", "casing")
    best = {"eins": "a", "zwei": "b", "DREI": "c", "EINS": "a"}
    add_models(board, best={"answers": best}, half={"answers": {"": "a"}})
    worker.work(board, until_empty=True)
    add_models(board, new={})
    ranked = board.leaderboard("toy")
    assert [row["model"] for row in ranked["rows"]] == ["best", "half", "new"] and ranked["refusal"] is None
    best, half, new = ranked["rows"]
    assert best["metrics"]["robustness"] == 50.0 and half["metrics"]["robustness"] == 100.0
    rate = 50.0 / (100.0 - 33.33)
    assert best["dynascore"] == pytest.approx(0.5 * 100 + 0.5 * 50 / rate)
    assert new["missing"] == ["accuracy", "robustness"] and new["dynascore"] is None
    assert board.leaderboard("toy", "robustness=1")["rows"][0]["model"] == "half"
    assert "memory_utilization is the same" in board.leaderboard("toy", "memory_utilization=1")["refusal"]
    with pytest.raises(NotFound, match="no data set 'other'"):
        board.leaderboard("toy", datasets=["other"])
    assert [e["id"] for e in board.examples("toy", "data")] == ["1", "2", "3"]
    assert [e["text"] for e in board.examples("toy", "robustness-data")] == ["EINS", "ZWEI"]
    for name in ("fairness-data", "other", "robustness-other"):
        with pytest.raises(NotFound):
            board.examples("toy", name)


# ---------------------------------------------------------------------------------------------- the question task


def reference(q: Question, page: str | None = None) -> Iterator[Row]:
    for step, word in enumerate(q.reference_text.split()):
        yield word, min(step + 3, len(q.words)), page or q.page, step == 40


def test_submissions_are_evaluated_like_runs(board: Board) -> None:
    with pytest.raises(DataError, match="is in 'pl', but the task is in 'es'"):
        board.register_dataset("sqa-es", "mini", "mini-pl")
    board.register_dataset("sqa-es", "mini", "mini-es", ["casing"])
    right = [row for suffix in ("", "_casing") for row in submission(lambda q, _: reference(q), suffix)]
    board.register_model("sqa-es", "right", "submission", as_lines(right))
    wrong = submission(lambda q, _: reference(q, "Nowhere"))
    board.register_model("sqa-es", "wrong", "submission", as_lines(wrong))
    worker.work(board, until_empty=True)
    rows = by_model(board, "sqa-es")
    metadata = json.loads(rows["right", ""]["result"]["metadata_json"])
    assert metadata["qa_accuracy"] == 1.0 and metadata["corpus_bleu"] == pytest.approx(100)
    tags = {row["tag"]: row["n"] for row in metadata["perf_by_tag"]}
    assert tags["sentences:4"] == 45 and sum(n for tag, n in tags.items() if tag.startswith("length:")) == 45
    assert rows["right", "robustness"]["result"]["robustness"] == 100.0
    assert rows["wrong", ""]["result"]["perf"] == 0.0
    failed = rows["wrong", "robustness"]
    assert failed["state"] == "failed" and "has no rows" in failed["error"]
    unanswered = [{key: row[key] for key in ("question", "step", "token", "g")} for row in right]
    board.register_model("sqa-es", "silent", "submission", as_lines(unanswered))
    worker.work(board, until_empty=True)
    assert "expected wins need answers" in by_model(board, "sqa-es")["silent", ""]["error"]


SILENT = b"dataset: {name: mini-es}\ntranslator: {name: 'doubles:build_translator', k: 2}\n"


@pytest.mark.parametrize(
    ("kind", "data", "problem"),
    [
        ("submission", b"", "no rows"),
        ("submission", b"\xff", "not UTF-8"),
        ("submission", b"[" * 100_000, "1: lists and objects are nested more than"),
        ("submission", b'{"question": [1]}', r"1: Expected .* got `array` - at `\$.question`"),
        ("submission", b'{"question": "q", "g": ' + b"1" * 5000 + b"}", "1: "),
        ("config", b"[]", "expected a mapping"),
        ("config", SILENT, "needs a guesser and a buzzer"),
    ],
    ids=range(7),
)
def test_invalid_models_are_refused(kind: str, data: bytes, problem: str) -> None:
    with pytest.raises(DataError if kind == "submission" else ConfigError, match=problem):
        sqa_task.spanish().check_model(kind, data)


CONFIG = SILENT + b"guesser: {name: 'doubles:build_guesser'}\nbuzzer: {name: 'doubles:build_buzzer'}\n"


def test_configs_run_on_the_boards_questions(board: Board, tmp_path: Path) -> None:
    questions = write_questions(tmp_path / "q.jsonl", 70)
    board.register_dataset("sqa-es", "echo", str(questions), ["diacritics"])
    board.register_model("sqa-es", "copy", "config", CONFIG)
    assert worker.work(board, until_empty=True) == 2
    original, perturbed = board.evaluations("sqa-es")
    metadata = json.loads(original["result"]["metadata_json"])
    assert metadata["qa_accuracy"] == pytest.approx(47 / 70)  # Spain and France, out of Spain, France and Atlantis
    config = dataclasses.replace(run_in(CONFIG, "model"), dataset=DatasetConfig(str(questions)))
    alone = engine.run(config, Store(tmp_path / "runs"), progress=False)
    for name, value in (("ew", "ew"), ("oracle_ew", "oracle-ew"), ("corpus_bleu", "bleu"), ("dal", "dal")):
        [metric] = [metric for metric in alone.metrics if metric.name == value]
        assert metadata[name] == metric.score(alone.stats[value].sum(axis=0))
    assert original["result"]["job"]["examples_per_second"] > 0
    board.register_model("sqa-es", "again", "config", CONFIG)
    worker.work(board, until_empty=True)
    assert "examples_per_second" not in by_model(board, "sqa-es")["again", ""]["result"]["job"]  # nothing recomputed
    assert perturbed["result"]["robustness"] == 100.0


def test_tags_describe_a_question() -> None:
    q, long = question(sentences=["uno dos tres cuatro cinco seis"] * 5), question(sentences=["a " * 30] * 7)
    assert sqa_task.tags_of(q) == ["length:25-49", "sentences:5"]
    assert sqa_task.tags_of(long) == ["length:125+", "sentences:6+"]
