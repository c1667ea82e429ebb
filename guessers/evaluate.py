"""Command `python -m guessers.evaluate GUESSER...`: print accuracy on complete questions as TSV.

Each guesser and question set has a row with n, accuracy at 1, 10 and 50, and the mean reciprocal rank over the best 50.
The text is the human English reference.  A question whose page the guesser does not know counts as wrong.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from sqa.core.answers import is_right
from sqa.core.errors import returns_exit_code
from sqa.core.registry import GUESSERS
from sqa.core.types import Guess
from sqa.data.datasets import load_questions

DATASETS = ("guessdev", "xqb-es", "xqb-pl")
SCORES = ("acc@1", "acc@10", "acc@50", "mrr")
DEPTH = 50


def rank_of(guesses: Sequence[Guess], page: str) -> int:
    """Return the 1-based rank of the first right guess, or 0 if there is none."""
    return next((rank for rank, guess in enumerate(guesses, start=1) if is_right(guess.page, page)), 0)


def evaluate(guesser: Any, texts: Sequence[str], pages: Sequence[str]) -> tuple[float, float, float, float]:
    """Return accuracy at 1, 10 and 50 and mean reciprocal rank (0 beyond 50), all in 0..1."""
    rows = (guesser.guess([text], DEPTH)[0] for text in tqdm(texts, mininterval=1, leave=False))
    ranks = np.array([rank_of(guesses, page) for guesses, page in zip(rows, pages, strict=True)])
    reciprocal = np.where(ranks > 0, 1 / np.maximum(ranks, 1), 0.0)
    at_1, at_10, at_50 = (float(np.mean((ranks > 0) & (ranks <= depth))) for depth in (1, 10, DEPTH))
    return at_1, at_10, at_50, float(reciprocal.mean())


def built(argument: str) -> Any:
    """Return the guesser named NAME, or NAME=MODEL with a bundled model or a folder."""
    name, _, model = argument.partition("=")
    settings = GUESSERS.config_class(name)
    return GUESSERS.build(name, settings(model=model) if model else settings())


def measured(guessers: Sequence[str], datasets: Sequence[str]) -> Iterator[tuple[str, str, int, dict[str, float]]]:
    """Yield (guesser, data set, questions, scores by name) for each guesser and data set."""
    for argument in guessers:
        guesser = built(argument)
        for dataset in datasets:
            questions = load_questions(dataset)
            scores = evaluate(guesser, [q.reference_text for q in questions], [q.page for q in questions])
            yield argument, dataset, len(questions), dict(zip(SCORES, scores, strict=True))


@returns_exit_code
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m guessers.evaluate", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("guessers", nargs="+", help="NAME, or NAME=MODEL with a bundled model or a folder")
    parser.add_argument("--datasets", nargs="+", default=DATASETS, help="question sets (default: %(default)s)")
    options = parser.parse_args(arguments)
    print("guesser", "dataset", "n", *SCORES, sep="\t", flush=True)
    for guesser, dataset, n, scores in measured(options.guessers, options.datasets):
        print(guesser, dataset, n, *(f"{score:.4f}" for score in scores.values()), sep="\t", flush=True)


if __name__ == "__main__":
    sys.exit(main())
