"""An under-translation, word by word: the source is read on, and nothing is written any more.

    sqa reproduce under-translation

Claim, after Section 7 of Han, Carpuat and Boyd-Graber (2022): a translation that ends before its sentence does gives
nothing more to answer from, so over such a sentence the system loses more log MRR against the human translation than
over other sentences.  Fewer than ten such sentences are not compared.

The example is the longest under-translation of the run, whatever it cost: while nothing is written the rank of the
answer stands still (rule and kinds: experiments/stepwise/examples.py; what is drawn:
experiments/stepwise/figure.py).  The paper's own Figure 5b is experiments/paper/figure5.py.
"""

from __future__ import annotations

from pathlib import Path

from experiments.grid import AblationConfig
from experiments.stepwise.examples import Item, make, sentence_gap, verdict
from experiments.stepwise.rows import Subject

CLAIM = "over under-translated sentences more log MRR is lost against the human translation"


def main(config_path: Path, runs: Path) -> None:
    """`sqa reproduce under-translation`."""
    make(Item("under-translation", costly=False, judge=judge), config_path, runs)


def judge(subject: Subject, ablation: AblationConfig) -> tuple[str, ...]:
    """The claim on one data set."""
    return verdict(subject, CLAIM, "such sentences", sentence_gap(subject, "under-translation"), 1, ablation)
