"""Had the language model read the questions before?   python -m experiments.studies.contamination

The English side of XQB has been public for years and may be in a pretrained model's text, so a translation could be
remembered instead of made.  Two measures, each beside questions younger than the model (tournaments of 2023 to 2025):
nats per word that the base model needs for the English text, and the share of the next words that it gives itself,
greedily, when it is shown the first half of a question.  A remembered text needs far fewer nats and is continued word
for word.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from difflib import SequenceMatcher

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from smt.lm.base import Base, base_folder, load_base
from smt.lm.network import KeyValue, Seen, mask_of
from smt.lm.translator import fast_precision
from sqa.core.errors import returns_exit_code
from sqa.data.datasets import load_questions

NEXT = 12  # words that the model goes on with
ROWS = 16  # texts read together


@returns_exit_code
def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print: set, texts, nats per word with its interval, words continued alike with its interval."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.studies.contamination", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--base", default="gemma3-270m", help="language model (default: %(default)s)")
    parser.add_argument("--texts", type=int, default=147, help="of each set (default: %(default)s)")
    options = parser.parse_args(arguments)
    base = load_base(base_folder(options.base), getattr(torch, fast_precision()))
    sets = {
        "XQB Spanish, reference": [q.reference_text for q in load_questions("xqb-es")],
        "XQB Polish, reference": [q.reference_text for q in load_questions("xqb-pl")],
        "tournaments of 2023-25": [q.reference_text for q in load_questions("human-buzzes")],
    }
    print("set", "texts", "nats per word", "low", "high", "continued", "low", "high", sep="\t")
    for name, texts in sets.items():
        few = spread(texts, options.texts)
        cells = [f"{x:.3f}" for of in (nats_per_word, continued) for x in interval(of(base, few))]
        print(name, len(few), *cells, sep="\t", flush=True)


def spread(texts: Sequence[str], n: int) -> list[str]:
    """n texts from all over a list."""
    return [texts[i] for i in np.linspace(0, len(texts) - 1, min(n, len(texts))).astype(int)]


def interval(values: np.ndarray, resamples: int = 1000, seed: int = 0) -> tuple[float, float, float]:
    """Mean and its 95% bootstrap interval over texts."""
    drawn = np.random.default_rng(seed).integers(len(values), size=(resamples, len(values)))
    low, high = np.percentile(values[drawn].mean(1), [2.5, 97.5])
    return float(values.mean()), float(low), float(high)


@torch.inference_mode()
def nats_per_word(base: Base, texts: Sequence[str]) -> np.ndarray:
    """Cross-entropy of each text, summed over its pieces and divided by its words (n,)."""
    found = []
    for text in texts:
        pieces = opened(base, text)
        states, _ = read(base, torch.tensor([pieces]))
        loss = F.cross_entropy(scores(base, states[0, :-1]), torch.tensor(pieces[1:]), reduction="sum")
        found.append(float(loss) / len(text.split()))
    return np.array(found)


@torch.inference_mode()
def continued(base: Base, texts: Sequence[str]) -> np.ndarray:
    """Share of the NEXT words after a text's first half that the model's own continuation has, in order (n,)."""
    found = []
    for text in texts:
        words = text.split()
        half = len(words) // 2
        ours = greedy(base, " ".join(words[:half]), 2 * NEXT).split()[:NEXT]
        theirs = words[half : half + NEXT]
        blocks = SequenceMatcher(None, theirs, ours, autojunk=False).get_matching_blocks()
        found.append(sum(block.size for block in blocks) / len(theirs))
    return np.array(found)


def opened(base: Base, text: str) -> list[int]:
    """A text's pieces behind what a text begins with."""
    return ([] if base.tokens.bos is None else [base.tokens.bos]) + base.tokens.text(text)


def read(base: Base, pieces: Tensor) -> tuple[Tensor, list[KeyValue]]:
    """States and memory of pieces (1, N)."""
    n = pieces.shape[1]
    own = mask_of(torch.ones(1, n, n, dtype=torch.bool).tril(), base.network.dtype)
    return base.network(pieces, torch.arange(n)[None], own)


def scores(base: Base, states: Tensor) -> Tensor:
    """Logits (N, V) of states (N, D)."""
    return F.linear(states, base.network.output_rows()).float()


def greedy(base: Base, text: str, pieces: int) -> str:
    """The model's continuation of a text."""
    read_so_far = torch.tensor([opened(base, text)])
    states, memory = read(base, read_so_far)
    written: list[int] = []
    for _ in range(pieces):
        written.append(int(scores(base, states[:, -1]).argmax()))
        at = read_so_far.shape[1] + len(written) - 1
        seen = Seen(memory, torch.zeros(1, 1, 1, at, dtype=base.network.dtype))
        own = torch.zeros(1, 1, 1, 1, dtype=base.network.dtype)
        states, new = base.network(torch.tensor([written[-1:]]), torch.tensor([[at]]), own, [seen])
        memory = [KeyValue(torch.cat([a.key, b.key], 2), torch.cat([a.value, b.value], 2))
                  for a, b in zip(memory, new, strict=True)]  # fmt: skip
    return base.tokens.decode(written)


if __name__ == "__main__":
    sys.exit(main())
