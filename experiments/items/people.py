"""Curves fitted to people's buzzes, and contestants against the people who played the same questions."""

from collections.abc import Iterator
from pathlib import Path

from experiments.lab.item import Item, inputs_of
from experiments.lab.ledger import Row
from experiments.lab.tables import across, columns, pivot
from experiments.studies import head_to_head
from sqa.metrics.curve_fit import METHODS, FitConfig, fit

BUZZES = "human-buzzes"
AT = (0, 0.25, 0.5, 0.75, 1)  # shares of a question


def curves(_: Path, __: Path) -> Iterator[Row]:
    """Expected wins at some shares of a question, with the band over questions."""
    for method in METHODS:
        fitted = fit(BUZZES, FitConfig(method, "clip"))
        for t in AT:
            percent, n = round(100 * t), fitted.document["questions"]
            low, high = float(fitted.low[percent]), float(fitted.high[percent])
            yield Row((method, f"{t:g}"), "ew", float(fitted.curve(t)), low, high, n, "0-1")


ITEMS = (
    Item(
        "curves",
        "expected wins by curves fitted to recorded buzzes",
        "",
        ("method", "read"),
        curves,
        inputs_of(datasets=(BUZZES,)),
        {"table": pivot(("method",), across("ew", "read", ("0.5", "1"), "EW({})"))},
    ),
    Item(
        "head-to-head",
        "how many recorded opponents each contestant beats on the questions that people played",
        "head_to_head.yaml",
        ("contestant",),
        lambda config, runs: head_to_head.played(config, runs)[0],
        blocks={
            "table": pivot(
                ("contestant",),
                columns("beaten: opponents beaten")
                + columns("points: points a game", digits=2)
                + columns("ew: EW", "stable-ew: stable EW", "beatable: a perfect buzzer would beat", interval=False),
            )
        },
        kept="a quarter of an hour of a core",
    ),
)
