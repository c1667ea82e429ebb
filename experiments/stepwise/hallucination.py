"""A hallucination, word by word: the words around it with their links, log MRR and the share of unaligned words.

    sqa reproduce hallucination

Claim, after Section 7 of Han, Carpuat and Boyd-Graber (2022): words that the translation invents mislead whoever
answers, so log MRR changes for the worse at hallucinated content words, compared with all other words.  What is
compared is the mean change of log MRR at a word, over all questions of the run.

The example is the worst hallucination of the run (rule and kinds: experiments/stepwise/examples.py; what is drawn:
experiments/stepwise/figure.py).  The paper's own Figure 5 is experiments/paper/figure5.py.
"""

from __future__ import annotations

from pathlib import Path

from experiments.grid import AblationConfig
from experiments.stepwise.examples import Item, make, verdict, word_gap
from experiments.stepwise.rows import Subject

CLAIM = "log MRR changes for the worse at hallucinated content words"


def main(config_path: Path, runs: Path) -> None:
    """`sqa reproduce hallucination`."""
    make(Item("hallucination", costly=True, judge=judge), config_path, runs)


def judge(subject: Subject, ablation: AblationConfig) -> tuple[str, ...]:
    """The claim on one data set."""
    return verdict(subject, CLAIM, "hallucinated words", word_gap(subject), -1, ablation)
