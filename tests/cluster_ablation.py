"""A short ablation with test doubles, and schedulers and workers that are stopped while it runs."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from doubles import write_questions

from sqa.core import ROOT
from sqa.files import read_yaml

QUESTIONS = 130  # three blocks
DASK_WARNS = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]


def prepare(folder: Path, delay: float) -> None:
    """Write ablation.yaml and its questions; `delay` is in seconds per sentence."""
    folder.mkdir(parents=True)
    write_questions(folder / "questions.jsonl", QUESTIONS)
    mapping = read_yaml(ROOT / "configs" / "ablation.yaml") | {
        "datasets": ["questions.jsonl"],
        "fallback": [],
        "k": [1, 3],
        "translators": [
            {"label": "copy", "language": "es", "translator": {"name": "doubles:build_translator", "delay": delay}}
        ],
        "contestants": [{"guesser": {"name": "doubles:build_guesser"}, "buzzer": {"name": "doubles:build_buzzer"}}],
        "metrics": ["ew", "bleu", "dal"],
        "resamples": 20,
        "workers": 2,
    }
    (folder / "ablation.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")


def results(runs: Path) -> dict[str, bytes]:
    """Return every file of the runs except the store."""
    files = [path for path in sorted(runs.glob("**/*")) if path.is_file()]
    return {str(p.relative_to(runs)): p.read_bytes() for p in files if p.relative_to(runs).parts[0] != "store"}


def blocks(root: Path) -> dict[str, bytes]:
    """Return the files of a store, without the `.partial` files that killed writers leave."""
    files = [path for path in sorted(root.glob("store/*/*/*")) if path.is_file() and path.suffix != ".partial"]
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def threads_as_workers(port: int = 0, workers: int = 1) -> Any:
    """Return a cluster with a scheduler at `port` (0: a free one) and workers that are threads of this process."""
    from distributed import LocalCluster

    quick = {"n_workers": workers, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    return LocalCluster(protocol="tcp://", host="127.0.0.1", scheduler_port=port, **quick)


@contextmanager
def beside(action: Callable[[], None], ready: Callable[[], bool]) -> Iterator[None]:
    """Run `action` in another thread when `ready` returns true, or after two minutes."""

    def wait() -> None:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not ready():
            time.sleep(0.005)
        action()

    thread = threading.Thread(target=wait)
    thread.start()
    yield
    thread.join()


@contextmanager
def lost(ready: Callable[[], bool]) -> Iterator[str]:
    """Yield the address of a scheduler that is closed when `ready` returns true."""
    cluster = threads_as_workers()
    with beside(cluster.close, ready):
        yield cluster.scheduler_address


@contextmanager
def killed(cluster: Any, ready: Callable[[], bool]) -> Iterator[list[int]]:
    """Kill (-9) one worker when `ready` returns true; yield a list to which its process id is added."""
    pids: list[int] = []

    def kill() -> None:
        pids.append(next(iter(cluster.workers.values())).pid)
        os.kill(pids[0], signal.SIGKILL)

    with beside(kill, ready):
        yield pids
