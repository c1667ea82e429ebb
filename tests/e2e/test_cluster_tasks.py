"""What is no run of a grid, on Dask's workers: the table of translators, trainings, a board's evaluations."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_ablation import blocks
from doubles import write_questions

from sqa.core.errors import DataError
from sqa.data.datasets import load_questions
from sqa.files.store import Store, dataset_fingerprint
from sqa.run.blocks import keep, kept
from sqa.run.scheduler import scheduled

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a scheduler with two workers, which are threads of this process."""
    from distributed import LocalCluster

    quick = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(protocol="tcp://", host="127.0.0.1", **quick) as cluster:
        yield cluster.scheduler_address
    gc.collect()  # Dask leaves its sockets to the collector: they go here, not in another file


# --------------------------------------------------------------------------------------------- table of translators


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The config of a table: questions (two blocks), sentences (three), and translators with and without k."""
    monkeypatch.chdir(tmp_path)
    write_questions(tmp_path / "questions.jsonl", 70)
    sentences = "".join(f"frase número {i} de la prueba\tsentence {i} of the test\n" for i in range(130))
    (tmp_path / "sentences.tsv").write_text(sentences, encoding="utf-8")
    copy = {"label": "copy", "pair": "es-en", "k": [1, 3], "translator": {"name": "doubles:build_translator"}}
    human = {"label": "human", "pair": "es-en", "translator": {"name": "fixed", "reveal": "full"}}
    sets = [{"name": name, "pair": "es-en"} for name in ("questions.jsonl", "gone.tsv", "sentences.tsv")]
    mapping = {"name": "few", "sets": sets, "translators": [copy, human], "resamples": 20}
    Path("few.yaml").write_text(yaml.safe_dump(mapping), encoding="utf-8")
    return Path("few.yaml")


def test_the_table_of_translators_is_the_same_on_two_workers(
    table: Path, scheduler: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from experiments.studies.translation_table import main

    printed = []
    for folder, where in (("alone", None), ("spread", scheduler)):
        with scheduled(where, Path(folder)):
            main(table, Path(folder))
        printed.append(capsys.readouterr())
    assert printed[0].out == printed[1].out and len(printed[0].out.splitlines()) == 8
    assert "question/s" in printed[0].err and "question/s" not in printed[1].err  # nothing was made in this process
    files = sorted(path.name for path in Path("alone/few").iterdir())
    assert "figure8.png" in files and "table.md" in files
    for name in files:
        assert Path("alone/few", name).read_bytes() == Path("spread/few", name).read_bytes(), name
    here, there = blocks(Path("alone")), blocks(Path("spread"))
    assert there.keys() - here.keys() == {name for name in there if name.startswith("store/questions/")}
    assert {name: there[name] for name in here} == here and sum("block-" in name for name in here) == 3 * 2 * (2 + 3)


def test_workers_need_no_file_of_the_questions(
    table: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They are told by the store what was read here; a second run makes nothing again."""
    from experiments.studies import translation_table

    read = translation_table.load_set

    def gone(*asked: Any) -> Any:
        test = read(*asked)
        Path(test.dataset).unlink()
        return test

    monkeypatch.setattr(translation_table, "load_set", gone)
    with scheduled(scheduler, Path("runs"), "elsewhere"):
        translation_table.main(table, Path("runs"))
    assert len(capsys.readouterr().out.splitlines()) == 8
    assert not Path("runs/store").exists() and any(Path("elsewhere/store").glob("score/*/block-0002.parquet"))


def test_questions_come_back_from_the_store_as_they_were(tmp_path: Path) -> None:
    store, questions = Store(tmp_path), load_questions("mini-pl", 5)
    given = keep(store, questions)
    assert given == dataset_fingerprint(questions) == keep(store, questions)
    assert kept(store, given) == questions
    [path] = tmp_path.rglob("questions.jsonl")
    for damage in (b"", path.read_bytes().replace(b'"pl"', b'"es"'), b'{"id": 1}\n', b"[]\n", b"{"):
        path.write_bytes(damage)
        kept.cache_clear()
        with pytest.raises(DataError, match=r"questions\.jsonl: the questions .*delete the file"):
            kept(store, given)
