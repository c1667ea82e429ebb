"""Bonus parts: which of them repeat a question the project is judged on."""

from __future__ import annotations

import pytest

from guessers import bonus
from guessers.bonus import Bonus, HeldOut, Overlap, sift
from sqa.data.datasets import load_questions
from sqa.data.folds import fold_of

QUESTION = (
    "The Polish engineer Ernest Malinowski designed a railway in this country that climbed to more than 4,700 metres "
    "above the sea in order to reach its mines. In November 1532 Francisco Pizarro took the emperor Atahualpa prisoner "
    "in the northern town of Cajamarca. For 10 points, name this country whose capital is Lima."
)
HELD_OUT = [HeldOut(QUESTION, "Peru"), HeldOut("Name this river of Cracow and Warsaw.", "Vistula"), HeldOut("?", None)]


def clue(text, page="Peru", opening=""):
    return Bonus("b", text, page, "", opening)


@pytest.mark.parametrize(
    ("part", "verdict"),
    [
        (clue("Ernest Malinowski designed a railway in this country."), "wording"),
        (clue("Ernest Malinowski designed a railway in this country.", "Bolivia"), "wording"),
        (clue("Name it.", opening="Pizarro took the emperor Atahualpa prisoner in this town."), "wording"),
        (clue("In Cajamarca, emperor Atahualpa of this land became a prisoner of Francisco Pizarro."), "facts"),
        (clue("In Cajamarca, emperor Atahualpa of this land became a prisoner of Francisco Pizarro.", "Inca"), "kept"),
        (clue("Quechua and Aymara are spoken in this country of llamas, quinoa and Shining Path rebels."), "kept"),
        (clue("Name this country whose capital is Lima", page=None), "no page"),
        (clue("Lima is its capital."), "kept"),  # too short to tell
        (clue(""), "kept"),
    ],
)
def test_a_clue_that_repeats_a_question_goes(part, verdict):
    assert Overlap(HELD_OUT).verdict(part) == verdict


def test_half_of_a_clue_is_half_its_runs():
    overlap = Overlap([HeldOut("one two three four five six seven", None)])
    assert overlap.wording("one two three four five six seven") == 1
    assert overlap.wording("zero one two three four five six nought null nil nothing none") == pytest.approx(3 / 9)
    assert overlap.wording("one two three four five a b c d") == 0  # two runs of four: fewer than three


def test_a_phrase_of_many_questions_counts_for_nothing():
    many = [HeldOut(f"this man who wrote the novel {i}", None) for i in range(bonus.PHRASE + 1)]
    assert Overlap(many).wording("this man who wrote the novel") == 0
    assert Overlap(many[:-1]).wording("this man who wrote the novel") == 1


def test_every_clue_gets_one_verdict_in_order():
    parts = [clue("Lima"), clue("x", page=None), clue(QUESTION), clue("Andes")]
    sifted = sift(parts, HELD_OUT)
    assert [part.text for part in sifted["kept"]] == ["Lima", "Andes"]
    assert sum(map(len, sifted.values())) == len(parts) and sifted["wording"] == [parts[2]]


@pytest.fixture(scope="module")
def kept_apart():
    return bonus.held_out()


@pytest.mark.mirror
@pytest.mark.slow
def test_the_clean_bonus_parts_repeat_no_question_of_xqb_or_guessdev(kept_apart):
    """Written another way than guessers/bonus.py: runs of ten words in common with an evaluation question."""
    texts = {q.reference_text for name in ("xqb-es", "xqb-pl", "guessdev") for q in load_questions(name)}
    judged = [question for question in kept_apart if question.text in texts]
    clean = sift(bonus.load_bonus()[::24], judged)["kept"]  # all of both take half a minute
    assert (len(clean), len({part.page for part in clean})) == (2_619, 2_212)
    runs = set()
    for text in texts:
        words = text.lower().split()
        runs |= {tuple(words[start : start + 10]) for start in range(len(words) - 9)}
    common = {
        run
        for words in (part.text.lower().split() for part in clean)
        for run in runs.intersection(tuple(words[start : start + 10]) for start in range(len(words) - 9))
    }
    assert {" ".join(run) for run in common} <= {  # a title, a quoted line, two set phrases of mathematics; no clue
        "a sunday afternoon on the island of la grande jatte.",
        "if a prime p divides the order of a group,",
        'the line "thou hast made me endless, such is thy',
        'with the line "thou hast made me endless, such is',
        "set of all sets that are not members of themselves.",
    }


@pytest.mark.mirror
def test_the_questions_to_keep_apart_are_all_of_them(kept_apart):
    texts = {question.text for question in kept_apart}
    for name in ("xqb-es", "xqb-pl", "guessdev", "mini-en"):
        assert {question.reference_text for question in load_questions(name)} <= texts
    from sqa.data.texts import load_tossups

    assert {tossup.text for tossup in load_tossups() if fold_of(tossup.id) != "guesser"} <= texts
    assert len(texts) > 10_000
