"""Tables on a terminal: sentences are wrapped, then the last columns are left out and named."""

import pytest

from sqa.results import NARROW, Table, printing, show

SENTENCE = "how much waiting costs and how much it buys, at one pace and at two"
TABLE = Table(["item", "shows", "n", "signature"], [("delay", SENTENCE, 7, "s" * 30), ("pace", "short", 12, "t")])


@pytest.mark.parametrize("width", [200, 100, 80, 60, 40])
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    assert max(map(len, TABLE.to_text(width).splitlines())) <= width


def test_wide_terminal_shows_all_columns() -> None:
    assert TABLE.to_text(200) == TABLE.to_text() and TABLE.left_out(200) == []


def test_sentences_are_wrapped_before_columns_are_left_out() -> None:
    assert TABLE.left_out(80) == [] and TABLE.left_out(60) == ["signature"]
    first, *lines = TABLE.to_text(60).splitlines()
    assert first.split() == ["item", "shows", "n"]
    cells = [line.split("  ") for line in lines]
    assert " ".join(part for line in lines[:-1] for part in line[7:].replace("  7", "").split()) == SENTENCE
    assert cells[0][0] == "delay" and cells[-1][0].strip() == "pace"


def test_sentences_keep_a_readable_width() -> None:
    assert TABLE.left_out(len("delay") + len("  ") + NARROW) == ["n", "signature"]
    assert TABLE.left_out(10) == ["shows", "n", "signature"]


def test_columns_left_out_are_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    with printing("aligned"):
        show(TABLE)
    with printing("tsv"):
        show(TABLE)
    printed = capsys.readouterr()
    assert printed.err == "sqa: columns that do not fit: signature; `| cat` or --json prints all columns\n"
    assert printed.out.endswith(TABLE.to_tsv())
