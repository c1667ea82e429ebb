"""Shared code of the command line: arguments of many commands, options of all commands, tables, function calls.

A command passes its tables, and the names of files that it made, to `sqa.results.show` and `show_lines`.  These print
TSV in a pipe, aligned columns on a terminal, and JSON or LaTeX with `--json` and `--latex`.  Messages go to stderr:
`-q` suppresses them except errors, and `-v` adds more.
"""

import contextlib
import io
import os
import resource
import sys
import time
from collections.abc import Iterator
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main

from sqa import __version__
from sqa.core.paths import CONFIGS, config_file
from sqa.results import printing

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
DEFAULT_RUNS = Path("runs")


def say(*lines: object) -> None:
    """Print lines to stderr, each prefixed with `sqa: `."""
    for line in lines:
        print(f"sqa: {line}", file=sys.stderr)


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
_META = "sqa.output"  # key of the common options' values in the context
_VERBOSE: ContextVar[bool] = ContextVar("verbose", default=False)


def equip(group: Any, parents: tuple[str, ...] = ()) -> Any:
    """Add the options -q and -v to all commands of a group, and --json and --latex to those that print results."""
    for name, command in group.commands.items():
        full_name = (*parents, name)
        if hasattr(command, "commands"):
            equip(command, full_name)
        elif not command.context_settings.get("ignore_unknown_options"):  # their arguments belong to other programs
            _equip(command, tables_too=full_name[0] not in PROTOCOLS and full_name not in OWN_TEXT)
    return group


def _equip(command: Any, tables_too: bool) -> None:
    declared = {name for param in command.params for name in param.opts}
    wanted = frozenset({"-q", "-v", *(["--latex", "--json"] if tables_too else [])} - declared)
    command.params += common_options(wanted)
    invoke = command.invoke

    def shown(context: Any) -> Any:
        options = context.meta.get(_META, {})
        style = next((style for style in ("json", "latex") if options.get(style)), "")
        style = style or ("aligned" if tables_too and sys.stdout.isatty() else "tsv")
        with _talk(bool(options.get("quiet")), bool(options.get("loud"))), printing(style):
            return invoke(context)

    command.invoke = shown


def _keep(context: typer.Context, param: typer.CallbackParam, value: bool) -> bool:
    """Store an option's value for `_equip`; the command's function does not receive it."""
    if value:
        context.meta.setdefault(_META, {})[param.name] = value
    return value


@cache
def common_options(wanted: frozenset[str]) -> tuple[Any, ...]:
    """Return the common options named in `wanted`; `context.meta` passes their values on to subcommands."""

    def flag(names: str, meaning: str) -> Any:
        return option(names, meaning, callback=_keep, expose_value=False)

    def common(
        json: Annotated[bool, flag("--json", "Print JSON instead of TSV.")] = False,
        latex: Annotated[bool, flag("--latex", "Print LaTeX (booktabs).")] = False,
        quiet: Annotated[bool, flag("-q --quiet", "Print only errors on stderr.")] = False,
        loud: Annotated[bool, flag("-v --verbose", "Print more on stderr.")] = False,
    ) -> None: ...

    app = typer.Typer(add_completion=False)
    app.command()(common)
    return tuple(param for param in typer.main.get_command(app).params if wanted & set(param.opts))


@contextlib.contextmanager
def _talk(quiet: bool, loud: bool) -> Iterator[None]:
    """Suppress messages on stderr (`quiet`), or add version, time and memory (`loud`)."""
    if quiet:
        with contextlib.redirect_stderr(io.StringIO()):
            yield
        return
    start, processor = time.perf_counter(), time.process_time()
    if loud:
        threads = os.environ.get("OMP_NUM_THREADS", "as chosen by the libraries")
        say(f"version {__version__}, Python {sys.version.split()[0]}, threads: {threads}")
    token = _VERBOSE.set(loud)
    try:
        yield
    finally:
        _VERBOSE.reset(token)
    if loud:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # KiB on Linux
        wall, used = time.perf_counter() - start, time.process_time() - processor
        say(f"{wall:.1f} s, {used:.1f} s of processor time, at most {peak:.0f} MiB")


def verbose(line: str) -> None:
    """Print a line with `say` if `-v` is given."""
    if _VERBOSE.get():
        say(line)
