"""The `sqa` command line: output on stdout and stderr, and a one-line error for every invalid input."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from doubles import write_questions
from outcome import Command, Outcome
from refusals import refused
from small_runs import PARTS

from sqa import __version__
from sqa.cli import start
from sqa.core import COMMANDS, ROOT, Emission, NotComputable, Question, QuestionTrace
from sqa.pipeline.export import submission_lines


class Shell:
    """The `sqa` command in a folder with six questions."""

    def __init__(self, folder: Path, command: Command) -> None:
        self.folder, self.command = folder, command

    def __call__(self, *words: str) -> Outcome:
        return self.command(*words)

    def lines(self, *words: str) -> list[list[str]]:
        """Run `sqa` and return the cells of each line on stdout."""
        return [line.split("\t") for line in self(*words).out.splitlines()]

    def config(self, name: str = "t", **changes: object) -> str:
        """Write a config to NAME.yaml and return the file name; a change to None removes the key."""
        base = {"dataset": {"name": "questions.jsonl"}, **PARTS, "metrics": ["ew", "accuracy", "bleu", "al"]}
        mapping = {key: value for key, value in (base | changes).items() if value is not None}
        (self.folder / f"{name}.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
        return f"{name}.yaml"

    def refused(self, code: int, *words: str) -> str:
        """Return the one-line error of `sqa`; check the exit code and that stdout is empty."""
        outcome = self(*words)
        assert (outcome.code, outcome.out) == (code, "")
        [line] = outcome.complaints
        return line.removeprefix("sqa: ")


@pytest.fixture
def sqa(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SQA_MIRROR", raising=False)
    monkeypatch.setenv("SQA_CACHE", str(tmp_path / "cache"))
    write_questions(tmp_path / "questions.jsonl", 6)
    return Shell(tmp_path, command)


# ----------------------------------------------------------------------------------------------------- output


def test_version_and_help_are_printed(sqa: Shell) -> None:
    assert sqa("--version") == Outcome(0, f"sqa {__version__}\n", "")
    assert sqa("frobnicate").code == 2


def test_help_lists_every_command_under_a_task(sqa: Shell) -> None:
    shown = sqa("-h").out
    assert shown == sqa("--help").out and "More:" not in shown
    listed = [line.split()[0] for line in shown.partition("Start:")[2].splitlines() if line[:3].strip()]
    assert set(COMMANDS.names()) <= set(listed)


def test_quiet_before_or_after_the_command(sqa: Shell) -> None:
    assert "6 questions" in sqa("run", sqa.config()).err
    assert sqa("-q", "run", sqa.config()).err == sqa("run", "-q", sqa.config()).err == ""


def test_options_of_all_commands_have_separate_effects(sqa: Shell) -> None:
    plain = sqa("data", "list")
    assert plain.out.startswith("name\there\t")
    assert sqa("data", "list", "-q") == plain
    assert sqa("data", "list", "--latex").out.startswith("\\begin{tabular}")
    assert json.loads(sqa("data", "list", "--json", "-q").out)[0].keys() >= {"name", "here"}
    assert "6 questions" in sqa("run", sqa.config(), "--json").err


def test_run_prints_the_report_it_writes(sqa: Shell) -> None:
    outcome = sqa("run", sqa.config())
    assert outcome.code == 0
    assert outcome.out == (sqa.folder / "runs/t/report.tsv").read_text(encoding="utf-8")
    header, *rows = (line.split("\t") for line in outcome.out.splitlines())
    assert header[:4] == ["metric", "value", "low", "high"]
    cells = {row[0]: row[1:5] for row in rows}  # the guesser does not know two answers, which count as wrong
    assert cells["unknown-pages"] == ["2", "n/a", "n/a", "6"] and cells["accuracy"][0] == "0.666667"
    again = sqa("run", "runs/t/config.yaml", "--runs", "elsewhere")
    assert again.out == outcome.out


def test_each_stage_runs_alone(sqa: Shell) -> None:
    made = {}
    for stage in ("translate", "guess", "buzz"):
        rows = sqa.lines("run", sqa.config(), "--until", stage)[1:]
        made[stage] = [(row[0], int(row[2])) for row in rows]
        assert all((sqa.folder / row[3] / "block-0000.npz").is_file() for row in rows)
    assert made == {
        "translate": [("translate", 1)],
        "guess": [("translate", 0), ("guess", 1)],
        "buzz": [("translate", 0), ("guess", 0), ("buzz", 1)],
    }
    assert sqa("run", sqa.config()).out == (sqa.folder / "runs/t/report.tsv").read_text(encoding="utf-8")


# ------------------------------------------------------------------------------------------------------ refusals


def test_wrong_checksum_is_refused(sqa: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = sqa.folder / "mirror"
    (mirror / "xqb").mkdir(parents=True)
    (mirror / "xqb/xqb_es.json").write_text("[]", encoding="utf-8")
    monkeypatch.setenv("SQA_MIRROR", str(mirror))
    assert "xqb_es.json: 2 bytes with sha256 " in sqa.refused(3, "run", sqa.config(dataset={"name": "xqb-es"}))
    verified = sqa("data", "verify", "xqb-es")
    assert verified.code == 3
    assert verified.out.splitlines()[1].split("\t")[:2] == ["xqb-es", "wrong"]
    assert sqa("data", "verify", "xqb-pl").code == 3  # missing


# ------------------------------------------------------------------------------- keys on the command line, and sweeps


def test_command_line_keys_replace_the_files(sqa: Shell) -> None:
    rows = json.loads(sqa("run", sqa.config("t0"), "guesser=null", "buzzer=null", "--json", "--runs", "r").out)
    values = {row["metric"]: row["value"] for row in rows}
    assert values["ew"] is None and values["bleu"] == pytest.approx(100)
    outcome = sqa("run", sqa.config(), "k=3", "limit=2", "metrics=[bleu, al]", "--json")
    [folder] = [path for path in (sqa.folder / "runs").iterdir() if path.name != "store"]
    assert folder.name.startswith("t-k3-limit2-")
    kept = yaml.safe_load((folder / "config.yaml").read_text("utf-8"))
    assert (kept["translator"]["k"], kept["dataset"]["limit"], kept["metrics"]) == (3, 2, ["bleu", "al"])
    assert [row["metric"] for row in json.loads(outcome.out)][:2] == ["bleu", "al"]
    assert outcome.out == sqa("run", str(folder / "config.yaml"), "--json").out


def test_sweep_runs_every_combination(sqa: Shell) -> None:
    axes = ["k=1,3", "metrics=[al],[al, bleu]"]
    lines = sqa.lines("sweep", sqa.config(), *axes, "limit=6")  # a single value has no column
    assert lines[0][:4] == ["run", "k", "metrics", "al"]
    folders = [sqa.folder / line[0] for line in lines[1:]]
    assert len(set(folders)) == 4 and all((folder / "report.tsv").is_file() for folder in folders)
    assert [line[lines[0].index("bleu")] for line in lines[1:]] == ["n/a", "100.000000", "n/a", "100.000000"]
    again = sqa("sweep", sqa.config(seed=1), *axes, "--json")
    rows = json.loads(again.out)
    assert not {row["run"] for row in rows} & {line[0] for line in lines}  # another config gives other names
    assert rows[2]["keys"] == {"k": 3, "metrics": ["al"]}
    assert sqa.refused(2, "sweep", sqa.config(), "k=3,3") == "k=3: occurs twice"
    assert sqa.refused(2, "sweep", sqa.config(), "k=1,3", "name=x").startswith("name: two runs would have the name 'x'")
    assert sqa("sweep", sqa.config(), "k=0,-1").err.count("sqa: k=") == 2  # all problems are reported at once


# -------------------------------------------------------------------------------------------------------- formatting


def test_terminal_gets_aligned_tables(sqa: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sqa("run", sqa.config(metrics=["bleu", "al"])).out.startswith("metric\tvalue\t")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    lines = sqa("run", sqa.config(metrics=["bleu", "al"])).out.splitlines()
    assert "\t" not in "".join(lines) and len({line.index(" n ") for line in lines[:1]}) == 1
    rows = [line for line in lines if line.startswith(("metric ", "bleu ", "al "))]  # long signatures are wrapped
    cells = zip(rows, ["value", "100.000000", "1.000000"], strict=True)
    assert len({line.index(cell) + len(cell) for line, cell in cells}) == 1  # columns of numbers are right-aligned


def test_completion_knows_the_commands(sqa: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"_SQA_COMPLETE": "complete_bash", "COMP_WORDS": "sqa swe", "COMP_CWORD": "1"}.items():
        monkeypatch.setenv(name, value)
    assert sqa().out.split() == ["sweep"]


# --------------------------------------------------------------------------------------------------------- exports


def test_export_writes_formats_of_other_programs(sqa: Shell) -> None:
    sqa("run", sqa.config())

    def export(*words: str) -> list[str]:
        return sqa("export", "runs/t", "--to", *words).out.splitlines()

    texts, steps = export("text"), export("csv")
    assert len(texts) == 12 and texts == export("text", "--side", "references")
    assert export("text", "--unit", "question")[0] == " ".join(texts[:2])
    assert steps[0] == "question,step,word,g,rank,score,buzz" and steps[1].startswith("q0,0,pista,1,")
    line = export("jsonl")[0]
    first = json.loads(line)
    assert "número" in line  # readable, not escaped
    assert first["hypothesis"] == texts[:2] and first["steps"][0]["word"] == "pista"
    assert len(first["steps"]) == sum(line.startswith("q0,") for line in steps)


def test_submission_has_the_scores_of_its_run(sqa: Shell) -> None:
    rows = {row["metric"]: row["value"] for row in json.loads(sqa("run", sqa.config(), "--json").out)}
    sqa("export", "runs/t", "--to", "submission", "--output", "mine.jsonl")
    scored = json.loads(sqa("validate", "sqa", "mine.jsonl", "--questions", "questions.jsonl", "--json").out)["scores"]
    values = {score["metric"]: score["value"] for score in scored}
    assert all(values[name] == pytest.approx(rows[name]) for name in ("ew", "bleu", "al"))
    Path("questions.jsonl").unlink()
    assert sqa("export", "runs/t", "--to", "submission").out == Path("mine.jsonl").read_text("utf-8")
    assert sqa("view", "runs/t").out == "runs/t/view.html\n"


def test_submission_refuses_retracted_words() -> None:
    question = Question("q", "d", "es", (("a", "b"), ("c",)), ("x",), "Peru")
    [silent] = submission_lines([QuestionTrace(question, (), (), ())])
    row = {"question": "q", "step": 0, "token": "", "g": 0, "guess": "", "buzz": False}
    assert json.loads(silent) == row
    plain = QuestionTrace(question, (Emission(1, "x", 1, True),))
    assert list(map(json.loads, submission_lines([plain]))) == [{"question": "q", "step": 0, "token": "x", "g": 3}]
    back = QuestionTrace(question, (Emission(0, "x", 1, False), Emission(0, "y", 1, False, 1)))
    refused(NotComputable, "q: retracts words", list, submission_lines([back]))


def test_questions_command_prints_lines(sqa: Shell) -> None:
    lines = sqa("questions", "questions.jsonl", "--sentences").out.splitlines()
    assert len(lines) == 12 and lines[0] == "pista número 0 sobre algo"
    assert sqa("questions", "questions.jsonl", "--questions").out.splitlines()[0] == " ".join(lines[:2])
    assert sqa("questions", "questions.jsonl", "--references", "--output", "t.txt").out == "t.txt\n"
    assert (sqa.folder / "t.txt").read_text("utf-8").splitlines() == lines  # here the source is its own reference
    assert "did you mean 'xqb-es'" in sqa.refused(2, "questions", "xqb-ess")


# --------------------------------------------------------------------------------------------------------- first steps


def test_init_writes_a_folder(sqa: Shell) -> None:
    """tests/e2e/test_own_page.py runs each of the written files."""
    made = sqa("init", "start")
    assert {"mine.yaml", "own.yaml", "parts.py", "pages.jsonl"} <= {Path(line).name for line in made.out.splitlines()}
    assert "\n    sqa run mine.yaml\n" in made.err and "\n    sqa run own.yaml buzzer=parts.py:Buzzer\n" in made.err
    assert "words.py: already exists" in sqa.refused(2, "init", "start")


def test_init_survives_a_closed_pipe(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    subprocess.run([sys.executable, "-m", "sqa", "init", "start"], stdout=write, cwd=tmp_path)
    os.close(write)
    names = {path.name for path in (ROOT / "docs" / "example").iterdir() if path.is_file()}
    assert {path.name for path in (tmp_path / "start").iterdir()} == names


def test_doctor_names_missing_packages(sqa: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    required = {"lm": [("nothere", "")], "bert": [("numpy", ""), ("older", "3.9")]}
    monkeypatch.setattr(start, "requirements", lambda: required)
    rows = {row["what"]: (row["state"], row["remark"]) for row in json.loads(sqa("doctor", "--json").out)}
    assert rows["[lm]"] == ("no", "lacks nothere") and rows["[bert]"] == ("yes", "all there")


def test_output_is_utf8_in_every_locale() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-m", "sqa", "questions", "mini-pl"], capture_output=True, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "ł" in done.stdout.decode("utf-8")
