"""Worker processes: results of any number of them, deaths, errors, memory, and their end with the parent."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from refusals import refused

from sqa.core.errors import DataError, RemoteProtocolError
from sqa.core.paths import ROOT
from sqa.files.store import Store
from sqa.pipeline import pool, spread
from sqa.pipeline.config import run_from_mapping
from sqa.pipeline.pool import Call, fitting, in_pool, in_process


def square(number: int) -> int:
    return number * number


def die_once(number: int, mark: Path) -> int:
    """Kill this worker, unless the mark says that one was killed already."""
    if number == 1 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return square(number)


def die(_: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def refuse(number: int) -> int:
    raise DataError(f"no {number}")


def calls(function, numbers=range(4)):
    return lambda done: [Call(function, (n,), n) for n in numbers if n not in done]


def chain(done):
    """A call whose value decides the calls that follow."""
    return [Call(square, (3,), then=lambda value: [Call(square, (value + i,), i) for i in range(3) if i not in done])]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_pool_gives_the_results_of_one_process(workers):
    for wanted in (calls(square), chain):
        expected = dict(in_process(wanted))
        assert dict(in_pool(workers, len(expected), wanted)) == expected


def test_dead_worker_is_replaced(tmp_path, capsys):
    wanted = calls(partial(die_once, mark=tmp_path / "dead"))
    assert sorted(in_pool(2, 4, wanted)) == [(0, 0), (1, 1), (2, 4), (3, 9)]  # none of them twice
    assert capsys.readouterr().err.count("a worker died") == 1


def test_pool_gives_up_after_some_deaths():
    refused(RemoteProtocolError, "4 workers died; is there enough memory", list, in_pool(1, 1, calls(die, [0])))


def test_error_of_a_task_ends_the_pool():
    refused(DataError, "no 0", list, in_pool(2, 1, calls(refuse, [0])))


def test_workers_fit_the_memory(tmp_path):
    file = tmp_path / "meminfo"
    file.write_text("MemTotal:       16777216 kB\nMemFree:        123 kB\n", encoding="ascii")
    assert [fitting(size << 30, file) for size in (1, 3, 12, 100)] == [12, 4, 1, 1]
    assert fitting(1, tmp_path / "missing") == sys.maxsize


def test_sweep_makes_the_same_bytes_with_any_workers(tmp_path, monkeypatch):
    made = []
    for workers in (1, 2, 3):
        monkeypatch.setattr(spread, "FEW", 0)
        monkeypatch.chdir(tmp_path)
        parts = {"dataset": {"name": "mini-es", "limit": 3}, "guesser": "bm25", "metrics": ["accuracy", "bleu", "al"]}
        translators = [{"name": "fixed", "text": "reference", "reveal": reveal} for reveal in ("full", "diagonal")]
        configs = [run_from_mapping({"name": t["reveal"], "translator": t, **parts}) for t in translators]
        runs = Path(f"workers-{workers}")
        swept = spread.run_all(configs, runs, False, workers)
        assert [run.folder.name for run in swept] == ["full", "diagonal"]
        files = (path for path in sorted(runs.rglob("*")) if path.is_file() and path.suffix != ".lock")
        made.append({str(path.relative_to(runs)): path.read_bytes() for path in files if path.name != "times.json"})
    assert made[0] == made[1] == made[2] and len(made[0]) > 8


def test_few_questions_stay_in_this_process(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "ProcessPoolExecutor", None)
    config = run_from_mapping(
        {"name": "x", "dataset": {"name": "mini-es", "limit": 2}, "translator": {"name": "fixed", "text": "reference"}}
    )
    jobs = [spread.Job(config, finish)]
    assert list(spread.spread(jobs, Store(tmp_path), 8)) == [(0, "finished")]


def finish(store, parts):
    return "finished"


WORKERS = """
import sys, time
from sqa.pipeline.pool import Call, in_pool

def say_and_sleep(number):
    import os
    print(os.getpid(), flush=True)
    time.sleep(100)

if __name__ == "__main__":
    list(in_pool(2, 2, lambda done: [Call(say_and_sleep, (n,), n) for n in range(2)]))
"""


def test_no_worker_outlives_a_killed_parent(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(WORKERS, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None and len({parent.stdout.readline(), parent.stdout.readline()}) == 2
        time.sleep(0.5)
        parent.kill()
        parent.communicate(timeout=30)  # ends when no process has this output open any more
