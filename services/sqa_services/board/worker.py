"""Takes evaluations from the queue, one at a time, and writes what came out.  Any number may work on one board.

What a config or a submission does wrong is the result of its evaluation.  Anything else is a mistake of the program:
the worker ends with its traceback, the evaluation is tried again by the next one, and given up after
`queue.MAX_ATTEMPTS` workers.  One beside a server is begun again if it dies, and ended with the server.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Thread
from typing import Any

from sqlalchemy import select

from sqa.core.errors import ConfigError, NotComputable, SqaError
from sqa.pipeline.scheduler import SchedulerGone
from sqa_services.board import queue
from sqa_services.board.board import Board, BoardConfig
from sqa_services.board.evaluate import Labels, Predicted, delta, evaluate
from sqa_services.board.files import as_lines, data_path, model_path, predictions_path, prefixed
from sqa_services.board.metrics import JOB, Job, additive
from sqa_services.board.storage import DATASETS, MODELS
from sqa_services.board.task import Response, Task, answer_all

LEASE_SECONDS = 60.0
POLL_SECONDS = 2.0  # at most, while nothing can be begun
AGAIN_SECONDS = 5.0  # from the death of a worker to the next one
FILLERS = "\u115f\u1160"  # letters of Hangul that are not seen
END_SECONDS = 10.0  # for a worker to end


Outcome = tuple[dict[str, Any], list[list[float]] | None]  # a result, and each example's statistics


def work(
    board: Board, until_empty: bool = False, lease_seconds: float = LEASE_SECONDS, beside: int | None = None
) -> int:
    """Work until interrupted, or until nothing is queued or running; how many evaluations this worker finished.

    `beside`: the process that started this one; the worker ends after it.
    """
    if lease_seconds <= 0:
        raise ConfigError(f"--lease: must be > 0 seconds, got {lease_seconds}")
    finished = 0
    while beside is None or os.getppid() == beside:
        with board.engine.begin() as connection:
            queue.fill(connection)  # a pair that two registrations at the same moment did not see
        claimed = queue.claim(board.engine, lease_seconds)
        if claimed is not None:
            finished += _work_at(board, claimed, lease_seconds)
        elif until_empty and not any(queue.to_do(board.engine).values()):
            break
        else:
            time.sleep(min(POLL_SECONDS, lease_seconds))
    return finished


def _work_at(board: Board, claimed: queue.Claim, lease_seconds: float) -> bool:
    """True if this worker's result was taken."""
    with board.engine.connect() as connection:
        model = connection.execute(select(MODELS).where(MODELS.c.id == claimed.model)).mappings().first()
        data = connection.execute(select(DATASETS).where(DATASETS.c.id == claimed.dataset)).mappings().one()
    if model is None:  # deleted in the meantime
        return False
    where, start = prefixed(claimed.prefix, data["name"]), time.time()
    name = f"{model['name']}, {where}"
    print(f"sqa: {name}: started", file=sys.stderr)
    with _meanwhile(lease_seconds / 3, lambda: queue.renew(board.engine, claimed, lease_seconds)):
        try:
            result, details = run_one(board, dict(model), dict(data), claimed.prefix)
        except SchedulerGone:  # no fault of the model's: the evaluation is for whoever comes when the lease is over
            raise
        except SqaError as error:
            print(f"sqa: {name}: failed: {error}", file=sys.stderr)
            folder = board.config.folder
            problem = str(error).replace(f"{folder.absolute()}/", "").replace(f"{folder}/", "")
            return queue.fail(board.engine, claimed, problem, f"{where}: failed")
    event = f"{where}: scored in {time.time() - start:.1f} s"
    if result["implausible"]:
        event += f"; kept out of the rank: {'; '.join(result['implausible'])}"
    taken = queue.finish(board.engine, claimed, result, details, event)
    print(f"sqa: {name}: {'done' if taken else 'dropped, its lease had run out'}", file=sys.stderr)
    return taken


@contextmanager
def _meanwhile(seconds: float, action: Callable[[], object]) -> Iterator[None]:
    """A thread repeats the action every so many seconds until it is False or the block ends."""
    stop = Event()

    def repeat() -> None:
        while not stop.wait(seconds) and action() is not False:
            pass

    with _thread(repeat, stop):
        yield


@contextmanager
def _thread(target: Callable[[], None], stop: Event) -> Iterator[None]:
    """Until the block ends a thread runs, which then is told to stop."""
    thread = Thread(target=target, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def run_one(board: Board, model: Mapping[str, Any], data: Mapping[str, Any], prefix: str) -> Outcome:
    """Let a model answer a data set or its perturbed copies; keep its answers; score them."""
    code, name = model["task"], model["name"]
    task, read = board.task(code), board.files.read_lines
    examples = read(data_path(code, data["name"], prefix))
    file, given = board.files.read(model_path(code, name, model["kind"])), [{**example} for example in examples]
    responses, job = task.respond(model["kind"], file, given, board.config.work)
    predictions = answer_all(task, responses, examples)
    board.files.write(predictions_path(code, name, data["name"], prefix), as_lines(responses))
    labels = list(map(task.label, examples))
    inspected = {"implausible": task.implausible(examples, responses), "digest": digest_of(task, responses)}
    if not prefix:
        result = {**evaluate(task, labels, predictions, data["seed"]), "job": _job(task.job_metrics, job)}
        return result | inspected, _details(task, labels, predictions)
    originals = read(data_path(code, data["name"]))
    before = answer_all(task, read(predictions_path(code, name, data["name"])), originals)
    targets = list(map(task.label, originals))
    return delta(task, prefix, targets, before, labels, predictions, data["seed"]) | inspected, None


def digest_of(task: Task, responses: Sequence[Response]) -> str:
    """A digest that copies share: of letters and digits alone, in NFKD and without case."""
    return hashlib.sha256(json.dumps(_bare([task.comparable(response) for response in responses])).encode()).hexdigest()


def _bare(value: Any) -> Any:
    """A JSON value whose texts hold neither case, marks, punctuation, blanks nor characters that are not seen."""
    if isinstance(value, Mapping):
        return {key: _bare(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_bare(inner) for inner in value]
    if not isinstance(value, str):
        return value
    letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", value).casefold())
    return "".join(c for c in letters if c.isalnum() and c not in FILLERS)


def _details(task: Task, labels: Labels, predictions: Predicted) -> list[list[float]] | None:
    """The statistics of each example, of the metric that sorts; None where it is no sum over examples."""
    if (get := additive(task.perf_metric)) is None:
        return None
    stats = get.stats([prediction["pred"] for prediction in predictions], [label["answer"] for label in labels])
    return stats.tolist()


def _job(names: tuple[str, ...], job: Job) -> dict[str, float]:
    """The job metrics that have a value."""
    values = {}
    for name in names:
        with suppress(NotComputable):
            values[name] = JOB[name](job)
    return values


# -------------------------------------------------------------------------------- beside a server


@contextmanager
def beside(board: Board) -> Iterator[None]:
    """Until the block ends a worker runs; it says on stderr what it does."""
    stop = Event()
    with _thread(lambda: _watch(_command(board.config), stop), stop):
        yield


def _command(config: BoardConfig) -> list[str]:
    options = {"--board": config.folder.absolute(), "--db": config.db, "--files": config.files}
    given = [*options.items(), *(("--task", task) for task in config.tasks)]
    words = [str(word) for option in given if option[1] is not None for word in option]
    return [sys.executable, "-m", "sqa", "board", *words, "work", "--beside", str(os.getpid())]


def _watch(command: list[str], stop: Event) -> None:
    while not stop.is_set():
        # a new session: ^C is for the server, which then ends its worker
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        while process.poll() is None and not stop.wait(0.2):
            pass
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        else:
            stop.wait(AGAIN_SECONDS)
