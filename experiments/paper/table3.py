"""Table 3: size of the Spanish question set, the other sets beside it.

    sqa reproduce table3

Counted: questions, source sentences and words, words of the human translation, distinct answers, and how many questions
have an answer that the guesser can name (in the paper: that its English training questions have).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.contestant import Value, components
from experiments.grid import workshop
from experiments.made import Made
from experiments.studies.guesser_report import knows
from sqa.core.answers import key
from sqa.core.errors import NotComputable, SqaError
from sqa.core.registry import GUESSERS
from sqa.core.types import Question
from sqa.data.datasets import load_questions
from sqa.run.config import load


@dataclass(frozen=True, slots=True)
class Table3Config:
    """What `sqa reproduce table3` reads; configs/table3.yaml explains each key."""

    name: str
    datasets: tuple[str, ...]
    guesser: dict[str, Value]


def main(config_path: Path, runs: Path) -> None:
    """`sqa reproduce table3`: the counts as CSV.  No data set that can be had: NotComputable."""
    config = load(config_path, Table3Config)
    guesser = workshop(runs).parts.component(GUESSERS, components(config.guesser)[0])
    columns: dict[str, Mapping[str, str]] = {}
    gone = []
    for name in config.datasets:
        try:
            columns[name] = counts(load_questions(name), guesser)
        except SqaError as error:
            gone.append(f"{name}: not computed, {str(error).splitlines()[0]}")
            print(gone[-1], file=sys.stderr)
    if not columns:
        raise NotComputable("table 3: " + "; ".join(gone))
    made = Made(runs / config.name)
    rows = [[what, *(column[what] for column in columns.values())] for what in next(iter(columns.values()))]
    made.csv("table3.csv", [["what", *columns], *rows], show=True)
    made.end()


def counts(questions: list[Question], guesser: object) -> dict[str, str]:
    """What is counted of one set, in words."""
    n, mask = len(questions), knows(guesser, questions)
    source, english = sum(len(q.words) for q in questions), sum(len(q.reference_text.split()) for q in questions)
    return {
        "questions": str(n),
        "source sentences": str(sum(len(q.sentences) for q in questions)),
        "source words": str(source),
        "source words a question": f"{source / n:.1f}",
        "words of the human translation": str(english),
        "words of the human translation a question": f"{english / n:.1f}",
        "distinct answers": str(len({key(q.page) for q in questions})),
        "questions whose answer the guesser can name": "n/a" if mask is None
        else f"{int(np.sum(mask))} ({100 * np.mean(mask):.0f}%)",
    }  # fmt: skip
