"""Rows with named columns; tables on a terminal, whose long sentences are wrapped."""

import pytest
from refusals import refused

from sqa.core import DataError
from sqa.results import NARROW, Frame, Row, Table, printing, show

SENTENCE = "how much waiting costs and how much it buys, at one pace and at two"
TABLE = Table(["item", "shows", "n", "signature"], [("delay", SENTENCE, 7, "s" * 30), ("pace", "short", 12, "t")])


@pytest.mark.parametrize("width", [200, 100, 80])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    assert max(map(len, TABLE.to_text(width).splitlines())) <= width


def test_wide_terminal_wraps_nothing() -> None:
    first, delay, pace = TABLE.to_text().splitlines()
    assert TABLE.to_text(200) == TABLE.to_text() and first.split() == ["item", "shows", "n", "signature"]
    assert delay == f"delay  {SENTENCE}   7  {'s' * 30}" and pace.split() == ["pace", "short", "12", "t"]


def test_only_sentences_are_wrapped() -> None:
    _, *lines = TABLE.to_text(60).splitlines()
    assert " ".join(line[7 : 7 + NARROW].strip() for line in lines[:-1]) == SENTENCE
    assert "s" * 30 in lines[0] and lines[-1].split() == ["pace", "short", "12", "t"]


def test_style_of_the_command_is_used(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    with printing("aligned"):
        show(TABLE)
    with printing("tsv"):
        show(TABLE)
    assert capsys.readouterr().out == TABLE.to_text(60) + TABLE.to_tsv()


def test_frame_names_the_values_of_its_rows() -> None:
    [row] = Frame(("translator", "k"), [Row(("waitk", "9"), "ew", 0.25)]).rows
    assert (row["translator"], row["k"]) == ("waitk", "9")
    [row] = Frame(("system", "pace"), [row]).rows
    assert row["pace"] == "9"
    refused(DataError, "no column 'k'; it has system, pace", row.__getitem__, "k")


def test_frame_refuses_a_cell_of_another_length() -> None:
    refused(DataError, "needs 2 values: translator, k", Frame, ("translator", "k"), [Row(("waitk",), "ew", 0.25)])


def test_latex_table_escapes_its_cells() -> None:
    lines = Table(["a_b", "n"], [("5 %", 7)]).to_latex().splitlines()
    assert lines[0] == r"\begin{tabular}{lr}" and [lines[2].split(), lines[4].split()] == [
        [r"a\_b", "&", "n", r"\\"],
        ["5", r"\%", "&", "7", r"\\"],
    ]
