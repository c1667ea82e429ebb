"""Tables on a terminal: long sentences are wrapped."""

import pytest

from sqa.results import NARROW, Table, printing, show

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
