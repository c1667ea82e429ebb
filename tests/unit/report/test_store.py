"""The store of a folder of runs: used and unused stages."""

import shutil
from pathlib import Path

import pytest
from stand_ins.keyed_parts import LESSONS

from guessers.retrieval import counting
from sqa.cli import data as stored
from sqa.cli.data import COLUMNS, listing
from sqa.files.store import Store
from sqa.pipeline import folder as folders
from sqa.pipeline import saving
from sqa.pipeline.config import run_from_mapping
from sqa.pipeline.engine import STAGES, run


def toy(runs: Path, name: str = "bm25", **options: object) -> dict[str, object]:
    """Return the config of a guesser whose model has two pages, which suffice to compare keys."""
    model = runs / "toy"
    if not model.exists():
        counting.fit(LESSONS, 1).save(model)
    return {"name": name, "model": str(model), **options}


def make(runs: Path, name: str, guesser: dict | None = None, **changes: object) -> Path:
    dataset = {"name": "mini-es", "limit": 2}
    mapping = {"name": name, "dataset": dataset, "translator": "fixed", "guesser": guesser or toy(runs)}
    config = run_from_mapping(mapping | {"buzzer": "oracle", "metrics": ["ew"]} | changes)
    return saving.save(run(config, Store(runs), progress=False), runs)


def test_stored_stages_name_their_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make(tmp_path, "a")
    make(tmp_path, "b", metrics=["ew", "accuracy"])
    held = {(stage.stage, stage.runs) for stage in stored.holdings(tmp_path)}
    both = {(stage, ("a", "b")) for stage in ("questions", "translate", "guess", "buzz")}
    assert held == both | {("score", ("a",)), ("score", ("b",))}
    for stage in stored.holdings(tmp_path):
        assert stage.size > 100 and (stage.blocks > 0) == (stage.stage != "questions")
    listing(tmp_path)
    header, *rows = capsys.readouterr().out.splitlines()
    assert header.split("\t") == list(COLUMNS) and len(rows) == 6


def test_prune_removes_unused_stages(tmp_path: Path) -> None:
    make(tmp_path, "a")
    shutil.rmtree(make(tmp_path, "b", toy(tmp_path, "tfidf"), dataset={"name": "mini-es", "limit": 1}))
    assert sorted(stage.stage for stage in stored.pruned(tmp_path)) == sorted(["questions", *STAGES])
    assert not list(stored.pruned(tmp_path)) and {stage.runs for stage in stored.holdings(tmp_path)} == {("a",)}
    folders.read(tmp_path / "a").open()  # the run is still complete
