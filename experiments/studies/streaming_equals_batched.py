"""Claim: streaming and batched decoding give the same words and the same g(j) on every sentence, for every k.

    python -m experiments.studies.streaming_equals_batched xqb-es es-en [K ...]

Exit code 1 and the sentence when one differs.  A sample of this is in the tests; all of it takes minutes per k.
"""

from __future__ import annotations

import sys

import torch
from tqdm import tqdm

from smt.models.waitk_translator import WaitKConfig, build
from sqa.data.datasets import load_questions
from sqa.run.pipeline import stream

KS: tuple[int | str, ...] = (1, 3, 6, 9, 12, 15, "full")


def main(dataset: str, model: str, *ks: str) -> int:
    """Compare all sentences for each of `ks` (none given: for every k of KS); prints one line per k."""
    torch.set_num_threads(1)
    questions = load_questions(dataset)
    different = 0
    for k in [k if k == "full" else int(k) for k in ks] or KS:
        translator = build(WaitKConfig(model, k))
        batched = translator.translate_batch(questions)
        wrong = words = 0
        for question, fast in zip(tqdm(questions, desc=f"k={k}", file=sys.stderr), batched, strict=True):
            slow = stream(translator, question)
            words += len(slow)
            for i in range(len(question.sentences)):
                if [e for e in slow if e.sentence == i] != [e for e in fast if e.sentence == i]:
                    wrong += 1
                    print(f"k={k} {question.id} sentence {i}", file=sys.stderr)
        sentences = sum(len(question.sentences) for question in questions)
        print(f"k={k}", f"{sentences} sentences", f"{words} words", f"{wrong} differ", sep="\t", flush=True)
        different += wrong
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
