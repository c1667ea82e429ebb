"""Other work on Dask workers: the table of translators, training, and a board's evaluations."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_ablation import DASK_WARNS, blocks, threads_as_workers
from doubles import write_questions
from needs import missing
from refusals import refused
from small_runs import PARTS

import sqa.data.texts
from experiments.studies import translation_table
from smt.training.sweep import sweep
from smt.training.transformer_training import SmtTraining
from sqa.pipeline import overrides
from sqa.pipeline.blocks import Workshop
from sqa.pipeline.scheduler import scheduled
from sqa.pipeline.spread import run_all
from tests.sweep_process import config, prepared, sentence_pairs

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
    sentences = "".join(f"frase número {i} de la prueba\tsentence {i} of the test\n" for i in range(130))
    (tmp_path / "sentences.tsv").write_text(sentences, encoding="utf-8")
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

    def noted(self: Workshop, config: Any, wanted: Any, *more: Any) -> bool:
        made.add((wanted.name, get_worker().name))
        return make(self, config, wanted, *more)

    monkeypatch.setattr(Workshop, "make", noted)
    parts = PARTS | {"translator": {"name": "doubles:build_placed", "k": 3}}
    Path("placed.yaml").write_text(yaml.safe_dump({"dataset": {"name": "questions.jsonl"}, **parts}), encoding="utf-8")
    runs = [config for _, config in overrides.grid(Path("placed.yaml"), overrides.parsed_axes(["seed=1,2"]))]
    here = run_all(runs, Path("alone"), progress=False)
    made.clear()
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


# -------------------------------------------------------------------------------------------------------- training

STEPS = 5  # steps of a training run, with a checkpoint after the third


@pytest.fixture
def prepared_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return two folders for --runs with equal prepared data; BLEU is computed on generated sentence pairs."""
    monkeypatch.setattr(sqa.data.texts, "load_parallel", sentence_pairs)
    return tuple(prepared(tmp_path / name).parents[2] for name in ("alone", "spread"))  # type: ignore[return-value]


def swept(runs: Path, where: str | None) -> list[tuple[Any, ...]]:
    with scheduled(where, runs):
        return [(run.k, run.seed, run.bleu) for run in sweep(config(STEPS), (2, "multi"), 2, runs)]


def weights(runs: Path) -> dict[str, bytes]:
    return {str(path.relative_to(runs)): path.read_bytes() for path in runs.rglob("model/*") if path.is_file()}


def losses(folder: Path) -> list[list[str]]:
    """Return step, loss, number of pieces and learning rate of every step, without times."""
    return [line.split("\t")[:4] for line in (folder / "steps.tsv").read_text().splitlines()[1:]]


def test_sweep_on_two_workers_gives_equal_models(prepared_runs, scheduler, monkeypatch):
    """A killed worker loses only the steps since the checkpoint; finished training runs are not repeated."""
    alone, spread = prepared_runs
    expected = swept(alone, None)
    assert [run[:2] for run in expected] == [(2, 0), (2, 1), ("multi", 0), ("multi", 1)]
    steps, kept = [], SmtTraining.step

    def counted(self: SmtTraining, number: int) -> tuple[float, int]:
        steps.append((self.folder.name, number))
        if len(steps) == STEPS:  # fails once, after the checkpoint of the first training run
            raise OSError("the worker is gone")
        return kept(self, number)

    monkeypatch.setattr(SmtTraining, "step", counted)
    refused(OSError, "the worker is gone", swept, spread, scheduler)
    first = steps[0][0]
    assert steps[:STEPS] == [(first, step) for step in range(STEPS)]
    assert [path.name for path in (spread / "smt" / "tiny" / first).glob("checkpoint-*")] == ["checkpoint-0000003.pt"]
    before = len(steps)
    assert swept(spread, scheduler) == expected
    assert [step for name, step in steps[before:] if name == first] == [3, 4]
    assert weights(spread) == weights(alone) and len(weights(alone)) >= 4
    for folder in (alone / "smt" / "tiny").glob("*-seed*"):
        assert losses(spread / "smt" / "tiny" / folder.name) == losses(folder), folder.name
    made = len(steps)
    assert swept(spread, scheduler) == expected and len(steps) == made


# ----------------------------------------------------------------------------------------------------------- a board

MODEL = {"dataset": {"name": "mini-es"}, **PARTS}  # a board provides its own questions


@pytest.fixture
def boards(tmp_path: Path) -> Iterator[Callable[[str], Any]]:
    """Yield a function that opens a board with one model and 70 questions (two blocks) with perturbed copies."""
    from sqa_services.board.board import Board, BoardConfig

    made = []

    def board(name: str) -> Board:
        made.append(Board.open(BoardConfig(tmp_path / name)))
        source = write_questions(tmp_path / "questions.jsonl", 70)
        made[-1].register_dataset("sqa-es", "data", str(source), ["typos"])
        made[-1].register_model("sqa-es", "m", "config", yaml.safe_dump(MODEL).encode())
        return made[-1]

    yield board
    for one in made:
        one.engine.dispose()


def results_of(board: Any) -> list[tuple[str, str, Any]]:
    """Return prefix, state and result of every evaluation, without the measurements of time and memory."""
    kept = [(row["prefix"], row["state"], dict(row["result"] or {})) for row in board.evaluations("sqa-es")]
    return [(prefix, state, {k: v for k, v in result.items() if k != "job"}) for prefix, state, result in kept]


def test_workers_compute_the_runs_of_a_board(boards, scheduler, tmp_path, monkeypatch):
    from sqa_services.board import running, worker

    here, there = boards("here"), boards("there")
    assert worker.work(here, until_empty=True) == 2
    monkeypatch.setattr(running.engine, "run", lambda *a, **k: pytest.fail("it was run in this process"))
    with scheduled(scheduler, there.config.work):
        assert worker.work(there, until_empty=True) == 2
    assert results_of(there) == results_of(here)
    assert [(prefix, state) for prefix, state, _ in results_of(there)] == [("", "done"), ("robustness", "done")]
    [timed, *_], [untimed, *_] = (board.evaluations("sqa-es") for board in (here, there))
    assert "examples_per_second" in timed["result"]["job"] and untimed["result"]["job"] == {}
    answers = [sorted((tmp_path / name / "files" / "predictions").rglob("*.jsonl*")) for name in ("here", "there")]
    assert answers[0] and [path.read_bytes() for path in answers[0]] == [path.read_bytes() for path in answers[1]]
    made, spread = blocks(tmp_path / "here" / "runs"), blocks(tmp_path / "there" / "runs")
    assert {name: spread[name] for name in made} == made and any("block-0001" in name for name in made)


def test_lost_scheduler_does_not_fail_the_evaluation(boards, scheduler, monkeypatch):
    """The board's worker ends with an error, and another worker finishes the evaluation."""
    from sqa.pipeline import spread
    from sqa.pipeline.scheduler import SchedulerGone
    from sqa_services.board import worker

    def gone(*_: Any) -> None:
        raise SchedulerGone("--scheduler: is gone")

    board = boards("lost")
    with monkeypatch.context() as patch, scheduled(scheduler, board.config.work):
        patch.setattr(spread, "spread", gone)
        with pytest.raises(SchedulerGone):
            worker.work(board, until_empty=True, lease_seconds=0.2)
    assert [row["state"] for row in board.evaluations("sqa-es")] == ["running", "queued"]
    assert worker.work(board, until_empty=True) == 2


def test_model_error_is_reported_by_the_board(boards: Callable[[str], Any], scheduler: str) -> None:
    """The error is the same on a worker of the scheduler as in a local run."""
    from sqlalchemy import update

    from sqa_services.board import worker
    from sqa_services.board.storage import EVALUATIONS

    board, errors = boards("wrong"), []
    wrong = MODEL | {"translator": {"name": "waitk", "model": "nowhere", "k": 3}}
    board.register_model("sqa-es", "wrong", "config", yaml.safe_dump(wrong).encode())
    for where in (scheduler, None):
        with scheduled(where, board.config.work):
            worker.work(board, until_empty=True)
        errors.append([row["error"] for row in board.evaluations("sqa-es", "failed")])
        with board.engine.begin() as connection:
            connection.execute(update(EVALUATIONS).where(EVALUATIONS.c.state == "failed").values(state="queued"))
    assert errors[0] == errors[1] and "nowhere" in errors[0][0]
