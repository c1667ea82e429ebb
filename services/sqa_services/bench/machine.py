"""Benchmarks of this machine: processor features, runs with increasing numbers of workers, decoding on its GPU."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from sqa.core.compute import usable
from sqa.core.errors import RemoteProtocolError
from sqa.core.registry import TRANSLATORS
from sqa.core.types import Question
from sqa.data.datasets import available, load_questions
from sqa.results import Table, show
from sqa_services.bench.speed import MODEL, K, rate

FEATURES = {  # feature -> flags in /proc/cpuinfo, each of which implies the feature
    "AVX2": {"avx2"},
    "AVX-512": {"avx512f"},
    "AVX-512 BF16": {"avx512_bf16"},
    "VNNI": {"avx512_vnni", "avx_vnni"},
    "AMX": {"amx_tile"},
}
SIZES = (60, 240, 960)  # numbers of questions
SENTENCES = (256, 1024, 4096)  # batch sizes on a GPU, in sentences
CPUINFO = Path("/proc/cpuinfo")


def features(cpuinfo: Path = CPUINFO) -> str:
    """Return a line with the processor's name, the number of usable processors, and their features."""
    fields = dict(line.partition(":")[::2] for line in cpuinfo.read_text(encoding="utf-8").splitlines()[:40])
    values = {name.strip(): value.strip() for name, value in fields.items()}
    flags = set(values.get("flags", values.get("Features", "")).split())
    has = ", ".join(f"{name} {'yes' if flags & wanted else 'no'}" for name, wanted in FEATURES.items())
    return f"{values.get('model name', 'unknown processor')}, {usable()} usable; {has}"


def scale() -> None:
    """Time `sqa run` of wait-6 and BM25 on SIZES questions, with 1, 2, 4, ... workers, up to one per processor."""
    rows = []
    with TemporaryDirectory() as folder:
        for number in SIZES:
            words = _write(Path(folder), number)
            for workers in _counts(usable()):
                seconds, peak = _timed(Path(folder), number, workers)
                rows.append((workers, number, seconds, words / seconds, peak))
                print(f"sqa: {workers} workers, {number} questions: {seconds:.1f} s", file=sys.stderr)
    header = ("workers", "questions", "seconds", "words/s", "MiB of the largest process")
    show(Table(header, rows, dict.fromkeys(header, 1)))


def _counts(processors: int) -> list[int]:
    """Return the powers of two below `processors`, and `processors` itself."""
    powers = [1 << n for n in range(processors.bit_length()) if 1 << n < processors]
    return [*powers, processors]


def _questions() -> Sequence[Question]:
    return load_questions("xqb-es" if available("xqb-es") else "mini-es")


def _write(folder: Path, number: int) -> int:
    """Write a run config and `number` questions, repeated under new ids; return the number of source words."""
    known = _questions()
    chosen = [known[i % len(known)] for i in range(number)]
    lines = [
        {
            "id": f"{i}-{q.id}",
            "language": q.language,
            "source": [" ".join(sentence) for sentence in q.sentences],
            "reference": list(q.reference),
            "page": q.page,
        }
        for i, q in enumerate(chosen)
    ]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    (folder / f"{number}.jsonl").write_text(text, encoding="utf-8")
    config = {
        "dataset": {"name": f"{number}.jsonl"},
        "translator": {"name": "waitk", "model": MODEL, "k": K},
        "guesser": {"name": "bm25"},
        "buzzer": {"name": "mlp"},
    }
    (folder / f"{number}.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return sum(len(q.words) for q in chosen)


def _timed(folder: Path, number: int, workers: int) -> tuple[float, float]:
    """Return the wall-clock seconds of a run with an empty store, and the peak memory of its largest process in MiB."""
    options = ["--runs", f"runs-{number}-{workers}", "--workers", str(workers), "--quiet"]
    call = [sys.executable, "-m", "sqa", "run", f"{number}.yaml", *options]
    start = time.perf_counter()
    process = subprocess.Popen(call, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RemoteProtocolError(f"sqa run with {workers} workers ended with exit code {process.returncode}")
    return time.perf_counter() - start, used.ru_maxrss / 1024


def gpu() -> None:
    """Print words per second of batched wait-k decoding on CPU and GPU; without a GPU, print a message on stderr."""
    import torch

    if not torch.cuda.is_available():
        print("sqa: no GPU is available; skipping the part gpu", file=sys.stderr)
        return
    print(f"sqa: {torch.cuda.get_device_name()}", file=sys.stderr)
    show(Table(("sentences", "device", "words/s"), list(_on_devices()), {"words/s": 0}))


def _on_devices() -> Iterator[tuple[int, str, float]]:
    """Yield (sentences per batch, device, target words per second); each batch is decoded once as a warm-up."""
    known = [question for question in _questions() if question.sentences]
    for device in ("cpu", "cuda"):
        options = TRANSLATORS.config_class("waitk")(model=MODEL, k=K, device=device)
        translator = TRANSLATORS.build("waitk", options)
        for number in SENTENCES if device == "cuda" else SENTENCES[:1]:
            batch: list[Question] = []
            while sum(len(question.sentences) for question in batch) < number:
                batch.append(known[len(batch) % len(known)])
            translator.translate_batch(batch)
            yield number, device, rate(partial(_words, translator, batch))


def _words(translator: Any, questions: Sequence[Question]) -> int:
    """Translate questions and return the number of target words."""
    return sum(map(len, translator.translate_batch(questions)))
