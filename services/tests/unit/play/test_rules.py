"""Scores of a person's buzz, compared with hand-computed values, points of two players, and matching of titles."""

import pytest
from doubles import echo, question

from sqa.core.trace import QuestionTrace
from sqa.core.types import Buzz, Guess
from sqa_services.play.people import outcome, played, points
from sqa_services.play.server import Titles

Q = question()  # uno dos | tres cuatro cinco: 25 characters, answer Spain
SHOWN = QuestionTrace(Q, echo(Q))


def test_correct_answer_scores_the_curve_value() -> None:
    """After "uno dos tres" the player has read 12 of 25 characters; the published cubic gives EW."""
    assert len(Q.text) == 25
    result = outcome(played(SHOWN, 2, "spain"))
    t = 12 / 25
    by_hand = 0.9930799808912602 + 0.07753813168299144 * t - 1.278222873334493 * t**2 + 0.5879804678680423 * t**3
    assert result.right and result.ew == pytest.approx(by_hand, abs=1e-12)
    assert (result.step, result.words, result.answer) == (2, 3, "spain") and result.fraction == t


def test_system_is_judged_by_its_first_buzz() -> None:
    guesses = tuple((Guess(page, 1.0),) for page in ("France", "Spain", "Spain", "France", "Spain"))
    buzzes = tuple(Buzz(1.0, step in (1, 3)) for step in range(5))
    result = outcome(QuestionTrace(Q, SHOWN.emissions, guesses, buzzes))
    assert (result.step, result.answer, result.right) == (1, "Spain", True)


@pytest.mark.parametrize(
    ("buzzes", "won"),
    [
        ([(0.5, True)], [10]),
        ([(0.5, False)], [-5]),
        ([None], [0]),
        ([(0.5, True), (0.4, True)], [0, 10]),
        ([(0.5, True), (0.5, True)], [10, 0]),
        ([(0.5, True), (0.4, False)], [10, -5]),
        ([(0.3, False), (0.4, False)], [-5, 0]),
        ([None, (0.4, False)], [0, -5]),
    ],
)
def test_points_go_to_the_first_correct_answer(buzzes: list[tuple[float, bool] | None], won: list[int]) -> None:
    assert points(buzzes) == won


def test_titles_match_by_prefix_then_by_words() -> None:
    titles = Titles(["Albert Einstein", "Einstein_ring", "Łódź", "Pericles", "Peru", *(f"Alb{i}" for i in range(20))])
    assert titles.like("EINST") == ["Einstein_ring", "Albert Einstein"] and titles.like("per") == ["Peru", "Pericles"]
    assert titles.meant("lodz") == "Łódź" and titles.meant("Lod") == "Lod"
    assert Titles(["Dvořák", "Dvorak"]).meant("dvorák") == "dvorák"  # two titles match
    assert titles.like("e") == [] and titles.like("zzz") == [] and len(titles.like("alb")) == 8
