"""Compare our batched wait-k decoding with SimulEval's evaluator, which runs an agent that wraps the same model.

Both must give the same words with the same delays; this is checked before any speed is reported.
"""

import time
from argparse import Namespace
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import yaml

from sqa.core.errors import DataError
from sqa.core.registry import TRANSLATORS
from sqa.core.types import Question
from sqa_services.bench.speed import MODEL, K, Pair
from sqa_services.simuleval.agent import quiet_imports

AGENT_QUESTIONS = 6  # few questions, since the agent is slow


class Written(NamedTuple):
    """One sentence as SimulEval recorded it."""

    words: list[str]
    delays: list[int]


def evaluate(agent: object, sources: Sequence[str]) -> list[Written]:
    """Run an agent with SimulEval 1.1's SentenceLevelEvaluator, and return its output for each sentence."""
    with quiet_imports():
        from simuleval.data.dataloader import TextToTextDataloader
        from simuleval.evaluator import SentenceLevelEvaluator
    args = Namespace(
        output=None,
        score_only=False,
        no_scoring=True,
        no_progress_bar=True,
        eval_latency_unit="word",
        source_type="text",
        target_type="text",
        source_segment_size=1,
        start_index=0,
        end_index=-1,
    )
    evaluator = SentenceLevelEvaluator(TextToTextDataloader(list(sources), [""] * len(sources)), {}, {}, args)
    evaluator(agent)
    return [Written(instance.prediction_list, instance.delays) for instance in evaluator.instances.values()]


def pairs(questions: Sequence[Question]) -> Iterator[Pair]:
    """Yield the target words per second of the agent (on the first questions) and of batched decoding.

    Raises:
        DataError: A word or a delay differs.
    """
    with quiet_imports():
        from sqa_services.simuleval.translator_agent import TranslatorAgent
    few = questions[:AGENT_QUESTIONS]
    agent = TranslatorAgent(Namespace(translator=yaml.safe_dump({"name": "waitk", "model": MODEL, "k": K})))
    translator = TRANSLATORS.build("waitk", TRANSLATORS.config_class("waitk")(model=MODEL, k=K))
    evaluate(agent, [" ".join(few[0].sentences[0])])  # warm up both
    translator.translate_batch(few[:1])
    start = time.perf_counter()
    recorded = evaluate(agent, [" ".join(sentence) for question in few for sentence in question.sentences])
    middle = time.perf_counter()
    batch = translator.translate_batch(questions)
    end = time.perf_counter()
    ours = [
        Written([e.token for e in emissions if e.sentence == i], [e.g for e in emissions if e.sentence == i])
        for question, emissions in zip(few, batch[: len(few)], strict=True)
        for i in range(len(question.sentences))
    ]
    different = [i for i, (a, b) in enumerate(zip(recorded, ours, strict=True)) if a != b]
    if different:
        raise DataError(f"the agent and the batch differ in {len(different)} sentences, first in {different[0]}")
    speeds = sum(len(written.words) for written in recorded) / (middle - start), sum(map(len, batch)) / (end - middle)
    yield "wait-k: SimulEval agent around our model, batched", "words/s", *speeds
