"""Impossible submissions are marked and not ranked; honest submissions are ranked."""

from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from pathlib import Path

import pytest
from board_task import Row, submission

from sqa.core.types import Question
from sqa.data.datasets import load_questions
from sqa_services.board import lifecycle, sqa_task, worker
from sqa_services.board.accounts import account_of, invite, sign_up
from sqa_services.board.board import Board
from sqa_services.board.files import as_lines
from sqa_services.board.standing.plausible import overlap

Rows = Callable[[Question, int], Iterable[Row]]  # arguments: question, index of the question


def honest(q: Question, i: int, late: float = 0.75) -> Iterator[Row]:
    """Yield rows of a wait-3 copier that answers every second question correctly after the share `late` of it."""
    for step, word in enumerate(q.words):
        g = min(step + 3, len(q.words))
        sure = g >= late * len(q.words)
        yield word.lower(), g, q.page if sure and i % 2 else f"page {i}", sure


def reference(q: Question, i: int, other: Callable[[int, int], bool] = lambda step, i: False) -> Iterator[Row]:
    """Yield the human reference with honest delays, with "something" in place of words at steps where `other` holds."""
    for step, word in enumerate(q.reference_text.split()):
        g = min(step + 5, len(q.words))
        yield "something" if other(step, i) else word, g, f"page {i}", g == len(q.words)


def early(q: Question, share: float, knows: bool = True) -> list[Row]:
    """Return rows that buzz after this share of the source, with the correct answer if `knows` is set."""
    rows = [(word, g, g >= share * len(q.words)) for word, g, _, _ in honest(q, 0)]
    return [(word, g, q.page if sure and knows else f"page {q.id}", sure) for word, g, sure in rows]


def every_page_in_turn(q: Question, i: int) -> list[Row]:
    """Return rows that guess every page in turn, so that the oracle buzzer finds the correct page."""
    rows = list(honest(q, i))
    return [*rows[:40], *(("x", rows[40][1], other.page, False) for other in load_questions("mini-es")), *rows[40:]]


CHEATS: dict[str, tuple[Rows, str]] = {
    "every answer at step 0": (lambda q, i: [("x", 0, q.page, True)], "buzzes before any source word in 45 of 45"),
    "after one word": (lambda q, i: [("x", 1, q.page, True)], "has more right answers than any known system"),
    "a little later": (lambda q, i: early(q, 0.09), "any known system"),
    "three of four at a fifth": (lambda q, i: early(q, 0.2, i % 4 > 0), "any known system"),
    "first words are the answers": (  # the board's own guesser finds them
        lambda q, i: [*((word, 0, "", False) for word in q.page.split()), *honest(q, i)],
        "different texts before any source word",
    ),
    "two first words": (
        lambda q, i: [("yes" if i == 7 else "no", 0, "", False), *honest(q, i)],
        "writes 2 different texts before any source word",
    ),
    "guesses before reading": (
        lambda q, i: [("The", 0, q.page, False), *honest(q, i)],
        "different pages before any source word",
    ),
    "the reference": (reference, "equals the human reference, or contains most of its words"),
    "the reference with one word changed": (  # regression: a test for equality missed this copy and ranked it first
        partial(reference, other=lambda step, i: step == 7 + i % 20),
        "equals the human reference, or contains most of its words",
    ),
    "the reference with every eighth word changed": (
        partial(reference, other=lambda step, i: step % 8 == i % 8),
        "equals the human reference, or contains most of its words",
    ),
    "delays of a quarter of the source": (
        lambda q, i: [(word, max(1, g // 4), guess, buzz) for word, g, guess, buzz in honest(q, i)],
        "impossible delays",
    ),
    "each word ten times": (  # padding lowers a lag that is averaged over words
        lambda q, i: [row for row in honest(q, i) for _ in range(10)],
        "words per source word",
    ),
    "one word per question": (lambda q, i: [("x", 1, f"page {i}", True)], "words per source word"),  # the least delay
    "every page in turn": (every_page_in_turn, "tries more than 20 answers at one source word"),
    "the same answer to all": (  # gives perfect robustness and fairness
        lambda q, i: [(word, g, "Spain", buzz) for word, g, _, buzz in honest(q, i)],
        "the same answer to every question",
    ),
}
HONEST: dict[str, Rows] = {
    "early": partial(honest, late=0.3),
    "late": partial(honest, late=1.0),
    "a good translation": partial(reference, other=lambda step, i: step % 5 == i % 5),
}


@cache
def examples() -> list:
    return sqa_task.spanish().load("mini-es")


@pytest.mark.parametrize("name", [*CHEATS, *HONEST])
def test_only_cheats_are_reported(name: str) -> None:
    rows, reason = CHEATS.get(name) or (HONEST[name], "")
    responses, _ = sqa_task.spanish().respond("submission", as_lines(submission(rows)), examples(), Path())
    reasons = sqa_task.spanish().implausible(examples(), responses)
    assert any(reason in said for said in reasons) if reason else not reasons, reasons


@pytest.mark.parametrize(
    ("text", "other", "share"),
    [
        ("", "", 0.0),
        ("The cat, sat.", "the cat sat", 1.0),
        ("a b c", "c b a", 1 / 3),
        ("a a a b", "a b", 2 / 3),
        (" ".join(map(str, range(200))), " ".join(map(str, range(1, 201))), 199 / 200),
    ],
)
def test_overlap_uses_longest_common_subsequence(text: str, other: str, share: float) -> None:
    assert overlap(text, other) == pytest.approx(share) == overlap(other, text)


def test_cheats_and_copies_are_not_ranked(board: Board) -> None:
    board.register_dataset("sqa-es", "mini", "mini-es")
    tokens = [sign_up(board.engine, name, invite(board.engine)["invitation"])["token"] for name in ("ann", "bob")]
    ann, bob = (account_of(board.engine, token.encode()) for token in tokens)
    for name, rows, owner in (
        ("honest", honest, ann),
        ("later", partial(honest, late=0.9), ann),
        ("thief", honest, bob),
        ("all-at-0", CHEATS["every answer at step 0"][0], bob),
    ):
        board.register_model("sqa-es", name, "submission", as_lines(submission(rows)), owner)
    worker.work(board, until_empty=True)
    ranked = board.leaderboard("sqa-es", {"ew": 4.0, "dal": 1.0})
    rows = {row["model"]: row for row in ranked["rows"]}
    assert rows["all-at-0"]["metrics"]["ew"] > 0.9 > rows["honest"]["metrics"]["ew"]
    assert rows["all-at-0"]["rank"] is None and rows["all-at-0"]["dynascore"] is None
    assert "mini: buzzes before any source word in 45 of 45 questions, first mini" in rows["all-at-0"]["implausible"][0]
    assert rows["thief"]["rank"] is None
    assert rows["thief"]["implausible"] == ["mini: has exactly the answers of honest"]
    assert sorted(row["rank"] for row in rows.values() if row["rank"]) == [1, 2]
    assert [row["model"] for row in ranked["rows"]][2:] == ["all-at-0", "thief"]
    assert not any(row["run_here"] for row in rows.values())  # delays stated in a file are not verified
    for name in ("honest", "later"):  # both answer 23 of 45 correctly, the first slightly earlier
        low, high = rows[name]["interval"]
        assert low < rows[name]["metrics"]["ew"] < high
    assert rows["honest"]["places"] == [1, 1] and rows["later"]["places"] == [2, 2]
    lifecycle.remove(board.engine, board.files, "sqa-es", "honest")  # including the statistics of its examples
    assert len(board.models("sqa-es")) == 3
