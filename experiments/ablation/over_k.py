"""`sqa ablation CONFIG`: expected wins, accuracy, BLEU and lag over k, on real questions.   make reproduce

After Figure 3 of Han, Carpuat and Boyd-Graber (2022): BLEU only grows with k and flattens, while expected wins rise,
peak and fall; oracle expected wins peak earlier.  What the runs say of it stands on top of the report.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from experiments.outputs import Outputs
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


@dataclass(frozen=True)
class Ablation:
    """The finished runs of an ablation."""

    config: AblationConfig
    rows: Sequence[Row]
    ledger: Ledger  # of the translators that were trained once
    ladders: Sequence[Ladder]  # of these
    differences: Mapping[tuple[str, str, str], Sequence[Number]]  # data set, translator, contestant -> claims

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(row.cell.dataset for row in self.rows))

    def title(self, dataset: str) -> str:
        """A data set's name in titles, and which data sets it replaces."""
        instead = "" if dataset in self.config.datasets else f", in place of {' and '.join(self.config.datasets)}"
        return f"{Path(dataset).name}{instead}"

    def summary(self) -> Iterator[str]:
        """Of each data set the best system, and its values over k."""
        instead = [dataset for dataset in self.datasets if dataset not in self.config.datasets]
        if instead:
            yield f"Not {' and '.join(self.config.datasets)}, which are not available, but {' and '.join(instead)}."
        for dataset in self.datasets:
            with_ew = [ladder for ladder in self.ladders if ladder.dataset == dataset and "ew" in ladder.parts[0]]
            if with_ew:
                yield from self._best(max(with_ew, key=lambda ladder: float(ladder.scores("ew").max())))
            else:
                yield f"{dataset}: no translator with several k and expected wins."

    def _best(self, top: Ladder) -> Iterator[str]:
        where = {"dataset": top.dataset, "contestant": top.contestant}
        peak = top.ks[int(top.scores("ew").argmax())]
        best = self.ledger.one("ew", **where, translator=top.translator, k=peak)
        human = self.ledger.one("ew", **where, translator="reference", k="full")
        yield (
            f"{top.dataset}, {len(top.parts[0]['ew'])} questions: the most expected wins, {number(best)}, has "
            f"{top.translator} at k = {peak}, answered by {top.contestant}; the human translation has {number(human)}."
        )
        parts = []
        if "bleu" in top.parts[0]:
            bleu = top.scores("bleu")
            parts.append(f"BLEU {bleu[0]:.1f} at k = {top.ks[0]}, {bleu[-1]:.1f} at k = {top.ks[-1]}")
        claims = {row.cell[3]: row for row in self.differences[top[:3]]}
        parts += [
            f"{words} {number(claims[claim], sign=True)} ({claims[claim].cell[4]})"
            for claim, words in SENTENCES.items()
            if claim in claims
        ]
        if LATER in claims:
            ew, oracle = claims[LATER].cell[4].replace("k = ", "").split(" minus ")
            later = f"EW peaks at k = {ew}, oracle EW at k = {oracle}"
            parts.append("both peak at the same k" if ew == oracle else later)
        yield "; ".join(parts) + "."

    def figure(self, dataset: str) -> Figure:
        """A data set's figure: a row of panels for each contestant."""
        shown = [ladder for ladder in self.ladders if ladder.dataset == dataset]
        translators = list(dict.fromkeys(ladder.translator for ladder in shown))[:MOST_LINES]
        contestants = dict.fromkeys(ladder.contestant for ladder in shown)
        figure = drawn_over(self.ledger, [(dataset, contestant, contestant) for contestant in contestants], translators)
        figure.suptitle(self.title(dataset))
        return figure

    def report(self, figures: Collection[str]) -> Iterator[str]:
        """The summary, then figure and table of each data set, notes, and the signatures."""
        yield from ("# Expected wins and translation quality over k", "", *(f"- {line}" for line in self.summary()))
        for dataset in self.datasets:
            yield from ("", f"## {self.title(dataset)}", "")
            if dataset in figures:
                yield from (f"![{dataset}](figure3_{Path(dataset).name}.png)", "")
            rows = [row for row in self.rows if row.cell.dataset == dataset]
            for contestant in dict.fromkeys(row.cell.guesser for row in rows):
                yield from (f"Answered by {contestant}:", "", *every_k(self.ledger, dataset, contestant), "")
            yield from _notes(rows)
        yield from ("", "## Signatures", "")
        yield from (f"- `{signature}`" for signature in dict.fromkeys(row.signature for row in self.ledger.rows))


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    yield f"{rows[0].n} questions; 95% intervals over questions."
    for guesser, unknown in {row.cell.guesser: row.unknown_pages for row in rows}.items():
        if unknown is not None:
            yield f"{unknown} of the answer pages are unknown to {guesser}; those questions count as wrong."
    empty = [(row.cell, row.empty_sentences) for row in rows if row.empty_sentences]
    shown = dict.fromkeys(f"{cell.translator} k={cell.k}: {n}" for cell, n in empty)
    yield f"Sentences with an empty translation: {', '.join(shown) or 'none'}."


def main(config_path: Path, runs: Path) -> None:
    """Run everything that the store lacks; write table, differences, figures and report; print the summary."""
    config = load(config_path, AblationConfig)
    rows = finished(config, runs)
    once = [row for row in rows if row.cell.seed is None]
    numbers, command = tuple(grid_rows.rows_of(once)), f"sqa ablation {config_path.name}"
    ledger = Ledger("over-k", command, sqa.__version__, date.today().isoformat(), {}, grid_rows.COLUMNS, numbers)
    lines = ladders(once)
    ablation = Ablation(config, rows, ledger, lines, {ladder[:3]: list(differences(ladder)) for ladder in lines})
    outputs = Outputs(runs / config.name)
    outputs.rows("table.csv", grid_rows.COLUMNS, grid_rows.rows_of(rows))
    outputs.differences((row for claims in ablation.differences.values() for row in claims), show=False)
    with_ladder = {ladder.dataset for ladder in lines}
    drawn = [d for d in ablation.datasets if d in with_ladder and any(ledger.where(m, dataset=d) for m, _ in PANELS)]
    for dataset in drawn:
        outputs.picture(f"figure3_{Path(dataset).name}", ablation.figure, dataset)
    outputs.write("report.md", "\n".join(ablation.report(drawn)) + "\n")
    if len(once) < len(rows):
        outputs.rows("seeds.csv", seeds.COLUMNS, seeds.rows_of(rows))
    print(*ablation.summary(), sep="\n")
    outputs.end()
