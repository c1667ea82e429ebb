"""The real `simuleval` command (PyPI 1.1.4) and this project on the same sentences: same words, delays and scores.

A SimulEval agent as a translator in our pipeline; ours as agents are in test_simuleval_scorers.py.
"""

from __future__ import annotations

import csv
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("simuleval", reason="needs the extra: pip install 'sqa[simul]'")

from stand_ins.processes import ENVIRONMENT

from smt.engines.instances import write_instances
from smt.engines.recorded import RecordedConfig
from smt.engines.recorded import build as build_recorded
from sqa.core.paths import ROOT
from sqa.data.datasets import load_questions
from sqa.files.store import Store
from sqa.metrics.delays import pack
from sqa.metrics.latency import FORMULAS
from sqa.run.config import run_from_mapping
from sqa.run.pipeline import run

pytestmark = pytest.mark.slow
LATENCY = ("AL", "LAAL", "AP", "DAL")  # ATD: its command takes every log for speech
AGENT = '''
from simuleval.agents import TextToTextAgent
from simuleval.agents.actions import ReadAction, WriteAction
from simuleval.utils import entrypoint


@entrypoint
class Uneven(TextToTextAgent):
    """Waits k words; then a word for every one it reads, two for long ones, and the rest when the source is over."""

    @staticmethod
    def add_args(parser):
        parser.add_argument("--waitk", type=int, default=3)

    def policy(self):
        source, ended = self.states.source, self.states.source_finished
        if ended:
            return WriteAction(" ".join(word.lower() for word in source[-self.args.waitk :]), finished=True)
        if len(source) < self.args.waitk:
            return ReadAction()
        word = source[len(source) - self.args.waitk]
        return WriteAction(word.upper() if len(word) < 8 else f"{word[:4]} {word[4:]}", finished=False)
'''


def simuleval(*arguments):
    """Run the command; what it prints."""
    command = [sys.executable, "-W", "ignore", "-m", "simuleval.cli", "--no-progress-bar", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def files(folder, questions):
    """Source and reference files, one sentence a line; references are cut evenly where there are more or fewer."""
    sources, references = [], []
    for question in questions:
        words = np.array_split(np.array(question.reference_text.split()), len(question.sentences))
        even = len(question.reference) == len(question.sentences)
        sources += [" ".join(sentence) for sentence in question.sentences]
        references += question.reference if even else [" ".join(part) for part in words]
    (folder / "source").write_text("\n".join(sources) + "\n", encoding="utf-8")
    (folder / "target").write_text("\n".join(references) + "\n", encoding="utf-8")
    return ["--source", folder / "source", "--target", folder / "target"], references


def scores(folder):
    """SimulEval's scores, rounded to three digits by itself."""
    [row] = csv.DictReader((folder / "scores.tsv").read_text().splitlines(), delimiter="\t")
    return {name: float(row[name]) for name in LATENCY}


def our_scores(questions, batch, references=None):
    """Means over the sentences that have words, as SimulEval takes them."""
    rows = [
        [e.g for e in emissions if e.sentence == i]
        for question, emissions in zip(questions, batch, strict=True)
        for i in range(len(question.sentences))
    ]
    lengths = [len(sentence) for question in questions for sentence in question.sentences]
    targets = None if references is None else [len(reference.split(" ")) for reference in references]
    packed = pack(rows, lengths, targets)
    return {name: float(np.nanmean(FORMULAS[name.lower()](packed))) for name in LATENCY}


def printed(text):
    """The scores in the table that --score-only prints."""
    names, values = (line.split() for line in text.strip().splitlines()[-2:])
    table = dict(zip(names, values[-len(names) :], strict=True))
    return {name: float(table[name]) for name in LATENCY}


def test_an_agent_on_the_bundled_questions_and_back_into_simuleval(tmp_path):
    """A SimulEval agent in our pipeline: the command's log and scores of the same file; and those of what we export."""
    path, out, questions = tmp_path / "uneven.py", tmp_path / "out", load_questions("mini-es")
    path.write_text(AGENT, encoding="utf-8")
    inputs, references = files(tmp_path, questions)
    simuleval("--agent", path, "--waitk", 4, *inputs, "--output", out, "--latency-metrics", *LATENCY)
    spec = {"name": "sqa_services.simuleval.agent:build", "agent": f"{path}:Uneven", "args": ["--waitk", 4]}
    mapping = {"name": "r", "dataset": {"name": "mini-es"}, "translator": spec, "metrics": ["al", "ap", "dal"]}
    result = run(run_from_mapping(mapping), Store(tmp_path / "runs"), progress=False)
    batch = [trace.emissions for trace in result.traces]
    recorded = build_recorded(RecordedConfig(str(out / "instances.log")))
    recorded.check(questions)
    assert recorded.translate_batch(questions) == [list(emissions) for emissions in batch]
    assert scores(out) == pytest.approx(our_scores(questions, batch, references), abs=5.1e-4)
    write_instances(result.traces, tmp_path / "exported")
    scoring = ["--score-only", "--no-use-ref-len", "--latency-metrics", *LATENCY]
    theirs = printed(simuleval("--output", tmp_path / "exported", *scoring))
    assert theirs == pytest.approx(our_scores(questions, batch), abs=5.1e-4)
    for metric in result.metrics:
        assert theirs[metric.name.upper()] == pytest.approx(metric.score(result.stats[metric.name].sum(0)), abs=5.1e-4)
