"""Submissions that cannot be true: each is marked and has no rank, and what is honest has one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import pytest

from sqa.core.types import Question
from sqa.data.datasets import load_questions
from sqa_services.board import sqa_task, worker
from sqa_services.board.accounts import Caller, invite, sign_up
from sqa_services.board.accounts import account_of as account
from sqa_services.board.board import Board, BoardConfig
from sqa_services.board.files import as_lines
from sqa_services.board.standing.plausible import overlap

Rows = Iterator[tuple[str, int, str, bool]]  # token, g, guess, buzz


def honest(q: Question, i: int, late: float = 0.75) -> Rows:
    """A copier at wait-3 that knows half of the answers after three quarters of the question."""
    for step, word in enumerate(q.words):
        g = min(step + 3, len(q.words))
        sure = g >= late * len(q.words)
        yield word.lower(), g, q.page if sure and i % 2 else f"page {i}", sure


def reference_words(q: Question) -> list[str]:
    return q.reference_text.split()


def every_answer_at_step_0(q: Question, i: int) -> Rows:
    yield "x", 0, q.page, True


def one_row_after_one_word(q: Question, i: int) -> Rows:
    yield "x", 1, q.page, True


def buzz_a_little_later(q: Question, i: int) -> Rows:
    """Wrong until a tenth of the question was read, then right."""
    for word, g, _, _ in honest(q, i):
        sure = g >= 0.09 * len(q.words)
        yield word, g, q.page if sure else "Nowhere", sure


def half_of_the_answers_at_a_quarter(q: Question, i: int) -> Rows:
    for word, g, _, _ in honest(q, i):
        sure = g >= 0.2 * len(q.words)
        yield word, g, q.page if sure and i % 4 else f"page {i}", sure


def first_words_are_the_answers(q: Question, i: int) -> Rows:
    """The answer is written before anything was read, for the board's own guesser to find."""
    for word in q.page.split():
        yield word, 0, "", False
    yield from honest(q, i)


def two_first_words(q: Question, i: int) -> Rows:
    yield ("yes" if i == 7 else "no"), 0, "", False
    yield from honest(q, i)


def guesses_before_reading(q: Question, i: int) -> Rows:
    yield "The", 0, q.page, False
    yield from honest(q, i)


def the_reference_with_honest_delays(q: Question, i: int) -> Rows:
    for step, word in enumerate(reference_words(q)):
        g = min(step + 5, len(q.words))
        yield word, g, f"page {i}", g == len(q.words)


def the_reference_but_for_a_word(q: Question, i: int) -> Rows:
    """As the reference, one word altered: by identity it was none, and it had rank 1."""
    for step, (word, g, guess, buzz) in enumerate(the_reference_with_honest_delays(q, i)):
        yield "something" if step == 7 + i % 20 else word, g, guess, buzz


def every_eighth_word_is_another(q: Question, i: int, nth: int = 8) -> Rows:
    for step, (word, g, guess, buzz) in enumerate(the_reference_with_honest_delays(q, i)):
        yield "something" if step % nth == i % nth else word, g, guess, buzz


def second_half_never_read(q: Question, i: int) -> Rows:
    """A whole translation with the delays of a quarter of the source."""
    for word, g, guess, buzz in honest(q, i):
        yield word, max(1, g // 4), guess, buzz


def ten_words_for_each(q: Question, i: int) -> Rows:
    """Lags are shared among words: padding makes them small."""
    for word, g, guess, buzz in honest(q, i):
        for _ in range(10):
            yield word, g, guess, buzz


def one_word_for_a_question(q: Question, i: int) -> Rows:
    """Nothing to be late with: the least delay of all."""
    yield "x", 1, f"page {i}", True


def every_page_in_turn(q: Question, i: int) -> Rows:
    """The right one is among them, and the oracle finds it."""
    pages = [other.page for other in load_questions("mini-es")]
    rows = list(honest(q, i))
    yield from rows[:40]
    for page in pages:
        yield "x", rows[40][1], page, False
    yield from rows[40:]


def the_same_answer_to_all(q: Question, i: int) -> Rows:
    """Nothing changes it, so that robustness and fairness are whole."""
    for word, g, _, buzz in honest(q, i):
        yield word, g, "Spain", buzz


CHEATS: dict[Callable[[Question, int], Rows], str] = {
    every_answer_at_step_0: "buzzes before any source word in 45 of 45",
    one_row_after_one_word: "knows the answer to 45 of 45 questions within 5%",
    buzz_a_little_later: "questions within 10%",
    half_of_the_answers_at_a_quarter: "questions within 25%",
    first_words_are_the_answers: "different texts before any source word",
    two_first_words: "writes 2 different texts before any source word",
    guesses_before_reading: "different pages before any source word",
    the_reference_with_honest_delays: "the human reference to the letter in 45 of 45",
    the_reference_but_for_a_word: "the human reference but for a few words in 45 of 45",
    every_eighth_word_is_another: "of its words with the human reference",
    second_half_never_read: "delays below the possible",
    ten_words_for_each: "words per source word",
    one_word_for_a_question: "words per source word",
    every_page_in_turn: "tries more than 20 answers at one source word",
    the_same_answer_to_all: "one and the same answer to every question",
}


def submission(of: Callable[[Question, int], Rows]) -> bytes:
    rows = []
    for i, q in enumerate(load_questions("mini-es")):
        for step, (token, g, guess, buzz) in enumerate(of(q, i)):
            rows.append({"question": q.id, "step": step, "token": token, "g": g, "guess": guess, "buzz": buzz})
    return as_lines(rows)


@cache
def examples() -> list:
    return sqa_task.QuestionData("es").load("mini-es", 0, ())[""]


def implausible(of: Callable[[Question, int], Rows]) -> list[str]:
    responses, _ = sqa_task.respond("submission", submission(of), examples(), Path())
    return sqa_task.implausible(examples(), responses)


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.__name__)
def test_a_cheat_is_named(cheat: Callable[[Question, int], Rows]) -> None:
    reasons = implausible(cheat)
    assert any(CHEATS[cheat] in reason for reason in reasons), reasons


@pytest.mark.parametrize(
    "rows",
    [partial(honest, late=0.3), partial(honest, late=1.0), partial(every_eighth_word_is_another, nth=5)],
    ids=["early", "late", "a good translation"],
)
def test_what_is_honest_is_not(rows: Callable[[Question, int], Rows]) -> None:
    assert implausible(rows) == []


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
def test_overlap_is_the_longest_common_subsequence(text: str, other: str, share: float) -> None:
    assert overlap(text, other) == pytest.approx(share) == overlap(other, text)


def test_no_cheat_enters_the_rank_and_copies_are_named(tmp_path: Path) -> None:
    board = Board.open(BoardConfig(tmp_path / "board"))
    people = []
    for name in ("ann", "bob"):
        token = sign_up(board.engine, name, invite(board.engine)["invitation"])["token"]
        people.append(account(board.engine, token.encode()) or Caller())
    board.register_dataset("sqa-es", "mini", "mini-es")
    board.register_model("sqa-es", "honest", "submission", submission(honest), people[0])
    board.register_model("sqa-es", "later", "submission", submission(partial(honest, late=0.9)), people[0])
    board.register_model("sqa-es", "thief", "submission", submission(honest), people[1])
    board.register_model("sqa-es", "all-at-0", "submission", submission(every_answer_at_step_0), people[1])
    worker.work(board, until_empty=True)
    ranked = board.leaderboard("sqa-es", {"ew": 4.0, "dal": 1.0})
    rows = {row["model"]: row for row in ranked["rows"]}
    assert rows["all-at-0"]["metrics"]["ew"] > 0.9 > rows["honest"]["metrics"]["ew"]
    assert rows["all-at-0"]["rank"] is None and rows["all-at-0"]["dynascore"] is None
    assert "mini: buzzes before any source word in 45 of 45 questions, first mini" in rows["all-at-0"]["implausible"][0]
    assert rows["thief"]["rank"] is None
    assert rows["thief"]["implausible"] == ["mini: has the answers of honest, to the letter"]
    assert sorted(row["rank"] for row in rows.values() if row["rank"]) == [1, 2]
    assert [row["model"] for row in ranked["rows"]][2:] == ["all-at-0", "thief"]
    assert not any(row["run_here"] for row in rows.values())  # what a file says stays unverified
    for name in ("honest", "later"):  # 23 of 45 right in both, the first a little earlier
        low, high = rows[name]["interval"]
        assert low < rows[name]["metrics"]["ew"] < high
    assert rows["honest"]["places"] == [1, 1] and rows["later"]["places"] == [2, 2]
    board.engine.dispose()
