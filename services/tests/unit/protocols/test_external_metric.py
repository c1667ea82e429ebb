"""The client of the SCORE/EVAL protocol with conforming and nonconforming programs."""

import sys
from pathlib import Path

import numpy as np
import pytest
import sacrebleu
from stand_ins.processes import wait_until
from tables import tables_of

from sqa.core import DataError, Emission, NotComputable, Question, QuestionTrace, bootstrap, total
from sqa_services.protocols import external
from sqa_services.protocols.external import External, ExternalConfig, RemoteProtocolError, build

TABLES = tables_of(__file__)

HYPOTHESES = ["the cat sat on the mat .", "a dog ran far away today", "nothing in common", ""]
REFERENCES = ["the cat sat on a mat .", "the dog ran far away from here", "some other words here", "an empty one"]


def program(tmp_path: Path, body: str) -> ExternalConfig:
    """Write a Python program whose `body` may call `ask()`, which reads a request, and `say()`, which replies."""
    path = tmp_path / "program.py"
    path.write_text(
        "import sys, time\n"
        "def ask(): return sys.stdin.readline() or sys.exit()\n"
        "def say(*words): print(*words, flush=True)\n" + body
    )
    return ExternalConfig((sys.executable, "-S", str(path)))


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
def test_client_reads_both_kinds_of_eval_replies(tmp_path: Path, each: bool) -> None:
    with External.start(program(tmp_path, f"EACH = {each}" + COUNTER)) as counter:
        assert counter.size == 2
        assert counter.stats(["a", "b c", ""], "one two three") == [3.0, 3.0]
        assert counter.stats(["a"], "") == [0.0, 1.0]
        assert counter.scores([[3.0, 3.0]]) == [3.0, 0.0 if each else 3.0]
        assert counter.scores([[3.0, 3.0], [4.0, 1.0]]) == ([3.0, 4.0, 0.0] if each else [3.0, 4.0, 7.0])


def test_unencodable_text_is_not_sent(tmp_path: Path) -> None:
    with External.start(program(tmp_path, "EACH = False" + COUNTER)) as counter:
        for reference, hypothesis in (("a", "a ||| b"), ("a", "a\nb"), ("a\rb", "a")):
            with pytest.raises(DataError, match="cannot carry"):
                counter.stats([reference], hypothesis)
        with pytest.raises(DataError, match="at least one reference"):
            counter.stats([], "a")
        assert counter.stats(["a"], "still here") == [2.0, 1.0]


BROKEN = TABLES["broken"]


@pytest.mark.parametrize("name", BROKEN)
def test_protocol_errors_are_reported(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body, said = BROKEN[name]
    if name in ("stalls", "half a line"):
        monkeypatch.setattr(external, "START_SECONDS", 1.0)
    with pytest.raises(RemoteProtocolError, match=f"(?s){said}"), External.start(program(tmp_path, body)) as started:
        started.stats(["a"], "b")


START = "ask(); say('1 2'); ask(); say(0); ask(); say('1 2')\n"  # replies to SCORE, EVAL and SCORE


def test_unrequested_reply_is_an_error(tmp_path: Path) -> None:
    spoken = tmp_path / "spoken"
    body = START + f"ask(); say('1 2'); say('by the way'); open({str(spoken)!r}, 'x').close(); time.sleep(30)"
    with External.start(program(tmp_path, body)) as babbler:
        babbler.stats(["a"], "b")
        wait_until(spoken.exists)
        with pytest.raises(RemoteProtocolError, match="wrote output without a request; its output: 'by the way"):
            babbler.stats(["a"], "b")


def test_stderr_is_drained(tmp_path: Path) -> None:
    body = START + "while True:\n    ask()\n    sys.stderr.write('x' * 300_000)\n    sys.stderr.flush()\n    say(1, 2)"
    with External.start(program(tmp_path, body)) as noisy:
        assert [noisy.stats(["a"], "b") for _ in range(5)] == [[1.0, 2.0]] * 5


def trace(hypothesis: str, reference: str, name: str) -> QuestionTrace:
    question = Question(name, "made", "es", (("uno", "dos"),), (reference,), "P")
    return QuestionTrace(question, tuple(Emission(0, word, 2, True) for word in hypothesis.split()))


def test_external_bleu_equals_sacrebleu() -> None:
    metric = build(ExternalConfig((sys.executable, "-m", "sqa", "scorer", "bleu")))
    try:
        pairs = zip(HYPOTHESES, REFERENCES, strict=True)
        stats = [metric.stats(trace(h, r, f"q{i}")) for i, (h, r) in enumerate(pairs)]
        assert metric.score(sum(stats)) == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
        assert metric.signature().startswith("external:python")
        with pytest.raises(NotComputable, match="no question"):
            metric.score(0 * stats[0])
    finally:
        metric.program.close()


def test_fingerprint_identifies_the_program(tmp_path: Path) -> None:
    prints = set()
    for body in ("pass", "pass # changed"):
        prints |= {build(program(tmp_path, body)).fingerprint() for _ in range(2)}
    assert len(prints) == 2


LENGTHS = """
while True:
    line = ask()
    groups = [field.split() for field in line.split('|||')[1:]]
    if line.startswith('SCORE'):
        say(len(groups[-1]), len(groups[0]))
    else:
        together = sum(min(map(float, group)) for group in groups) / sum(float(group[1]) for group in groups)
        for score in (*[min(map(float, group)) / float(group[1]) for group in groups], together):
            say(score)
"""  # as in METEOR, the score of two segments is not the score of their summed statistics


def test_non_additive_statistics_have_no_interval(tmp_path: Path) -> None:
    metric = build(program(tmp_path, LENGTHS))
    try:
        stats = np.array(
            [metric.stats(trace("a", "a b", "q0")), metric.stats(trace("a b c d e f g h", "a b c d e f", "q1"))]
        )
        found = bootstrap(stats, metric)
        assert found.value == total(stats, metric) == 7 / 8  # not the mean score (3/4) or the score of the sums (1)
        assert np.isnan([found.low, found.high]).all()
        assert metric.score(stats[0]) == 0.5
        with pytest.raises(NotComputable, match="do not add over questions"):
            metric.score(stats.sum(axis=0))
    finally:
        metric.program.close()
