"""The client of the SCORE/EVAL protocol against programs that keep it and programs that break it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import sacrebleu

from sqa.core.errors import ConfigError, DataError, NotComputable
from sqa.core.trace import QuestionTrace
from sqa.core.types import Emission, Question
from sqa_services.protocols.external import External, ExternalConfig, RemoteProtocolError, build, eval_request

HYPOTHESES = ["the cat sat on the mat .", "a dog ran far away today", "nothing in common", ""]
REFERENCES = ["the cat sat on a mat .", "the dog ran far away from here", "some other words here", "an empty one"]


def program(tmp_path: Path, body: str, **options: object) -> ExternalConfig:
    """A Python program; `ask()` is its next request, `say()` its reply."""
    path = tmp_path / "program.py"
    path.write_text(
        "import sys, time\n"
        "def ask(): return sys.stdin.readline() or sys.exit()\n"
        "def say(*words): print(*words, flush=True)\n" + body
    )
    return ExternalConfig((sys.executable, "-S", str(path)), **{"timeout": 20.0, "start_timeout": 60.0} | options)


COUNTER = """
while True:
    line = ask()
    if line.startswith('SCORE'):
        fields = line.split('|||')
        say(len(fields[-1].split()), len(fields) - 2)
    else:
        groups = [[float(word) for word in field.split()] for field in line.split('|||')[1:]]
        for group in groups + ([[0.0]] if EACH else []):
            say(group[0])
"""


@pytest.mark.parametrize("each", [False, True])
def test_statistics_and_both_kinds_of_eval(tmp_path: Path, each: bool) -> None:
    with External.start(program(tmp_path, f"EACH = {each}" + COUNTER)) as counter:
        assert counter.size == 2
        assert counter.stats(["a", "b c", ""], "one two three") == [3.0, 3.0]
        assert counter.stats(["a"], "") == [0.0, 1.0]
        assert counter.scores([[3.0, 3.0]])[0] == 3.0
        assert counter.scores([[3.0, 3.0], [4.0, 1.0]]) == ([3.0, 4.0, 0.0] if each else [3.0, 4.0, 7.0])


def test_text_that_cannot_be_carried_is_refused_and_nothing_is_sent(tmp_path: Path) -> None:
    with External.start(program(tmp_path, "EACH = False" + COUNTER)) as counter:
        for text in ("a ||| b", "a\nb", "a\rb"):
            with pytest.raises(DataError, match="cannot carry"):
                counter.stats(["a"], text)
            with pytest.raises(DataError, match="cannot carry"):
                counter.stats([text], "a")
        with pytest.raises(DataError, match="at least one reference"):
            counter.stats([], "a")
        assert counter.stats(["a"], "still here") == [2.0, 1.0]


BROKEN = {
    "dies at once": ("sys.stderr.write('no such model\\n'); sys.exit(3)", "exit code 3.*no such model"),
    "dies later": ("ask(); say(1, 2); ask(); say(1); ask(); say('1 2'); ask(); sys.exit(7)", "exit code 7"),
    "says no numbers": ("while True: ask(); say('Error: specify x')", "Error: specify x"),
    "says nan": ("while True: ask(); say('1 nan')", "numbers were expected"),
    "empty reply": ("while True: ask(); say()", "empty reply"),
    "stalls": ("ask(); ask()", "no reply in time"),
    "half a line": ("ask(); sys.stdout.write('1 2 3'); sys.stdout.flush(); time.sleep(60)", "1 2 3"),
    "never ends a line": ("while True: sys.stdout.write('7' * 65536)", "without end"),
    "banner": ("say('Welcome'); time.sleep(1)\nwhile True: ask(); say('1 2')", "Welcome"),
    "other length": ("ask(); say(1, 2); ask(); say(1); ask(); say(1, 2)\nwhile True: ask(); say(1)", "first, now"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_program_that_breaks_the_protocol(tmp_path: Path, name: str) -> None:
    body, said = BROKEN[name]
    patience = 1.0 if "no reply" in said or name == "half a line" else 60.0
    config = program(tmp_path, body, start_timeout=patience)
    with pytest.raises(RemoteProtocolError, match=f"(?s){said}"), External.start(config) as started:
        started.stats(["a"], "b")


def test_a_reply_nobody_asked_for(tmp_path: Path) -> None:
    body = "ask(); say('1 2')\nask(); say('1 2')\nsay('by the way')\nask(); say('1 2')\ntime.sleep(30)"
    with External.start(program(tmp_path, body, eval_lines="total")) as babbler:
        with pytest.raises(RemoteProtocolError, match="by the way"):
            for _ in range(3):
                babbler.stats(["a"], "b")


def test_stderr_is_drained(tmp_path: Path) -> None:
    body = "while True:\n    ask()\n    sys.stderr.write('x' * 300_000)\n    sys.stderr.flush()\n    say(1, 2)"
    with External.start(program(tmp_path, body, eval_lines="total")) as noisy:
        assert [noisy.stats(["a"], "b") for _ in range(5)] == [[1.0, 2.0]] * 5
        assert len(noisy._err) <= 2000


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="cannot be started"):
        External.start(ExternalConfig(("/nonexistent/metric",)))


@pytest.mark.parametrize(
    "options,message",
    [
        ({"command": ()}, "a program is needed"),
        ({"command": ("x",), "timeout": 0}, "timeout: must be > 0"),
        ({"command": ("x",), "eval_lines": "some"}, "one of auto, total, each"),
    ],
)
def test_wrong_configs(options: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ExternalConfig(**options)


def test_numbers_read_back_exactly() -> None:
    numbers = [0.1, 1e-13, 1234567.0, 1e300]
    [field] = eval_request([numbers]).split("|||")[1:]
    assert [float(word) for word in field.split()] == numbers


SERVER = "from sqa_services.protocols.scorer import ScorerConfig, main; main(ScorerConfig({!r}, eval_lines={!r}))"


@pytest.mark.parametrize("eval_lines", ["total", "each"])
def test_corpus_bleu_through_the_protocol_is_sacrebleus(eval_lines: str) -> None:
    command = (sys.executable, "-c", SERVER.format("bleu", eval_lines))
    with External.start(ExternalConfig(command)) as bleu:
        groups = [bleu.stats([r], h) for h, r in zip(HYPOTHESES, REFERENCES, strict=True)]
        assert bleu.scores(groups)[-1] == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score


def trace(hypothesis: str, reference: str, name: str) -> QuestionTrace:
    question = Question(name, "made", "es", (("uno", "dos"),), (reference,), "P")
    return QuestionTrace(question, tuple(Emission(0, word, 2, True) for word in hypothesis.split()))


def test_as_a_metric_of_runs() -> None:
    command = (sys.executable, "-c", SERVER.format("bleu", "total"))
    metric = build(ExternalConfig(command))
    try:
        pairs = zip(HYPOTHESES, REFERENCES, strict=True)
        stats = [metric.stats(trace(h, r, f"q{i}")) for i, (h, r) in enumerate(pairs)]
        assert metric.score(sum(stats)) == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
        assert metric.signature().startswith("external:python")
        with pytest.raises(NotComputable, match="no question"):
            metric.score(0 * stats[0])
    finally:
        metric.program.close()
