"""The `simuleval` command (PyPI 1.1.4) and this project give equal words, delays and scores on the same sentences.

Here a SimulEval agent runs as a translator in our pipeline. In test_simuleval_scorers.py, our translators run as
agents.
"""

import numpy as np
import pytest
from small_runs import small_run
from stand_ins.simuleval_command import printed, simuleval, table, write_lines

from smt.engines.recorded import RecordedConfig
from smt.engines.recorded import build as build_recorded
from sqa.data.datasets import load_questions
from sqa.metrics.delays import pack
from sqa.metrics.latency import FORMULAS
from sqa.pipeline.export import write_instances

pytestmark = [pytest.mark.slow, pytest.mark.needs("simul")]
LATENCY = ("AL", "LAAL", "AP", "DAL")  # without ATD, because the command treats every log as speech
AGENT = '''
from simuleval.agents import TextToTextAgent
from simuleval.agents.actions import ReadAction, WriteAction
from simuleval.utils import entrypoint


@entrypoint
class Uneven(TextToTextAgent):
    """Waits for k words, then writes one word for each word read, two for a long one, and the rest at the end."""

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


def references_of(questions):
    """Yield a reference for each source sentence, with the text split evenly if the numbers of sentences differ."""
    for question in questions:
        words = np.array_split(np.array(question.reference_text.split()), len(question.sentences))
        even = len(question.reference) == len(question.sentences)
        yield from question.reference if even else (" ".join(part) for part in words)


def our_scores(questions, batch, references=None):
    """Return the mean latencies over sentences with words, to compare with SimulEval's rounded scores."""
    rows = [
        [e.g for e in emissions if e.sentence == i]
        for question, emissions in zip(questions, batch, strict=True)
        for i in range(len(question.sentences))
    ]
    lengths = [len(sentence) for question in questions for sentence in question.sentences]
    packed = pack(rows, lengths, references and [len(reference.split(" ")) for reference in references])
    return pytest.approx({name: float(np.nanmean(FORMULAS[name.lower()](packed))) for name in LATENCY}, abs=5.1e-4)


def test_agent_run_and_simuleval_log_are_equal(tmp_path):
    """Our pipeline gives the words, delays and scores of the command, and the command gives our export our scores."""
    path, out, questions = tmp_path / "uneven.py", tmp_path / "out", load_questions("mini-es", 15)
    path.write_text(AGENT, encoding="utf-8")
    references = list(references_of(questions))
    source = write_lines(
        tmp_path / "source", [" ".join(words) for question in questions for words in question.sentences]
    )
    inputs = ("--source", source, "--target", write_lines(tmp_path / "target", references))
    simuleval("--agent", path, "--waitk", 4, *inputs, "--output", out, "--latency-metrics", *LATENCY)
    spec = {"name": "sqa_services.simuleval.agent:build", "agent": f"{path}:Uneven", "args": ["--waitk", 4]}
    mapping = {"dataset": {"name": "mini-es", "limit": 15}, "translator": spec, "metrics": ["al", "ap", "dal"]}
    result = small_run(tmp_path, **mapping, guesser=None, buzzer=None)
    batch = [trace.emissions for trace in result.traces]
    recorded = build_recorded(RecordedConfig(str(out / "instances.log")))
    recorded.check(questions)
    assert recorded.translate_batch(questions) == [list(emissions) for emissions in batch]
    [scores] = table(out / "scores.tsv")
    assert {name: scores[name] for name in LATENCY} == our_scores(questions, batch, references)
    write_instances(result.traces, tmp_path / "exported")
    scoring = ("--score-only", "--no-use-ref-len", "--latency-metrics", *LATENCY)
    theirs = printed(simuleval("--output", tmp_path / "exported", *scoring))
    assert {name: theirs[name] for name in LATENCY} == our_scores(questions, batch)
    for metric in result.metrics:
        assert theirs[metric.name.upper()] == pytest.approx(metric.score(result.stats[metric.name].sum(0)), abs=5.1e-4)
