"""Items of the lab book: speed of fast and plain paths, a server with many clients, cost of a cluster."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from experiments.lab.item import Block, Item
from experiments.lab.ledger import Row
from experiments.lab.tables import columns, pivot
from sqa_services.bench import cluster, iwslt, speed
from sqa_services.bench.speed import Pair

IDLE = "needs an idle machine"


def _rows(pairs: Iterable[Pair]) -> Iterator[Row]:
    for what, unit, plain, fast in pairs:
        yield Row((what, unit), "plain", plain, unit="per second")
        yield Row((what, unit), "fast", fast, unit="per second")
        yield Row((what, unit), "ratio", fast / plain, unit="ratio")


def speeds(_: Path, __: Path) -> Iterator[Row]:
    """Yield the rows of `make bench`."""
    yield from _rows(speed.speeds())


def clients(_: Path, __: Path) -> Iterator[Row]:
    """Yield request rates and memory of the evaluation server, with concurrent and with consecutive clients."""
    for pair, before, most in iwslt.measured():
        yield from _rows([pair])
        yield Row(pair[:2], "MiB before", before, unit="count")
        yield Row(pair[:2], "MiB at most", most, unit="count")


def plan(_: Path, runs: Path) -> Iterator[Row]:
    """Yield bytes and seconds per question in each stage of finished runs, and the totals for the planned ablation."""
    for stage, size, seconds in cluster.planned(runs):
        pairs = cluster.QUESTIONS * cluster.SYSTEMS
        yield Row((stage,), "bytes a question", size, unit="count")
        yield Row((stage,), "seconds a question", seconds, unit="seconds")
        yield Row((stage,), "TB", size * pairs / 1e12, unit="TB")
        yield Row((stage,), "hours", seconds * pairs / 3600, unit="count")


def _pairs(*headings: str) -> Block:
    return pivot(("what", "unit"), columns(*headings))


def items() -> Sequence[Item]:
    """Return the items on speed, on the evaluation server with many clients and on the cost of a cluster."""
    return (
        Item(
            "speed",
            "speed of fast and plain paths, and of our models and other engines",
            "",
            ("what", "unit"),
            speeds,
            blocks={"table": _pairs("plain", "fast", "ratio")},
            kept=IDLE,
        ),
        Item(
            "many-clients",
            "speed of the evaluation server with 200 concurrent clients, and with consecutive clients",
            "",
            ("what", "unit"),
            clients,
            blocks={"table": _pairs("plain: one cursor", "fast: sessions", "ratio", "MiB before", "MiB at most")},
            kept=IDLE,
        ),
        Item(
            "cluster-plan",
            "estimated cost of a million questions with a hundred systems",
            "",
            ("stage",),
            plan,
            kept="reads the given runs",
        ),
    )
