"""BLEU, chrF and TER of a corpus equal sacrebleu bit for bit on the same lines, and to 1e-9 when resampled."""

import json
import subprocess
import sys

import numpy as np
import pytest
import sacrebleu
from tables import tables_of

from sqa.core import Emission, Question, QuestionTrace
from sqa.metrics import build, collect
from sqa.metrics.measure import lines
from sqa.metrics.quality.text_metric import segment_of

TABLES = tables_of(__file__)

PAIRS = TABLES["pairs"]


def trace_of(i, hypothesis, reference):
    sentences = tuple(("uno", "dos", "tres") for _ in hypothesis)
    question = Question(f"q{i}", "made", "es", sentences, tuple(reference), "P")
    emissions = tuple(Emission(s, w, 3, True) for s, line in enumerate(hypothesis) for w in line.split())
    return QuestionTrace(question, emissions)


TRACES = [trace_of(i, *pair) for i, pair in enumerate(PAIRS)]


@pytest.mark.parametrize(
    "name,reference_scorer",
    [("bleu", sacrebleu.corpus_bleu), ("chrf", sacrebleu.corpus_chrf), ("ter", sacrebleu.corpus_ter)],
)
@pytest.mark.parametrize("chosen", [range(6), [0], [2], [1, 2], [4], [0, 0, 5], [2, 4]], ids=str)
def test_corpus_scores_equal_sacrebleu(name, reference_scorer, chosen):
    [metric] = build([name])
    traces = [TRACES[i] for i in chosen]
    hypotheses, references = zip(*map(lines, traces), strict=True)
    expected = reference_scorer(list(hypotheses), [list(references)]).score
    stats = collect(traces, metric)
    assert metric.score(stats.sum(axis=0)) == expected
    assert metric.score_many(stats.sum(axis=0, keepdims=True))[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["bleu", "chrf", "ter"])
def test_resampled_scores_equal_sacrebleu(name):
    [metric] = build([name])
    weights = np.random.default_rng(0).multinomial(6, [1 / 6] * 6, size=300)
    sums = weights @ collect(TRACES, metric)
    assert metric.score_many(sums) == pytest.approx([metric.score(row) for row in sums], abs=1e-9)


def test_ter_by_segment_equals_ter_by_trace():
    [ter] = build(["ter"])
    by_text = ter.measure([segment_of(trace) for trace in TRACES])
    assert np.array(by_text).tolist() == collect(TRACES, ter).tolist()


def test_ter_of_an_empty_reference_equals_sacrebleu():
    [ter] = build(["ter"])
    rows = np.array([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    assert ter.score(rows[0]) == ter.score_many(rows)[0] == sacrebleu.corpus_ter(["a b"], [[""]]).score == 100
    assert ter.score(rows[1]) == ter.score_many(rows)[1] == 0
    assert np.isnan(ter.score_many(rows)[2])


def test_sacrebleu_command_gives_equal_scores(tmp_path):
    hypotheses, references = zip(*map(lines, TRACES), strict=True)
    for name, texts in (("h", hypotheses), ("r", references)):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    command = [sys.executable, "-m", "sacrebleu", "r", "-i", "h", "-m", "bleu", "chrf", "ter", "-w", "10"]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    lines_printed = [
        (entry["name"].lower().rstrip("2"), entry["score"], entry["signature"]) for entry in json.loads(printed)
    ]
    for (name, score, signature), metric in zip(lines_printed, build(["bleu", "chrf", "ter"]), strict=True):
        assert metric.name == name and metric.signature() == f"{name}|segment:question|{signature}"
        assert metric.score(collect(TRACES, metric).sum(axis=0)) == pytest.approx(score, abs=1e-9)
