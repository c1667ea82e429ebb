"""`sqa board`: an evaluation board with data sets, models, a queue and a leaderboard."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqa.cli.options import SETTINGS, Json, SchedulerOption, StoreOption
from sqa.core.packages import lacking
from sqa.core.paths import config_file
from sqa_services.cli.options import Host, HostNames, MaxBody, Port
from sqa_services.net.address import Address

if TYPE_CHECKING:
    from sqa_services.board.board import Board

board_app = typer.Typer(help="An evaluation board: data sets, models, a queue, a leaderboard.", **SETTINGS)

TaskCode = Annotated[str, typer.Argument(metavar="TASK", help="sqa-es, sqa-pl, or one of --task.", show_default=False)]
Weights = Annotated[
    str | None, typer.Option("--weights", metavar="METRIC=W,...", help="Of the Dynascore; default: the task's.")
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and dashes.", show_default=False)]


@board_app.callback()
def where(
    context: typer.Context,
    folder: Annotated[Path, typer.Option("--board", metavar="DIR", help="Where the board keeps its things.")] = Path(
        "board"
    ),
    db: Annotated[str | None, typer.Option("--db", metavar="URL", help="Default: SQLite in DIR.")] = None,
    files: Annotated[
        str | None, typer.Option("--files", metavar="URL", help="Default: a folder in DIR; or s3://bucket/folder.")
    ] = None,
    tasks: Annotated[
        list[str] | None, typer.Option("--task", metavar="MODULE:FUNCTION", help="A task of your own; repeatable.")
    ] = None,
) -> None:
    """An evaluation board: data sets, models, a queue, a leaderboard."""
    context.obj = (folder, db, files, tuple(tasks or ()))


def _board(context: typer.Context) -> Board:
    """The board of the options before the command.  A package missing: ConfigError."""
    try:
        from sqa_services.board.board import Board, BoardConfig
    except ModuleNotFoundError as error:
        raise lacking(error, "sqa board", "services") from error
    return Board.open(BoardConfig(*context.obj))


@board_app.command("register-dataset")
def register_dataset(
    context: typer.Context,
    task: TaskCode,
    name: Name,
    source: Annotated[
        str, typer.Argument(metavar="QUESTIONS", help="A question set's name or file.", show_default=False)
    ],
    perturb: Annotated[
        list[str] | None,
        typer.Option("--perturb", metavar="KIND", help="Or file.py:build; may be repeated; all = every kind."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of perturbations and intervals.")] = 0,
    phase: Annotated[
        str,
        typer.Option("--phase", metavar="PHASE", help="open: answers may be seen; closed; hidden: runs here alone."),
    ] = "closed",
) -> None:
    """Add a data set and its perturbed copies; every model of the task is queued on it."""
    from sqa.data.perturb import PERTURBATIONS

    kinds = list(PERTURBATIONS) if perturb == ["all"] else perturb or ()
    print(json.dumps(_board(context).register_dataset(task, name, source, kinds, seed, phase)))


@board_app.command("register-model")
def register_model(
    context: typer.Context,
    task: TaskCode,
    name: Name,
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A run's config, named as `sqa run` takes it, or a submission.", show_default=False
        ),
    ],
) -> None:
    """Add a model; it is queued on every data set of the task."""
    from sqa.files.yaml_reader import is_config, read_yaml, split_entry

    path = config_file(file)
    kind = "config" if is_config(str(path)) else "submission"
    one_of_several = split_entry(path)[1] is not None
    data = json.dumps(read_yaml(path)).encode() if one_of_several else path.read_bytes()  # JSON is YAML, too
    print(json.dumps(_board(context).register_model(task, name, kind, data)))


@board_app.command("register-session")
def register_session(
    context: typer.Context,
    task: TaskCode,
    name: Name,
    journal: Annotated[
        Path, typer.Argument(metavar="JOURNAL", help="journal.sqlite of `sqa serve iwslt`.", show_default=False)
    ],
    session: Annotated[
        str, typer.Argument(metavar="SESSION", help="With --participants: their name.", show_default=False)
    ],
    questions: Annotated[str, typer.Option("--questions", metavar="QUESTIONS", help="What the server served.")],
    guesser: Annotated[
        str, typer.Option("--guesser", metavar="YAML", help="Who answers; default: as the server.")
    ] = "",
    buzzer: Annotated[str, typer.Option("--buzzer", metavar="YAML", help="Who buzzes; default: as the server.")] = "",
) -> None:
    """Add what a client translated on an evaluation server that counted what it read; hidden questions too."""
    board = _board(context)
    from sqa.data.datasets import load_questions
    from sqa_services.board.running import session_model

    model = session_model(journal, session, load_questions(questions), guesser, buzzer)
    print(json.dumps(board.register_model(task, name, "session", model)))


@board_app.command("work")
def work(
    context: typer.Context,
    until_empty: Annotated[bool, typer.Option("--until-empty", help="Stop when nothing is left to do.")] = False,
    lease: Annotated[float, typer.Option("--lease", metavar="S", help="Silence after which a worker is dead.")] = 60.0,
    beside: Annotated[
        int | None, typer.Option("--beside", metavar="PID", help="Behind that process, and not after it.")
    ] = None,
    scheduler: SchedulerOption = None,
    store: StoreOption = None,
) -> None:
    """Evaluate what is queued; any number of workers may do so at once.  --scheduler spreads the runs of configs."""
    board = _board(context)
    from sqa.run.scheduler import scheduled
    from sqa_services.board.worker import POLL_SECONDS
    from sqa_services.board.worker import work as work_on

    if beside is not None:
        os.nice(10)  # the server's clients come first
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with scheduled(scheduler, board.config.work, store):
        finished = work_on(board, until_empty, lease, min(POLL_SECONDS, lease), beside)
    print(f"sqa: {finished} evaluations finished", file=sys.stderr)


@board_app.command("leaderboard")
def leaderboard(
    context: typer.Context,
    task: TaskCode,
    weights: Weights = None,
    datasets: Annotated[list[str] | None, typer.Option("--dataset", metavar="NAME", help="Default: all.")] = None,
    view: Annotated[str, typer.Option("--view", metavar="NAME", help="What the headline is made of.")] = "main",
    version: Annotated[int | None, typer.Option("--version", metavar="N", help="Of the view; default: newest.")] = None,
    as_json: Json = False,
) -> None:
    """The models of a task, best first."""
    from sqa_services.board.standing.dynascore import parse_weights

    board = _board(context)
    parsed = None if weights is None else parse_weights(weights, board.task(task).metrics)
    ranked = board.leaderboard(task, parsed, datasets or (), view, version)
    if as_json:
        print(json.dumps(ranked, indent=2))
        return
    metrics = list(ranked["metrics"])
    print("\t".join(["model", "dynascore", *metrics, "missing", "rank", "places", "made", "implausible"]))
    for row in ranked["rows"]:
        numbers = [row["dynascore"], *(row["metrics"].get(name) for name in metrics)]
        cells = ["n/a" if number is None else f"{number:.4f}" for number in numbers]
        places = "-".join(map(str, sorted(set(row["places"] or ()))))
        standing = [str(row["rank"] or "-"), places, "run here" if row["run_here"] else "unverified"]
        print("\t".join([row["model"], *cells, ",".join(row["missing"]), *standing, "; ".join(row["implausible"])]))
    if ranked["refusal"]:
        print(f"sqa: {ranked['refusal']}", file=sys.stderr)


@board_app.command("set-view")
def set_view(
    context: typer.Context,
    task: TaskCode,
    name: Name,
    datasets: Annotated[list[str], typer.Option("--dataset", metavar="NAME[=W]", help="Repeatable; weight 1.")],
    weights: Weights = None,
) -> None:
    """Write the next version of what a headline is made of: `main`, or one of your own."""
    from sqa_services.board.standing.dynascore import parse_weights

    board = _board(context)
    registered = [row["name"] for row in board.datasets(task)]
    named = ",".join(text if "=" in text else f"{text}=1" for text in datasets)
    metrics = None if weights is None else parse_weights(weights, board.task(task).metrics)
    view = board.set_view(task, name, parse_weights(named, registered), metrics)
    print(f"view\tversion\n{view['name']}\t{view['version']}")


@board_app.command("invite")
def invite(
    context: typer.Context,
    uses: Annotated[int, typer.Option("--uses", metavar="N", help="Accounts that one person may make.")] = 1,
    days: Annotated[float, typer.Option("--days", metavar="N", help="After which it lapses.")] = 30.0,
) -> None:
    """An invitation to sign up with, on the board's page; it is printed once."""
    board = _board(context)
    from sqa_services.board.accounts import invite as make

    invitation = make(board.engine, uses, days)
    print(f"invitation\tuses\tuntil\n{invitation['invitation']}\t{uses}\t{_date(invitation['until'])}")


@board_app.command("log")
def log(context: typer.Context, task: TaskCode, name: Name) -> None:
    """What happened to a model."""
    from sqa_services.board import lifecycle

    print("time\ttext")
    for event in lifecycle.log_of(_board(context).engine, task, name):
        print(f"{_date(event['time'])}\t{event['text']}")


@board_app.command("withdraw")
def withdraw(context: typer.Context, task: TaskCode, name: Name) -> None:
    """Take a model out of the rank."""
    from sqa_services.board import lifecycle

    lifecycle.withdraw(_board(context).engine, task, name)


@board_app.command("restore")
def restore(context: typer.Context, task: TaskCode, name: Name) -> None:
    """Undo `withdraw`."""
    from sqa_services.board import lifecycle

    lifecycle.restore(_board(context).engine, task, name)


@board_app.command("requeue")
def requeue(context: typer.Context, task: TaskCode, name: Name) -> None:
    """Queue a model's failed evaluations again."""
    from sqa_services.board import lifecycle

    number = lifecycle.requeue(_board(context).engine, task, name)
    print(f"sqa: {number} evaluations queued", file=sys.stderr)


@board_app.command("delete")
def delete(context: typer.Context, task: TaskCode, name: Name) -> None:
    """Delete a model, its scores, its log and its files."""
    from sqa_services.board import lifecycle

    board = _board(context)
    lifecycle.remove(board.engine, board.files, task, name)


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))


@board_app.command("export")
def export(
    context: typer.Context,
    task: TaskCode,
    examples: Annotated[
        str | None, typer.Option("--examples", metavar="[PREFIX-]NAME", help="What models are given, as JSON lines.")
    ] = None,
) -> None:
    """Everything about a task as JSON; or the examples of a data set, without their answers."""
    board = _board(context)
    if examples is None:
        print(json.dumps(board.export(task), indent=2))
        return
    for example in board.examples(task, examples):
        print(json.dumps(board.task(task).inputs(example), ensure_ascii=False))


@board_app.command("serve")
def serve(
    context: typer.Context,
    host: Host = "127.0.0.1",
    port: Port = 12380,
    token: Annotated[
        str | None, typer.Option("--token", envvar="SQA_TOKEN", help="Needed for all that writes.")
    ] = None,
    max_body: MaxBody = 1 << 24,
    per_day: Annotated[int, typer.Option("--per-day", metavar="N", help="Submissions of an account.")] = 20,
    worker: Annotated[bool, typer.Option("--worker/--no-worker", help="Start a worker beside the server.")] = True,
    names: HostNames = None,
) -> None:
    """The board over HTTP: a page, JSON, and an OpenAPI description at /openapi.json."""
    from sqa_services.board import server

    address = Address(host, port, token, tuple(names or ()), max_body)
    server.serve(_board(context), server.ServeConfig(address, per_day), worker)
