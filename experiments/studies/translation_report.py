"""The translators' table (TSV and Markdown) and Figure 8: quality over lag, one panel per test set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sqa.files.store import write_text
from sqa.report import markdown
from sqa.report.figure_style import COLOURS, PAGE, save, style
from sqa.run.folder import tsv

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from experiments.studies.translation_rows import LeftOut, Row

SHOWN = (("bleu", "BLEU", 1), ("chrf", "chrF", 1), ("dal", "DAL", 2))  # metric, heading, digits
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
STEM = "figure8"
_SHARES = ("empty", "copied", "looping")
_LABEL_GAP = 0.085  # least distance of two labels, share of a panel's height


def table(rows: Sequence[Row], left_out: Sequence[LeftOut]) -> str:
    """A TSV text: one line per row with value and 95% interval of each metric, shares and signatures; "n/a" for none.

    What was left out has a line too, with the reason in the column `note`.
    """
    names = [name for name, _, _ in SHOWN]
    header = ["test", "segments", "translator", "k"]
    header += [f"{name}{part}" for name in names for part in ("", ".low", ".high")]
    header += [*_SHARES, *(f"{name}.signature" for name in names), "note"]
    lines = []
    for row in rows:
        cells = [row.test, str(row.n), row.label, _k(row)]
        for name in names:
            i = row.intervals.get(name)
            cells += ["n/a"] * 3 if i is None else [f"{x:.6f}" for x in (i.value, i.low, i.high)]
        cells += [f"{getattr(row, share):.6f}" for share in _SHARES]
        lines.append([*cells, *(row.signatures.get(name, "n/a") for name in names), ""])
    for out in left_out:
        blank = ["n/a"] * (len(header) - 4)
        lines.append([out.test, "n/a", out.label or "all", *blank, f"left out: {out.reason}"])
    return tsv(header, [[cell.replace("\t", " ") for cell in line] for line in lines])


def write_report(rows: Sequence[Row], left_out: Sequence[LeftOut], path: Path) -> Path:
    """The table to read: a section per test set, the figure, what was left out, the signatures."""
    parts = ["# Translators: quality and lag", "", f"![quality over lag]({STEM}.png)"]
    for test, mine in _by(rows, "test").items():
        heads = [*(head for _, head, _ in SHOWN), *_SHARES]
        parts += ["", f"## {test} ({mine[0].n} {mine[0].unit})", ""]
        parts += markdown.table(["translator", "k", *heads], map(_cells, mine))
    parts += [
        "",
        "In brackets 95% bootstrap intervals over questions or sentences. DAL is in source words. Empty, copied,",
    ]
    parts += [
        "looping: shares of source sentences whose translation has no word, is the source again (of those of four"
    ]
    parts += ["words or more), or says a phrase four times in a row or a run of letters."]
    if left_out:
        parts += ["", "## Left out", "", *(f"- {o.test}: {o.label or 'the whole set'}: {o.reason}" for o in left_out)]
    signatures = dict.fromkeys(signature for row in rows for signature in row.signatures.values())
    parts += ["", "## Signatures", "", *(f"- `{signature}`" for signature in signatures)]
    write_text(path, "\n".join(parts) + "\n")
    return path


def _cells(row: Row) -> list[str]:
    cells = [row.label, _k(row)]
    for name, _, digits in SHOWN:
        i = row.intervals.get(name)
        cells.append("n/a" if i is None else f"{i.value:.{digits}f} [{i.low:.{digits}f}, {i.high:.{digits}f}]")
    return [*cells, *(f"{getattr(row, share):.1%}" for share in _SHARES)]


def _k(row: Row) -> str:
    return "-" if row.k is None else str(row.k)


def _by(rows: Sequence[Row], key: str) -> dict[str, list[Row]]:
    """Rows by the value of an attribute, in order of appearance."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(getattr(row, key), []).append(row)
    return groups


# ------------------------------------------------------------------------------------------------------ figure


class Look(NamedTuple):
    """How a translator is drawn, the same in every panel."""

    colour: str
    marker: str


def draw(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Figure 8 as PDF and PNG; returns both paths."""
    with style():
        return save(figure_of(rows), folder, STEM)


def figure_of(rows: Sequence[Row]) -> Figure:
    """BLEU over DAL, a line through the k of each translator; rows without a DAL are left out."""
    from matplotlib import pyplot

    shown = [row for row in rows if "dal" in row.intervals and "bleu" in row.intervals]
    tests = _by(shown, "test")
    looks = {label: Look(c, m) for label, c, m in zip(_by(rows, "label"), cycle(COLOURS), cycle(MARKERS), strict=False)}
    columns = min(2, max(1, len(tests)))
    lines = max(1, -(-len(tests) // columns))
    size = (PAGE, 2.8 * lines)
    figure, grid = pyplot.subplots(lines, columns, figsize=size, layout="constrained", squeeze=False)
    for axes, (test, mine) in zip(grid.flat, tests.items(), strict=False):
        axes.set_title(f"{test}, {mine[0].n} {mine[0].unit}", loc="left")
        axes.set_xlabel("lag (DAL, source words)")
        axes.set_ylabel("BLEU")
        _panel(axes, _by(mine, "label"), looks)
    for axes in grid.flat[len(tests) :]:
        axes.set_axis_off()
    return figure


def _panel(axes: Axes, groups: Mapping[str, Sequence[Row]], looks: Mapping[str, Look]) -> None:
    """One test set: a line, markers with their k, intervals, and a label at the right edge for each translator."""
    ends: dict[str, tuple[float, float]] = {}
    for label, rows in groups.items():
        colour, marker = looks[label]
        order = sorted(rows, key=lambda row: row.intervals["dal"].value)
        x = [row.intervals["dal"].value for row in order]
        bleu = [row.intervals["bleu"] for row in order]
        axes.plot(x, [i.value for i in bleu], color=colour, marker=marker, label=label)
        axes.vlines(x, [i.low for i in bleu], [i.high for i in bleu], color=colour, alpha=0.3, linewidth=0.8)
        for row, at, i in zip(order, x, bleu, strict=True):
            if row.k is not None:
                axes.annotate(
                    str(row.k), (at, i.value), xytext=(0, 3.5), textcoords="offset points", ha="center", va="bottom",
                    fontsize=5, color=colour,
                )  # fmt: skip
        ends[label] = (x[-1], bleu[-1].value)
    axes.set_xlim(left=0)
    axes.margins(y=0.1)
    axes.set_ylim(bottom=0)  # without it a tenth of a point of BLEU looks like a mountain
    _labels(axes, ends, looks)


def _labels(axes: Axes, ends: Mapping[str, tuple[float, float]], looks: Mapping[str, Look]) -> None:
    """Marker and name of each line at the right edge, at the height of its last point as far as there is room."""
    low, high = axes.get_ylim()
    for label, place in _spread({label: (y - low) / (high - low) for label, (_, y) in ends.items()}).items():
        colour, marker = looks[label]
        axes.plot([1.04], [place], color=colour, marker=marker, transform=axes.transAxes, clip_on=False)
        axes.text(1.08, place, label, color=colour, fontsize=7, va="center", transform=axes.transAxes)


def _spread(heights: Mapping[str, float]) -> dict[str, float]:
    """Heights (0 to 1) moved apart to at least _LABEL_GAP, keeping their order and staying below the top."""
    places: dict[str, float] = {}
    for label in sorted(heights, key=lambda label: heights[label]):
        floor = max(places.values()) + _LABEL_GAP if places else 0.0
        places[label] = max(heights[label], floor)
    ceiling = 1.0
    for label in reversed(places):
        places[label] = min(places[label], ceiling)
        ceiling = places[label] - _LABEL_GAP
    return places
