"""Measure the overhead of Dask workers: `python -m sqa_services.bench.cluster cost CONFIG`.

Times an ablation in local processes and on the same number of local Dask workers.  Prints wall-clock seconds, CPU
seconds and their ratios as TSV.  The item `cluster-plan` extrapolates finished runs to a million questions x 100
systems.
"""

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from sqa.core.errors import ConfigError, DataError, returns_exit_code
from sqa.pipeline.engine import STAGES

QUESTIONS, SYSTEMS = 1_000_000, 100  # size of the planned ablation


def cost(config: Path) -> None:
    """Time an ablation in local processes and on local Dask workers, each with an empty store, and print the times."""
    print("way", "wall_s", "cpu_s", sep="\t")
    found = []
    for way, options in (("processes", []), ("local workers", ["--scheduler", "local"])):
        with TemporaryDirectory() as runs:
            command = [sys.executable, "-m", "sqa", "ablation", str(config), "--runs", runs, *options]
            before, start = _processor(), time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            found.append((time.perf_counter() - start, _processor() - before))
            print(way, *(f"{seconds:.1f}" for seconds in found[-1]), sep="\t", flush=True)
    print("ratio", *(f"{there / here:.3f}" for here, there in zip(*found, strict=True)), sep="\t")


def _processor() -> float:
    """Return the CPU seconds used by all descendants of this process that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def planned(runs: Path) -> Iterator[tuple[str, float, float]]:
    """Yield (stage, bytes per question, seconds per question): means over a folder's finished runs, and their sums."""
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
        raise DataError(f"{runs}: no finished runs with a store in the same folder; run an ablation with --runs {runs}")
    sizes, seconds_of = ([sum(of[stage]) / max(len(of[stage]), 1) for stage in STAGES] for of in (size, took))
    yield from zip(STAGES, sizes, seconds_of, strict=True)
    yield "all", sum(sizes), sum(seconds_of)


@returns_exit_code
def main(arguments: Sequence[str]) -> None:
    """Run `cost CONFIG`."""
    if len(arguments) != 2 or arguments[0] != "cost":
        raise ConfigError("expected: cost CONFIG")
    cost(Path(arguments[1]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
