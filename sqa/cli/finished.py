"""The commands of many runs and of finished ones: sweeping, comparing, taking them out to other programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

import typer

from sqa.cli.options import (
    DEFAULT_RUNS,
    SETTINGS,
    Config,
    Json,
    Limit,
    Metrics,
    Resamples,
    RunFolder,
    Runs,
    SchedulerOption,
    StoreOption,
    print_table,
)
from sqa.cli.runs import set_threads
from sqa.core.errors import ConfigError

finished_app = typer.Typer(**SETTINGS)

Axes = Annotated[
    list[str],
    typer.Argument(metavar="KEY=VALUE,VALUE...", help="A run for each: k=3,6,9 guesser=bm25,gru.", show_default=False),
]
Output = Annotated[
    Path | None, typer.Option("--output", metavar="FILE", help="Where to; default: stdout.", show_default=False)
]
Unit = Annotated[Literal["sentence", "question"], typer.Option("--unit", help="What a line is.")]


@finished_app.command()
def sweep(
    config: Config,
    axes: Axes,
    runs: Runs = DEFAULT_RUNS,
    scheduler: SchedulerOption = None,
    store: StoreOption = None,
    as_json: Json = False,
) -> None:
    """A run for every combination of the values, each in its own folder; print their scores side by side."""
    set_threads(config, axes)
    from sqa.run import overrides as keys
    from sqa.run import sweep as sweeps
    from sqa.run.scheduler import scheduled

    combinations = keys.grid(config, keys.parsed_axes(axes))
    print(f"sqa: {len(combinations)} runs", file=sys.stderr)
    with scheduled(scheduler, runs, store):
        swept = list(sweeps.run_all(combinations, runs))
    for result in swept:
        for name, reason in result.refusals.items():
            print(f"sqa: {result.folder}: {name}: no value: {reason}", file=sys.stderr)
    header, rows = sweeps.table(swept)
    objects = [
        {
            "run": str(result.folder),
            "keys": {override.key: override.value for override in result.chosen},
            "report": [asdict(row) for row in result.rows],
        }
        for result in swept
    ]
    print_table(header, rows, as_json, objects)


@finished_app.command()
def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN RUN...", help="Folders of finished runs.", show_default=False)
    ],
    metrics: Metrics = None,
    resamples: Resamples = 1000,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="DIR", help="Also write the table, pictures and LaTeX there.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Paired differences A - B over the same questions, 95% intervals, two-sided p-values; of more runs each two."""
    from sqa.report import comparison
    from sqa.run import folder as folders
    from sqa.run import paired

    pairs, notes = comparison.compare_all([folders.read(run) for run in runs], metrics or (), resamples)
    for note in notes:
        print(f"sqa: {note}", file=sys.stderr)
    if len(runs) == 2:
        rows = [pair.row for pair in pairs]
        print_table(paired.COMPARISON_HEADER, [row.cells() for row in rows], as_json, [asdict(row) for row in rows])
    else:
        print_table(comparison.HEADER, [pair.cells() for pair in pairs], as_json, [pair.values() for pair in pairs])
    for path in comparison.write(pairs, output) if output else ():
        print(f"sqa: {path}", file=sys.stderr)


@finished_app.command()
def export(
    run: RunFolder,
    to: Annotated[
        Literal["text", "instances.log", "jsonl", "csv", "parquet", "submission"],
        typer.Option("--to", help="Lines; SimulEval's log; a line a question; a row a step; what the board takes."),
    ],
    side: Annotated[
        Literal["hypotheses", "references", "sources"], typer.Option("--side", help="Of --to text: which lines.")
    ] = "hypotheses",
    unit: Unit = "sentence",
    output: Output = None,
) -> None:
    """A finished run for other programs: text for sacrebleu, a log for SimulEval (--output: its folder), steps."""
    from sqa.files.atomic import atomic
    from sqa.run import export as out
    from sqa.run.folder import open_run

    traces = open_run(run).traces
    if to == "instances.log":
        print(import_module("smt.engines.instances").write_instances(traces, output or run / "simuleval", unit))
    elif to == "parquet":
        path = output or run / "steps.parquet"
        with atomic(path) as partial:
            partial.write_bytes(out.parquet(traces))
        print(path)
    else:
        _write(out.lines(traces, to, side, unit), output)


@finished_app.command()
def questions(
    name: Annotated[
        str, typer.Argument(metavar="QUESTIONS", help="A question set's name or file.", show_default=False)
    ],
    by_question: Annotated[bool, typer.Option("--questions/--sentences", help="What a line is.")] = False,
    references: Annotated[bool, typer.Option("--references", help="The human translations, not the sources.")] = False,
    pairs: Annotated[bool, typer.Option("--pairs", help="Both, with a tab between: what trainings read.")] = False,
    limit: Limit = None,
    output: Output = None,
) -> None:
    """The lines of a question set, as SimulEval's --source wants them; --references those of its --target."""
    from sqa.data.datasets import load_questions
    from sqa.run.export import Part, question_texts

    if pairs and references:
        raise ConfigError("--pairs: has the references already; leave --references out")
    part: Part = "pairs" if pairs else "references" if references else "sources"
    _write(question_texts(load_questions(name, limit), part, "question" if by_question else "sentence"), output)


def _write(lines: Iterable[str], output: Path | None) -> None:
    from sqa.files.atomic import write_text

    if output is None:
        sys.stdout.writelines(f"{line}\n" for line in lines)
    else:
        write_text(output, "".join(f"{line}\n" for line in lines))
        print(output)
