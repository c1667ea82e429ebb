"""What perturbed copies of the questions do to two models of an evaluation board, and the board's own rank."""

from __future__ import annotations

from experiments.lab.item import Item, elsewhere
from experiments.lab.tables import Column, pivot

MODELS = ("wait-6", "apertium-wait-6")
ITEM = Item(
    "board",
    "what perturbations do to expected wins and to the final answer",
    "",
    ("kind", "model"),
    elsewhere("`sqa board export sqa-es` of the board that docs/board.md makes"),
    blocks={
        "perturbed": pivot(
            ("kind",),
            [column for model in MODELS
             for column in (Column("ew", f"{model}: EW", sign=True, cell={"model": model}),
                            Column("same answer", "same answer", cell={"model": model}))],
        )
    },
    kept="a board of three models",
)  # fmt: skip
