"""Shared code of the command line: arguments of many commands, options of all commands, tables, function calls.

A command passes its tables, and the names of files that it made, to `sqa.results.show` and `show_lines`.  These print
TSV in a pipe, aligned columns on a terminal, and JSON or LaTeX with `--json` and `--latex`.  Messages go to stderr:
`-q` suppresses them except errors.
"""

import io
import sys
from collections.abc import Iterable
from contextlib import nullcontext, redirect_stderr
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.main import get_command

from sqa.core import CONFIGS, config_file
from sqa.results import printing, show_lines

SETTINGS: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


def option(shown: str, meaning: str | None = None, **more: Any) -> Any:
    """Return an option declared as in its help: its names, then the name of its value, as in "--output FILE"."""
    names = [word for word in shown.split() if word.startswith("-")]
    metavar = shown.removeprefix(" ".join(names)).strip() or None
    return typer.Option(*names, metavar=metavar, help=meaning, **more)


def argument(shown: str, meaning: str | None = None, show_default: bool = False, **more: Any) -> Any:
    """Return an argument declared as in its help: "RUN", "RUN..." for several, "[RUN]" for an optional one."""
    return typer.Argument(metavar=shown, help=meaning, show_default=show_default, **more)


Config = Annotated[
    Path,
    argument(
        "CONFIG",
        "A YAML file, or the name of a bundled config.",
        callback=lambda path: None if path is None else config_file(path),
        autocompletion=lambda: [path.stem for path in sorted(CONFIGS.glob("*.yaml"))],
    ),
]
Overrides = Annotated[
    list[str] | None, argument("[KEY=VALUE]...", "Values that replace keys of the file: k=9 guesser.name=gru.")
]
Runs = Annotated[Path, option("--runs DIR", "Folder of the results and of the stored stages.", file_okay=False)]
Limit = Annotated[int | None, option("--limit N", "Use only the first N questions (N >= 1).", show_default=False)]
Json = Annotated[bool, option("--json", "Print JSON instead of TSV.")]
RunFolder = Annotated[Path, argument("RUN", "The folder of a finished run.")]
Metrics = Annotated[list[str] | None, option("--metric NAME", "Metric to compare; may be repeated.  Default: all.")]
Resamples = Annotated[int, option("--resamples N", "Number of resamples of the questions.")]
Levels = Annotated[
    str,
    option(
        "--over LEVELS",
        "Sources of variation in the intervals: questions[,guesser][,training][,KEY], such as translator.seed.",
    ),
]
SchedulerOption = Annotated[
    str | None, option("--scheduler WHERE", "local[:N], tcp://HOST:PORT or slurm:FILE.yaml; see docs/cluster.md.")
]
StoreOption = Annotated[
    Path | None,
    option("--store DIR", "Folder of the stored blocks with --scheduler; default: --runs.", file_okay=False),
]
Workers = Annotated[int | None, option("--workers N", "Number of processes; default: one for each processor.", min=1)]
Output = Annotated[Path | None, option("--output FILE", "Output file; default: stdout.", show_default=False)]
Delays = Annotated[
    Literal["auto", "text", "speech"], option("--source", "Unit of delays: words of text, or milliseconds of speech.")
]
Segmentation = Annotated[
    Path | None, option("--segments FILE", "Cut whole recordings into these segments first, with SoftSegmenter.")
]
DEFAULT_RUNS = Path("runs")


def say(*lines: object) -> None:
    """Print lines to stderr, each prefixed with `sqa: `."""
    for line in lines:
        print(f"sqa: {line}", file=sys.stderr)


def write_lines(lines: Iterable[str], output: Path | None) -> None:
    """Write lines to a file and print its name, or print the lines."""
    from sqa.files import write_text

    if output is None:
        sys.stdout.writelines(f"{line}\n" for line in lines)
    else:
        write_text(output, "".join(f"{line}\n" for line in lines))
        show_lines(output)


def call(target: str, *arguments: Any) -> None:
    """Call "module:function"; an int that the function returns is the exit code."""
    module, _, function = target.partition(":")
    code = getattr(import_module(module), function)(*arguments)
    if isinstance(code, int) and code:
        raise typer.Exit(code)


# ------------------------------------------------------------------------------------------ options of all commands

PROTOCOLS = {"serve", "client", "scorer"}  # commands whose stdout is read by other programs, so they print no tables
OWN_TEXT = {  # commands that print text in a format of their own instead of tables
    ("export",),
    *(("questions", name) for name in ("show", "make")),
    *(("board", name) for name in ("examples", "register-dataset", "register-model")),
    ("config", "schema"),
    ("validate", "vist"),
}
JSON, LATEX, QUIET = ("--json",), ("--latex",), ("-q", "--quiet")
FORMATS = (JSON, LATEX)
FLAGS = {  # names of an option -> its help
    JSON: "Print JSON instead of TSV.",
    LATEX: "Print LaTeX (booktabs).",
    QUIET: "Print only errors on stderr.",
}


def equip(group: Any, parents: tuple[str, ...] = ()) -> Any:
    """Add the option -q to the commands of a group, and --json and --latex to those that print tables."""
    for name, command in group.commands.items():
        full_name = (*parents, name)
        if hasattr(command, "commands"):
            equip(command, full_name)
        elif not command.context_settings.get("ignore_unknown_options"):  # their arguments belong to other programs
            _equip(command, full_name[0] not in PROTOCOLS and full_name not in OWN_TEXT)
    return group


def _equip(command: Any, tables: bool) -> None:
    declared = {name for param in command.params for name in param.opts}
    command.params += [flags()[names] for names in (*(FORMATS if tables else ()), QUIET) if not declared & {*names}]
    invoke = command.invoke

    def shown(context: Any) -> Any:
        style = next((names[0][2:] for names in FORMATS if names[-1] in context.meta), "")
        style = style or ("aligned" if tables and sys.stdout.isatty() else "tsv")
        with redirect_stderr(io.StringIO()) if QUIET[-1] in context.meta else nullcontext(), printing(style):
            return invoke(context)

    command.invoke = shown


@cache
def flags() -> dict[tuple[str, ...], Any]:
    """Return the options of FLAGS by their names; `_equip` reads them, and the functions of commands do not."""

    def declared(names: tuple[str, ...]) -> Any:
        def keep(context: typer.Context, wanted: bool) -> None:
            if wanted:
                context.meta[names[-1]] = True

        return typer.Option(*names, expose_value=False, callback=keep, help=FLAGS[names])

    def holder(
        json: Annotated[bool, declared(JSON)] = False,
        latex: Annotated[bool, declared(LATEX)] = False,
        quiet: Annotated[bool, declared(QUIET)] = False,
    ) -> None:
        """Hold the options, which typer makes from the signature."""

    alone = typer.Typer(add_completion=False)
    alone.command()(holder)
    return dict(zip(FLAGS, get_command(alone).params, strict=True))
