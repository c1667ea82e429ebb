"""Figure 5: a hallucination, word by word.  Log MRR over the source read, and the red curve of unaligned words.

    sqa reproduce fig5

Claim, after Section 7 of Han, Carpuat and Boyd-Graber (2022): words that the translation invents mislead whoever
answers, so log MRR changes for the worse at hallucinated content words, compared with all other words.  What is
compared is the mean change of log MRR at a word, over all questions of the run.

The example is the worst hallucination of the run (rule and kinds: experiments/stepwise/examples.py; what is drawn:
experiments/stepwise/figure.py).  Its form is our reading of Section 7; the paper's own example and its numbers
could not be looked up, so nothing is compared with them.
"""

from __future__ import annotations

from pathlib import Path

from experiments.grid import AblationConfig
from experiments.stepwise.examples import Item, make, verdict, word_gap
from experiments.stepwise.rows import Subject

CLAIM = "log MRR changes for the worse at hallucinated content words"


def main(config_path: Path, runs: Path) -> None:
    """`sqa reproduce fig5`."""
    make(Item("figure5", "hallucination", costly=True, judge=judge), config_path, runs)


def judge(subject: Subject, ablation: AblationConfig) -> tuple[str, ...]:
    """The claim on one data set."""
    return verdict(subject, CLAIM, "hallucinated words", word_gap(subject), -1, ablation)
