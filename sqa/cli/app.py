"""The `sqa` command.

stdout is data (TSV in a pipe, columns on a terminal, JSON with --json, LaTeX with --latex: `sqa.cli.output`); stderr is
talk and progress bars.  Exit codes: 0 ok, 1 a check failed, 2 usage or config, 3 data.  Every command imports what it
needs when it runs, so that `sqa --help` is quick.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from sqa import __version__
from sqa.cli.curves import curve_app
from sqa.cli.evidence import evidence_app
from sqa.cli.options import (
    DEFAULT_RUNS,
    SETTINGS,
    Config,
    Fresh,
    Json,
    Names,
    Runs,
    SchedulerOption,
    call,
    print_table,
)
from sqa.cli.output import equip
from sqa.cli.results import results_app
from sqa.cli.runs import runs_app
from sqa.cli.start import config_app, start_app
from sqa.cli.store import store_app
from sqa.core.errors import OF_SERVICES, ConfigError, SqaError, absent, lacking, on_a_screen
from sqa.core.own import plugins
from sqa.core.own.places import PACKAGES
from sqa.core.registry import COMMANDS

INTERRUPTED = 130  # what a shell says of Ctrl-C
GOES_ON = {"run", "translate", "guess", "buzz", "score", "sweep", "ablation", "reproduce", "train"}


class Program(TyperGroup):
    """The commands of this package, and those of plugins, which are imported when one is called or all are listed."""

    def list_commands(self, ctx: Any) -> list[str]:
        self.commands = with_plugins()
        return super().list_commands(ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:
            self.commands = with_plugins()
        if cmd_name not in self.commands and cmd_name in OF_SERVICES[COMMANDS.kind]:
            raise absent(COMMANDS.kind, cmd_name)
        return super().get_command(ctx, cmd_name)


app = typer.Typer(help="Simultaneous translation evaluated by question answering.", cls=Program, **SETTINGS)
data_app = typer.Typer(help="The data files: what there is, getting it, checking it.", **SETTINGS)
train_app = typer.Typer(help="Train a translator, a guesser or a buzzer.", **SETTINGS)
convert_app = typer.Typer(help="Take over models trained elsewhere.", **SETTINGS)
app.add_typer(start_app)
app.add_typer(config_app, name="config")
app.add_typer(runs_app)
app.add_typer(evidence_app)
app.add_typer(results_app, name="results")
app.add_typer(data_app, name="data")
app.add_typer(store_app, name="store")
app.add_typer(train_app, name="train")
app.add_typer(convert_app, name="convert")
app.add_typer(curve_app, name="curve")


@cache
def program() -> Any:
    """The command as it is called: all that is below, with the options that every command has."""
    return equip(get_command(app))


@cache
def with_plugins() -> dict[str, Any]:
    """All commands by name.  One of a plugin that cannot be imported is left out, with a line on stderr."""
    plugins.load()
    for name in COMMANDS.entries:
        try:
            more: Any = COMMANDS.resolve(name)
        except SqaError as error:
            print(f"sqa: {error}", file=sys.stderr)
            continue
        if [command.name for command in more.registered_commands] == [name]:
            app.registered_commands += more.registered_commands
        else:
            app.add_typer(more, name=name)
    return dict(equip(get_command(app)).commands)


def main() -> None:
    """The console script: one line per problem on stderr, never a traceback for a deliberate error."""
    try:
        program()(prog_name="sqa")
    except SystemExit as end:
        if end.code == INTERRUPTED and GOES_ON & set(sys.argv[1:2]):
            print(
                "sqa: interrupted; what is finished is kept, and the same command goes on from there", file=sys.stderr
            )
        raise
    except SqaError as error:
        for line in str(error).splitlines():
            print(f"sqa: {line}", file=sys.stderr)
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in PACKAGES:
            raise
        print(f"sqa: {lacking(error)}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(on_a_screen(f"sqa: {where}{error.strerror or error}"), file=sys.stderr)
        sys.exit(3)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"sqa {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Options before the command."""


# --------------------------------------------------------------------------------------------------------- data


@data_app.command("list")
def data_list(as_json: Json = False) -> None:
    """Every file of the manifest, and whether a copy is here."""
    from sqa.data import download

    header = ("name", "here", "bytes", "records", "licence", "home")
    rows = [
        (e.name, "yes" if download.where(e.name) else "no", e.size, e.records, e.licence, e.home or e.how or "")
        for e in download.entries()
    ]
    print_table(header, rows, [dict(zip(header, row, strict=True)) for row in rows], as_json)


@data_app.command("fetch")
def data_fetch(names: Names = None) -> None:
    """Get files from the mirror or their public home, resuming what was cut off; every byte is checked."""
    from sqa.data import download

    for i, name in enumerate(names or [e.name for e in download.entries() if e.home or download.where(e.name)]):
        path = download.fetch(name)
        print(("" if i else "name\tpath\n") + f"{name}\t{path}", flush=True)


@data_app.command("verify")
def data_verify(names: Names = None, as_json: Json = False) -> None:
    """Read every copy in full and compare it with the manifest.  Exit 3 on a wrong file, or a missing named one."""
    from sqa.data import download

    found = download.verify(names or None)
    header = ("name", "state", "path", "message")
    rows = [(status.entry.name, status.state, str(status.path or ""), status.message) for status in found]
    print_table(header, rows, [dict(zip(header, row, strict=True)) for row in rows], as_json)
    bad = [s for s in found if s.state == "wrong" or (names and s.state != "ok")]
    for status in bad:
        print(f"sqa: {status.entry.name}: {status.message}", file=sys.stderr)
    if bad:
        raise typer.Exit(3)


# ----------------------------------------------------------------------------------------- training and the rest


@train_app.command("smt")
def train_smt(
    config: Config,
    runs: Runs = DEFAULT_RUNS,
    fresh: Fresh = False,
    sweep: Annotated[
        str | None, typer.Option("--sweep", metavar="k=...", help="One model per k: k=3,6,full,multi.")
    ] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", metavar="N", help="Trainings per k (default 1).")] = None,
    scheduler: SchedulerOption = None,
) -> None:
    """Train a translator, or one per k and seed; goes on from the last checkpoint unless told otherwise."""
    from sqa.run.scheduler import scheduled

    if scheduler is not None and sweep is None and seeds is None:
        raise ConfigError("--scheduler: one training is one process; spread many with --sweep k=... or --seeds N")
    with scheduled(scheduler, runs):
        call("smt.train:main", config, runs, fresh, sweep, seeds)


@train_app.command("guesser")
def train_guesser(config: Config) -> None:
    """Train a guesser on the tossups; print its folder."""
    _print_folder(import_module("guessers.train").main(config))


@train_app.command("buzzer")
def train_buzzer(config: Config) -> None:
    """Train a buzzer on the guesses for tossups that the guesser has not seen; print its folder."""
    _print_folder(import_module("buzzers.train").main(config))


def _print_folder(folder: Path) -> None:
    """What a config names as `model:` from now on, and its size."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print_table(("model", "bytes"), [(str(folder), size)], [{"model": str(folder), "bytes": size}], as_json=False)


@convert_app.command("fairseq")
def convert_fairseq(
    checkpoint: Annotated[Path, typer.Argument(metavar="CHECKPOINT", show_default=False)],
    source_dict: Annotated[Path, typer.Option("--source-dict", help="dict.SRC.txt of fairseq-preprocess.")],
    target_dict: Annotated[Path, typer.Option("--target-dict", help="dict.TGT.txt of fairseq-preprocess.")],
    output: Annotated[Path, typer.Option("--output", help="The folder to make.")],
    bpe: Annotated[str, typer.Option("--bpe", help="subword-nmt, sentencepiece or none.")] = "none",
    codes: Annotated[
        Path | None, typer.Option("--codes", help="BPE codes, or the source's SentencePiece model.")
    ] = None,
    moses: Annotated[str, typer.Option("--moses", help="Source language, if a Moses tokeniser came first.")] = "",
) -> None:
    """Convert a fairseq Transformer (also wait-k of its example and of attn2d) to a model of this program."""
    made = import_module("smt.engines.fairseq").convert(checkpoint, source_dict, target_dict, output, bpe, codes, moses)
    print_table(
        ("architecture", "parameters", "k_pieces", "folder"),
        [(made.architecture, made.parameters, made.k, made.folder)],
        [],
        as_json=False,
    )


@convert_app.command("ctranslate2")
def convert_ctranslate2(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model folder, or a hub name.", show_default=False)],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to make.", show_default=False)],
    storage: Annotated[str, typer.Option("--storage", help="Numbers written: float32, float16 or int8.")] = "float32",
    revision: Annotated[str | None, typer.Option("--revision", help="Of the hub's model.")] = None,
    download: Annotated[bool, typer.Option("--download", help="Fetch the model from the hub if need be.")] = False,
) -> None:
    """Convert a full-input model for CTranslate2, a fast engine: one of `transformers`, or ours without a lexicon."""
    print(import_module("smt.engines.ctranslate_export").convert(model, folder, storage, revision, download))


@app.command()
def clean(config: Config, runs: Runs = DEFAULT_RUNS) -> None:
    """Clean the parallel text of a training config; print what each step dropped."""
    call("smt.training.prepare:main", config, runs)


if __name__ == "__main__":
    main()
