"""What many machines cost and bring: `python -m sqa_services.bench.cluster cost|scaling [...]`.

    cost CONFIG       an ablation in this machine's processes and on as many local workers of Dask: seconds of wall time
                      and of processor time (which a busy machine changes less), and their ratio
    scaling           a stage that only sleeps, on 1, 2 and 4 workers: speed-up over one, by the number of workers

Prints TSV.  What a million questions x 100 systems would take, by finished runs, is the item `cluster-plan`.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from sqa.core.errors import ConfigError, DataError, returns_exit_code
from sqa.core.types import Emission, Question
from sqa.files.store import Store
from sqa.run.blocks import workshop_of
from sqa.run.config import RunConfig, run_from_mapping
from sqa.run.parts import Parts
from sqa.run.pipeline import BLOCK_SIZE, STAGES
from sqa.run.scheduler import current, scheduled
from sqa.run.spread import Job, spread

SIZES = (1, 2, 4)  # workers
BLOCKS, SECONDS = 24, 2.0  # of the stage that sleeps: how many, and how long each
QUESTIONS, SYSTEMS = 1_000_000, 100  # of the plan


@dataclass(frozen=True, slots=True)
class SleeperConfig:
    """A translator that takes a known time."""

    seconds: float  # per block


class Sleeper:
    """Sleeps, and writes nothing."""

    def __init__(self, config: SleeperConfig) -> None:
        self.config = config

    def translate(self, source: Iterator[str]) -> Iterator[str]:
        """Nothing, for any source."""
        yield from ()

    def translate_batch(self, questions: Sequence[Question]) -> list[tuple[Emission, ...]]:
        """Nothing for each question, after the seconds of a block."""
        time.sleep(self.config.seconds)
        return [() for _ in questions]

    def fingerprint(self) -> str:
        """What the output depends on: nothing."""
        return "sleeper"


def build(config: SleeperConfig) -> Sleeper:
    """The translator of a config."""
    return Sleeper(config)


def cost(config: Path) -> None:
    """Time an ablation both ways, each from an empty store."""
    print("way", "wall_s", "cpu_s", sep="\t")
    found = []
    for way, options in (("in-process", []), ("local workers", ["--scheduler", "local"])):
        with TemporaryDirectory() as runs:
            command = [sys.executable, "-m", "sqa", "ablation", str(config), "--runs", runs, *options]
            before, start = _processor(), time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            found.append((time.perf_counter() - start, _processor() - before))
            print(way, *(f"{seconds:.1f}" for seconds in found[-1]), sep="\t", flush=True)
    print("ratio", *(f"{there / here:.3f}" for here, there in zip(*found, strict=True)), sep="\t")


def _processor() -> float:
    """Seconds of processor time that the ended children of this process took, and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def scaling() -> None:
    """Time the stage that sleeps on each number of workers, once they have all started."""
    print("workers", "seconds", "speed-up", "speed-up/workers", sep="\t")
    alone = 0.0
    with TemporaryDirectory() as scratch:
        questions = Path(scratch) / "questions.jsonl"
        record = {"language": "es", "source": ["a"], "reference": ["a"], "page": "A"}
        lines = (json.dumps({"id": str(i), **record}) for i in range(BLOCKS * BLOCK_SIZE))
        questions.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        translator = {"name": "sqa_services.bench.cluster:build", "seconds": SECONDS}
        run = {"name": "sleep", "dataset": {"name": str(questions)}, "translator": translator, "metrics": ["bleu"]}
        job = Job(run_from_mapping(run), _nothing, "translate")
        for workers in SIZES:
            with scheduled(f"local:{workers}", Path(scratch) / str(workers)):
                scheduler = current()
                assert scheduler is not None
                client = scheduler.client(workers)
                client.wait_for_workers(workers)
                client.run(_warm, job.config, scheduler.store)
                start = time.perf_counter()
                list(spread(scheduler, [job], workers))
                taken = time.perf_counter() - start
            alone = alone or taken
            gain = alone / taken
            print(workers, f"{taken:.1f}", f"{gain:.2f}", f"{gain / workers:.2f}", sep="\t", flush=True)


def _nothing(store: Store, parts: Parts) -> None:
    """Nothing follows the stage."""


def _warm(config: RunConfig, store: Store) -> None:
    """What a worker does before its first block, whatever the block takes: imports, questions, models."""
    workshop_of(store).plan(config, "translate")


def planned(runs: Path) -> Iterator[tuple[str, float, float]]:
    """(stage, bytes, seconds) of a question, and of all stages: means over a folder's finished runs and its store."""
    size: dict[str, list[float]] = {stage: [] for stage in STAGES}
    took: dict[str, list[float]] = {stage: [] for stage in STAGES}
    counted: set[str] = set()
    for summary in sorted(runs.glob("*/run.json")):
        run = json.loads(summary.read_text(encoding="utf-8"))
        times = summary.with_name("times.json")
        seconds = json.loads(times.read_text(encoding="utf-8")) if times.is_file() else {}
        for stage, key in run["stages"].items():
            folder = runs / "store" / stage / key
            if folder.is_dir() and key not in counted:
                counted.add(key)
                size[stage].append(sum(p.stat().st_size for p in folder.glob("block-*")) / run["questions"])
            if stage in seconds:
                took[stage].append(seconds[stage] / run["questions"])
    if not any(size.values()):
        raise DataError(f"{runs}: no finished runs with a store beside them; run an ablation with --runs {runs}")
    sizes, seconds_of = ([sum(of[stage]) / max(len(of[stage]), 1) for stage in STAGES] for of in (size, took))
    yield from zip(STAGES, sizes, seconds_of, strict=True)
    yield "all", sum(sizes), sum(seconds_of)


@returns_exit_code
def main(arguments: Sequence[str]) -> None:
    """`cost CONFIG` or `scaling`."""
    match list(arguments):
        case ["cost", config]:
            cost(Path(config))
        case ["scaling"]:
            scaling()
        case _:
            raise ConfigError("expected: cost CONFIG, or scaling")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
