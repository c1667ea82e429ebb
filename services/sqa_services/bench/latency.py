"""Benchmark of latency scoring: `sqa latency` and `simuleval --score-only` on a log of 125,000 words.

Both are timed as whole commands, including start-up, and as function calls, without start-up.
"""

import json
import subprocess
import sys
import tempfile
import timeit
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sqa.core.types import Question
from sqa_services.bench.speed import Pair

SENTENCES, WORDS, K = 5_000, 25, 3


def write_log(folder: Path) -> Path:
    """Write a wait-k log in SimulEval's format, SENTENCES sentences of WORDS words, and return its path."""
    text = dict.fromkeys(("prediction", "reference", "source"), " ".join(f"word{i}" for i in range(WORDS)))
    delays = [min(K + j, WORDS) for j in range(WORDS)]
    numbers = {"delays": delays, "elapsed": [0] * WORDS, "prediction_length": WORDS, "source_length": WORDS}
    rows = (json.dumps({"index": i, **text, **numbers}) for i in range(SENTENCES))
    (folder / "instances.log").write_text("".join(f"{row}\n" for row in rows))
    (folder / "config.yaml").write_text("source_type: text\ntarget_type: text\n")
    return folder / "instances.log"


def _seconds(call: Callable[[], object]) -> float:
    """Return the shortest time of three calls, in seconds."""
    return min(timeit.repeat(call, "gc.enable()", number=1, repeat=3))


def _command(*arguments: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def pairs(_: Sequence[Question]) -> Iterator[Pair]:
    """Yield words per second of SimulEval's scoring and of our scoring, on a synthetic log."""
    from simuleval.evaluator.instance import LogInstance
    from simuleval.evaluator.scorers.latency_scorer import LATENCY_SCORERS_DICT

    from sqa.metrics.latency_log import LogOptions, score

    names = ("AL", "LAAL", "AP", "DAL", "ATD", "StartOffset", "EndOffset", "NumChunks", "RTF")
    with tempfile.TemporaryDirectory() as name:
        log = write_log(Path(name))

        def theirs() -> None:
            instances = {i: LogInstance(line.strip()) for i, line in enumerate(log.read_text().splitlines())}
            for metric in names:
                LATENCY_SCORERS_DICT[metric]()(instances)

        metrics = ["--latency-metrics", *names, "--no-progress-bar"]
        command = _seconds(_command("-W", "ignore", "-m", "simuleval.cli", "--score-only", "--output", name, *metrics))
        ours = _seconds(_command("-m", "sqa", "latency", str(log)))
        scoring, words = _seconds(lambda: score(str(log), LogOptions())), SENTENCES * WORDS
        yield "latency of a log: simuleval --score-only, our scoring", "words/s", words / command, words / scoring
        yield "latency of a log: both without start-up", "words/s", words / _seconds(theirs), words / scoring
        yield "latency of a log: both as commands", "words/s", words / command, words / ours
