"""The BERT guesser's prefixes: one at a time, and together with shared passages, in batches of similar length.

    python -m experiments.bench.bert [--model bert] [--precision float32 int8]

Prints TSV: what, unit, plain, fast, ratio.  That both ways give the same guesses is checked before a speed is printed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, get_args

from tqdm import tqdm

from guessers.bert.encoder import Precision
from guessers.bert.guesser import BertConfig, build
from sqa.core.errors import DataError, returns_exit_code
from sqa.core.types import Guess, Question
from sqa.data.datasets import available, load_questions

TOLERANCE: dict[Precision, float] = {"float32": 1e-5, "int8": 1e-5, "bfloat16": 1e-2}  # of a score, 0..1
QUESTIONS = 2  # one prefix at a time is slow: this many are enough to time it
N_GUESSES = 10


class Speed(NamedTuple):
    """Guess steps per second of wall time."""

    plain: float  # one prefix at a time
    fast: float  # all prefixes of a question together


def speeds(guesser: Any, questions: Sequence[Question], n: int = N_GUESSES) -> Speed:
    """Both speeds on the human English of the questions; DataError where a score differs by more than TOLERANCE."""
    texts = [question.reference_text.split() for question in questions]
    guesser.guess_prefixes(texts[0], n)  # warm-up
    tolerance = TOLERANCE[guesser.encoder.precision]
    plain = fast = 0.0
    for words in tqdm(texts, "one prefix at a time, and together", file=sys.stderr):
        start = time.perf_counter()
        alone = [guesser.guess([" ".join(words[:end])], n)[0] for end in range(1, len(words) + 1)]
        middle = time.perf_counter()
        together = guesser.guess_prefixes(words, n)
        plain, fast = plain + middle - start, fast + time.perf_counter() - middle
        for step, (left, right) in enumerate(zip(alone, together, strict=True)):
            if not same(left, right, tolerance):
                raise DataError(f"the two ways differ after {step + 1} words of {' '.join(words[:8])}...")
    steps = sum(map(len, texts))
    return Speed(steps / plain, steps / fast)


def same(left: Sequence[Guess], right: Sequence[Guess], tolerance: float) -> bool:
    """Scores equal rank by rank, and page by page, to `tolerance`; pages nearer than that may change places."""
    if len(left) != len(right):
        return False
    scores = {guess.page: guess.score for guess in right}
    last = right[-1].score if right else 0.0
    return all(
        abs(a.score - b.score) <= tolerance and abs(a.score - scores.get(a.page, last)) <= tolerance
        for a, b in zip(left, right, strict=True)
    )


@returns_exit_code
def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.bench.bert", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--model", default="bert", help="a bundled model or a folder (default: %(default)s)")
    parser.add_argument("--precision", nargs="+", choices=get_args(Precision), default=["float32"])
    options = parser.parse_args(arguments)
    questions = load_questions("xqb-es" if available("xqb-es") else "mini-es", QUESTIONS)
    print("what", "unit", "plain", "fast", "ratio", sep="\t")
    for precision in options.precision:
        speed = speeds(build(BertConfig(model=options.model, precision=precision)), questions)
        numbers = (f"{value:.1f}" for value in (*speed, speed.fast / speed.plain))
        print(f"bert guessing, {precision}: one prefix at a time, bucketed", "steps/s", *numbers, sep="\t", flush=True)


if __name__ == "__main__":
    sys.exit(main())
