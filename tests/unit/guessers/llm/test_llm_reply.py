"""Parsing of a language model's reply."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stand_ins.chat_server import pages
from tables import tables_of

from guessers.llm.reply import Titles, parse, parse_title
from sqa.core import Guess

TABLES = tables_of(__file__)

# -------------------------------------------------------------------------------------------------------------- replies


GOOD = '{"guesses": [{"page": "Peru", "confidence": 0.7}, {"page": "New_Spain", "confidence": 0}]}'


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"Sure!\n```JSON\n{GOOD}```\nHope that helps.",
        f"```json\n{GOOD}",
        f"\ufeff{GOOD}",
        f"<think>Is it\n[Peru]?</think>\n{GOOD}",
        GOOD[len('{"guesses": ') : -1],
    ],
)
def test_readable_replies_yield_guesses(text):
    assert parse(text, 10) == ((Guess("Peru", 0.7), Guess("New Spain", 0.0)), "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (GOOD[:-5], "not JSON"),
        (f"It is: {GOOD}", "not JSON"),
        (f"```json\n{GOOD}\n```\n```json\n{GOOD}\n```", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[" + "9" * 10_000 + "]", "not JSON"),
        *TABLES["unreadable_replies_yield_no_guess"],
    ],
)
def test_unreadable_replies_yield_no_guess(text, problem):
    assert parse(text, 10) == ((), problem)


MALFORMED = TABLES["malformed"]


@pytest.mark.parametrize("item", MALFORMED)
def test_malformed_guess_is_skipped(item):
    actual = parse(f'[{item}, {{"page": "Chile", "confidence": 0.5}}]', 10)
    assert pages(actual.guesses) == ["Chile"] and actual.problem == ""


def test_guesses_are_sorted_distinct_and_limited():
    rows = [("Peru", 0.1), ("Bolivia", 0.3), ("Zaire", 0.3), ("Chad", 0.3), ("PERU", 0.9), ("Cuba", 0), ("Asia", 0)]
    text = json.dumps([{"page": page, "confidence": confidence} for page, confidence in rows])
    actual = parse(text, 10)
    assert pages(actual.guesses) == ["Bolivia", "Zaire", "Chad", "Peru", "Asia", "Cuba"]  # ties in the model's order
    assert all(0 <= guess.score <= 1 for guess in actual.guesses)
    assert [guess.score for guess in actual.guesses] == pytest.approx([0.3, 0.3, 0.3, 0.1, 0, 0], abs=1e-5)
    assert pages(parse(text, 2).guesses) == ["Bolivia", "Peru"]


def test_titles_match_the_list():
    titles = Titles(["Frédéric_Chopin", "Łódź", "C", "Müller (A)", "Muller (A)", ""])
    assert titles.pages == {"Frédéric Chopin", "Łódź", "C", "Müller (A)", "Muller (A)"}
    assert titles.find("frédéric  chopin") == titles.find("Frederic Chopin") == "Frédéric Chopin"
    assert titles.find("lodz") == "Łódź"
    assert titles.find("MÜLLER (A)") == "Müller (A)" and titles.find("Mûller (A)") is None  # ambiguous
    assert titles.find("C++") is None and titles.find("Chopin") is None
    text = json.dumps([{"page": page, "confidence": 0.2} for page in ("Chopin", "Frederic Chopin", "Lodz")])
    actual = parse(text, 10, titles)
    assert pages(actual.guesses) == ["Frédéric Chopin", "Łódź"] and actual.problem == ""


def test_title_loses_the_label_of_the_prompt():
    assert pages(parse_title("Answer: the Rhine\n\nQuestion: This").guesses) == ["the Rhine"]
    assert parse_title("Answer:").problem == "no title on its first line"


@given(st.data())
def test_damaged_replies_raise_no_error(data):
    text = list(GOOD)
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(text)))
        text[at : at + data.draw(st.integers(0, 8))] = data.draw(st.text(max_size=4))
    actual = parse("".join(text), 10)
    assert not (actual.problem and actual.guesses)
    assert list(actual.guesses) == sorted(actual.guesses, key=lambda guess: (-guess.score, guess.page))
