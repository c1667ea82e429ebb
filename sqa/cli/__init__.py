"""The `sqa` command, which joins one module per group of commands.

stdout has data (TSV in a pipe, columns on a terminal, JSON with --json, LaTeX with --latex: `sqa.cli.options`), and
stderr has messages and progress bars.  Exit codes: 0 ok, 1 a check failed, 2 usage or config, 3 data.  A command is
imported when it is called (`COMMANDS` in sqa/core/registry.py), and imports its dependencies when it runs.
"""

import os
import sys
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from sqa import __version__
from sqa.cli.options import QUIET, SETTINGS, equip, flags, option, say
from sqa.core import COMMANDS, ConfigError, SqaError, on_a_screen
from sqa.core.paths import PACKAGES
from sqa.core.process import CHILD
from sqa.core.registry import more_parts

INTERRUPTED = 130  # exit code of a shell after Ctrl-C
PANELS = {  # help lists commands by task; commands of plugins that are not named here come last
    "Start": ("init", "doctor", "config", "questions", "data"),
    "Evaluate": ("run", "sweep", "latency", "ask"),
    "Compare": ("compare", "report", "correlate"),
    "Look": ("view", "diagnose", "export"),
    "Train": ("train",),
    "Serve": ("serve", "client", "scorer", "validate", "board"),
    "Reproduce": ("reproduce", "ablation", "results"),
}
GOES_ON = {"run", "sweep", "ablation", "reproduce", "train"}


class Program(TyperGroup):
    """Group of all registered commands, including those of plugins, each imported when it is called or listed."""

    def list_commands(self, ctx: Any) -> list[str]:
        for name in COMMANDS.names():
            self._load(name)
        return [name for name in COMMANDS.entries if name in self.commands]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands by task, each with the first sentence of its help; no command is built for this."""
        apps = {name: app for name in COMMANDS.names() if (app := _app_of(name))}
        others = [name for name in apps if not any(name in panel for panel in PANELS.values())]
        for panel, listed in {**PANELS, "More": others}.items():
            if rows := [(name, _summary(apps[name])) for name in listed if name in apps]:
                with formatter.section(panel):
                    formatter.write_dl(rows, col_max=18)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS.entries:
            self.list_commands(ctx)  # for commands of plugins and suggestions
        self._load(cmd_name)
        if cmd_name not in self.commands:
            if cmd_name in PANELS["Serve"] and (missing := more_parts()):
                raise ConfigError(f"the command {cmd_name!r} is not installed{missing}")
        return super().get_command(ctx, cmd_name)

    def _load(self, name: str) -> None:
        """Import a command and add the common options."""
        if name not in self.commands and name in COMMANDS.entries and (one := _app_of(name)):
            whole = typer.Typer(**SETTINGS)
            whole.add_typer(one, name=name if one.info.help else None)
            self.commands.update(equip(get_command(whole)).commands)


def _app_of(name: str) -> typer.Typer | None:
    """Return a group of commands, or an app with a single command; None, with a message, if the import fails."""
    try:
        group: Any = COMMANDS.resolve(name)
    except SqaError as error:
        say(error)
        return None
    commands = [each for each in group.registered_commands if (each.name or each.callback.__name__) == name]
    alone = typer.Typer()
    alone.registered_commands = commands
    return alone if commands else group


def _summary(one: typer.Typer) -> str:
    """Return the first sentence of the help of a group or of a single command."""
    text = one.info.help or one.registered_commands[0].callback.__doc__
    return f"{' '.join(str(text).split()).partition('. ')[0].rstrip('.')}."


app = typer.Typer(help="Simultaneous translation evaluated by question answering.", cls=Program, **SETTINGS)


@cache
def program() -> Any:
    """Return the `sqa` command; -q is also accepted before the subcommand: `sqa -q run` is `sqa run -q`."""
    command = get_command(app)
    command.params.append(flags()[QUIET])
    return command


def main() -> None:
    """Run the console script; deliberate errors give one line per problem on stderr and no traceback."""
    _use_utf8()
    try:
        program()(prog_name="sqa")
    except SystemExit as end:
        if end.code == INTERRUPTED and GOES_ON & set(sys.argv[1:3]):
            say("interrupted; finished results are stored: run the same command again to continue")
        raise
    except SqaError as error:
        say(*str(error).splitlines())
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in PACKAGES:
            raise
        from sqa.core import lacking

        say(lacking(error))
        sys.exit(2)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        say(on_a_screen(f"{where}{error.strerror or error}"))
        sys.exit(3)


def _use_utf8() -> None:
    """Read and write UTF-8 on the standard streams of this process, and in the child programs that it starts."""
    os.environ.update(CHILD)
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        getattr(stream, "reconfigure", dict)(encoding="utf-8")  # a caller's stream may be no file


def _version(wanted: bool) -> None:
    if wanted:
        print(f"sqa {__version__}")
        raise typer.Exit


@app.callback()
def callback(
    version: Annotated[
        bool, option("--version", "Print the version and stop.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Handle options before the command."""
