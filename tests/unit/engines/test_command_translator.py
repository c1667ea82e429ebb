"""The translator that calls an external program: separators, failures and fingerprints."""

import sys

import pytest
from doubles import question
from refusals import refused
from tables import tables_of

from smt.engines.command import CommandConfig, build
from smt.engines.command import Engine as System
from sqa.core import ConfigError, DataError
from sqa.files import digest

TABLES = tables_of(__file__)

UPPER = (sys.executable, "-c", "import sys\nfor line in sys.stdin: print(line.rstrip().upper())")
# Print the previous line before each line, except after a full stop.
SCRIPT = TABLES["script"]
REMEMBERS = (sys.executable, "-c", SCRIPT)


def engine(command, blank_lines=1, separator=""):
    return System(CommandConfig(tuple(command), blank_lines=blank_lines, separator=separator))


@pytest.mark.parametrize("blank_lines", [0, 1, 2])
def test_separator_resets_the_program(blank_lines):
    texts = ["a b", "c", "d e"]
    forgets = engine(REMEMBERS, blank_lines, ".").words(texts)
    assert forgets == [("a", "b"), ("c",), ("d", "e")]
    assert blank_lines or engine(REMEMBERS, 0).words(texts) != forgets


@pytest.mark.parametrize(("program", "message"), TABLES["failing_program_and_bad_options_are_refused"])
def test_failing_program_and_bad_options_are_refused(program, message):
    refused(DataError, message, engine((sys.executable, "-c", program), 0).words, ["a", "b"])
    refused(ConfigError, "not installed", engine, ("no-such-translator-xyz",), 0)
    refused(ConfigError, "separator", engine, UPPER, separator="a  b")
    refused(ConfigError, "blank_lines: must be >= 0", engine, UPPER, -1)
    refused(ConfigError, "command: a program is needed", engine, ())


def test_program_reads_utf8_in_every_locale(monkeypatch):
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    monkeypatch.setenv("PYTHONUTF8", "0")
    assert engine(UPPER).words(["el río"]) == [("EL", "RÍO")]


def test_program_beside_the_config_is_found(tmp_path, monkeypatch):
    """A config's `./prog.sh` arrives as `prog.sh` if the config is in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prog.sh").write_text("#!/bin/sh\ncat\n")
    refused(ConfigError, r"'prog.sh' is not executable; run `chmod \+x prog.sh`", engine, ("prog.sh",))
    (tmp_path / "prog.sh").chmod(0o755)
    assert engine(("prog.sh",)).words(["a b"]) == [("a", "b")]


def test_fingerprint_covers_files_of_a_command(tmp_path):
    key = digest(["command", 4, ["cat", "-u", "spa-eng"], 2, "", [], []])
    assert engine(("cat", "-u", "spa-eng"), 1).fingerprint() == key
    assert engine(("python3", "-c", "x" * 5000), 1).fingerprint()  # longer than any file name
    script, model = tmp_path / "translate.sh", tmp_path / "model.txt"
    script.write_text("#!/bin/sh\ncat\n")
    script.chmod(0o755)
    model.write_text("one")
    commands = (("sh", str(script)), (str(script),), ("cat", f"--model={model}"), ("cat", "-m", str(model)))
    before = [engine(command, 0).fingerprint() for command in commands]
    script.write_text("#!/bin/sh\ntac\n")
    model.write_text("two")
    assert len({*before, *(engine(command, 0).fingerprint() for command in commands)}) == 8


def test_listed_files_are_in_the_fingerprint(tmp_path):
    model, folder = tmp_path / "model.txt", tmp_path / "package"
    (folder / "inner").mkdir(parents=True)

    def key():
        return System(CommandConfig(("cat",), files=(str(model), str(folder)))).fingerprint()

    refused(DataError, "model.txt: No such file", key)
    keys = []
    for file in (model, model, folder / "one.py", folder / "inner" / "one.py", folder / "inner" / "one.py"):
        file.write_text(f"{len(keys)}")
        keys.append(key())
    assert len({*keys}) == 5 and key() == keys[-1]
    assert System(CommandConfig(("cat",), files=())).fingerprint() == System(CommandConfig(("cat",))).fingerprint()


def test_edited_program_causes_a_new_call(tmp_path):
    script, text = tmp_path / "words.py", [question(sentences=["a b"])]
    seen = []
    for word in ("one", "two"):
        script.write_text(f"import sys\nfor _ in sys.stdin: print({word!r})")
        translator = build(CommandConfig((sys.executable, str(script)), files=()))
        translator.fingerprint()
        seen += [emission.token for emission in translator.translate_batch(text)[0]]
    assert seen == ["one", "two"]


@pytest.mark.needs("apertium")
def test_apertium_keeps_context_without_a_separator():
    texts = ["Se extiende desde el Mar", "Se extiende desde el Mar de"]
    command = ("apertium", "-u", "spa-eng")
    alone = [engine(command).words([text])[0] for text in texts]
    assert engine(command).words(texts) != alone == engine(command, 1, ".").words(texts)
