"""The tables of alternative answer names: the rule, applied to handwritten lines, and the bundled file."""

from pathlib import Path

import pytest
from refusals import refused

from sqa.core.errors import DataError
from sqa.data import answer_aliases as aliases
from sqa.data import download
from sqa.files import records


def test_alias_needs_a_third_of_the_lines() -> None:
    table = [  # number of answer lines, page, accepted names; ...
        "5 Momentum, linear momentum; 9 Momentum; 29 Linear momentum",  # 5 of Momentum's 14 lines are enough
        "4 Zeus, Jupiter; 20 Jupiter",  # all 4 lines of Zeus, but Jupiter's lines never accept Zeus
        "2 Dawn, Sunrise; 2 Dawn; 1 Sunrise, dawn",  # one line of Sunrise is too few to accept Dawn
        "9 Iceland, Ísland; 9 Island",  # another page that differs only by the accent
        "27 Russia, Soviet Union; 88 Russia; 9 Soviet Union",
        "3 Vitamin A, retinol, Retinol!; 2 Vitamin A, retinal",
        "9 Cat, cats; 9 Tree, the trees; 1 Spin (physics); 1 Spins",  # the bare form already matches
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


def test_moderator_notes_are_not_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "packets.jsonl"
    path.write_text(
        '{"page": "Fear", "answer": "fear", "aliases": ["word forms", "terror", "either underlined part"]}\n'
        '{"page": null, "answer": "x", "aliases": []}\n{"page": "Fear", "answer": null, "aliases": []}\n'
    )
    monkeypatch.setattr(download, "path_of", lambda _: path)
    lines = aliases.answer_lines()
    assert next(lines) == ("Fear", ("fear", "terror"))
    refused(DataError, r"packets\.jsonl:3: answer and aliases: expected texts, got \[None\]", next, lines)


def test_alias_files_load(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("title\tmomentum\tlinear momentum\nform\tvitamin a\tretinol\nshared\tspin\t\n")
    rule = aliases.load(path)
    assert rule.is_right("Linear Momentum", "Momentum") and rule.is_right("Vitamin A", "Retinol")
    assert not rule.is_right("Spins", "Spin")
    name = rule.name
    path.write_text("title\tmomentum\tlinear momentum\n")
    assert aliases.load(path).name != name  # signatures distinguish tables
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
def test_bundled_tables_judge_the_listed_answers(guess: str, page: str, right: bool) -> None:
    assert aliases.bundled().is_right(guess, page) is right


@pytest.mark.mirror
def test_bundled_tables_follow_the_rule() -> None:
    assert aliases.build(aliases.answer_lines()) == list(records.table(aliases.BUNDLED, 3))
