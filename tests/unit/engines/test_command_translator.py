"""Policies around a program: what is committed when, and what happens when the program misbehaves."""

from __future__ import annotations

import hashlib
import shutil
import sys

import pytest
from refusals import refused

from smt.engines.command import CommandConfig, build
from smt.engines.command import Engine as System
from smt.policies.chosen import remembered
from sqa.core.errors import ConfigError, DataError
from sqa.core.types import Question
from sqa.data.datasets import load_questions
from sqa.run.pipeline import stream

UPPER = (sys.executable, "-c", "import sys\nfor line in sys.stdin: print(line.rstrip().upper())")
# Writes the sentence backwards: every prefix revises what came before, so the commits show the policy.
REVERSE = (sys.executable, "-c", "import sys\nfor line in sys.stdin: print(*line.split()[::-1])")


# Says the line before with every line, but begins anew after a full stop.
SCRIPT = """
import sys
last = []
for line in sys.stdin:
    print(*last, line.strip())
    last = [] if line.strip() == "." else line.split()
"""
REMEMBERS = (sys.executable, "-c", SCRIPT)


def engine(command, blank_lines=1, separator=""):
    return System(CommandConfig(tuple(command), blank_lines=blank_lines, separator=separator))


def question(*sentences: str) -> Question:
    return Question("q", "test", "es", tuple(tuple(s.split()) for s in sentences), ("-",), "Page")


def test_wait_k_delays():
    [emissions] = build(CommandConfig(UPPER, 2)).translate_batch([question("a b c")])
    assert [(e.token, e.g, e.ended) for e in emissions] == [("A", 2, False), ("B", 3, False), ("C", 3, True)]


POLICIES = [{"k": 1}, {"k": 3}, {}, {"policy": "hold", "n": 1}]
POLICIES += [{"policy": name} for name in ("local-agreement", "retranslate")]


@pytest.mark.parametrize("keys", POLICIES)
def test_streaming_equals_batched(keys):
    q = question("uno dos tres cuatro", "cinco", "seis siete")
    batched = build(CommandConfig(REVERSE, **keys)).translate_batch([q])[0]
    remembered.cache_clear()  # else the second would only remember the translations of the first
    assert stream(build(CommandConfig(REVERSE, **keys)), q) == batched


@pytest.mark.parametrize("blank_lines", [0, 1, 2])
def test_a_separator_makes_a_program_forget(blank_lines):
    texts = ["a b", "c", "d e"]
    forgets = engine(REMEMBERS, blank_lines, ".").words(texts)
    assert forgets == [("a", "b"), ("c",), ("d", "e")]
    assert blank_lines or engine(REMEMBERS, 0).words(texts) != forgets
    prints = {engine(REMEMBERS, blank_lines, separator).fingerprint() for separator in ("", ".", "x")}
    assert len(prints) == 3


@pytest.mark.parametrize("separator", ["a\nb", " ", "a  b", ". "])
def test_a_separator_is_one_line(separator):
    refused(ConfigError, "separator", CommandConfig, UPPER, separator=separator)


def test_bounds():
    refused(ConfigError, "blank_lines: must be >= 0, got -1", CommandConfig, UPPER, blank_lines=-1)
    refused(ConfigError, "command: a program is needed", CommandConfig, ())


def test_policies_share_the_programs_memory_and_not_its_fingerprint():
    built = [build(CommandConfig(UPPER, **keys)) for keys in POLICIES]
    assert len({id(translator.system) for translator in built}) == 1
    assert len({translator.fingerprint() for translator in built}) == len(POLICIES)
    assert build(CommandConfig(UPPER, blank_lines=0)).fingerprint() not in {t.fingerprint() for t in built}


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("print('one')", "1 lines came back for 2"),
        ("raise SystemExit(3)", "exit status 3.*$"),
        (
            "import sys; sys.exit('Error: no such mode\\n(try spa-eng)')",
            r"exit status 1\.; it printed: Error: no such mode \(try spa-eng\)$",
        ),
    ],
)
def test_a_program_that_fails_is_named(program, message):
    refused(DataError, message, engine((sys.executable, "-c", program), 0).words, ["a", "b"])


def test_a_program_that_is_not_there():
    refused(ConfigError, "not installed", engine, ("no-such-translator-xyz",), 0)


def test_commands_that_name_no_file_keep_their_fingerprint():
    key = hashlib.sha256(f"2 {('cat', '-u', 'spa-eng')} 2".encode()).hexdigest()
    assert engine(("cat", "-u", "spa-eng"), 1).fingerprint() == key
    assert engine(("python3", "-c", "x" * 5000), 1).fingerprint()  # longer than any name of a file


def test_scripts_and_models_named_in_a_command_are_in_the_fingerprint(tmp_path):
    script, model = tmp_path / "translate.sh", tmp_path / "model.txt"
    script.write_text("#!/bin/sh\ncat\n")
    script.chmod(0o755)
    model.write_text("one")
    commands = (("sh", str(script)), (str(script),), ("cat", f"--model={model}"), ("cat", "-m", str(model)))
    before = [engine(command, 0).fingerprint() for command in commands]
    assert before == [engine(command, 0).fingerprint() for command in commands]
    script.write_text("#!/bin/sh\ntac\n")
    model.write_text("two")
    after = [engine(command, 0).fingerprint() for command in commands]
    assert all(a != b for a, b in zip(before, after, strict=True)) and len({*before, *after}) == 8


@pytest.mark.skipif(shutil.which("apertium") is None, reason="apertium-eng-spa is not installed")
def test_apertium_translates_and_sentences_do_not_influence_each_other():
    translator = build(CommandConfig(("apertium", "-u", "spa-eng"), "full"))
    questions = load_questions("mini-es", limit=3)
    together = translator.translate_batch(questions)
    alone = [engine(("apertium", "-u", "spa-eng"), 1).words([" ".join(s)])[0] for q in questions for s in q.sentences]
    assert [
        tuple(e.token for e in es if e.sentence == i)
        for q, es in zip(questions, together, strict=True)
        for i in range(len(q.sentences))
    ] == alone


@pytest.mark.skipif(shutil.which("apertium") is None, reason="apertium-eng-spa is not installed")
def test_apertium_remembers_a_subject_without_a_separator():
    texts = ["Se extiende desde el Mar", "Se extiende desde el Mar de"]
    command = ("apertium", "-u", "spa-eng")
    alone = [engine(command, 1).words([text])[0] for text in texts]
    assert engine(command, 1).words(texts) != alone
    assert engine(command, 1, ".").words(texts) == alone
