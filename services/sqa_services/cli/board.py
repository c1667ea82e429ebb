"""`sqa board`: an evaluation board with data sets, models, a queue and a leaderboard."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Context, Option, Typer

from sqa.cli.options import SETTINGS, Json, argument, option
from sqa.core import config_file
from sqa.results import Table, show
from sqa_services.cli.protocols import Host, HostNames, MaxBody, Port, Token, token_in

if TYPE_CHECKING:
    from sqa_services.board.board import Board
    from sqa_services.board.task import Example

board_app = Typer(help="Run an evaluation board with a queue and a leaderboard.", **SETTINGS)

TaskCode = Annotated[str, argument("TASK", "sqa-es, sqa-pl, or one of --task.")]
Weights = Annotated[str | None, option("--weights METRIC=W,...", "Weights of the Dynascore; default: the task's.")]
Name = Annotated[str, argument("NAME", "Lower-case letters, digits and dashes.")]


@board_app.callback()
def where(
    context: Context,
    folder: Annotated[Path, option("--board DIR", "Folder of the board.")] = Path("board"),
    tasks: Annotated[list[str] | None, option("--task MODULE:FUNCTION", "A custom task; may be repeated.")] = None,
    metrics: Annotated[
        list[str] | None, option("--metric NAME", "A metric of every task, also file.py:build; may be repeated.")
    ] = None,
) -> None:
    """Run an evaluation board with a queue and a leaderboard."""
    context.obj = (folder, tuple(tasks or ()), tuple(metrics or ()))


def _board(context: Context) -> Board:
    """Open the board that the options before the command specify."""
    from sqa_services.board.board import Board, BoardConfig

    return Board.open(BoardConfig(*context.obj))


@board_app.command()
def register_dataset(
    context: Context,
    task: TaskCode,
    name: Name,
    source: Annotated[str, argument("QUESTIONS", "Name or file of a question set.")],
    perturb: Annotated[
        list[str] | None, option("KIND", "Kind of perturbation, file.py:build, or all; may be repeated.")
    ] = None,
    seed: Annotated[int, option("N", "Seed of perturbations and intervals.")] = 0,
) -> None:
    """Add a data set and its perturbed copies, and queue every model on it."""
    from sqa.data.perturb import PERTURBATIONS

    kinds = list(PERTURBATIONS) if perturb == ["all"] else perturb or ()
    print(json.dumps(_board(context).register_dataset(task, name, source, kinds, seed)))


@board_app.command()
def perturb(
    context: Context,
    task: TaskCode,
    name: Name,
    kinds: Annotated[list[str], argument("KIND...", "Kinds of perturbation, file.py:build, or all.")],
    preview: Annotated[bool, Option("--preview", help="Print the copies and add nothing.")] = False,
) -> None:
    """Add perturbed copies to a registered data set, and queue every model on them."""
    from sqa.data.perturb import PERTURBATIONS

    board, chosen = _board(context), list(PERTURBATIONS) if kinds == ["all"] else kinds
    if preview:
        return _print_inputs(board, task, [copy for rows in board.copies(task, name, chosen).values() for copy in rows])
    print(json.dumps(board.perturb(task, name, chosen)))


@board_app.command()
def register_model(
    context: Context,
    task: TaskCode,
    name: Name,
    file: Annotated[Path, argument("FILE", "Config of a run as `sqa run` takes it, or a submission.")],
) -> None:
    """Add a model, and queue it on every data set of the task."""
    from sqa.files import is_config, read_yaml
    from sqa.files.yaml_reader import split_entry

    path = config_file(file)
    kind = "config" if is_config(str(path)) else "submission"
    one_of_several = split_entry(path)[1] is not None
    data = json.dumps(read_yaml(path)).encode() if one_of_several else path.read_bytes()  # JSON is also YAML
    print(json.dumps(_board(context).register_model(task, name, kind, data)))


@board_app.command()
def work(
    context: Context,
    until_empty: Annotated[bool, Option("--until-empty", help="Stop when nothing is left to do.")] = False,
    lease: Annotated[float, option("S", "Seconds without a renewed lease after which a worker counts as dead.")] = 60.0,
) -> None:
    """Evaluate the queue; any number of workers may run."""
    board = _board(context)
    from sqa_services.board.worker import work as work_on

    finished = work_on(board, until_empty, lease)
    print(f"sqa: {finished} evaluations finished", file=sys.stderr)


@board_app.command()
def leaderboard(
    context: Context,
    task: TaskCode,
    weights: Weights = None,
    datasets: Annotated[list[str] | None, option("--dataset NAME", "Data set; default: all.")] = None,
    as_json: Json = False,
) -> None:
    """List the models of a task, best first."""
    ranked = _board(context).leaderboard(task, weights, datasets or ())
    if as_json:
        print(json.dumps(ranked, indent=2))
        return
    metrics = list(ranked["metrics"])
    rows = []
    for row in ranked["rows"]:
        numbers = [row["dynascore"], *(row["metrics"].get(name) for name in metrics)]
        standing = [row["rank"] or "-", "run here" if row["run_here"] else "unverified", row["note"]]
        rows.append([row["model"], *numbers, ",".join(row["missing"]), *standing])
    header = ["model", "dynascore", *metrics, "missing", "rank", "made", "note"]
    show(Table(header, rows, dict.fromkeys(header, 4)))
    if ranked["refusal"]:
        print(f"sqa: {ranked['refusal']}", file=sys.stderr)


@board_app.command()
def requeue(context: Context, task: TaskCode, name: Name) -> None:
    """Queue a model's failed evaluations again."""
    print(f"sqa: {_board(context).requeue(task, name)} evaluations queued", file=sys.stderr)


@board_app.command()
def delete(context: Context, task: TaskCode, name: Name) -> None:
    """Delete a model, its scores and its files."""
    _board(context).remove(task, name)


@board_app.command()
def examples(
    context: Context, task: TaskCode, name: Annotated[str, argument("[PREFIX-]NAME", "A data set or its copies.")]
) -> None:
    """Print the examples of a data set as models get them, as JSON lines without answers."""
    board = _board(context)
    _print_inputs(board, task, board.examples(task, name))


def _print_inputs(board: Board, task: str, examples: Iterable[Example]) -> None:
    for example in examples:
        print(json.dumps(board.task(task).inputs(example), ensure_ascii=False))


@board_app.command()
def serve(
    context: Context,
    host: Host = "127.0.0.1",
    port: Port = 12380,
    token: Token = None,
    max_body: MaxBody = 1 << 24,
    submit_token: Annotated[
        str | None, option("--submit-token-file FILE", "File with the submitters' token.", parser=token_in)
    ] = None,
    per_day: Annotated[int, option("N", "Submissions per day with the submitters' token.", min=1)] = 20,
    names: HostNames = None,
) -> None:
    """Serve the board over HTTP as a page and as JSON.

    The OpenAPI description is at /openapi.json.
    """
    from sqa_services.board.server import serve as serve_board
    from sqa_services.net.guard import Address

    serve_board(_board(context), Address(host, port, token, tuple(names or ()), max_body, submit_token), per_day)
