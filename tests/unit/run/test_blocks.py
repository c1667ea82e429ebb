"""Blocks made one by one, and stores without locks: the same files as a run in one process writes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from small_runs import small_config, small_run

from sqa.core.errors import ConfigError, DataError
from sqa.core.registry import TRANSLATORS
from sqa.core.trace import GUESSES
from sqa.files import shared as shared_stores
from sqa.files.shared import Objects, SharedFolder, shared
from sqa.files.store import Store
from sqa.run.blocks import Workshop
from sqa.run.config import RunConfig, to_mapping
from sqa.run.folder import pack, unpack
from sqa.run.parts import Parts
from sqa.run.pipeline import run
from sqa.run.saving import save
from sqa.run.scheduler import SlurmConfig, current, parse, scheduled

KILLED = """
import os, signal, sys
from pathlib import Path
from sqa.files import shared as shared_stores
shared_stores.os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
shared_stores.SharedFolder().write(Path(sys.argv[1]), b"the bytes")
"""


def files(root: Path) -> dict[str, bytes]:
    """Of all stages."""
    paths = (path for path in root.glob("store/*/*/*") if path.parts[-3] != "questions")
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def made_in_blocks(workshop: Workshop, config: RunConfig) -> list[bool]:
    planned = workshop.plan(config)
    return [workshop.make(config, stage, b) for b in reversed(range(planned.blocks)) for stage in planned.stages]


@pytest.mark.parametrize("without", [(), ("buzzer",), ("guesser", "buzzer")])
def test_blocks_are_those_of_a_run(tmp_path: Path, without: tuple[str, ...]) -> None:
    metrics = ["bleu", "dal"] if without else ["ew", "bleu", "dal"]
    config = small_config(tmp_path, 70, metrics=metrics, **dict.fromkeys(without))
    run(config, Store(tmp_path / "a"), progress=False)
    workshop = Workshop(Store(tmp_path / "b", SharedFolder()))
    assert all(made_in_blocks(workshop, config))
    assert files(tmp_path / "b") == files(tmp_path / "a")
    assert not any(made_in_blocks(workshop, config))  # nothing is made twice
    assert sum(run(config, Store(tmp_path / "b"), progress=False).made.values()) == 0


def test_a_run_is_finished_where_its_folder_is_what_it_would_be_now(tmp_path: Path) -> None:
    config, store = small_config(tmp_path, 70), Store(tmp_path / "runs")
    workshop, folder = Workshop(store), tmp_path / "runs" / config.name
    assert workshop.finished(config, folder) is None
    result = run(config, store, progress=False)
    save(result, tmp_path / "runs")
    finished = workshop.finished(config, folder)
    assert finished is not None and finished.config == config
    assert {name: stats.tolist() for name, stats in finished.stats.items()} == {
        metric.name: result.stats[metric.name].tolist() for metric in result.metrics
    }
    empty = {name: int(result.stats[name].sum(axis=0)[0]) for name in ("empty-questions", "empty-sentences")}
    assert finished.counts == empty | {"unknown-pages": result.unknown_pages}
    other = replace(config, seed=1)
    assert workshop.finished(other, folder) is None  # another config
    summary = (folder / "run.json").read_text(encoding="utf-8")
    key = result.stages["buzz"].key
    (folder / "run.json").write_text(summary.replace(key, "0" * 64), encoding="utf-8")
    assert workshop.finished(config, folder) is None  # a component of other results
    (folder / "run.json").write_text("damaged", encoding="utf-8")
    assert workshop.finished(config, folder) is None
    (folder / "run.json").write_text(summary, encoding="utf-8")
    assert workshop.finished(config, folder) is not None
    report = (folder / "report.tsv").read_bytes()
    for corrupted in (report[:60], report.replace(b"empty-sentences", b"empty"), b"\xff" + report, b""):
        (folder / "report.tsv").write_bytes(corrupted)
        assert workshop.finished(config, folder) is None  # written anew, not read in half
    (folder / "report.tsv").write_bytes(report)
    texts = small_config(tmp_path, 70, quality=[{"scores": {"file": "no.txt", "name": "own", "made_by": "us"}}])
    own = (folder / "config.yaml").read_text(encoding="utf-8")
    (folder / "config.yaml").write_text(yaml.safe_dump(to_mapping(texts)), encoding="utf-8")
    assert workshop.finished(texts, folder) is None  # the keys do not say which model scored its texts
    (folder / "config.yaml").write_text(own, encoding="utf-8")
    store.block(result.stages["guess"], 1).unlink()
    assert workshop.finished(config, folder) is None  # the store lacks a block


def test_blocks_in_object_storage(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    config = small_config(tmp_path, 70)
    run(config, Store(tmp_path / "a"), progress=False)
    root, backend = shared("memory://bucket/deep")
    assert backend == Objects("memory")
    store = Store(root, backend)
    assert all(made_in_blocks(Workshop(store), config))
    memory = fsspec.filesystem("memory")
    objects = {name.removeprefix("/bucket/deep/"): memory.cat_file(name) for name in memory.find("bucket/deep")}
    assert objects == files(tmp_path / "a")
    result = run(config, store, progress=False)
    assert (result.made, len(result.traces)) == ({"translate": 0, "guess": 0, "buzz": 0, "score": 0}, 70)
    stage = result.stages["guess"]
    assert store.stage("guess", stage.key) == stage
    with pytest.raises(DataError, match="is missing"):
        store.read(stage, 7, GUESSES)


def test_a_worker_with_another_model_is_refused(tmp_path: Path) -> None:
    workshop, config = Workshop(Store(tmp_path / "a")), small_config(tmp_path)
    generous = workshop.plan(small_config(tmp_path, answers={"matching": "aliases"})).stages
    assert workshop.plan(config).stages[:-1] == generous[:-1] and workshop.plan(config).stages[-1] != generous[-1]
    stage = replace(workshop.plan(config).stages[0], fingerprint="of another version")
    with pytest.raises(DataError, match="t: stage translate: models, code or questions here are not those"):
        workshop.make(config, stage, 0)
    assert not (tmp_path / "a").exists()


def test_a_file_of_another_machine_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            (tmp_path / "file").write_bytes(b"here")

    monkeypatch.setattr(shared_stores.time, "sleep", sleep)
    assert SharedFolder().read(tmp_path / "file") == b"here"
    assert waited == list(shared_stores.WAITS[:3])
    with pytest.raises(FileNotFoundError):
        SharedFolder().read(tmp_path / "no folder" / "file")
    assert len(waited) == 3


def test_what_a_killed_writer_left_in_a_shared_folder_goes(tmp_path: Path) -> None:
    path = tmp_path / "translate" / "0123" / "block-0000.npz"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert [p for p in path.parent.rglob("*") if p.is_file()] != []
    SharedFolder().write(path, b"the bytes")
    assert [p.name for p in path.parent.iterdir()] == [path.name]
    assert path.read_bytes() == b"the bytes"


def test_two_writers_of_one_shared_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, sync = tmp_path / "block-0000.npz", os.fsync

    def overtaken(handle: int) -> None:
        monkeypatch.setattr(shared_stores.os, "fsync", sync)
        SharedFolder().write(path, b"the bytes")  # another is done before this one
        sync(handle)

    monkeypatch.setattr(shared_stores.os, "fsync", overtaken)
    SharedFolder().write(path, b"the bytes")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert path.read_bytes() == b"the bytes"


def test_a_shared_folder_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError):
        SharedFolder().write(tmp_path / "file" / "block-0000.npz", b"the bytes")


def test_a_folder_packed_and_unpacked(tmp_path: Path) -> None:
    save(small_run(tmp_path), tmp_path)
    unpack(pack(small_run(tmp_path)), tmp_path / "there")
    names = {"config.yaml", "report.tsv", "run.json", "stats.npz", "times.json"}
    assert {path.name for path in (tmp_path / "there").iterdir()} == names
    for name in names - {"times.json"}:
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "t" / name).read_bytes()
    before = (tmp_path / "t" / "times.json").read_bytes()
    unpack(pack(small_run(tmp_path)), tmp_path / "t")
    assert (tmp_path / "t" / "times.json").read_bytes() == before  # of the same stages


def test_components_beyond_the_last_ones_go(tmp_path: Path) -> None:
    parts, name = Parts(keep=2), "doubles:build_translator"
    first, *others = (small_config(tmp_path, translator={"name": name, "k": k}).translator for k in (2, 3, 4))
    kept = parts.component(TRANSLATORS, first)
    parts.component(TRANSLATORS, others[0])
    assert parts.component(TRANSLATORS, first) is kept
    parts.component(TRANSLATORS, others[1])
    assert parts.component(TRANSLATORS, first) is kept
    parts.component(TRANSLATORS, others[0])
    parts.component(TRANSLATORS, others[1])
    assert parts.component(TRANSLATORS, first) is not kept


def test_schedulers() -> None:
    assert (parse("local"), parse("local:4")) == (("local", ""), ("local", "4"))
    assert parse("tcp://10.0.0.1:8786") == ("address", "tcp://10.0.0.1:8786")
    assert parse("slurm:cluster.yaml") == ("slurm", "cluster.yaml")
    for spec in ("", "locale", "local:", "local:0", "local:x", "tcp://host", "tcp:host:1", "slurm:"):
        with pytest.raises(ConfigError, match="--scheduler: expected local, local:N, tcp://HOST:PORT or slurm:FILE"):
            parse(spec)


def test_nothing_is_started_before_it_is_used(tmp_path: Path) -> None:
    assert current() is None
    with scheduled("local", tmp_path):
        asked = current()
        assert asked is not None and asked.dashboard == ""
    assert current() is None
    with pytest.raises(ConfigError, match="--store: is for --scheduler"), scheduled(None, tmp_path, "s3://b/x"):
        pass
    with pytest.raises(ConfigError, match="--store: nowhere://b/x"), scheduled("local", tmp_path, "nowhere://b/x"):
        pass


def test_slurm_configs() -> None:
    with pytest.raises(ConfigError) as refused:
        SlurmConfig(jobs=0, cores=0)
    assert refused.value.problems == ("jobs: must be >= 1, got 0", "cores: must be >= 1, got 0")
