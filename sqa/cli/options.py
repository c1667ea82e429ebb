"""What the modules of the command line share: settings, common arguments, and calling a command's function lazily."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from sqa.core.paths import CONFIGS, config_file

SETTINGS: dict[str, Any] = {"no_args_is_help": True, "rich_markup_mode": None, "pretty_exceptions_enable": False}

Config = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG",
        help="A YAML file, or the name of a bundled config.",
        show_default=False,
        callback=lambda path: None if path is None else config_file(path),
        autocompletion=lambda: [path.stem for path in sorted(CONFIGS.glob("*.yaml"))],
    ),
]
Runs = Annotated[Path, typer.Option("--runs", metavar="DIR", help="Where results and the store of stages lie.")]
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", help="Take the first N questions only (N >= 1).", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of TSV.")]
Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Files by name; all when none is given.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished run.", show_default=False)]
QuestionIds = Annotated[
    list[str] | None, typer.Option("--questions", metavar="ID", help="This question only; may be repeated.")
]
Priors = Annotated[Path | None, typer.Option("--priors", metavar="DIR", help="Priors of the word aligner.")]
Fresh = Annotated[bool, typer.Option("--fresh/--resume", help="Start anew, or go on from the last checkpoint.")]
Metrics = Annotated[
    list[str] | None, typer.Option("--metric", metavar="NAME", help="Compared; all when none is given.")
]
Resamples = Annotated[int, typer.Option("--resamples", metavar="N", help="Of the questions.")]
Host = Annotated[str, typer.Option("--host", help="Beyond loopback a token is needed.")]
Port = Annotated[int, typer.Option("--port", metavar="N")]
HostNames = Annotated[
    list[str] | None,
    typer.Option("--name", metavar="HOST", help="A host name it is asked by; repeatable. Beyond loopback, none: any."),
]
MaxBody = Annotated[int, typer.Option("--max-body", metavar="BYTES", help="Of a request.")]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        "--scheduler", metavar="WHERE", help="local[:N], tcp://HOST:PORT or slurm:FILE.yaml; see docs/cluster.md."
    ),
]
StoreOption = Annotated[
    str | None,
    typer.Option("--store", metavar="URL", help="Blocks of --scheduler: a folder or s3://...; default --runs."),
]
DEFAULT_RUNS = Path("runs")


def print_table(
    header: Sequence[str],
    rows: Iterable[Sequence[Any]],
    as_json: bool = False,
    objects: Sequence[dict[str, Any]] | None = None,
) -> None:
    """Data to stdout: TSV with a header, or a JSON list of objects; None: the rows by the names of the header."""
    if as_json:
        objects = [dict(zip(header, row, strict=True)) for row in rows] if objects is None else objects
        print(json.dumps(objects, indent=2, ensure_ascii=False))
        return
    for cells in (header, *rows):
        print("\t".join(str(cell).replace("\t", " ").replace("\n", " ") for cell in cells))


def call(target: str, *arguments: Any) -> None:
    """Call "module:function"; an int it returns is the exit code."""
    module, _, function = target.partition(":")
    code = getattr(import_module(module), function)(*arguments)
    if isinstance(code, int) and code:
        raise typer.Exit(code)
