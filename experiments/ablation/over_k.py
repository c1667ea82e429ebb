"""`sqa ablation CONFIG`: expected wins, accuracy, BLEU and lag over k, on real questions.   make reproduce

After Figure 3 of Han, Carpuat and Boyd-Graber (2022): BLEU only grows with k and flattens, while expected wins rise,
peak and fall; oracle expected wins peak earlier.  What the runs say of it stands on top of the report.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import sqa
from experiments.ablation import seeds
from experiments.grid import AblationConfig, Row, finished
from experiments.items.over_k import PANELS, drawn_over, every_k
from experiments.lab import grid_rows
from experiments.lab.ledger import Ledger
from experiments.lab.ledger import Row as Number
from experiments.lab.tables import number
from experiments.ladders import FALL, LATER, RISE, Ladder, differences, ladders
from experiments.made import Made
from sqa.run.config import load

if TYPE_CHECKING:
    from sqa.report.plots import Figure

MOST_LINES = 7  # translators in one figure
SENTENCES = {
    RISE: "EW rises by",
    FALL: "to full input it falls by",
    "oracle rise": "oracle EW rises by",
    "oracle fall": "and falls by",
}


def main(config_path: Path, runs: Path) -> None:
    """Run everything that the store lacks; write table, differences, figures and report; print what came out."""
    config = load(config_path, AblationConfig)
    rows = finished(config, runs)
    datasets = list(dict.fromkeys(row.cell.dataset for row in rows))
    once, made = [row for row in rows if row.cell.seed is None], Made(runs / config.name)
    of = Ledger(
        "over-k",
        f"sqa ablation {config_path.name}",
        sqa.__version__,
        date.today().isoformat(),
        {},
        grid_rows.COLUMNS,
        tuple(grid_rows.rows_of(once)),
    )
    found = ladders(once)
    gaps = {ladder[:3]: list(differences(ladder)) for ladder in found}
    said = list(came_out(config, datasets, of, found, gaps))
    made.rows("table.csv", grid_rows.COLUMNS, grid_rows.rows_of(rows))
    made.differences((gap for each in gaps.values() for gap in each), show=False)
    for dataset in datasets:
        mine = [ladder for ladder in found if ladder.dataset == dataset]
        if mine and any(of.where(metric, dataset=dataset) for metric, _ in PANELS):
            made.picture(f"figure3_{Path(dataset).name}", figure, of, mine, title(config, dataset))
    made.write("report.md", "\n".join(_report(config, datasets, of, said, made.paths, rows)) + "\n")
    if len(once) < len(rows):
        made.rows("seeds.csv", seeds.COLUMNS, seeds.rows_of(rows))
    for line in said:
        print(line)
    made.end()


def title(config: AblationConfig, dataset: str) -> str:
    """A data set's name in titles; one that takes the place of those asked for says so."""
    instead = "" if dataset in config.datasets else f", in place of {' and '.join(config.datasets)}"
    return f"{Path(dataset).name}{instead}"


# ------------------------------------------------------------------------------------------------------ in sentences


def came_out(
    config: AblationConfig,
    datasets: Sequence[str],
    of: Ledger,
    found: Sequence[Ladder],
    gaps: dict[tuple[str, str, str], list[Number]],
) -> Iterator[str]:
    """What the runs say: of each data set the best system, and how it goes over k."""
    instead = [dataset for dataset in datasets if dataset not in config.datasets]
    if instead:
        yield f"Not {' and '.join(config.datasets)}, which cannot be had, but {' and '.join(instead)}."
    for dataset in datasets:
        mine = [ladder for ladder in found if ladder.dataset == dataset and "ew" in ladder.parts[0]]
        if not mine:
            yield f"{dataset}: no translator with several k and expected wins."
            continue
        top = max(mine, key=lambda ladder: float(ladder.scores("ew").max()))
        yield from _of_best(of, top, gaps[top[:3]])


def _of_best(of: Ledger, top: Ladder, gaps: Sequence[Number]) -> Iterator[str]:
    where = {"dataset": top.dataset, "contestant": top.contestant}
    peak = top.ks[int(top.scores("ew").argmax())]
    best = of.one("ew", **where, translator=top.translator, k=peak)
    human = of.one("ew", **where, translator="reference", k="full")
    n = len(top.parts[0]["ew"])
    yield (
        f"{top.dataset}, {n} questions: the most expected wins, {number(best)}, has {top.translator} at k = {peak}, "
        f"answered by {top.contestant}; the human translation has {number(human)}."
    )
    parts = []
    if "bleu" in top.parts[0]:
        bleu = top.scores("bleu")
        parts.append(f"BLEU {bleu[0]:.1f} at k = {top.ks[0]}, {bleu[-1]:.1f} at k = {top.ks[-1]}")
    said = {gap.cell[3]: gap for gap in gaps}
    for claim, words in SENTENCES.items():
        if claim in said:
            parts.append(f"{words} {number(said[claim], sign=True)} ({said[claim].cell[4]})")
    if LATER in said:
        ew, oracle = said[LATER].cell[4].replace("k = ", "").split(" minus ")
        parts.append("both peak at the same k" if ew == oracle else f"EW peaks at k = {ew}, oracle EW at k = {oracle}")
    yield "; ".join(parts) + "."


# ------------------------------------------------------------------------------------------------------------- files


def figure(of: Ledger, mine: Sequence[Ladder], said: str) -> Figure:
    """A data set's figure: a row of panels for each contestant."""
    drawn = list(dict.fromkeys(ladder.translator for ladder in mine))[:MOST_LINES]
    answered = dict.fromkeys(ladder.contestant for ladder in mine)
    made = drawn_over(of, [(mine[0].dataset, contestant, contestant) for contestant in answered], drawn)
    made.suptitle(said)
    return made


def _report(
    config: AblationConfig,
    datasets: Sequence[str],
    of: Ledger,
    said: Sequence[str],
    figures: Sequence[Path],
    rows: Sequence[Row],
) -> Iterator[str]:
    """What came out, then figure and table of each data set, notes, and the signatures."""
    yield from ("# Expected wins and translation quality over k", "", *(f"- {line}" for line in said))
    for dataset in datasets:
        yield from ("", f"## {title(config, dataset)}", "")
        for path in figures:
            if path.name == f"figure3_{Path(dataset).name}.png":
                yield from (f"![{dataset}]({path.name})", "")
        mine = [row for row in rows if row.cell.dataset == dataset]
        for contestant in dict.fromkeys(row.cell.guesser for row in mine):
            yield from (f"Answered by {contestant}:", "", *every_k(of, dataset, contestant), "")
        yield from _notes(mine)
    yield from ("", "## Signatures", "")
    yield from (f"- `{signature}`" for signature in dict.fromkeys(row.signature for row in of.rows))


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    yield f"{rows[0].n} questions; 95% intervals over questions."
    for guesser, unknown in {row.cell.guesser: row.unknown_pages for row in rows}.items():
        if unknown is not None:
            yield f"{unknown} of the answer pages are unknown to {guesser}; those questions count as wrong."
    empty = {f"{row.cell.translator} k={row.cell.k}": row.empty_sentences for row in rows if row.empty_sentences}
    shown = ", ".join(f"{where}: {n}" for where, n in empty.items())
    yield f"Sentences with an empty translation: {shown or 'none'}."
