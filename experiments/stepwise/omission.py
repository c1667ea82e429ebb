"""An omission, word by word: a stretch of source that no word of the translation stands for.

    sqa reproduce omission

Claim, after Section 7 of Han, Carpuat and Boyd-Graber (2022): what is left out cannot be answered from, so over a
sentence with an omission the system loses more log MRR against the human translation than over other sentences.

The example is the worst omission of the run over whose sentence the human translation gained at least ln 2 nats more
(rule and kinds: experiments/stepwise/examples.py; what is drawn: experiments/stepwise/figure.py).  The paper
has no such figure.
"""

from __future__ import annotations

from pathlib import Path

from experiments.grid import AblationConfig
from experiments.stepwise.examples import Item, make, sentence_gap, verdict
from experiments.stepwise.rows import Subject

CLAIM = "over sentences with an omission more log MRR is lost against the human translation"


def main(config_path: Path, runs: Path) -> None:
    """`sqa reproduce omission`."""
    make(Item("omission", costly=True, judge=judge), config_path, runs)


def judge(subject: Subject, ablation: AblationConfig) -> tuple[str, ...]:
    """The claim on one data set."""
    return verdict(subject, CLAIM, "sentences with one", sentence_gap(subject, "omission"), 1, ablation)
