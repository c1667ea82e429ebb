"""Many runs of one config: `sqa sweep x.yaml k=3,6,9 guesser=bm25,gru`, and `sqa.Experiment`.

The runs share questions, models and the store, so a common translation is made once.  Their blocks are distributed
over the processes of this machine, or over the workers of a scheduler (sqa/pipeline/spread.py).
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from sqa.core import progress as progress_bars
from sqa.files.store import Store
from sqa.pipeline import engine, saving
from sqa.pipeline.config import RunConfig
from sqa.pipeline.overrides import Override
from sqa.pipeline.parts import Parts
from sqa.pipeline.spread import Job, spread


@dataclass(frozen=True, slots=True)
class Swept:
    """One run of a sweep."""

    chosen: tuple[Override, ...]
    folder: Path
    rows: tuple[saving.ReportRow, ...]  # its report
    refusals: dict[str, str]  # metric -> why it has no value

    def values(self) -> dict[str, float | None]:
        """metric -> value, of the report's rows."""
        return {row.metric: row.value for row in self.rows}


def run_all(
    combinations: Iterable[tuple[tuple[Override, ...], RunConfig]],
    runs: Path,
    progress: bool = True,
    workers: int | None = None,
) -> Iterator[Swept]:
    """Run each config, write its folder, and yield the runs in order; reuse the store's results.

    progress: show one bar that counts runs.  workers: as in `spread`.
    """
    combinations = list(combinations)
    jobs = [Job(config, partial(_finish, chosen, runs / config.name, config)) for chosen, config in combinations]
    done: dict[int, Swept] = {}
    bar = progress_bars.bar("sweep", len(jobs), unit="run") if progress else nullcontext()
    with bar as shown:
        for index, (run, files) in spread(jobs, Store(runs), workers):
            saving.unpack(files, run.folder)
            done[index] = run
            if shown is not None:
                shown.update()
    yield from (done[index] for index in range(len(jobs)))


def _swept(chosen: tuple[Override, ...], folder: Path, result: engine.RunResult) -> Swept:
    return Swept(chosen, folder, tuple(saving.report_rows(result)), dict(result.refusals))


def _finish(
    chosen: tuple[Override, ...], folder: Path, config: RunConfig, store: Store, parts: Parts
) -> tuple[Swept, dict[str, bytes]]:
    """On a worker, when all blocks of a run are in the store: its report, and the files of its folder."""
    result = engine.run(config, store, parts=parts, progress=False)
    return _swept(chosen, folder, result), saving.pack(result)


def table(swept: Sequence[Swept]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: the run's folder, a column a key that varies, a column a metric (the value, "n/a" for none)."""
    by_key: dict[str, set[str]] = {}
    for override in (override for run in swept for override in run.chosen):
        by_key.setdefault(override.key, set()).add(_text(override.value))
    keys = [key for key, values in by_key.items() if len(values) > 1]
    metrics = list(dict.fromkeys(row.metric for run in swept for row in run.rows))
    rows = []
    for run in swept:
        cells = {row.metric: row.cells()[1] for row in run.rows}
        values = [_text(override.value) for override in run.chosen if override.key in keys]
        rows.append([str(run.folder), *values, *(cells.get(metric, "n/a") for metric in metrics)])
    return ["run", *keys, *metrics], rows


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(Override("", value)).removeprefix("=")
