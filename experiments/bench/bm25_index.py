"""How fast the BM25 guesser learns, loads and guesses, and what memory a whole guess stage takes.

    python -m experiments.bench.bm25_index            # with the real data; the bundled questions otherwise

Prints TSV: what, value, unit, bar.  Times are wall-clock seconds, and beside them the seconds of processor time, which
other programs on the machine do not lengthen.  The guess stage is every word of every question's human translation (or
of the bundled questions), one process, model loaded and machine code compiled in it.
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from guessers.bonus import HeldOut
from guessers.retrieval.bm25 import Bm25Config, Bm25Guesser, build
from guessers.retrieval.index import Index, Profile
from sqa.data.datasets import available, load_questions, load_tossups
from sqa.data.download import where
from sqa.run.pipeline import N_GUESSES

SCRATCH_STEPS = 200  # the plain path is slow: so many steps are enough to time it
R = TypeVar("R")


def main() -> None:
    """Measure and print."""
    print("what", "wall", "processor", "unit", "bar", sep="\t")
    questions = load_questions("xqb-pl" if available("xqb-pl") else "mini-pl")
    texts = [question.reference_text.split() for question in questions]
    _, wall, processor = timed(lambda: guess_stage(texts))
    report(f"guess stage of {len(texts)} questions", wall, processor, "s", "20")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print("its peak memory", f"{peak:.2f}", "", "GiB", "2", sep="\t", flush=True)
    guesser, wall, processor = timed(lambda: build(Bm25Config()))
    report("loading the bundled model", wall, processor, "s", "")
    steps(guesser, texts)
    profiles = lessons()
    index, wall, processor = timed(lambda: Index.of(profiles, 2))
    report(f"counting {len(profiles)} texts, {len(index.titles)} pages", wall, processor, "s", "30")


def lessons() -> list[Profile]:
    """All tossups, those without a page under their answer, so that each is counted."""
    if where("tossups") is None:
        return [HeldOut(question.reference_text, question.page) for question in load_questions("mini-en")]
    return [HeldOut(tossup.text, tossup.page or tossup.answer) for tossup in load_tossups()]


def guess_stage(texts: list[list[str]]) -> int:
    """Load the bundled model and guess after every word; returns the number of steps."""
    guesser = build(Bm25Config())
    return sum(len(guesser.guess_prefixes(words, N_GUESSES)) for words in texts)


def steps(guesser: Bm25Guesser, texts: list[list[str]]) -> None:
    """A step of the fast path, one of the plain path, and how many times faster the first is."""
    per_step = [seconds / len(words) for words in texts for _, seconds, _ in [timed(partial(prefixes, guesser, words))]]
    fast = statistics.median(per_step)
    print("a prefix step, median over questions", f"{fast * 1e3:.4f}", "", "ms", "1", sep="\t")
    words = max(texts, key=len)[:SCRATCH_STEPS]
    _, _, incremental = timed(lambda: [prefixes(guesser, words) for _ in range(50)])
    lines = [" ".join(words[: end + 1]) for end in range(len(words))]
    _, _, scratch = timed(lambda: [guesser.guess([line], N_GUESSES) for line in lines])
    print("from scratch / incremental, processor", f"{scratch / (incremental / 50):.0f}", "", "times", "50", sep="\t")


def prefixes(guesser: Bm25Guesser, words: list[str]) -> int:
    """Guess after every word."""
    return len(guesser.guess_prefixes(words, N_GUESSES))


def timed(work: Callable[[], R]) -> tuple[R, float, float]:
    """The result, wall-clock seconds, and seconds of processor time."""
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - processor


def report(what: str, wall: float, processor: float, unit: str, bar: str) -> None:
    """One line of the table."""
    print(what, f"{wall:.2f}", f"{processor:.2f}", unit, bar, sep="\t", flush=True)


if __name__ == "__main__":
    main()
