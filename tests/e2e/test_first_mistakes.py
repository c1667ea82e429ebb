"""Common mistakes of new users, and their one-line errors; mistakes.yaml lists them with their messages."""

import shlex
import sys
from pathlib import Path

import pytest
from doubles import write_questions
from outcome import Command, process

import sqa
from sqa import cli
from sqa.core.errors import SqaError
from sqa.core.paths import ROOT
from sqa.files.yaml_reader import parse_yaml

EXAMPLE = ROOT / "docs" / "example"
LOG, STREAM = EXAMPLE / "instances.log", EXAMPLE / "simulstream.jsonl"
RUN = "dataset: {{name: questions.jsonl, limit: 1}}\ntranslator: {}\nguesser: {}\nbuzzer: {}\nmetrics: [ew]\n"
ECHO, GUESSER = "doubles:build_translator", "doubles:build_guesser"
OWN = """
class Guesser:
    def guess(self, texts, n):
        return [[("Lima", 1 / len(text))] for text in [""]]
    def fingerprint(self):
        return "1"
"""
FILES = {
    "nam.yaml": RUN.format("{nam: fixed}", "null", "null"),
    "none.yaml": RUN.format("{name: 3}", "null", "null"),
    "one.log": LOG.read_text(encoding="utf-8").splitlines()[0],
    "whisper.jsonl": '{"emission_time": 1.0, "text": "a"}\n',
    "mlp.yaml": RUN.format(ECHO, GUESSER, "mlp"),
    "tuned.yaml": RUN.format(ECHO, GUESSER, "{name: threshold, model: gru}"),
    "bundled.yaml": RUN.format("fixed", "rerank", "mlp"),
    "fits.yaml": RUN.format("fixed", "bm25", "mlp"),
    "own.yaml": RUN.format(ECHO, "mine.py:Guesser", "null").replace("[ew]", "[bleu]"),
    "mine.py": OWN,
}
A_RUN = "expected the config of a run, with dataset and translator, got"
BUZZER = "sqa: buzzer {}: its model {} was trained on guesses of {}, not of doubles:build_guesser; its confidence"

# command -> exit code, text in the only complaint on stderr (empty: there must be no complaint)
MISTAKES = {
    "run nam.yaml": (2, "simuleval, waitk, got nam"),
    "run none.yaml": (2, "simuleval, waitk, got number '3'"),
    f"run {ROOT}/configs/train_buzzers.yaml:mlp-bm25": (2, f"{A_RUN} kind, output, data, training, network (for"),
    f"run {LOG}": (2, f"got JSON lines; a config has `translator: {{name: recorded, file: {LOG}}}`"),
    "run one.log": (2, f"sqa: one.log: {A_RUN} index, prediction, delays, elapsed, prediction_length"),
    f"latency {STREAM}": (3, f"sqa: {STREAM}:1: a log of simulstream; `sqa scorer simulstream` computes its latencies"),
    "latency whisper.jsonl": (3, "sqa: whisper.jsonl:1: a log of SimulStreaming; `sqa run` scores it"),
    f"latency {EXAMPLE / 'heard.jsonl'}": (3, "heard.jsonl:1: a file of questions, not a log"),
    f"latency {LOG} --facts --pair pl-en": (0, f"sqa: {LOG}: its sources look like 'es', not 'pl'; is --pair"),
    f"latency {LOG} --facts --pair es-pl": (0, f"sqa: {LOG}: its references look like 'en', not 'pl'"),
    f"latency {LOG} --facts --pair es-en": (0, ""),
    f"latency {LOG} --facts": (0, ""),
    "config keys metric ew": (2, "a metric has no keys: `metrics:` is a list of names, such as ew, ew@xqb-interface"),
    "run mlp.yaml": (0, BUZZER.format("'mlp'", "'bm25'", "bm25")),
    "run tuned.yaml": (0, BUZZER.format("'threshold'", "'gru'", "gru")),
    "run bundled.yaml": (0, ""),  # the buzzer of its guesser
    "run fits.yaml": (0, ""),
}

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
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("line", MISTAKES)
@pytest.mark.usefixtures("folder")
def test_common_mistake_gives_a_one_line_error(line: str, command: Command) -> None:
    code, expected = MISTAKES[line]
    outcome = command(*line.split())
    usual = ("report in", "no question is answered: the buzzer's highest score")  # one easy question, no buzz
    complaints = [line for line in outcome.complaints if not any(part in line for part in usual)]
    assert outcome.code == code and len(complaints) == bool(expected), outcome
    assert all(expected in line for line in complaints), complaints


@pytest.mark.parametrize(("name", "keys"), [("hold", ["n"]), ("wait-k", ["k"]), ("local-agreement", ["n"])])
def test_config_keys_lists_the_keys_of_a_policy(name: str, keys: list[str], command: Command) -> None:
    assert [line.split("\t")[0] for line in command("config", "keys", "policy", name).out.splitlines()[1:]] == keys


def test_exception_in_a_user_part_names_file_and_line(folder: Path) -> None:
    def said(*more: str) -> str:
        outcome = process("run", "own.yaml", *more, cwd=folder)
        assert outcome.code == 1
        return outcome.err

    short = said().splitlines()
    where = "in mine.py:Guesser: guess() (-v shows the traceback)"
    assert short[-1] == f"sqa: mine.py:4: <listcomp>(): ZeroDivisionError: division by zero {where}"
    assert not any("Traceback" in line for line in short)
    assert "Traceback" in said("-v") and "sqa/pipeline/engine.py" in said("-v")


def test_replacing_the_run_of_an_edited_part_is_reported(folder: Path, command: Command) -> None:
    (folder / "mine.py").write_text(OWN.replace('[""]', "texts").replace("1 / len(text)", "1.0"))
    for edit, replaced in (("", False), ("", False), ("# edited\n", True)):
        with (folder / "mine.py").open("a") as file:
            file.write(edit)
        line = f"sqa: {Path('runs/own')}: replaces a run with another guess stage"
        assert (line in command("run", "own.yaml").complaints) == replaced
