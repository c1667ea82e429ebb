"""Worker processes: results with any number of workers, crashes, errors, memory, and a killed parent."""

import gc
import os
import signal
import subprocess
import sys
import time
import weakref
from concurrent.futures import Future
from functools import partial
from itertools import count, product
from pathlib import Path

import pytest
from doubles import EchoConfig, EchoTranslator, write_questions
from refusals import refused
from small_runs import small_config
from tables import tables_of

import sqa
from sqa.core import ROOT, DataError, RemoteProtocolError
from sqa.data.datasets import load_questions
from sqa.files import Store
from sqa.pipeline import engine, pool, run_from_mapping, runner, saving, workshop_of
from sqa.pipeline.pool import Call, Processes, available, fitting, in_process, results

TABLES = tables_of(__file__)


def square(number: int) -> int:
    return number * number


def die_once(number: int, mark: Path) -> int:
    """Kill this worker, unless the mark shows that a worker was already killed."""
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
    return lambda done: [[Call(function, (n,), n) for n in numbers if n not in done]]


def chain(done):
    """Return a call that other calls follow."""
    return [[Call(square, (3,), then=lambda: [Call(square, (i,), i) for i in range(3) if i not in done])]]


def test_pool_gives_the_same_results_as_one_process():
    for wanted in (calls(square), chain):
        expected = dict(in_process(wanted))
        assert dict(results(Processes(2), wanted)) == expected


def test_dead_worker_is_replaced(tmp_path, capsys):
    wanted = calls(partial(die_once, mark=tmp_path / "dead"))
    assert sorted(results(Processes(2), wanted)) == [(0, 0), (1, 1), (2, 4), (3, 9)]  # no result occurs twice
    assert capsys.readouterr().err.count("a worker died") == 1


def test_pool_stops_after_repeated_worker_deaths():
    refused(RemoteProtocolError, "4 workers died; is there enough memory", list, results(Processes(1), calls(die, [0])))


def test_error_of_a_task_ends_the_pool():
    refused(DataError, "no 0", list, results(Processes(2), calls(refuse, [0])))


def test_translators_with_different_k_share_the_weights():
    from smt.models.waitk_translator import WaitKConfig, build  # not in workers, which import this module

    networks = {id(build(WaitKConfig("es-en", k)).writer.model) for k in (1, 3, "full")}
    assert len(networks) == 1


def test_workshop_of_the_last_store_is_freed(tmp_path):
    first = weakref.ref(workshop_of(Store(tmp_path / "a")))
    assert workshop_of(Store(tmp_path / "a")) is first()
    workshop_of(Store(tmp_path / "b"))
    gc.collect()
    assert first() is None


def test_workers_fit_the_memory(tmp_path):
    file = tmp_path / "meminfo"
    file.write_text("MemTotal: 99999999 kB\nMemAvailable:   16777216 kB\n", encoding="ascii")
    assert available(file, tmp_path) == 16 << 30
    assert [fitting(size << 30, 16 << 30) for size in (1, 3, 12, 100)] == [12, 4, 1, 1]
    for name, value in (("max", str(12 << 30)), ("current", str(4 << 30))):
        (tmp_path / f"memory.{name}").write_text(f"{value}\n", encoding="ascii")
    assert available(file, tmp_path) == 8 << 30
    assert available(tmp_path / "missing", tmp_path / "missing") is None
    assert fitting(1, None) == sys.maxsize


def made_with(workers, folder, name):
    """Compute two runs together and a third run alone, and return the content of their files in folder/name.

    Locks and the `.partial` files that killed writers leave do not count.
    """
    translators = [{"name": "doubles:build_dying", "k": k} for k in (1, 2, 3)]
    one, two, three = (small_config(folder, 9, name=f"k{t['k']}", translator=t) for t in translators)
    runs = folder / name
    swept = runner.run_all([one, two], runs, False, workers)
    assert [run.folder.name for run in swept] == ["k1", "k2"]
    result = engine.run(three, Store(runs), progress=False, ahead=partial(runner.make_ahead, workers=workers))
    saving.save(result, runs)
    assert result.made == dict.fromkeys(engine.STAGES, 1)
    files = (path for path in sorted(runs.rglob("*")) if path.is_file() and path.suffix not in (".lock", ".partial"))
    return {str(path.relative_to(runs)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Return a folder, and the content of the files that one process makes in it."""
    folder = tmp_path_factory.mktemp("pooled")
    return folder, made_with(1, folder, "alone")


@pytest.fixture
def pooled(tmp_path, monkeypatch):
    """Use worker processes even for few questions."""
    for module in (runner, engine):
        monkeypatch.setattr(module, "FEW", 0)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("pooled")
def test_any_number_of_workers_writes_equal_bytes(alone):
    folder, files = alone
    assert made_with(4, folder, "4") == files and len(files) > 20


@pytest.mark.usefixtures("pooled")
@pytest.mark.parametrize("question", [8])
def test_killed_worker_changes_no_byte(question, alone, monkeypatch, capsys):
    folder, files = alone
    monkeypatch.setenv("FATAL_WORD", str(question))
    assert made_with(2, folder, f"killed{question}") == files
    assert capsys.readouterr().err.count("a worker died") == 1


@pytest.mark.usefixtures("pooled")
def test_object_as_a_part_stays_in_this_process(tmp_path):
    config = {"dataset": {"name": str(write_questions(tmp_path / "q.jsonl", 9))}, "metrics": ["bleu"]}
    echo = EchoTranslator(EchoConfig())
    assert sqa.run(config, translator=echo, workers=2, progress=False).metrics["bleu"] == pytest.approx(100)


def test_runs_with_one_name_share_a_task(tmp_path):
    translators = [{"name": "doubles:build_translator", "k": k} for k in (1, 2)]
    one, two = (small_config(tmp_path, translator=translator) for translator in translators)
    assert runner.Job(one).group() != runner.Job(two).group()
    assert runner.Job(one, beside="a").group() == runner.Job(two, beside="a").group()


def test_small_models_and_question_sets_come_first(tmp_path, monkeypatch):
    taken = []
    monkeypatch.setattr(runner, "in_process", lambda groups: taken.extend(g[0].title for g in groups(())) or ())
    small = {"name": "fixed", "text": "reference"}
    parts = [("a", {"name": "causal-lm", "model": "lm-es-en"}, 1), ("b", small, 5), ("c", small, 2)]
    configs = [
        run_from_mapping({"name": name, "dataset": {"name": "mini-es", "limit": n}, "translator": part})
        for name, part, n in parts
    ]
    list(runner.run_jobs([runner.Job(config) for config in configs], Store(tmp_path), workers=1))
    assert [title.split(" block")[0] for title in taken] == ["c", "b", "a"]


def test_few_questions_stay_in_this_process(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "ProcessPoolExecutor", None)
    config = run_from_mapping(
        {"name": "x", "dataset": {"name": "mini-es", "limit": 2}, "translator": {"name": "fixed", "text": "reference"}}
    )
    costs: list[int] = []
    [(index, files)] = runner.run_jobs([runner.Job(config)], Store(tmp_path), 8, costs.append)
    assert index == 0 and "run.json" in files
    assert costs == [sum(len(question.words) for question in load_questions("mini-es", 2))]  # one block


def test_run_is_finished_once_after_its_last_block(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "BLOCK_SIZE", 1)
    monkeypatch.setattr(runner, "BLOCK_SIZE", 1)
    config = run_from_mapping(
        {"name": "x", "dataset": {"name": "mini-es", "limit": 3}, "translator": {"name": "fixed", "text": "reference"}}
    )
    costs: list[int] = []
    results = [
        (index, len(costs)) for index, _ in runner.run_jobs([runner.Job(config)], Store(tmp_path), 1, costs.append)
    ]
    assert results == [(0, 3)]


def test_blocks_of_the_first_group_come_first():
    groups = [[Call(square, (block,), words=9, group=name) for block in range(3)] for name in "ab"]
    waiting = pool.Waiting(groups, workers=4)
    assert [waiting.take().group for _ in range(6)] == ["a", "a", "a", "b", "b", "b"]


TASK = TABLES["task"]
PACES = (0.8, 1.4, 1.4, 1.3, 1.5, 1.7, 2.2, 2.6)  # recorded ms per source word, by translator and k, two runs each
BLOCKS = ((5600, 5700, 1700), (3600,) * 7 + (3400,))  # source words per block of XQB Spanish and Polish
END = 0.2  # recorded seconds of a run's end


def recorded_groups(copies):
    """Return `copies` copies of the recorded calls of an ablation, which only sleep, and the seconds of each call."""
    seconds, groups, ends = [], [], count()

    def call(value, **more):
        seconds.append(value)
        return Call(time.sleep, (value,), **more)

    for group, (pace, words) in enumerate(list(product(PACES, BLOCKS)) * copies):
        last, left = [call(END, result=next(ends)) for _ in range(2)], list(words)

        def ended(left=left, last=last):
            left.pop()
            return [] if left else last

        groups.append([call(pace * n / 1000, words=n, group=str(group), then=ended) for n in words])
    return groups, seconds


class Clock(Processes):
    """Workers that advance a simulated clock instead of executing their calls."""

    now, submitted = 0.0, 0

    def submit(self, call):
        future = Future()
        future.set_result((None, call.arguments[0], 1 << 20))
        self.submitted += 1
        self.ends = {**getattr(self, "ends", {}), future: (self.now + call.arguments[0], self.submitted)}
        return future

    def wait(self, running):
        first = min(running, key=self.ends.get)
        self.now = self.ends[first][0]
        return [first]


@pytest.mark.parametrize("workers", [4, 16, 64])
def test_schedule_reaches_90_percent_of_the_ideal(workers, monkeypatch):
    monkeypatch.setattr(pool, "available", lambda: None)
    groups, seconds = recorded_groups(copies=4)
    clock = Clock(workers)
    assert len(list(results(clock, lambda _: groups))) == 128
    assert max(max(seconds), sum(seconds) / workers) / clock.now >= 0.9


WORKERS = TABLES["workers"]


def test_no_worker_outlives_a_killed_parent(tmp_path):
    script = tmp_path / "parent.py"
    (tmp_path / "task.py").write_text(TASK, encoding="utf-8")
    script.write_text(WORKERS, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True, env=environment) as parent:
        assert parent.stdout is not None and len({parent.stdout.readline(), parent.stdout.readline()}) == 2
        parent.kill()
        parent.communicate(timeout=30)  # ends when no process has this output open any more
