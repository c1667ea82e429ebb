"""Step-wise errors: what they cost, how many there are over k, and how the detector finds planted ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from experiments.lab import grid_rows
from experiments.lab.item import Item, elsewhere
from experiments.lab.ledger import Row
from experiments.lab.tables import columns, pivot
from experiments.stepwise import errors


def costs(config: Path, runs: Path) -> Iterator[Row]:
    """Difference of log MRR between places with an error of a kind and all others; how many places."""
    found = errors.subjects(config, runs)
    for subject in found.subjects:
        for item in errors.ITEMS:
            yield from item.cost(subject, found.ablation)


def counts(config: Path, runs: Path) -> Iterator[Row]:
    """The share of each kind of error at each k, the range over single alignments, and the smallest k minus full."""
    return errors.counts(errors.subjects(config, runs, counted=True))


ITEMS = (
    Item(
        "stepwise-costs",
        "what hallucinations, omissions and under-translations cost (log MRR)",
        "stepwise.yaml",
        errors.COSTS,
        costs,
        grid_rows.inputs_beside,
    ),
    Item(
        "errors-over-k",
        "how many step-wise errors of each kind over k",
        "stepwise.yaml",
        errors.COUNTS,
        counts,
        grid_rows.inputs_beside,
    ),
    Item(
        "planted-once",
        "how the detector finds errors of kinds that it never saw",
        "",
        ("language", "signals"),
        elsewhere("`python -m experiments.planted.once es pl`"),
        blocks={"table": pivot(("language", "signals"), columns("planted words", "precision", "recall"))},
        kept="trains a detector for each kind",
    ),
)
