"""Table 1: how often each guesser knows the answer after 10%, 20%, ... 100% of the question.

    sqa reproduce table1

The text is English written by a person (the human translation of XQB, the question itself of guessdev).  After a
fraction f of its characters, in whole words, a guesser names its best 50 pages, and each question is scored by

    acc@1, acc@10, acc@50   1 if the answer is among the first 1, 10, 50, else 0
    mrr                     1 / rank of the answer, 0 beyond 50
    ew                      EW(f) if the top guess is right, else 0: the expected wins of a buzz at f

Every number is a mean over questions with a 95% bootstrap interval.  A question whose page the guesser does not
know counts as wrong; the group `guessable` excludes such questions.  Ranks are stored in blocks under the guesser's
fingerprint.  Therefore a killed report resumes, and a retrained guesser is measured again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from experiments.outputs import Outputs, cached_rows
from experiments.results_book.ledger import Row, row_of
from experiments.studies.question_sets import Given, ReportConfig, described, given, knows
from sqa.core import Guess, Question, bootstrap_band, is_right, mean_curve, means
from sqa.files import Stage, Store, dataset_fingerprint, digest
from sqa.metrics.qa import curve_named
from sqa.pipeline import BLOCK_SIZE, load
from sqa.report import plots
from sqa.results import Frame

DEPTH = 50  # guesses of each step
DEPTHS = (1, 10, DEPTH)
MEASURES = (*(f"acc@{depth}" for depth in DEPTHS), "mrr", "ew")  # in the order of the statistics
ALL, GUESSABLE = "all", "guessable"  # groups of questions
COLUMNS = ("dataset", "group", "guesser", "read")
VERSION = 1  # version of the ranks; increase it when their computation changes
CURVE = "qanta2018"


def main(config_path: Path, runs: Path) -> None:
    """Write the tables and the figure of the guessers, and print the scores."""
    config = load(config_path, ReportConfig)
    inputs, outputs = given(config), Outputs(runs / config.name)
    frame = Frame(COLUMNS, tuple(measured(inputs, config, Store(runs))))
    outputs.rows("guessers.csv", frame, show=True)
    outputs.csv("table1.csv", described(inputs))
    outputs.picture("guessers_accuracy", accuracy_over_question, frame, list(inputs.guessers))
    outputs.differences((), inputs.left_out)
    outputs.end()


def measured(inputs: Given, config: ReportConfig, store: Store) -> Iterator[Row]:
    """Yield each guesser's scores on each group of questions at each fraction."""
    how = f"input:human-english|pos:target-char|top:{DEPTH}|curve:{CURVE}|version:{VERSION}"
    for name, questions in inputs.sets.items():
        for label, (guesser, identity) in inputs.guessers.items():
            ranks = ranks_of(guesser, identity, questions, config.fractions, store)
            signature = f"guesser:{guesser.fingerprint()}|{how}"
            known = knows(guesser, questions)
            groups = {ALL: ranks} | ({} if known is None or not known.any() else {GUESSABLE: ranks[known]})
            for group, of_group in groups.items():
                scores = values(of_group, config.fractions)
                band = bootstrap_band(means(scores), mean_curve, config.resamples, config.seed)
                for (metric, fraction), interval in zip(product(MEASURES, config.fractions), band, strict=True):
                    yield row_of((name, group, label, f"{fraction:g}"), metric, interval, "0-1", signature)


def words_at(words: Sequence[str], fractions: Sequence[float]) -> np.ndarray:
    """Return the number of words completely within each fraction of the text's characters, as an array (F,)."""
    ends = np.cumsum([len(word) + 1 for word in words]) - 1  # characters up to the end of each word
    return np.searchsorted(ends, np.array(fractions) * ends[-1] + 1e-9, side="right")


def guesses_at(guesser: Any, words: Sequence[str], fractions: Sequence[float]) -> list[Sequence[Guess]]:
    """Return the guesses after each fraction of the text; an empty list if the fraction has no complete word."""
    counts = words_at(words, fractions).tolist()
    answers = iter(guesser.guess([" ".join(words[:count]) for count in counts if count], DEPTH))
    return [next(answers) if count else [] for count in counts]


def rank_of(guesses: Sequence[Guess], page: str) -> int:
    """Return the 1-based rank of the first right guess, or 0 if there is none."""
    return next((rank for rank, guess in enumerate(guesses, start=1) if is_right(guess.page, page)), 0)


def ranks_of(
    guesser: Any, identity: str, questions: Sequence[Question], fractions: Sequence[float], store: Store
) -> np.ndarray:
    """Return the rank of each answer at each fraction, 0 beyond DEPTH, of shape (n, F).

    Blocks that are not in the store are computed.  `identity` is the guesser's identity in the registry.
    """
    implementation = digest([VERSION, DEPTH, list(fractions), guesser.fingerprint()])
    stage = Stage("ranks", identity, implementation, (), dataset_fingerprint(questions), BLOCK_SIZE)

    def make(block: slice) -> Iterator[tuple[list[int]]]:
        for question in questions[block]:
            guesses = guesses_at(guesser, question.reference_text.split(), fractions)
            yield ([rank_of(listed, question.page) for listed in guesses],)

    title = f"{questions[0].dataset} {identity.partition(':')[0]}"
    rows = cached_rows(store, stage, [question.id for question in questions], make, title, ranks="[i4]")
    return np.array([ranks for (ranks,) in rows], dtype=np.int64)


def values(ranks: np.ndarray, fractions: Sequence[float]) -> np.ndarray:
    """Return the scores of ranks (n, F), of shape (n, len(MEASURES) * F), grouped by measure."""
    listed = ranks > 0
    hits = [listed & (ranks <= depth) for depth in DEPTHS]
    reciprocal = np.where(listed, 1 / np.maximum(ranks, 1), 0.0)
    wins = np.where(ranks == 1, curve_named(CURVE)(np.array(fractions)), 0.0)
    return np.hstack([*hits, reciprocal, wins])


def accuracy_over_question(frame: Frame, labels: Sequence[str]) -> plots.Figure:
    """Draw accuracy at 1 over the fraction of the question read, with a panel for each data set, one column wide."""
    panels = []
    for name in frame.values("dataset"):
        of_dataset = frame.where("acc@1", dataset=name, group=ALL)
        read = {row["read"]: 100 * float(row["read"]) for row in of_dataset}
        lines = [line._replace(x=read) for line in plots.lines(of_dataset, "guesser", "read", labels)]
        panels.append([plots.Panel(f"accuracy at 1, {name}, {of_dataset[0].n} questions", lines)])
    return plots.over_k(panels, "question read (% of its characters)", height=1.5, width=plots.COLUMN)
