"""Workers: evaluate the queue, one evaluation at a time.  Any number of workers may run on one board.

An error in a config or a submission becomes the result of its evaluation.  A bug ends the worker with a traceback, and
the next worker tries again, up to `queue.MAX_ATTEMPTS` times.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any

from sqa.core.errors import ConfigError, NotComputable, SqaError
from sqa_services.board import queue
from sqa_services.board.board import Board
from sqa_services.board.evaluate import delta, evaluate
from sqa_services.board.metrics import JOB, Job
from sqa_services.board.storage import as_lines, data_path, model_path, predictions_path, prefixed
from sqa_services.board.task import answer_all

LEASE_SECONDS = 60.0
POLL_SECONDS = 2.0  # maximum seconds between polls of an empty queue


def work(board: Board, until_empty: bool = False, lease_seconds: float = LEASE_SECONDS) -> int:
    """Process the queue until interrupted, and return the number of evaluations that this worker finished.

    With `until_empty`, the worker ends as soon as nothing is queued or running.
    """
    if lease_seconds <= 0:
        raise ConfigError(f"--lease: must be > 0 seconds, got {lease_seconds}")
    finished = 0
    while True:
        claimed = queue.claim(board.database, lease_seconds)
        if claimed is not None:
            finished += _work_at(board, claimed, lease_seconds)
        elif until_empty and not any(queue.to_do(board.database).values()):
            return finished
        else:
            time.sleep(min(POLL_SECONDS, lease_seconds))


def _work_at(board: Board, claimed: queue.Claim, lease_seconds: float) -> bool:
    """Run a leased evaluation; return whether its result was stored."""
    models = board.database.dicts("SELECT * FROM models WHERE id = ?", claimed.model)
    [data] = board.database.dicts("SELECT * FROM datasets WHERE id = ?", claimed.dataset)
    if not models:  # the model was deleted in the meantime
        return False
    [model] = models
    name = f"{model['name']}, {prefixed(claimed.prefix, data['name'])}"
    print(f"sqa: {name}: started", file=sys.stderr)
    with _repeated(lease_seconds / 3, lambda: queue.renew(board.database, claimed, lease_seconds)):
        try:
            result = run_one(board, model, data, claimed.prefix)
        except SqaError as error:
            print(f"sqa: {name}: failed: {error}", file=sys.stderr)
            folder = board.config.folder
            problem = str(error).replace(f"{folder.absolute()}/", "").replace(f"{folder}/", "")
            return queue.fail(board.database, claimed, problem)
    taken = queue.finish(board.database, claimed, result)
    print(f"sqa: {name}: {'done' if taken else 'dropped, since its lease expired'}", file=sys.stderr)
    return taken


@contextmanager
def _repeated(seconds: float, action: Callable[[], object]) -> Iterator[None]:
    """Call `action` in a thread every `seconds` until it returns False or the block ends."""
    stop = Event()

    def repeat() -> None:
        while not stop.wait(seconds) and action() is not False:
            pass

    thread = Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def run_one(board: Board, model: Mapping[str, Any], data: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Run a model on a data set or its perturbed copies, then store and score the responses."""
    code, name = model["task"], model["name"]
    task, read = board.task(code), board.files.read_lines
    examples = read(data_path(code, data["name"], prefix))
    file, given = board.files.read(model_path(code, name, model["kind"])), [{**example} for example in examples]
    responses, job = task.respond(model["kind"], file, given, board.config.work)
    predictions = answer_all(task, responses, examples)
    board.files.write(predictions_path(code, name, data["name"], prefix), as_lines(responses))
    labels = list(map(task.label, examples))
    if not prefix:
        return {**evaluate(task, labels, predictions, data["seed"]), "job": _job_metrics(job)}
    originals = read(data_path(code, data["name"]))
    before = answer_all(task, read(predictions_path(code, name, data["name"])), originals)
    targets = list(map(task.label, originals))
    return delta(task, prefix, targets, before, labels, predictions)


def _job_metrics(job: Job) -> dict[str, float]:
    """Return the job metrics that have a value."""
    values = {}
    for name, get in JOB.items():
        with suppress(NotComputable):
            values[name] = get(job)
    return values
