"""Read a run's folder, which sqa/pipeline/saving.py writes."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct, ValidationError, convert

from sqa.core import ConfigError, DataError, Question, did_you_mean, scores_rows
from sqa.core.trace import SCORES
from sqa.files import Store, Traces, blocks_of, bytes_digest, parse_json
from sqa.files.store import read_table
from sqa.pipeline.config import RunConfig, run_in
from sqa.pipeline.engine import BLOCK_SIZE, EMPTY_SENTENCES
from sqa.pipeline.saving import CONFIG, COUNTED, REPORT, STATS, SUMMARY, stamp
from sqa.results import MEASURED, NOTHING, Row

Key = Annotated[str, Meta(pattern=r"^[0-9A-Za-z_-]+\Z")]  # stage key, a folder name in the store
FileName = Annotated[str, Meta(pattern=r"^[0-9A-Za-z._-]+\Z")]  # name of a file in the run's folder
TRACED = ("translate", "guess", "buzz")  # stages with rows in a trace


class _Summary(Struct):
    """The keys of SUMMARY that are read."""

    dataset: str
    signatures: dict[str, str]
    refusals: dict[str, str]
    files: dict[FileName, str]  # name -> digest
    settings: dict[str, str] = {}
    stages: dict[str, Key] = {}  # msgspec copies the default


@dataclass(frozen=True)
class RunFolder:
    """A run's folder as returned by `read`.

    Questions and traces come from the store beside the folder when they are needed; no model is loaded, and nothing is
    computed.
    """

    folder: Path
    config: RunConfig
    dataset: str  # fingerprint of the questions
    signatures: dict[str, str]  # metric -> its own signature; only metrics with a value
    stats: dict[str, np.ndarray]  # metric -> array of shape (questions, d)
    ids: tuple[str, ...]  # ids of the questions, in order
    refusals: dict[str, str] = field(default_factory=dict)  # metric -> reason for a missing value
    stages: dict[str, str] = field(default_factory=dict)  # stage -> store key
    settings: dict[str, str] = field(default_factory=dict)  # the rest of every signature (`saving.signed`)
    report: dict[str, Row] = field(default_factory=dict)  # metric -> row of the report, rounded to six digits

    @property
    def counts(self) -> dict[str, int]:
        """The report's counts by name.  Raises DataError if EMPTY_SENTENCES is missing."""
        counts = {name: int(row.value) for name, row in self.report.items() if row.unit in COUNTED}
        if EMPTY_SENTENCES not in counts:
            raise DataError(f"{self.folder / REPORT}: has no line {EMPTY_SENTENCES}; run the config again")
        return counts

    @cached_property
    def questions(self) -> list[Question]:
        """The questions.  Raises DataError if the store lacks them."""
        return self._store.kept(self.dataset)

    @cached_property
    def traces(self) -> Traces:
        """The traces, read from the store block by block.

        Raises DataError if the store lacks the questions or the run's stages, or has a different schema.
        """
        if "translate" not in self.stages:
            raise DataError(f"{self.folder / SUMMARY}: names no stages; run the config again")
        stages = {name: self._store.stage(name, self.stages[name]) for name in TRACED if name in self.stages}
        return Traces(self._store, blocks_of(self.questions, BLOCK_SIZE), stages)

    @property
    def _store(self) -> Store:
        return Store(self.folder.resolve().parent)

    def indices(self, wanted: Collection[str], option: str = "") -> list[int]:
        """Return the indices of the questions with these ids (none: all), in order.

        Raises ConfigError, whose message begins with `option`, for an unknown id.
        """
        for id in wanted:
            if id not in self.ids:
                raise ConfigError(f"{option}{id!r} is not a question of {self.folder}{did_you_mean(id, self.ids)}")
        return [index for index, id in enumerate(self.ids) if not wanted or id in wanted]


def read_row(cells: Sequence[str], nothing: str = NOTHING) -> Row:
    """Return a row from the cells of a line; the last columns are MEASURED.  Raises ValueError for invalid cells."""
    *cell, metric, first, second, third, n, unit, signature = cells
    value, low, high = (None if number == nothing else float(number) for number in (first, second, third))
    return Row(tuple(cell), metric, value, low, high, int(n), unit, signature)


def _report(path: Path, data: bytes) -> dict[str, Row]:
    """Return the rows of a report by metric.  Raises DataError if the file is damaged."""
    try:
        header, *lines = data.decode().removesuffix("\n").split("\n")
        if header.split("\t") != list(MEASURED):
            raise ValueError("not the header of a report")
        rows = [_report_row(line) for line in lines]
    except ValueError as error:
        raise DataError(f"{path}: damaged ({error}); run the config again") from error
    return {row.metric: row for row in rows}


def _report_row(line: str) -> Row:
    """Parse a line of a report.  Raises ValueError if the line is invalid."""
    row = read_row(line.split("\t", len(MEASURED) - 1))
    if not all(math.isfinite(number) for number in (row.value, row.low, row.high) if number is not None):
        raise ValueError(f"{row.metric}: no finite number")
    return replace(row, value=int(row.value)) if row.value is not None and row.unit in COUNTED else row


def read(folder: Path) -> RunFolder:
    """Read a run's folder.

    Raises ConfigError for a folder without a finished run, and DataError for a damaged file or a file of another
    run.
    """
    for name in (CONFIG, SUMMARY, STATS):
        if not (folder / name).is_file():
            problem = f"is not the folder of a finished run (no {name})"
            raise ConfigError(f"{folder}: {problem}; create one with `sqa run CONFIG`")
    try:
        summary = convert(parse_json(_bytes_of(folder / SUMMARY, {})), _Summary)
    except (ValueError, ValidationError) as error:
        raise DataError(f"{folder / SUMMARY}: damaged ({error}); run the config again") from error
    names = {CONFIG, STATS, REPORT, *summary.files}
    data = {name: _bytes_of(folder / name, summary.files) for name in sorted(names)}
    config = run_in(data[CONFIG], str(folder / CONFIG), folder)
    scores = scores_rows(read_table(folder / STATS, SCORES, stamp(summary.dataset), lambda path: data[path.name]))
    report = _report(folder / REPORT, data[REPORT])
    signatures = {name: signature for name, signature in summary.signatures.items() if name not in summary.refusals}
    lacking = sorted(name for name in signatures if not all(name in row for row in scores.values()))
    if lacking:
        problem = f"{STATS} has no statistics of {lacking[0]!r:.80}"
        raise DataError(f"{folder / SUMMARY}: damaged ({problem}); run the config again")
    rows = {name: [row[name].stats for row in scores.values()] for name in signatures}
    stats = {name: np.array(row, dtype=np.float64) for name, row in rows.items()}
    about = (summary.refusals, summary.stages, summary.settings)
    return RunFolder(folder, config, summary.dataset, signatures, stats, tuple(scores), *about, report)


def _bytes_of(path: Path, digests: Mapping[str, str]) -> bytes:
    """Return a file's bytes.  Raises DataError if the file is missing or its digest differs from the listed one."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); run the config again") from error
    if digests.get(path.name, digest := bytes_digest(data)) != digest:
        problem = "damaged, changed, or from another run than the folder's other files"
        raise DataError(f"{path}: {problem}; run the config again")
    return data


def open_run(folder: Path) -> RunFolder:
    """Return the run that `sqa run` wrote to `folder`, after a check that the store has its traces."""
    run = read(folder)
    _ = run.traces
    return run
