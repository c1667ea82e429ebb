"""`make bench`: every comparison runs on a few questions."""

import pytest

from benchmarks.__main__ import main


def test_benchmarks_print_a_row_per_comparison(capsys: pytest.CaptureFixture[str]) -> None:
    main(2)
    header, *rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert header == ["what", "unit", "plain", "fast", "ratio"]
    assert all(float(number) > 0 for row in rows for number in row[2:])
    assert {row[0].partition(":")[0] for row in rows} >= {
        "wait-k decoding",
        "bm25 guessing",
        "gru guessing",
        "whole run",
    }
