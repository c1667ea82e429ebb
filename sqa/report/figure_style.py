"""What all figures share: size, colours that colour-blind readers tell apart, files without a date in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqa.files.atomic import atomic

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette without its yellow, which is too light for lines.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
GREY = "#7F7F7F"
COLUMN = 3.35  # inches, one column of an ACL paper
PAGE = 6.9  # inches, both columns
SETTINGS: dict[Any, Any] = {  # of every figure: small sans-serif, thin lines, no box
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.4,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "pdf.fonttype": 42,
    "savefig.dpi": 200,
    "svg.hashsalt": "sqa",
}


@contextmanager
def style() -> Iterator[None]:
    """The settings of every figure that is written to files."""
    import matplotlib

    matplotlib.use("Agg")
    with matplotlib.rc_context(SETTINGS):
        yield


def save(figure: Figure, folder: Path, stem: str) -> list[Path]:
    """Write <stem>.pdf and <stem>.png into `folder`, whole or not at all, and close the figure; returns both paths."""
    from matplotlib import pyplot

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind, metadata in (("pdf", {"CreationDate": None}), ("png", {"Software": None})):
        path = folder / f"{stem}.{kind}"
        with atomic(path) as partial:
            figure.savefig(partial, format=kind, metadata=metadata)
        paths.append(path)
    pyplot.close(figure)
    return paths
