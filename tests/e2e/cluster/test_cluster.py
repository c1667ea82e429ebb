"""Runs on Dask workers give the same bytes as in one process, even if workers are killed."""

import gc
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_ablation import DASK_WARNS, blocks, killed, lost, prepare, results
from doubles import write_questions
from outcome import process
from refusals import refused
from small_runs import PARTS
from tables import tables_of

from experiments import grid
from experiments.grid import AblationConfig
from sqa.core import RemoteProtocolError
from sqa.pipeline import current, load, overrides, run_all, scheduled
from sqa.pipeline.engine import Work

TABLES = tables_of(__file__)

Rows = list[tuple[str, Any]]  # run name, intervals
Made = tuple[Rows, dict[str, bytes], dict[str, bytes]]  # rows, files of the runs, store

pytestmark = [*DASK_WARNS, pytest.mark.needs("cluster")]


@pytest.fixture(autouse=True)
def leftovers() -> Iterator[None]:
    """Free the sockets that Dask leaves open for killed workers, so that no other test file reports them."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the folder of the config and its questions, which is the working directory of this process and workers."""
    values = tmp_path_factory.mktemp("cluster") / "work"
    prepare(values, delay=0.002)  # slow enough to be killed while running
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(values)
        yield values


@pytest.fixture(scope="module")
def cluster(folder: Path) -> Iterator[Any]:
    """Yield a cluster of two local worker processes."""
    import dask
    from distributed import LocalCluster

    dask.config.set({"distributed.scheduler.allowed-failures": 30})
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as started:
        yield started


@pytest.fixture(scope="module")
def expected(folder: Path) -> Made:
    """Return the rows, files and blocks of an ablation without Dask."""
    return ablation(folder / "alone")


def ablation(runs: Path, scheduler: str | None = None, store: Path | None = None) -> Made:
    return rows_of(runs, scheduler, store), results(runs), blocks(runs)


def rows_of(runs: Path, scheduler: str | None, store: Path | None = None) -> Rows:
    with scheduled(scheduler, runs, store):
        rows = grid.finished(load(Path("ablation.yaml"), AblationConfig), runs)
    return [(row.cell.config.name, tuple(row.rows.values())) for row in rows]


def some_blocks(runs: Path) -> bool:
    return len(list(runs.glob("store/*/*/block-*"))) >= 5


def test_two_workers_write_the_same_bytes_as_one(folder: Path, cluster: Any, expected: Made) -> None:
    assert ablation(folder / "two", cluster.scheduler_address) == expected


def test_store_in_another_folder_gets_the_same_bytes(folder: Path, cluster: Any, expected: Made) -> None:
    runs, store = folder / "apart", folder / "shared"
    rows, files, _ = ablation(runs, cluster.scheduler_address, store)
    assert (rows, files) == expected[:2]
    assert blocks(store) == expected[2] and not (runs / "store").exists()


def test_worker_killed_within_a_block_is_replaced(folder: Path, cluster: Any, expected: Made) -> None:
    runs = folder / "killed"
    with killed(cluster, lambda: some_blocks(runs)) as pids:
        assert ablation(runs, cluster.scheduler_address) == expected
    assert pids


def test_run_continues_after_a_lost_scheduler(folder: Path, expected: Made) -> None:
    runs = folder / "lost"
    with lost(lambda: some_blocks(runs)) as address:
        refused(RemoteProtocolError, "is gone; run the same command again", ablation, runs, address)
    assert ablation(runs) == expected


def test_only_gpu_workers_translate_on_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other stages also run on workers without a GPU."""
    from distributed import Scheduler, SpecCluster, Worker, get_worker

    monkeypatch.chdir(tmp_path)
    write_questions(tmp_path / "questions.jsonl", 70)
    made, make = set(), Work.make

    def noted(self: Work, stage: str, *arguments: Any) -> None:
        made.add((stage, get_worker().name))
        make(self, stage, *arguments)

    parts = PARTS | {"translator": {"name": "doubles:build_placed", "k": 3}}
    Path("placed.yaml").write_text(yaml.safe_dump({"dataset": {"name": "questions.jsonl"}, **parts}), encoding="utf-8")
    runs = [config for _, config in overrides.grid(Path("placed.yaml"), overrides.parsed_axes(["seed=1,2"]))]
    here = run_all(runs, Path("alone"), progress=False)
    monkeypatch.setattr(Work, "make", noted)
    options = {"cpu": {"nthreads": 1}, "gpu": {"nthreads": 1, "resources": {"GPU": 1}}}
    spec = {name: {"cls": Worker, "options": values} for name, values in options.items()}
    address = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with SpecCluster(spec, {"cls": Scheduler, "options": address}, silence_logs=False) as cluster:
        with scheduled(cluster.scheduler_address, Path("runs")):
            there = run_all(runs, Path("runs"), progress=False)
    assert {worker for stage, worker in made if stage == "translate"} == {"gpu"}
    assert ("guess", "cpu") in made
    assert [run.report for run in there] == [run.report for run in here]
    assert blocks(Path("runs")) == blocks(Path("alone"))


SLURM = TABLES["slurm"]


@pytest.mark.slow
def test_worker_killed_at_startup_gives_one_line_error(folder: Path, tmp_path: Path) -> None:
    """Regression test: the error message was two tracebacks, Dask's and the program's."""
    dies = "import os, signal\ndef dask_setup(worker):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    (tmp_path / "dies.py").write_text(dies)
    words = ("ablation", "ablation.yaml", "--runs", str(tmp_path / "runs"), "--scheduler", "local:2")
    ended = process(*words, cwd=folder, DASK_DISTRIBUTED__WORKER__PRELOAD=json.dumps([str(tmp_path / "dies.py")]))
    lines = [line for line in ended.err.splitlines() if not line.startswith("runs: ")]  # without progress
    assert ended.code == 1 and lines[0].startswith("questions.jsonl: 130 questions") and len(lines) == 2, lines
    assert lines[1].startswith("sqa: --scheduler local:2: a worker died while it started; ")


def test_slurm_job_script_is_submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake `sbatch` stores the job script."""
    script = tmp_path / "script"
    for name, body in (
        ("sbatch", f'cp "$1" {script}.part; mv {script}.part {script}; echo Submitted batch job 7'),
        ("scancel", ":"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    (tmp_path / "cluster.yaml").write_text(SLURM, encoding="utf-8")
    with scheduled(f"slurm:{tmp_path / 'cluster.yaml'}", tmp_path):
        requested = current()
        assert requested is not None
        requested.client(1)
        deadline = time.monotonic() + 60
        while not script.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
    lines = script.read_text(encoding="utf-8").splitlines()
    assert {"#SBATCH -p cpu", "#SBATCH -t 00:10:00", "#SBATCH --gres=gpu:1", "source /shared/env"} <= set(lines)
    assert "--nthreads 1 " in lines[-1] and "--nworkers 2 " in lines[-1]
