"""The ablation's table (TSV) and its report (Markdown)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sqa.files.store import write_text
from sqa.report.markdown import table
from sqa.run.folder import tsv

if TYPE_CHECKING:
    from experiments.grid import Row
    from experiments.verdicts import Verdict

SHOWN = (("ew", "EW", 3), ("ew@answer-at-end", "EW, answered at the end", 3), ("oracle-ew", "oracle EW", 3),
         ("accuracy", "accuracy", 3), ("mrr", "MRR", 3), ("bleu", "BLEU", 1), ("dal", "DAL", 2))  # fmt: skip


def write_table(rows: Sequence[Row], path: Path) -> Path:
    """One line per run: value, low and high of every metric (95% over questions), six digits."""
    names = list(dict.fromkeys(name for row in rows for name in row.intervals))
    header = ["dataset", "translator", "k", "guesser", "questions", "unknown_pages", "empty_sentences"]
    header += [f"{name}{part}" for name in names for part in ("", ".low", ".high")]
    lines = []
    for row in rows:
        unknown = "n/a" if row.unknown_pages is None else str(row.unknown_pages)
        line = [row.cell.dataset, row.cell.translator, str(row.cell.k), row.cell.guesser, str(row.n), unknown,
                str(row.empty_sentences)]  # fmt: skip
        for name in names:
            interval = row.intervals.get(name)
            line += (
                ["n/a"] * 3 if interval is None else [f"{x:.6f}" for x in (interval.value, interval.low, interval.high)]
            )
        lines.append(line)
    write_text(path, tsv(header, lines))
    return path


def write_report(rows: Sequence[Row], verdicts: Sequence[Verdict], figures: Sequence[Path], path: Path) -> Path:
    """Claims, figures, a readable table per data set, and the signatures that make the numbers comparable."""
    parts = ["# Expected wins and translation quality over k", "", *_claims(verdicts)]
    for dataset in dict.fromkeys(row.cell.dataset for row in rows):
        mine = [row for row in rows if row.cell.dataset == dataset]
        parts += ["", f"## {dataset}", ""]
        parts += [
            f"![{dataset}]({figure.name})"
            for figure in figures
            if figure.suffix == ".png" and Path(dataset).name in figure.name
        ]
        parts += ["", *_markdown_table(mine), "", *_notes(mine)]
    parts += ["", "## Signatures", ""]
    parts += [f"- `{signature}`" for signature in dict.fromkeys(s for row in rows for s in row.signatures.values())]
    write_text(path, "\n".join(parts) + "\n")
    return path


def _claims(verdicts: Sequence[Verdict]) -> list[str]:
    header = ["data set", "translator", "guesser", "claim", "verdict", "our numbers"]
    return table(header, (verdict.cells() for verdict in verdicts))


def _markdown_table(rows: Sequence[Row]) -> list[str]:
    lines = []
    for row in rows:
        cells = [row.cell.translator, str(row.cell.k), row.cell.guesser]
        for metric, _, digits in SHOWN:
            i = row.intervals.get(metric)
            cells.append("n/a" if i is None else f"{i.value:.{digits}f} [{i.low:.{digits}f}, {i.high:.{digits}f}]")
        lines.append(cells)
    return table(["translator", "k", "guesser", *(name for _, name, _ in SHOWN)], lines)


def _notes(rows: Sequence[Row]) -> list[str]:
    notes = [f"{rows[0].n} questions; 95% intervals by bootstrap over questions."]
    for guesser in dict.fromkeys(row.cell.guesser for row in rows):
        unknown = next(row.unknown_pages for row in rows if row.cell.guesser == guesser)
        if unknown is not None:
            notes.append(f"{unknown} of the answer pages are unknown to {guesser}; those questions count as wrong.")
    empty = [
        f"{row.cell.translator} k={row.cell.k}: {row.empty_sentences}"
        for row in rows
        if row.empty_sentences and row.cell.guesser == rows[0].cell.guesser
    ]
    notes.append(f"Sentences with an empty translation: {', '.join(empty) or 'none'}.")
    return notes
