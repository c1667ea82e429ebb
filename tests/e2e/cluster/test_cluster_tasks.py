"""Other work on Dask workers: the table of translators, and runs on a GPU."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_ablation import DASK_WARNS, blocks, threads_as_workers
from doubles import write_questions
from needs import missing
from small_runs import PARTS

from experiments.studies import translation_table
from sqa.pipeline import overrides
from sqa.pipeline.runner import Workshop, run_all
from sqa.pipeline.scheduler import scheduled

pytest.importorskip("distributed", reason=missing("cluster"))
from distributed import Scheduler, SpecCluster, Worker, get_worker

pytestmark = DASK_WARNS


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """Yield the address of a scheduler with two workers that are threads of this process."""
    with threads_as_workers(workers=2) as cluster:
        yield cluster.scheduler_address
    gc.collect()  # free Dask's sockets here, so that no other test file reports them


# --------------------------------------------------------------------------------------------- table of translators


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the config of a translation table and return its path.

    The questions fill two blocks, and the sentences fill three.  One translator has two values of k, the other none.
    """
    monkeypatch.chdir(tmp_path)
    write_questions(tmp_path / "questions.jsonl", 70)
    sentences = "".join(f"frase número {i} de la prueba\tsentence {i} of the test\tes\tnone\n" for i in range(130))
    header = "source\treference\tlanguage\tpage\n"
    (tmp_path / "sentences.tsv").write_text(header + sentences, encoding="utf-8")
    copy = {"label": "copy", "pair": "es-en", "k": [1, 3], "translator": {"name": "doubles:build_translator"}}
    human = {"label": "human", "pair": "es-en", "translator": {"name": "fixed", "reveal": "full"}}
    sets = [{"name": name, "pair": "es-en"} for name in ("questions.jsonl", "gone.tsv", "sentences.tsv")]
    mapping = {"name": "few", "sets": sets, "translators": [copy, human], "resamples": 20}
    Path("few.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return Path("few.yaml")


def test_two_workers_give_the_same_translation_table(table, scheduler, capsys):
    printed = []
    for folder, where in (("alone", None), ("spread", scheduler)):
        with scheduled(where, Path(folder)):
            translation_table.main(table, Path(folder))
        printed.append(capsys.readouterr())
    assert printed[0].out.replace("alone/", "spread/") == printed[1].out
    assert len(printed[0].out.splitlines()) == 1 + 6 * 6 + 4  # one line per metric, and the files
    files = sorted(path.name for path in Path("alone/few").iterdir())
    assert "figure8.png" in files
    for name in files:
        assert Path("alone/few", name).read_bytes() == Path("spread/few", name).read_bytes(), name
    here, there = blocks(Path("alone")), blocks(Path("spread"))
    assert there == here and sum("block-" in name for name in here) == 3 * 2 * (2 + 3)


# ------------------------------------------------------------------------------------------------------------- runs


def test_only_gpu_workers_translate_on_a_gpu(table, monkeypatch):
    made, make = set(), Workshop.make

    def noted(self: Workshop, *arguments: Any) -> dict[str, float]:
        seconds = make(self, *arguments)
        made.update((stage, get_worker().name) for stage in seconds)
        return seconds

    parts = PARTS | {"translator": {"name": "doubles:build_placed", "k": 3}}
    Path("placed.yaml").write_text(yaml.safe_dump({"dataset": {"name": "questions.jsonl"}, **parts}), encoding="utf-8")
    runs = [config for _, config in overrides.grid(Path("placed.yaml"), overrides.parsed_axes(["seed=1,2"]))]
    here = run_all(runs, Path("alone"), progress=False)
    monkeypatch.setattr(Workshop, "make", noted)
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
