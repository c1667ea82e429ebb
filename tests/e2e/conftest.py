"""Fixture that runs the `sqa` command in the test's process."""

import sys

import pytest
from outcome import Command, Outcome

from sqa import cli


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return a function that runs `sqa` with the given arguments and fails if it prints a traceback."""

    def run(*words: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["sqa", *words])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err, printed.err
        return Outcome(int(stopped.value.code or 0), printed.out, printed.err)

    return run
