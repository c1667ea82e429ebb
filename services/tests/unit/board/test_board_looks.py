"""What one look at the scores of kept answers tells, and how many looks a person has."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import board_database
import board_task
import pytest
import requests
from sqlalchemy import text, update
from stand_ins.board_server import serving

from sqa.core.errors import DataError
from sqa.data.datasets import load_questions
from sqa_services.board import accounts, server, sqa_task, worker
from sqa_services.board.board import Board
from sqa_services.board.files import as_lines
from sqa_services.board.server import ServeConfig
from sqa_services.board.standing.rounded import rounded
from sqa_services.board.storage import ABOUT, VERSION
from sqa_services.net.address import Address
from sqa_services.protocols import submission as protocol

ADMIN = {"Authorization": "Bearer admin"}


@pytest.fixture
def url(board: Board) -> Iterator[str]:
    with serving(board, ServeConfig(address=Address(token="admin"), per_day=5)) as url:
        yield url


def account(board: Board, url: str, name: str, invitation: str = "") -> dict[str, str]:
    code = invitation or accounts.invite(board.engine)["invitation"]
    signed_up = requests.post(f"{url}/api/accounts", json={"name": name, "invitation": code}, timeout=30).json()
    return {"Authorization": f"Bearer {signed_up['token']}"}


def put(url: str, name: str, headers: dict[str, str], data: bytes = b"", task: str = "toy") -> requests.Response:
    body = data or json.dumps({"name": name, "answers": {"eins": "a"}}).encode()
    return requests.put(f"{url}/api/tasks/{task}/models/{name}", data=body, headers=headers, timeout=60)


# ------------------------------------------------------------------------------------------------- what a look tells


def guessing(right: set[int]) -> bytes:
    """Each question buzzed at a share of its source of its own, so that the sum of the scores says which were right."""
    rows = []
    for i, q in enumerate(load_questions("mini-es")):
        n = len(q.words)
        at = n // 2 + i * (n // 2) // 46
        for step in range(n):
            page = q.page if i in right else f"page {i}"
            rows.append({"question": q.id, "step": step, "token": q.words[step], "g": step + 1, "guess": page})
            rows[-1] |= {"buzz": step == at}
    return as_lines(rows)


def numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a JSON value, with the last name above it."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, name if key in ("a", "b", "diff", "low", "high") else key)
    elif isinstance(value, list):
        for inner in value:
            yield from numbers(inner, name)
    elif isinstance(value, float):
        yield name, value


def test_a_score_of_kept_answers_does_not_say_which_were_right(board: Board, url: str) -> None:
    """At full precision 45 of 45 guesses were told by one submission."""
    for phase in ("closed", "open"):
        board.register_dataset("sqa-es", phase, "mini-es", ["casing"], phase=phase)
    for name, right in (("one", {3, 8, 20}), ("two", {3, 9, 20}), ("three", set(range(45)))):
        board.register_model("sqa-es", name, "submission", guessing(right))
    worker.work(board, until_empty=True)
    exact = {(e["model"], e["dataset"]): e["result"] for e in board.evaluations("sqa-es") if not e["prefix"]}
    assert exact["one", "closed"]["perf"] != exact["two", "closed"]["perf"]  # which of two neighbours it was
    evaluations = requests.get(f"{url}/api/tasks/sqa-es/evaluations", timeout=30).json()
    published = {(e["model"], e["dataset"]): e["result"] for e in evaluations if not e["prefix"] and e["result"]}
    for model in ("one", "two", "three"):
        assert published[model, "open"] == exact[model, "open"]
        metadata = json.loads(published[model, "closed"]["metadata_json"])
        tags = metadata.pop("perf_by_tag")
        assert 1 < len(tags) < len(json.loads(exact[model, "closed"]["metadata_json"])["perf_by_tag"])
        assert all(tag["n"] >= 20 for tag in tags)
        intervals = metadata.pop("intervals")
        for name, value in (*numbers(metadata), *numbers(intervals), ("ew", published[model, "closed"]["perf"])):
            assert value == rounded(name, value, 45), name
        for tag in tags:
            for name, value in (*numbers(tag["perf_dict"]), *(("ew", v) for v in (tag["perf"], *tag["interval"]))):
                assert value == rounded(name, value, tag["n"]), (tag["tag"], name)
    same = ("perf", "pretty_perf")
    assert [published["one", "closed"][key] for key in same] == [published["two", "closed"][key] for key in same]
    assert published["three", "closed"]["perf"] > published["one", "closed"]["perf"]
    for dataset in ("closed", "open"):
        where = f"{url}/api/tasks/sqa-es/leaderboard"
        rows = requests.get(where, params={"dataset": dataset, "weights": "ew=1"}, timeout=30).json()["rows"]
        for row in rows:
            values = [*numbers(row["metrics"]), *(("ew", end) for end in row["interval"] or ())]
            assert all(value == rounded(name, value, 45) for name, value in values) == (dataset == "closed")
    precise = {row["model"]: row["metrics"]["ew"] for row in board.leaderboard("sqa-es", datasets=["closed"])["rows"]}
    assert precise["one"] == exact["one", "closed"]["perf"]  # where the board is, nothing is kept from who has it


def test_differences_under_perturbation_are_rounded_too(board: Board, url: str) -> None:
    board.register_dataset("sqa-es", "closed", "mini-es", ["casing", "names"])
    rows = [json.loads(line) for line in guessing({1, 2, 3}).splitlines()]
    copies = board.examples("sqa-es", "robustness-closed") + board.examples("sqa-es", "fairness-closed")
    answered = {id: [row for row in rows if row["question"] == id] for id in {row["question"] for row in rows}}
    for copy in copies:
        size, own = sum(len(s.split()) for s in copy["source"]), answered[copy["input_id"]]
        rows += [{**row, "question": copy["id"], "g": min(row["g"], size)} for row in own]
    board.register_model("sqa-es", "m", "submission", as_lines(rows))
    worker.work(board, until_empty=True)
    evaluations = requests.get(f"{url}/api/tasks/sqa-es/evaluations", params={"state": "done"}, timeout=30).json()
    by_prefix = {e["prefix"]: e["result"] for e in evaluations}
    assert {"robustness", "fairness"} <= set(by_prefix)
    for prefix in ("robustness", "fairness"):
        for transform in json.loads(by_prefix[prefix]["metadata_json"])["transforms"]:
            for metric, values in transform["differences"].items():
                own = [v for key, v in values.items() if key in ("a", "b", "diff", "low", "high") and v is not None]
                assert all(value == rounded(metric, value, transform["n"]) for value in own)
                assert (transform["n"] < 20) == ("refusal" in values)


@pytest.mark.parametrize(
    ("metric", "examples", "value", "expected"),
    [
        ("ew", 147, 0.258713, 0.26),
        ("ew", 45, 0.467940, 0.45),
        ("ew", 511, 0.130402, 0.13),
        ("ew", 511, 0.131402, 0.132),
        ("corpus_bleu", 147, 28.83, 29.0),
        ("dal", 147, 6.17, 6.2),
        ("accuracy", 1000, 66.67, 66.7),
        ("robustness", 50, 93.89, 94.0),
        ("examples_per_second", 45, 1.2345, 1.2345),
    ],
)
def test_steps_are_no_finer_than_one_example(metric: str, examples: int, value: float, expected: float) -> None:
    assert rounded(metric, value, examples) == expected


# --------------------------------------------------------------------------------------------- how many looks there are


def test_the_daily_quota_is_no_race(board: Board, url: str) -> None:
    """24 of 24 that were sent at once were taken at five a day."""
    ann = account(board, url, "ann")
    with ThreadPoolExecutor(24) as pool:
        replies = list(pool.map(lambda i: put(url, f"m{i}", ann).status_code, range(24)))
    taken = replies.count(201)
    assert taken == 5 and set(replies) <= {201, 429} and len(board.models("toy")) == taken
    assert put(url, "late", ann).status_code == 429


def test_accounts_of_one_invitation_have_one_quota(board: Board, url: str) -> None:
    code = accounts.invite(board.engine, uses=3)["invitation"]
    people = [account(board, url, name, code) for name in ("ann", "ann-2", "ann-3")]
    bob = account(board, url, "bob")
    replies = [put(url, f"m{i}", people[i % 3]).status_code for i in range(7)]
    assert replies == [201] * 5 + [429] * 2
    assert put(url, "bobs", bob).status_code == 201


def test_a_refused_submission_is_one_of_the_days(board: Board, url: str) -> None:
    ann = account(board, url, "ann")
    assert put(url, "m", ann).status_code == 201
    assert put(url, "m", ann).status_code == 409  # a name in use is told before anything is looked at
    for _ in range(4):
        assert put(url, "bad", ann, b"{", "sqa-es").status_code == 400
    assert put(url, "good", ann).status_code == 429


# ------------------------------------------------------------------------------------------ how much work a look makes


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The rows that were checked against the schema."""
    original, values = protocol.shape_problems, list[object]()

    def counted(model: Any, value: object) -> list[str]:
        values.append(value)
        return original(model, value)

    monkeypatch.setattr(protocol, "shape_problems", counted)
    return values


HEAVY = {  # refused submissions of 2 MB, and how many of their rows may be looked at
    "rows without fields": (b'{"question":"x"}\n' * 125_000, 10_000),
    "broken rows": (b"{\n" * 1_000_000, 0),
    "one long row": (b'{"question":"' + b"x" * 2_000_000 + b'"}', 0),
    "wrong values": (b'{"question":1,"step":"a","token":2,"g":"b"}\n' * 45_000, 10_000),
}


@pytest.mark.parametrize("heavy", HEAVY)
def test_a_submission_that_is_refused_is_not_read_to_its_end(heavy: str, checks: list[object]) -> None:
    """13 MB took 18 seconds, and six at once 964 MiB."""
    data, most = HEAVY[heavy]
    with pytest.raises(DataError) as error:
        sqa_task.check_model("submission", data)
    assert len(checks) <= most and len(error.value.reasons) <= 10_000 and max(map(len, error.value.reasons)) < 1000
    checks.clear()
    problems: list[str] = []
    assert protocol.traces_of(data.decode(), load_questions("mini-es"), problems) == []
    assert len(checks) <= most and len(problems) <= 30_000


def test_rows_of_known_questions_are_read_once_for_all_data_sets(checks: list[object]) -> None:
    examples = sqa_task.QuestionData("es").load("mini-es", 0, ())[""]
    wrong = [{"question": e["id"], "step": 7, "token": "w", "g": 10**6} for e in examples for _ in range(500)]
    by_dataset = sqa_task.unscorable("submission", as_lines(wrong), {f"d{n}": examples for n in range(5)})
    assert len(checks) == len(wrong) and list(by_dataset) == [f"d{n}" for n in range(5)]
    assert all(0 < len(problems) <= 10_000 for problems in by_dataset.values())


def test_submissions_are_looked_through_one_at_a_time(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    original, now, most = Board.register_model, [0], [0]

    def slow(self: Board, *arguments: Any) -> Any:
        now[0] += 1
        most[0] = max(most[0], now[0])
        time.sleep(0.2)
        try:
            return original(self, *arguments)
        finally:
            now[0] -= 1

    monkeypatch.setattr(Board, "register_model", slow)
    monkeypatch.setattr(server, "MOST_HELD", 150)  # three of them
    with serving(board, ServeConfig()) as url, ThreadPoolExecutor(12) as pool:
        replies = list(pool.map(lambda i: put(url, f"m{i}", {}).status_code, range(12)))
        assert most == [1] and set(replies) == {201, 503} and len(board.models("toy")) == replies.count(201) >= 3
        assert put(url, "later", {}).status_code == 201


def test_a_board_of_the_second_version_opens(board: Board) -> None:
    token = accounts.sign_up(board.engine, "ann", accounts.invite(board.engine)["invitation"])["token"]
    with board.engine.begin() as connection:
        connection.execute(update(ABOUT).values(value="2"))
        if board_database.URL is None:  # SQLite drops no column that refers to another table
            connection.execute(text("PRAGMA foreign_keys=OFF"))
            connection.execute(text("CREATE TABLE old AS SELECT id, name, token, created, day, sent FROM accounts"))
            connection.execute(text("DROP TABLE accounts"))
            connection.execute(text("ALTER TABLE old RENAME TO accounts"))
        else:
            connection.execute(text("ALTER TABLE accounts DROP COLUMN invitation"))
    board.engine.dispose()
    opened = Board.open(board.config)
    ann = accounts.account_of(opened.engine, token.encode())
    assert ann is not None
    for _ in range(2):
        accounts.spend(opened.engine, ann, per_day=2)
    with pytest.raises(accounts.TooMany):
        accounts.spend(opened.engine, ann, per_day=2)
    with opened.engine.connect() as connection:
        assert connection.execute(text("SELECT value FROM about WHERE key = 'version'")).scalar_one() == str(VERSION)
    assert opened.register_dataset("toy", "data", board_task.EXAMPLES)["id"] == 1
    opened.engine.dispose()
