"""The tables of other names of answers: the rule on lines made by hand, and the bundled file."""

from pathlib import Path

import pytest
from refusals import refused

from sqa.core.errors import DataError
from sqa.data import answer_aliases as aliases
from sqa.data import download
from sqa.files import records


def test_a_third_of_the_lines_and_enough_of_them() -> None:
    table = [  # lines with these names, and how many of them
        "5 Momentum, linear momentum; 9 Momentum; 29 Linear momentum",  # 5 of 14: alone enough
        "4 Zeus, Jupiter; 20 Jupiter",  # 4 of 4, but Jupiter's lines never take Zeus
        "2 Dawn, Sunrise; 2 Dawn; 1 Sunrise, dawn",  # one line of Sunrise is no two: it does not take Dawn
        "9 Iceland, Ísland; 9 Island",  # another page but for the accent
        "27 Russia, Soviet Union; 88 Russia; 9 Soviet Union",
        "3 Vitamin A, retinol, Retinol!; 2 Vitamin A, retinal",
        "9 Cat, cats; 9 Tree, the trees; 1 Spin (physics); 1 Spins",  # the bare form says so already
    ]
    lines = []
    for times, _, names in (part.partition(" ") for row in table for part in row.split("; ")):
        page, *names_accepted = names.split(", ")
        lines += [(page, (page, *names_accepted))] * int(times)
    assert aliases.build(lines) == [
        ("form", "vitamin a", "retinol"),
        ("shared", "spin", ""),
        ("title", "dawn", "sunrise"),
        ("title", "momentum", "linear momentum"),
    ]


def test_notes_to_the_moderator_are_no_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "packets.jsonl"
    path.write_text(
        '{"page": "Fear", "answer": "fear", "aliases": ["word forms", "terror", "either underlined part"]}\n'
        '{"page": null, "answer": "x", "aliases": []}\n{"page": "Fear", "answer": null, "aliases": []}\n'
    )
    monkeypatch.setattr(download, "path_of", lambda _: path)
    lines = aliases.answer_lines()
    assert next(lines) == ("Fear", ("fear", "terror"))
    refused(DataError, r"packets\.jsonl:3: answer and aliases: expected texts, got \[None\]", next, lines)


def test_a_file_of_tables(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("title\tmomentum\tlinear momentum\nform\tvitamin a\tretinol\nshared\tspin\t\n")
    rule = aliases.load(path)
    assert rule.is_right("Linear Momentum", "Momentum") and rule.is_right("Vitamin A", "Retinol")
    assert not rule.is_right("Spins", "Spin")
    name = rule.name
    path.write_text("title\tmomentum\tlinear momentum\n")
    assert aliases.load(path).name != name  # signatures tell tables apart
    path.write_text("titel\ta\tb\n")
    refused(DataError, r"a\.tsv:1: expected title, form or shared in the first column, got 'titel'", aliases.load, path)


@pytest.mark.parametrize(
    ("guess", "page", "right"),
    [
        ("Linear Momentum", "Momentum", True),
        ("Deoxyribonucleic Acid", "DNA", True),
        ("Jupiter", "Mars", False),
        ("Symphony No. 6 (Mahler)", "Symphony No. 6 (Beethoven)", False),
    ],
)
def test_the_bundled_tables(guess: str, page: str, right: bool) -> None:
    assert aliases.bundled().is_right(guess, page) is right


@pytest.mark.mirror
def test_the_bundled_tables_are_what_the_rule_gives() -> None:
    assert aliases.build(aliases.answer_lines()) == list(records.table(aliases.BUNDLED, 3))
