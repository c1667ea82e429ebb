"""BLEU and chrF of a wait-k model by k, on the paper's test sets and on XQB.

    python -m experiments.translation_quality es-en

Claim (Han et al. 2022, Figure 3): BLEU only grows with k.  Prints TSV: model, test set, segments, k, BLEU, chrF, the
share of sentences that come out empty, copied or looping, and sacrebleu's signature.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from sacrebleu.metrics import BLEU, CHRF

from smt.bundle import load_model, model_folder
from smt.evaluate import translate_lines
from sqa.datasets import load_parallel, load_questions

KS: tuple[int | str, ...] = (3, 6, 9, 12, 15, "full")
TESTS = {"es-en": "newstest2013", "pl-en": "newstest2020"}  # the paper's test sets
LOOP = re.compile(r"(\b[\w' ]{1,30}\b)(?:\W+\1\b){3,}|(\w{1,4})\2{5,}")


def main(model: str) -> None:
    """Translate every test set at every k and print the scores."""
    pair = model if model in TESTS else load_model(model_folder(model))[2]["training"]["corpus"]["pair"]
    print("model", "test", "segments", "k", "bleu", "chrf", "empty", "copied", "looping", "signature", sep="\t")
    questions = load_questions(f"xqb-{pair[:2]}")
    sources = [" ".join(sentence) for question in questions for sentence in question.sentences]
    references = [question.reference_text for question in questions]
    measure(model, f"xqb-{pair[:2]}", sources, references, [len(question.sentences) for question in questions])
    rows = list(load_parallel(pair, TESTS[pair]))
    measure(model, TESTS[pair], [row.source for row in rows], [row.target for row in rows], [1] * len(rows))


def measure(model: str, name: str, sources: Sequence[str], references: Sequence[str], widths: Sequence[int]) -> None:
    """Print one line per k; reference i covers the next widths[i] source sentences."""
    network, vocabulary, _ = load_model(model_folder(model))
    for k in KS:
        sentences = translate_lines(network, vocabulary, sources, k)
        parts = iter(sentences)
        hypotheses = [" ".join(next(parts) for _ in range(width)) for width in widths]
        bleu, chrf = BLEU(), CHRF()
        scores = (bleu.corpus_score(hypotheses, [references]).score, chrf.corpus_score(hypotheses, [references]).score)
        n = len(sentences)
        empty = sum(not sentence for sentence in sentences) / n
        long = [(s, t) for s, t in zip(sources, sentences, strict=True) if len(s.split()) > 3]
        copied = sum(s == t for s, t in long) / max(1, len(long))
        looping = sum(bool(LOOP.search(sentence)) for sentence in sentences) / n
        numbers = [f"{scores[0]:.1f}", f"{scores[1]:.1f}", f"{empty:.4f}", f"{copied:.4f}", f"{looping:.4f}"]
        print(model, name, len(references), k, *numbers, bleu.get_signature(), sep="\t", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
