"""The translators of Figure 3 with the names of the source copied: what does a bonus on their spelling change?"""

from __future__ import annotations

from experiments.items.over_k import BEST
from experiments.lab import grid_rows
from experiments.lab.item import Item
from experiments.lab.ledger import Ledger
from experiments.lab.tables import Column, table

COLUMNS = (
    Column("ew", "EW"),
    Column("oracle-ew", "oracle EW"),
    Column("bleu", "BLEU", 1),
    Column("names", "names kept", 2, interval=False),
    Column("names@copied", "of those spelt alike", 2, interval=False),
    Column("names@invented", "invented", 2, interval=False),
)


def block(ledger: Ledger) -> list[str]:
    """Every translator at every k."""
    rows = [row.cell for row in ledger.where("bleu", contestant=BEST) if row.cell[1] != "reference"]
    named = [([d, t, k], {"dataset": d, "translator": t, "k": k, "contestant": BEST}) for d, t, k, _ in rows]
    return table(ledger, ["data set", "translator", "k"], named, COLUMNS)


ITEM = Item(
    name="names-copied",
    shows="a bonus on the spelling of names that were read",
    config="studies.yaml:names",
    columns=grid_rows.COLUMNS,
    measure=grid_rows.measure,
    inputs=grid_rows.inputs,
    blocks={"table": block},
)
