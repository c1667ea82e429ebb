"""Return values of user code are checked at the call, and a wrong value gives a one-line error, not a traceback."""

from pathlib import Path
from typing import Any

import pytest
from own_layouts import played, write
from tables import tables_of

from sqa.core import SqaError
from sqa.pipeline import save

TABLES = tables_of(__file__)

HEAD = TABLES["head"]
MINE = "mine.py:mine"
GUESSER, BUZZER = {"guesser": MINE}, {"guesser": "doubles:build_guesser", "buzzer": MINE}
POLICY = {"translator": {"name": "command", "command": ["cat"], "policy": {"name": MINE}}}
TRANSLATOR, METRIC = {"translator": MINE}, {"metrics": [MINE]}
QUALITY: dict[str, Any] = {"quality": [{MINE: {}}]}
PARTS: dict[str, tuple[dict[str, Any], str]] = TABLES["parts"]
OTHERS: dict[str, tuple[dict[str, Any], str]] = {  # the same for parts that are not classes
    "compute": (METRIC, "Formula('mine', 'Mine', lambda d, c: X)"),
    "digits of a formula": (METRIC, "Formula('mine', 'Mine', lambda d, c: d, digits=X)"),
    "texts": (QUALITY, "MeanOfSegments('mine', 'mine', None, lambda segments: X)"),
}
ODD = "None | b'x' | 'a b' | [Odd()] | np.zeros((3, 3))"


def run_with(folder: Path, checked: str, value: str) -> None:
    """Run and report with `checked` replaced by user code that returns `value`."""
    keys, members = (PARTS | OTHERS)[checked]
    made = members if checked in OTHERS else f"type('Mine', (), dict({members}))()"
    write(folder, mine=f"{HEAD}def mine():\n    return {made.replace('X', value)}\n")
    save(played(folder, **keys), folder / "runs")


def said(error: SqaError) -> str:
    """Return an error's text, which must be one line."""
    assert error.exit_code in (2, 3) and "\n" not in str(error)
    return str(error)


@pytest.mark.parametrize(("checked", "value", "line"), TABLES["wrong_return_value_gives_a_one_line_error"])
def test_wrong_return_value_gives_a_one_line_error(tmp_path: Path, checked: str, value: str, line: str) -> None:
    with pytest.raises(SqaError) as raised:
        run_with(tmp_path, checked, value)
    assert line in said(raised.value)


@pytest.mark.parametrize("checked", [*PARTS, *OTHERS])
def test_invalid_return_value_gives_no_traceback(tmp_path: Path, checked: str) -> None:
    """Each run succeeds or ends with a one-line error and an exit code."""
    for value in ODD.split(" | "):
        try:
            run_with(tmp_path, checked, value)
        except SqaError as error:
            said(error)


@pytest.mark.parametrize(("member", "value"), TABLES["prints_of_a_part_go_to_stderr"])
def test_prints_of_a_part_go_to_stderr(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], member: str, value: str
) -> None:
    run_with(tmp_path, member, value)
    captured = capfd.readouterr()
    assert captured.out == "" and "seen" in captured.err


def test_numpy_numbers_are_accepted(tmp_path: Path) -> None:
    run_with(tmp_path, "guess", "[[('Laser', np.float32(2)), ('Maser', np.int64(1))] for _ in texts]")


def test_failed_text_metric_is_reported_with_its_reason(tmp_path: Path) -> None:
    run_with(tmp_path, "texts", "[1.0]")
    report = (tmp_path / "runs" / "mine" / "report.tsv").read_text(encoding="utf-8")
    assert "mine\tn/a\tn/a\tn/a\t2\tmean score\tnot computed: 1 scores for 2 segments" in report
