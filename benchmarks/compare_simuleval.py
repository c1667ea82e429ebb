"""Compare with SimulEval 1.1: decoding through its evaluator, and latency scoring by `simuleval --score-only`."""

import json
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import yaml

from benchmarks.measuring import MODEL, K, Pairs, length, rate, timed, translator
from sqa.core import DataError, Question
from sqa_services.simuleval.agent import quiet_imports

AGENT_QUESTIONS = 6  # few questions, since the agent is slow
SENTENCES, WORDS, DELAY = 5_000, 25, 3  # size of the synthetic log, and its k
METRICS = ("AL", "LAAL", "AP", "DAL", "ATD", "StartOffset", "EndOffset", "NumChunks", "RTF")


def evaluate(agent: object, sources: Sequence[str]) -> list[tuple[list[str], list[int]]]:
    """Run an agent with SimulEval's SentenceLevelEvaluator, and return the words and delays of each sentence."""
    with quiet_imports():
        from simuleval.data.dataloader import TextToTextDataloader
        from simuleval.evaluator import SentenceLevelEvaluator
    switches = {"score_only": False, "no_scoring": True, "no_progress_bar": True, "output": None}
    kinds = {"source_type": "text", "target_type": "text", "eval_latency_unit": "word", "source_segment_size": 1}
    args = Namespace(**switches, **kinds, start_index=0, end_index=-1)
    evaluator = SentenceLevelEvaluator(TextToTextDataloader(list(sources), [""] * len(sources)), {}, {}, args)
    evaluator(agent)
    return [(instance.prediction_list, instance.delays) for instance in evaluator.instances.values()]


def decoding(questions: Sequence[Question]) -> Pairs:
    """Yield words per second of an agent around our model, and of batched decoding.

    Raises DataError if a word or a delay differs.
    """
    with quiet_imports():
        from sqa_services.simuleval.translator_agent import TranslatorAgent
    few = questions[:AGENT_QUESTIONS]
    sentences = [" ".join(sentence) for question in few for sentence in question.sentences]
    agent = TranslatorAgent(Namespace(translator=yaml.safe_dump({"name": "waitk", "model": MODEL, "k": K})))
    ours = translator("waitk", model=MODEL, k=K)
    evaluate(agent, sentences[:1])  # warm up both
    ours.translate_batch(few[:1])
    plain, recorded = timed(lambda: evaluate(agent, sentences), lambda pairs: length(words for words, _ in pairs))
    fast, batch = timed(lambda: ours.translate_batch(questions))
    expected = [
        ([e.token for e in emissions if e.sentence == i], [e.g for e in emissions if e.sentence == i])
        for question, emissions in zip(few, batch[: len(few)], strict=True)
        for i in range(len(question.sentences))
    ]
    if recorded != expected:
        raise DataError("SimulEval's agent and batched decoding give different words or delays; both must be equal")
    yield "wait-k: SimulEval agent around our model, batched", "words/s", plain, fast


def write_log(folder: Path) -> Path:
    """Write a wait-k log in SimulEval's format, SENTENCES sentences of WORDS words, and return its path."""
    text = dict.fromkeys(("prediction", "reference", "source"), " ".join(f"word{i}" for i in range(WORDS)))
    delays = [min(DELAY + j, WORDS) for j in range(WORDS)]
    numbers = {"delays": delays, "elapsed": [0] * WORDS, "prediction_length": WORDS, "source_length": WORDS}
    rows = (json.dumps({"index": i, **text, **numbers}) for i in range(SENTENCES))
    (folder / "instances.log").write_text("".join(f"{row}\n" for row in rows))
    (folder / "config.yaml").write_text("source_type: text\ntarget_type: text\n")
    return folder / "instances.log"


def latency(_: Sequence[Question]) -> Pairs:
    """Yield words per second of latency scoring; both are commands, with their start-up."""

    def command(*arguments: str) -> float:
        run = partial(subprocess.run, [sys.executable, *arguments], check=True, capture_output=True)
        return rate(run, lambda _: SENTENCES * WORDS)

    with tempfile.TemporaryDirectory() as name:
        log = write_log(Path(name))
        options = ["--score-only", "--output", name, "--latency-metrics", *METRICS, "--no-progress-bar"]
        theirs = command("-W", "ignore", "-m", "simuleval.cli", *options)
        ours = command("-m", "sqa", "latency", str(log))
        yield "latency of a log: simuleval --score-only, sqa latency", "words/s", theirs, ours
