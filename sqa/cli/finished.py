"""Commands for several runs and finished runs: sweep, compare, export."""

from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

import typer

from sqa.cli import options
from sqa.cli.options import SETTINGS, argument, option, say
from sqa.cli.runs import set_threads
from sqa.results import Frame, Table, show, show_lines

finished_app = typer.Typer(**SETTINGS)

Axes = Annotated[list[str], argument("KEY=VALUE,VALUE...", "Values to combine: k=3,6,9 guesser=bm25,gru.")]
Unit = Annotated[Literal["sentence", "question"], option("--unit", "Unit of a line.")]


@finished_app.command()
def sweep(
    config: options.Config,
    axes: Axes,
    runs: options.Runs = options.DEFAULT_RUNS,
    workers: options.Workers = None,
    scheduler: options.SchedulerOption = None,
    store: options.StoreOption = None,
) -> None:
    """Run every combination of values, and compare the scores."""
    set_threads(config, axes)
    from sqa.pipeline import overrides as keys
    from sqa.pipeline import run_all, scheduled

    given = keys.parsed_axes(axes)
    chosen, configs = zip(*keys.grid(config, given), strict=True)
    say(f"{len(configs)} runs")
    with scheduled(scheduler, runs, store):
        swept = run_all(configs, runs, workers=workers)
    for result in swept:
        say(*(f"{result.folder}: {name}: no value: {reason}" for name, reason in result.refusals.items()))
    folders, reports = [str(result.folder) for result in swept], [result.report for result in swept]
    objects = [
        {"run": folder, "keys": values, "report": Frame((), tuple(report.values())).table().to_objects()}
        for folder, values, report in zip(folders, chosen, reports, strict=True)
    ]
    varied = [key for key, values in given.items() if len(values) > 1]
    metrics = list(dict.fromkeys(metric for report in reports for metric in report))
    rows = []
    for folder, values, report in zip(folders, chosen, reports, strict=True):
        numbers = [report[metric].value if metric in report else None for metric in metrics]
        rows.append([folder, *(keys.in_yaml(values[key]) for key in varied), *numbers])
    show(Table(["run", *varied, *metrics], rows), objects)


@finished_app.command()
def compare(
    runs: Annotated[list[Path], argument("RUN RUN...", "Folders of finished runs.")],
    metrics: options.Metrics = None,
    resamples: options.Resamples = 1000,
    over: options.Levels = "questions",
) -> None:
    """Compare runs by paired differences over the same questions.

    Differences are A - B, with 95% intervals and two-sided p-values, for every pair of runs.  With further
    levels, runs that differ only in guesser and buzzer, or in the translator's model, are members of one system.  The
    first system minus the second is shown, and their members are resampled, too.
    """
    from sqa.pipeline import folder as folders
    from sqa.pipeline import paired
    from sqa.report import data

    if over != "questions":
        return show(paired.compare_over([folders.read(run) for run in runs], over, resamples, metrics or ()))
    table, notes = data.compare_all([folders.read(run) for run in runs], metrics or (), resamples)
    say(*notes)
    show(table)


@finished_app.command()
def export(
    run: options.RunFolder,
    to: Annotated[
        Literal["text", "instances.log", "jsonl", "csv", "submission", "pearmut"],
        option(
            "--to",
            "text: lines; instances.log: for SimulEval; jsonl: a line per question; csv: a row per step; "
            "submission: for a board; pearmut: flagged words for annotators.",
        ),
    ],
    side: Annotated[
        Literal["hypotheses", "references", "sources"], option("--side", "With --to text: the lines to write.")
    ] = "hypotheses",
    unit: Unit = "sentence",
    output: options.Output = None,
) -> None:
    """Export a run for other programs.

    Formats are text for sacrebleu, a log for SimulEval (--output names its folder), tables of steps, and the error
    spans of `sqa diagnose` for Pearmut.
    """
    from sqa.pipeline import export as out
    from sqa.pipeline import open_run

    if to == "pearmut":
        return options.write_lines([import_module("sqa.diagnose.pearmut").campaign(open_run(run))], output)
    traces = open_run(run).traces
    if to == "instances.log":
        show_lines(out.write_instances(traces, output or run / "simuleval", unit))
    else:
        options.write_lines(out.lines(traces, to, side, unit), output)
