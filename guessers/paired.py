"""Command `python -m guessers.paired A B`: compare two guessers on the same questions and print TSV.

The output has each guesser's accuracy on complete questions and oracle expected wins (curve qanta2018) with guesses
after every word.  It also has their difference with its 95% interval over questions (bootstrap).  The text is the human
English reference, and a word's position is its share of that text's characters.  With --complete, guessers read only
complete questions, and only accuracy is computed.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from tqdm import tqdm

from guessers.evaluate import DATASETS, built, rank_of
from sqa.core.differences import Comparison, compare
from sqa.core.errors import returns_exit_code
from sqa.core.significance import Resampled
from sqa.core.types import Question, guesses_per_word
from sqa.data.datasets import load_questions
from sqa.metrics.qa import CURVES, Accuracy, OracleExpectedWins, oracle_expected_wins

COLUMNS = ("dataset", "n", "metric", "a", "b", "a - b", "low", "high", "p")


def stats(guesser: Any, questions: Sequence[Question], complete: bool) -> dict[str, np.ndarray]:
    """Return a dict that maps each metric to an array of shape (questions, 2).

    The metrics are `accuracy` and, unless `complete`, `oracle-ew`.
    """
    right, wins = [], []
    for question in tqdm(questions, mininterval=1, leave=False):
        words = question.reference_text.split()
        if complete:
            steps = guesser.guess([" ".join(words)], 1)
        else:
            steps = guesses_per_word(guesser, words, 1)
            read = np.cumsum([len(word) + 1 for word in words]) - 1
            correct = np.array([rank_of(guesses, question.page) == 1 for guesses in steps])
            wins.append((oracle_expected_wins(CURVES["qanta2018"], read / read[-1], correct, 0.0), 1.0))
        right.append((float(rank_of(steps[-1], question.page) == 1), 1.0))
    accuracy = {"accuracy": np.array(right)}
    return accuracy if complete else accuracy | {"oracle-ew": np.array(wins)}


def differences(a: str, b: str, datasets: Sequence[str], complete: bool) -> Iterator[tuple[str, int, str, Comparison]]:
    """Yield (data set, questions, metric, a minus b) for two guessers, each NAME or NAME=MODEL."""
    metrics: dict[str, Resampled] = {"accuracy": Accuracy(), "oracle-ew": OracleExpectedWins()}
    guessers = [built(argument) for argument in (a, b)]
    for dataset in datasets:
        questions = load_questions(dataset)
        stats_a, stats_b = (stats(guesser, questions, complete) for guesser in guessers)
        for name in stats_a:
            yield dataset, len(questions), name, compare(stats_a[name], stats_b[name], metrics[name])


@returns_exit_code
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m guessers.paired", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "guessers", nargs=2, metavar="NAME", help="NAME, or NAME=MODEL with a bundled model or a folder"
    )
    parser.add_argument("--datasets", nargs="+", default=DATASETS, help="question sets (default: %(default)s)")
    parser.add_argument("--complete", action="store_true", help="complete questions only, no oracle expected wins")
    options = parser.parse_args(arguments)
    print("\t".join(COLUMNS), flush=True)
    a, b = options.guessers
    for dataset, n, name, gap in differences(a, b, options.datasets, options.complete):
        cells = [f"{gap.a:.4f}", f"{gap.b:.4f}", *(f"{value:+.4f}" for value in (gap.diff, gap.low, gap.high))]
        print("\t".join([dataset, str(n), name, *cells, f"{gap.p:.3f}"]), flush=True)


if __name__ == "__main__":
    sys.exit(main())
