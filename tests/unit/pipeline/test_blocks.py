"""Blocks that are computed one by one, in stores without locks, yield the same files as a run in one process."""

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from refusals import refused
from small_runs import small_config

from sqa.core import ConfigError, RemoteProtocolError
from sqa.files import Store
from sqa.pipeline import STAGES, Workshop, run, save, scheduled, to_mapping
from sqa.pipeline.scheduler import Scheduler, SlurmConfig, parse

ALIASES = {"metrics": ["ew", "accuracy", "bleu", "al", "ew@aliases"]}


def files(root):
    """Return a dict that maps the path of every stage file to its content."""
    paths = (path for path in root.glob("store/*/*/*") if path.parts[-3] != "questions")
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def made_in_blocks(workshop, config):
    """Compute the blocks of a run, the last one first, and return the names of the stages that the store lacked."""
    work, lacked = workshop.work(config), []
    for block in reversed(range(len(work.blocks))):
        lacked += [name for name, stage in work.stages.items() if not workshop.store.block(stage, block).is_file()]
        workshop.make(config, block)
    return lacked


@pytest.mark.parametrize("without", [(), ("guesser", "buzzer")])
def test_blocks_equal_those_of_a_run(tmp_path, without):
    metrics = ["bleu", "dal"] if without else ["ew", "bleu", "dal"]
    config = small_config(tmp_path, 70, metrics=metrics, **dict.fromkeys(without))
    run(config, Store(tmp_path / "a"), progress=False)
    workshop = Workshop(Store(tmp_path / "b", shared=True))
    stages = [name for name in STAGES if name not in ("guess", "buzz") or not without]
    assert made_in_blocks(workshop, config) == stages * 2
    assert files(tmp_path / "b") == files(tmp_path / "a")
    assert made_in_blocks(workshop, config) == []  # no block is computed twice
    assert sum(run(config, Store(tmp_path / "b"), progress=False).made.values()) == 0
    shutil.rmtree(tmp_path / "b")  # a worker survives the deletion of its store
    assert made_in_blocks(workshop, config) == stages * 2
    assert files(tmp_path / "b") == files(tmp_path / "a")


def test_finished_run_is_reused_only_if_unchanged(tmp_path):
    config, store = small_config(tmp_path, 70), Store(tmp_path / "runs")
    workshop, folder = Workshop(store), tmp_path / "runs" / config.name
    assert workshop.finished(config, folder) is None
    result = run(config, store, progress=False)
    save(result, tmp_path / "runs")
    finished = workshop.finished(config, folder)
    assert finished is not None and finished.config == config
    for metric in result.metrics:
        assert finished.stats[metric.name].tolist() == result.stats[metric.name].tolist()
    empty = {name: int(result.stats[name].sum(axis=0)[0]) for name in ("empty-questions", "empty-sentences")}
    assert finished.counts == empty | {"unknown-pages": result.unknown_pages, "answered-questions": result.answered[0]}
    assert workshop.finished(replace(config, seed=1), folder) is None
    buzzes, report, key = folder / "run.json", folder / "report.tsv", result.stages["buzz"].key.encode()
    changes = [(buzzes, buzzes.read_bytes().replace(key, b"0" * 64)), (buzzes, b"damaged")]
    whole = report.read_bytes()
    changes += [(report, data) for data in (whole[:60], whole.replace(b"empty-sentences", b"empty"), b"\xff" + whole)]
    for path, data in changes:  # another stage key, or a damaged file
        before = path.read_bytes()
        path.write_bytes(data)
        assert workshop.finished(config, folder) is None
        path.write_bytes(before)
        assert workshop.finished(config, folder) is not None
    texts = small_config(tmp_path, 70, quality=[{"scores": {"file": "no.txt", "name": "own", "made_by": "us"}}])
    own = (folder / "config.yaml").read_text(encoding="utf-8")
    (folder / "config.yaml").write_text(yaml.safe_dump(to_mapping(texts)), encoding="utf-8")
    assert workshop.finished(texts, folder) is None  # the keys do not identify the model that scored the texts
    (folder / "config.yaml").write_text(own, encoding="utf-8")
    store.block(result.stages["guess"], 1).unlink()
    assert workshop.finished(config, folder) is None  # the store lacks a block


def test_metrics_of_aliases_change_only_the_scores(tmp_path):
    workshop = Workshop(Store(tmp_path / "a"))
    plain, generous = (workshop.work(small_config(tmp_path, **keys)).stages for keys in ({}, ALIASES))
    assert [name for name in STAGES if plain[name] != generous[name]] == ["score"]


def test_plan_is_recomputed_after_own_code_changed(tmp_path):
    part, workshop = tmp_path / "mine.py", Workshop(Store(tmp_path / "a"))
    plans = []
    for note in ("one", "one", "two"):
        part.write_text(f"class Mine:\n    def translate(self, source): yield from source\n# {note}\n")
        plans.append(workshop.work(small_config(tmp_path, translator=f"{part}:Mine")).stages)
    assert plans[0] == plans[1] != plans[2]


# -------------------------------------------------------------------------------------------------- shared folders


def test_missing_file_of_a_shared_folder_is_awaited(tmp_path, monkeypatch):
    path, slept = tmp_path / "0123" / "block-0000.npz", []
    path.parent.mkdir()

    def sleep(seconds):
        slept.append(seconds)
        path.write_bytes(b"the bytes")

    monkeypatch.setattr("sqa.files.store.time.sleep", sleep)
    with pytest.raises(FileNotFoundError):
        Store(tmp_path).content(path)
    assert Store(tmp_path, shared=True).content(path) == b"the bytes" and len(slept) == 1


# ------------------------------------------------------------------------------------------------------- scheduler


def test_scheduler_options_are_parsed_or_refused():
    assert (parse("local"), parse("local:4")) == (("local", ""), ("local", "4"))
    assert parse("tcp://10.0.0.1:8786") == ("address", "tcp://10.0.0.1:8786")
    assert parse("slurm:cluster.yaml") == ("slurm", "cluster.yaml")
    for spec in ("", "locale", "local:", "local:0", "local:x", "tcp://host", "tcp:host:1", "slurm:"):
        refused(ConfigError, "--scheduler: expected local, local:N, tcp://HOST:PORT or slurm:FILE", parse, spec)
    refused(ConfigError, r"jobs: must be >= 1, got 0", SlurmConfig, jobs=0)


def test_end_of_all_slurm_jobs_is_an_error(tmp_path, monkeypatch):
    """Regression test: a run waited forever after all jobs had reached their walltime."""
    monkeypatch.setattr("sqa.pipeline.scheduler.need", lambda *what: None)
    workers, made = {}, Scheduler("slurm:c.yaml", Store(tmp_path))
    made._client = SimpleNamespace(scheduler_info=lambda n_workers: {"workers": workers})
    made._cluster = SimpleNamespace()
    made.check_jobs(["mine block 4"])  # the jobs are still in the queue
    workers["a"] = {}
    made.check_jobs(["mine block 4"])
    workers.clear()
    refused(RemoteProtocolError, "all jobs have ended before mine block 4 was done", made.check_jobs, ["mine block 4"])


def test_store_without_a_scheduler_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="--store: only for --scheduler"), scheduled(None, tmp_path, Path("x")):
        pass
