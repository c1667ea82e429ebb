"""Common mistakes of new users, and their one-line errors; mistakes.yaml lists them with their messages."""

import shlex
import sys
from pathlib import Path

import pytest
from doubles import write_questions
from outcome import Command

import sqa
from sqa import cli
from sqa.core import ROOT, SqaError
from sqa.files import parse_yaml

LOG = ROOT / "docs" / "example" / "instances.log"
TABLE = parse_yaml(Path(__file__).with_name("mistakes.yaml").read_text(encoding="utf-8"))


def outcome_of(line: str) -> tuple[str, str]:
    """Run a command or a Python expression; return its exit code and the message of an error."""
    if line.startswith(">>> "):
        with pytest.raises(SqaError) as raised:
            eval(line.removeprefix(">>> "), {"sqa": sqa})
        return "-", str(raised.value)
    sys.argv = ["sqa", *shlex.split(line)]
    try:
        cli.main()
    except SystemExit as end:
        return str(end.code or 0), ""
    except Exception as error:  # as at the end of a program
        sys.excepthook(type(error), error, error.__traceback__)
        return "1", ""
    raise AssertionError("the command returned")


@pytest.mark.parametrize("row", TABLE["table"].splitlines())
def test_mistake_is_answered_by_its_remedy(row: str, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    for name, text in TABLE["files"].items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    said, _, expected = row.partition(" ==> ")
    code, line = said.split(" ", 1)
    found, message = outcome_of(line)
    message += capsys.readouterr().err
    assert found == code and expected in message and "Traceback" not in message, message


def test_hundred_mistakes_are_listed() -> None:
    assert len(set(TABLE["table"].splitlines())) >= 100


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_questions(tmp_path / "questions.jsonl", 1)
    (tmp_path / "one.log").write_text(LOG.read_text(encoding="utf-8").splitlines()[0], encoding="utf-8")
    for name, text in TABLE["common_files"].items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("line", "code", "said"), TABLE["common"])
@pytest.mark.usefixtures("folder")
def test_common_mistake_gives_a_one_line_error(line: str, code: int, said: str, command: Command) -> None:
    expected = said.replace("ROOT", str(ROOT))
    outcome = command(*line.replace("ROOT", str(ROOT)).split())
    usual = ("report in", "no question is answered: the buzzer's highest score")  # one easy question, no buzz
    complaints = [line for line in outcome.complaints if not any(part in line for part in usual)]
    assert outcome.code == code and len(complaints) == bool(expected), outcome
    assert all(expected in line for line in complaints), complaints


def test_every_result_names_an_unsuitable_buzzer(folder: Path, command: Command) -> None:
    for words in ("run mlp.yaml --runs r", "report r/mlp", "view r/mlp --output v.html"):
        assert command(*words.split()).code == 0
    for file in ("r/mlp/report.tsv", "r/mlp/report/report.md", "v.html"):
        assert "was trained on guesses of bm25" in (folder / file).read_text(encoding="utf-8"), file


@pytest.mark.parametrize(("name", "keys"), [("hold", ["n"]), ("wait-k", ["k"]), ("local-agreement", ["n"])])
def test_config_keys_lists_the_keys_of_a_policy(name: str, keys: list[str], command: Command) -> None:
    assert [line.split("\t")[0] for line in command("config", "keys", "policy", name).out.splitlines()[1:]] == keys


def test_replacing_the_run_of_an_edited_part_is_reported(folder: Path, command: Command) -> None:
    (folder / "mine.py").write_text(
        TABLE["common_files"]["mine.py"].replace('[""]', "texts").replace("1 / len(text)", "1.0")
    )
    for edit, replaced in (("", False), ("", False), ("# edited\n", True)):
        with (folder / "mine.py").open("a") as file:
            file.write(edit)
        line = f"sqa: {Path('runs/own')}: replaces a run with another guess stage"
        assert (line in command("run", "own.yaml").complaints) == replaced
