"""The `sqa` command in the process of a test."""

import sys

import pytest
from outcome import Command, Outcome

from sqa import cli


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs `sqa` with some words; no traceback is ever printed."""

    def run(*words: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["sqa", *words])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err, printed.err
        return Outcome(int(stopped.value.code or 0), printed.out, printed.err)

    return run
