"""Step-wise errors: what they cost, how many there are over k, and how the detector finds planted ones."""

from experiments.lab import grid_rows
from experiments.lab.item import Item, elsewhere
from experiments.lab.tables import columns, pivot
from experiments.stepwise import errors

ITEMS = (
    Item(
        "stepwise-costs",
        "what hallucinations, omissions and under-translations cost (log MRR)",
        "stepwise.yaml",
        errors.COSTS,
        lambda config, runs: errors.costs(errors.subjects(config, runs)),
        grid_rows.inputs_beside,
    ),
    Item(
        "errors-over-k",
        "how many step-wise errors of each kind over k",
        "stepwise.yaml",
        errors.COUNTS,
        lambda config, runs: errors.counts(errors.subjects(config, runs)),
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
