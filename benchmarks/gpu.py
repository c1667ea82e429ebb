"""Compare a GPU with the CPU within minutes: `python -m benchmarks.gpu [--device cuda]`.

In float32, wait-k must produce the same words and g(j) on both devices; otherwise the exit code is 1.  Prints the words
per second of wait-k on both.  `--device cpu --questions 2` tests the program itself.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import cycle, islice

from benchmarks.measuring import MODEL, K, dataset, timed, translator
from sqa.core import Emission, Question
from sqa.data.datasets import load_questions
from sqa.files import device_of

SENTENCES, COMPARED = 12_000, 200  # number of sentences decoded on the GPU; number of questions decoded on both devices


def main() -> int:
    """Benchmark the device, compare its translations with the CPU's, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--questions", type=int, default=COMPARED)
    arguments = parser.parse_args()
    device = device_of(arguments.device)
    questions = many = load_questions(dataset())[: arguments.questions]
    if device != "cpu":
        repeats = SENTENCES // sum(len(question.sentences) for question in questions) + 1
        many = list(islice(cycle(questions), repeats * len(questions)))
    on_cpu = translated(questions, "cpu")
    there = translated(many, device)[: len(questions)]
    same = sum(a == b for a, b in zip(on_cpu, there, strict=True))
    print(f"wait-{K}: words and g of {same} of {len(questions)} questions are the same on cpu and {device}")
    return int(same < len(questions))


def translated(questions: Sequence[Question], device: str) -> list[list[Emission]]:
    """Translate questions with the bundled Spanish model, print its speed, and return the emissions."""
    model = translator("waitk", model=MODEL, k=K, device=device)
    model.translate_batch(questions[:1])  # warm-up
    speed, emissions = timed(lambda: model.translate_batch(questions))
    print(f"wait-{K} on {device}, {len(questions)} questions: {speed:,.0f} words/s", flush=True)
    return emissions


if __name__ == "__main__":
    sys.exit(main())
