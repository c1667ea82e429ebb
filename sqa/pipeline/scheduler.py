"""Compute many runs with Dask: a task computes a block of questions and writes the results to the store.

    with scheduled("local", Path("runs")):     # or tcp://HOST:PORT, or slurm:FILE.yaml
        main(config, runs)                     # code that calls `current()` distributes its runs over the workers

Only small values go through Dask; blocks go through the store, which this process and every worker must see.  After
a crash of a worker, the scheduler or this process, the store has all finished blocks, and the same command
continues.  Two schedulers on one store use different orders, so only blocks in progress on both can be computed
twice.

Without `scheduled`, `current()` is None: work stays in this process and its pool, and no server is started.
"""

from __future__ import annotations

import logging
import math
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

from sqa.core import ConfigError, Count, RemoteProtocolError, checked, need
from sqa.files import Store
from sqa.pipeline.config import load
from sqa.pipeline.pool import Call, Measured, Pool, Running

if TYPE_CHECKING:
    from distributed import Client

FAILURES = 30  # workers that may die during a task before it fails; clusters may remove machines at any time
# Dask's defaults slow models down: workers return every freed 64 KiB to the system and are profiled 100 times per
# second.
LOCAL = {
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
    "distributed.worker.profile.enabled": False,
}
PER_WORKER = 8  # calls submitted ahead per worker thread
FEWEST = 4  # minimum number of worker threads assumed, because more may start
GPU = "GPU"  # Dask resource of a worker: dask worker ... --resources GPU=1
RECOUNT = 10.0  # seconds between two counts of the workers


@dataclass(frozen=True, slots=True)
@checked
class SlurmConfig:
    """The file of `--scheduler slurm:FILE`; docs/cluster.md explains an example."""

    jobs: Annotated[Count, "number of Slurm jobs, each a machine or part of a machine"]
    cores: Annotated[Count, "cores per job; each core has one worker with one thread"] = 1
    memory: Annotated[str, "memory per job"] = "4GB"
    walltime: str = "01:00:00"
    partition: str | None = None
    account: str | None = None
    interface: Annotated[str | None, "network interface by which workers reach the scheduler, such as ib0"] = None
    directives: Annotated[tuple[str, ...], "further #SBATCH options, such as --gres=gpu:1"] = ()
    prologue: Annotated[tuple[str, ...], "shell lines before the worker starts, such as `module load python`"] = ()
    logs: Annotated[str | None, "folder for the jobs' output"] = None
    adaptive: Annotated[bool, "start jobs (at most `jobs`) when there is work, and end them when there is none"] = False


class Scheduler(Pool):
    """A Dask scheduler, started or connected on first use, and the store that its workers share."""

    def __init__(self, spec: str, store: Store) -> None:
        self.spec, self.store = spec, store
        self._kind, self._argument = parse(spec)
        for package in ("dask", "distributed", *(["dask_jobqueue"] if self._kind == "slurm" else [])):
            need(package, "--scheduler")
        self._client: Client | None = None
        self._cluster: Any = None
        self._adaptive, self._worked = False, False  # whether Dask replaces Slurm jobs, and whether one has started
        self.workers, self._counted = FEWEST, -math.inf  # worker threads, and the time at which they were counted
        self._no_gpu: list[str] = []  # workers without the GPU resource, preferred for other calls
        self._name, self._number = uuid4().hex[:12], count()

    def client(self, workers: int) -> Client:
        """Return the client; `workers` is the number of processes of a local cluster if the spec gives none."""
        if self._client is None:
            self._client = self._open(workers)
            assert self._client.scheduler is not None  # already connected
            address, dashboard = self._client.scheduler.address, self._client.dashboard_link
            print(f"sqa: scheduler {address}, dashboard {dashboard}", file=sys.stderr)
        return self._client

    def _open(self, workers: int) -> Client:
        import dask
        from distributed import Client, LocalCluster

        dask.config.set({"distributed.scheduler.allowed-failures": FAILURES})
        if self._kind == "address":
            try:
                return Client(self._argument, timeout=10)
            except OSError as error:  # includes timeouts
                problem = f"--scheduler {self.spec}: no scheduler answers; start it first"
                raise RemoteProtocolError(problem) from error
        if self._kind == "slurm":
            config = load(Path(self._argument), SlurmConfig)
            self._cluster, self._adaptive = _slurm(config), config.adaptive
            return Client(self._cluster)
        workers = int(self._argument or workers)
        try:
            with dask.config.set(LOCAL), _quiet():
                self._cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0")
        except RuntimeError as error:
            raise RemoteProtocolError(
                f"--scheduler {self.spec}: a worker died while it started; is there enough memory? "
                "Run the same command again to continue"
            ) from error
        return Client(self._cluster)

    def has_room(self, _: Call, running: Collection[Call]) -> bool:
        if time.monotonic() - self._counted > RECOUNT:
            assert self._client is not None
            workers = self._client.scheduler_info(n_workers=-1)["workers"]
            self.workers, self._counted = max(FEWEST, sum(w["nthreads"] for w in workers.values())), time.monotonic()
            self._no_gpu = [address for address, worker in workers.items() if GPU not in worker["resources"]]
        return len(running) < PER_WORKER * self.workers

    def submit(self, call: Call) -> Future[Measured]:
        assert self._client is not None
        # Dask assigns tasks whose keys form one group as workers become free
        key = (f"{call.function.__name__}-{self._name}", next(self._number))
        where: dict[str, Any] = {"workers": self._no_gpu, "allow_other_workers": True} if self._no_gpu else {}
        where = {"resources": {GPU: 1}} if call.gpu else where
        submit = self._client.get_executor().submit
        return submit(_alone, call.function, call.arguments, key=key, pure=False, **where)

    def wait(self, running: Running) -> Collection[Future[Measured]]:
        while not (done := wait(running, 1.0, FIRST_COMPLETED).done):
            self.check_jobs([call.title for call in running.values()])
        return done

    def replaces(self, error: Exception) -> bool:
        from distributed.client import ClosedClientError
        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker

        if isinstance(error, KilledWorker):
            problem = f"{error.task}: every worker that tried it died; is there enough memory?"
            raise RemoteProtocolError(problem) from error
        if isinstance(error, CancelledError | ClosedClientError | CommClosedError):
            problem = f"--scheduler {self.spec}: is gone; run the same command again to continue"
            raise RemoteProtocolError(problem) from error
        return False

    def stop(self, running: Running) -> None:
        if self._client is not None and self._client.status == "running":
            for future in running:
                future.cancel()

    def check_jobs(self, waiting: Sequence[str]) -> None:
        """Raise RemoteProtocolError if all Slurm jobs have ended, for example because they reached their walltime.

        waiting: names of the tasks that are being computed.
        """
        if self._kind != "slurm" or self._cluster is None or self._client is None:
            return
        if self._client.scheduler_info(n_workers=-1)["workers"]:
            self._worked = True
        elif self._worked and not self._adaptive:
            names = ", ".join(waiting[:3])
            raise RemoteProtocolError(
                f"--scheduler {self.spec}: all jobs have ended before {names} was done; run the same command again to "
                f"continue, with a longer walltime in {self._argument} if one task takes longer"
            )

    def close(self) -> None:
        """Stop the processes that were started."""
        if self._client is not None:
            self._client.close()
        if self._cluster is not None:
            self._cluster.close()


def parse(spec: str) -> tuple[str, str]:
    """Return (kind, argument) of local, local:N, tcp://HOST:PORT, tls://HOST:PORT or slurm:FILE.

    Raises ConfigError for any other spec.
    """
    head, separator, argument = spec.partition(":")
    if head == "local" and (not separator or (argument.isascii() and argument.isdigit() and int(argument) > 0)):
        return "local", argument
    if head in ("tcp", "tls") and argument.startswith("//") and argument[2:].rpartition(":")[2].isdigit():
        return "address", spec
    if head == "slurm" and argument:
        return "slurm", argument
    raise ConfigError(f"--scheduler: expected local, local:N, tcp://HOST:PORT or slurm:FILE.yaml, got {spec!r}")


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Dask's log of failures, which the caller reports in one line."""
    log = logging.getLogger("distributed")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def _slurm(config: SlurmConfig) -> Any:
    from dask_jobqueue import SLURMCluster  # type: ignore[attr-defined]

    cluster = SLURMCluster(
        queue=config.partition,
        account=config.account,
        walltime=config.walltime,
        cores=config.cores,
        processes=config.cores,  # one process per core: models are not thread-safe
        memory=config.memory,
        interface=config.interface,
        job_extra_directives=list(config.directives),
        job_script_prologue=list(config.prologue),
        log_directory=config.logs,
        scheduler_options={"dashboard_address": ":0"},  # any free port
    )
    if config.adaptive:
        cluster.adapt(minimum_jobs=0, maximum_jobs=config.jobs)
    else:
        cluster.scale(jobs=config.jobs)
    return cluster


_ALONE = Lock()  # one call at a time per worker, even with several threads: models are not thread-safe


def _alone(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Measured:
    with _ALONE:
        return function(*arguments), 0.0, 0


_CURRENT: ContextVar[Scheduler | None] = ContextVar("scheduler", default=None)


@contextmanager
def scheduled(spec: str | None, runs: Path, store: Path | None = None) -> Iterator[None]:
    """Return a context in which the scheduler named by `spec` distributes runs; None means no distribution.

    Blocks are written to the folder `store`, or to `runs` if it is None.  All workers must have access to it.
    """
    if spec is None:
        if store is not None:
            raise ConfigError("--store: only for --scheduler; otherwise the store is in --runs")
        yield
        return
    scheduler = Scheduler(spec, Store((store or runs).resolve(), shared=True))
    token = _CURRENT.set(scheduler)
    try:
        yield
    finally:
        _CURRENT.reset(token)
        scheduler.close()


def current() -> Scheduler | None:
    """Return the scheduler of the surrounding `scheduled` context, or None outside of one."""
    return _CURRENT.get()
