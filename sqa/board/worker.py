"""Takes evaluations from the queue, one at a time, and writes what came out.  Any number may work on one board.

What a config or a submission does wrong is the result of its evaluation.  Anything else is a mistake of the program:
the worker ends with its traceback, the evaluation is tried again by the next one, and given up after three workers.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from sqlalchemy import select

from sqa.board import queue
from sqa.board.board import Board
from sqa.board.evaluate import delta, evaluate
from sqa.board.files import as_lines, data_path, job_name, model_path, predictions_path
from sqa.board.metrics import JOB, Job
from sqa.board.storage import DATASETS, MODELS
from sqa.board.task import answer_all
from sqa.core.errors import ConfigError, NotComputable, SqaError

LEASE_SECONDS = 60.0
POLL_SECONDS = 2.0


def work(
    board: Board, until_empty: bool = False, lease_seconds: float = LEASE_SECONDS, poll_seconds: float = POLL_SECONDS
) -> int:
    """Work until interrupted, or until nothing is queued or running; how many evaluations this worker finished."""
    if lease_seconds <= 0:
        raise ConfigError(f"--lease: must be > 0 seconds, got {lease_seconds}")
    finished = 0
    while True:
        with board.engine.begin() as connection:
            queue.fill(connection)  # a pair that two registrations at the same moment did not see
        claimed = queue.claim(board.engine, lease_seconds)
        if claimed is not None:
            finished += _work_at(board, claimed, lease_seconds)
        elif until_empty and not queue.open_count(board.engine):
            return finished
        else:
            time.sleep(poll_seconds)


def _work_at(board: Board, claimed: queue.Claim, lease_seconds: float) -> bool:
    """True if this worker's result was taken."""
    with board.engine.connect() as connection:
        model = connection.execute(select(MODELS).where(MODELS.c.id == claimed.model)).mappings().one()
        data = connection.execute(select(DATASETS).where(DATASETS.c.id == claimed.dataset)).mappings().one()
    name = job_name(model["name"], claimed.prefix, data["name"], int(time.time()))
    print(f"sqa: {name}: started", file=sys.stderr)
    with _renewed(board, claimed, lease_seconds):
        try:
            result = run_one(board, model["task"], model["name"], model["kind"], data, claimed.prefix)
        except SqaError as error:
            print(f"sqa: {name}: failed: {error}", file=sys.stderr)
            told = str(error).replace(f"{board.config.folder.absolute()}/", "").replace(f"{board.config.folder}/", "")
            return queue.fail(board.engine, claimed, told)
    taken = queue.finish(board.engine, claimed, result)
    print(f"sqa: {name}: {'done' if taken else 'dropped, its lease had run out'}", file=sys.stderr)
    return taken


@contextmanager
def _renewed(board: Board, claimed: queue.Claim, lease_seconds: float) -> Iterator[None]:
    """A thread renews the lease until the block ends."""
    stop = Event()

    def renew() -> None:
        while not stop.wait(lease_seconds / 3):
            if not queue.renew(board.engine, claimed, lease_seconds):
                return

    thread = Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def run_one(board: Board, code: str, model: str, kind: str, data: Any, prefix: str) -> dict[str, Any]:
    """Let a model answer a data set or its perturbed copies; keep its answers; score them."""
    task = board.task(code)
    examples = board.files.read_lines(data_path(code, data["name"], prefix))
    file = board.files.read(model_path(code, model, kind))
    given = [{**example} for example in examples]
    responses, job = task.respond(kind, file, given, board.config.work)
    predictions = answer_all(task, responses, examples)
    board.files.write(predictions_path(code, model, data["name"], prefix), as_lines(responses))
    labels = [task.data.label_field_converter(example) for example in examples]
    if not prefix:
        return {**evaluate(task, labels, predictions, data["seed"]), "job": _job(task.job_metrics, job)}  # type: ignore[arg-type]
    originals = board.files.read_lines(data_path(code, data["name"]))
    earlier = board.files.read_lines(predictions_path(code, model, data["name"]))
    before = answer_all(task, earlier, originals)
    targets = [task.data.label_field_converter(example) for example in originals]
    return delta(task, prefix, targets, before, labels, predictions, data["seed"])  # type: ignore[arg-type]


def _job(names: tuple[str, ...], job: Job) -> dict[str, float]:
    """The job metrics that have a value."""
    found = {}
    for name in names:
        try:
            found[name] = JOB[name][0](job)
        except NotComputable:
            continue
    return found
