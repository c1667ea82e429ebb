"""ablation.yaml from finished ablations: the rows of their table.tsv, the lines of their verdicts.tsv."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import yaml

from experiments.expected.tables import ABLATION, HERE, Ablation, MeasuredRow
from sqa.core.errors import DataError
from sqa.files.store import write_text
from sqa.run.config import load, to_mapping

TABLE, VERDICTS = "table.tsv", "verdicts.tsv"
COMMAND = "sqa ablation configs/ablation.yaml"
_NAMES = ("dataset", "translator", "k", "guesser", "questions", "unknown_pages", "empty_sentences")
_HEAD = """\
# What the ablation over k measured: value, low and high end of the 95% interval over questions.  Written by
#   python -m experiments.expected collect runs/ablation_names runs/ablation
# (`names copied`: configs/studies.yaml:names; the claims are those of the last).
"""


def collect(folders: Sequence[Path], output: Path = HERE / ABLATION) -> int:
    """Put the rows of finished ablations in the place of those they measured anew; the number of rows taken.

    Rows that none of them has stay as they are; the claims are those of the last folder that has any.
    """
    kept = load(output, Ablation) if output.is_file() else Ablation(COMMAND, (), (), ())
    rows = {row.key: row for row in kept.rows}
    claims, claims_head, taken = kept.claims, kept.claims_head, 0
    for folder in folders:
        for row in rows_of(folder / TABLE):
            rows[row.key] = row
            taken += 1
        if (folder / VERDICTS).is_file():
            claims_head, *read = (tuple(line) for line in _read(folder / VERDICTS))
            claims = tuple(read)
    text = _dumped(Ablation(kept.command, claims, claims_head, tuple(rows.values())))
    write_text(output, _HEAD + text)
    return taken


def rows_of(path: Path) -> list[MeasuredRow]:
    """The rows of a table.tsv of `sqa ablation`; a metric that a run has no value for is left out of its row."""
    header, *lines = _read(path)
    if tuple(header[: len(_NAMES)]) != _NAMES:
        raise DataError(f"{path}: not a table of `sqa ablation` (columns {', '.join(header[:4])}); make one with it")
    metrics = [name for name in header[len(_NAMES) :] if f"{name}.low" in header]
    rows = []
    for line in lines:
        cell = dict(zip(header, line, strict=True))
        values = {name: tuple(float(cell[f"{name}{part}"]) for part in ("", ".low", ".high"))
                  for name in metrics if cell[name] != "n/a"}  # fmt: skip
        k = int(cell["k"]) if cell["k"].isdigit() else cell["k"]
        rows.append(
            MeasuredRow(cell["dataset"], cell["translator"], k, cell["guesser"], int(cell["questions"]), values)
        )
    return rows


def _read(path: Path) -> list[list[str]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); run `{COMMAND}` first") from error
    if not lines or any(len(line) != len(lines[0]) for line in lines):
        raise DataError(f"{path}: expected a header and lines of as many cells; run `{COMMAND}` again")
    return lines


def _dumped(ablation: Ablation) -> str:
    """YAML, a line for each row and claim."""
    mapping = to_mapping(ablation)
    parts = [yaml.safe_dump({"command": mapping["command"]}, sort_keys=False)]
    parts += [f"claims_head: {_flow(mapping['claims_head'])}", "claims:", *_items(mapping["claims"])]
    parts += ["rows:", *_items(mapping["rows"])]
    return "\n".join(part.rstrip("\n") for part in parts) + "\n"


def _items(items: Sequence[object]) -> list[str]:
    return [f"- {_flow(item)}" for item in items] or ["  []"]


def _flow(item: object) -> str:
    return yaml.safe_dump(item, default_flow_style=True, sort_keys=False, allow_unicode=True, width=1_000_000).strip()
