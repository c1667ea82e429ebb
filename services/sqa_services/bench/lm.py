"""Speed of a language model as a translator: streaming and batched, in float32, bfloat16 and 8-bit integers.

A row that compares two dtypes also states the share of words that differ.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import partial

from smt.lm.causal_lm import CausalLmConfig, build
from smt.models.writing import WaitKTranslator
from sqa.core.types import Emission, Question
from sqa.files.devices import Dtype
from sqa.pipeline.engine import stream
from sqa_services.bench.speed import K, Pair

MODEL = "lm-es-en"
DTYPES: tuple[Dtype, ...] = ("float32", "bfloat16", "int8")
_Timed = tuple[float, list[list[Emission]]]
STREAMED, BATCHED = 2, 24  # numbers of questions: few, since streaming is slow; enough to fill the batches


def _streamed(translator: WaitKTranslator, questions: Sequence[Question]) -> list[list[Emission]]:
    return [stream(translator, question) for question in questions]


def pairs(questions: Sequence[Question]) -> Iterator[Pair]:
    """Yield comparisons of streaming with batching, and of dtypes, in words per second."""
    few, many = questions[:STREAMED], questions[:BATCHED]
    translators = {dtype: translator(dtype, few[0]) for dtype in DTYPES}
    streamed, streamed8 = (timed(partial(_streamed, translators[name], few))[0] for name in ("bfloat16", "int8"))
    plain, batched, batched8 = (timed(partial(model.translate_batch, many)) for model in translators.values())
    yield "language model, wait-6: streaming, batched", "words/s", streamed, batched[0]
    yield _compared("float32, bfloat16", plain, batched), "words/s", plain[0], batched[0]
    yield _compared("bfloat16, int8", batched, batched8), "words/s", batched[0], batched8[0]
    yield "language model, wait-6, streaming: bfloat16, int8", "words/s", streamed, streamed8


def _compared(what: str, a: _Timed, b: _Timed) -> str:
    return f"language model, wait-6: {what} ({differing(a[1], b[1]):.1%} other words)"


def translator(dtype: Dtype, question: Question) -> WaitKTranslator:
    """Return a wait-k translator with the bundled Spanish adapter in the given dtype, after a warm-up."""
    model = build(CausalLmConfig(MODEL, k=K, dtype=dtype))
    assert isinstance(model, WaitKTranslator)
    model.translate_batch([question])
    return model


def timed(work: Callable[[], list[list[Emission]]]) -> _Timed:
    """Call `work`; return the words per second of wall-clock time, and the emissions."""
    began = time.perf_counter()
    emissions = work()
    return sum(map(len, emissions)) / (time.perf_counter() - began), emissions


def differing(a: Sequence[Sequence[Emission]], b: Sequence[Sequence[Emission]]) -> float:
    """Return the share of words of `a` without an equal word in `b` when both are aligned in order."""
    same = total = 0
    for x, y in zip(a, b, strict=True):
        first, second = ([e.token for e in side] for side in (x, y))
        same += sum(block.size for block in SequenceMatcher(None, first, second, False).get_matching_blocks())
        total += len(first)
    return 1 - same / max(total, 1)
