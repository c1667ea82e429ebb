"""Had the language model read the questions before?  What the item `contamination` measures.

The English side of XQB has been public for years and may be in a pretrained model's text, so a translation could be
remembered instead of made.  Two measures, each beside younger questions (tournaments of 2023 to 2025, and of these the
ones played after August 2024, with which Gemma 3's training text is said to end): nats per word that the base model
needs for the English text, and the share of the next words that it gives itself, greedily, when it is shown the first
half of a question.  A remembered text needs far fewer nats and is continued word for word: of both the mean over texts
has its 95% interval, and the largest share of one text stands last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from smt.lm.base import Base, base_folder, load_base
from smt.lm.network import KeyValue, Seen, mask_of
from smt.lm.translator import fast_precision
from sqa.data.datasets import load_questions
from sqa.data.download import path_of
from sqa.files.records import json_lines

NEXT = 12  # words that the model goes on with
ROWS = 16  # texts read together
AFTER = frozenset({"2024 ACF Fall", "2024 ACF Winter", "2024 Penn Bowl", "2025 ACF Regionals"})  # from October 2024 on
SLICE = 256  # positions whose logits are in memory at once: 270 MB at 262,144 pieces


def measured(name: str, n: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """(set, nats per word of each text, share of its next words that the model writes), n texts of each set."""
    base = load_base(base_folder(name), getattr(torch, fast_precision()))
    young, late = load_questions("human-buzzes"), played_in(AFTER)
    sets = {
        "XQB Spanish, reference": [q.reference_text for q in load_questions("xqb-es")],
        "XQB Polish, reference": [q.reference_text for q in load_questions("xqb-pl")],
        "tournaments of 2023-25": [q.reference_text for q in young],
        "tournaments after August 2024": [q.reference_text for q in young if q.id in late],
    }
    for of_set, texts in sets.items():
        sample = spread(texts, n)
        yield of_set, nats_per_word(base, sample), continued(base, sample)


def played_in(tournaments: frozenset[str]) -> frozenset[str]:
    """Ids of the questions with recorded buzzes that were played in some tournaments."""
    records = json_lines(path_of("human-buzz-questions"))
    return frozenset(record["id"] for record in records if tournaments.intersection(record["sets"]))


def spread(texts: Sequence[str], n: int) -> list[str]:
    """n texts from all over a list."""
    return [texts[i] for i in np.linspace(0, len(texts) - 1, min(n, len(texts))).astype(int)]


def interval(values: np.ndarray) -> tuple[float, float, float]:
    """Mean and its 95% bootstrap interval over texts."""
    drawn = np.random.default_rng(0).integers(len(values), size=(1000, len(values)))
    low, high = np.percentile(values[drawn].mean(1), [2.5, 97.5])
    return float(values.mean()), float(low), float(high)


@torch.inference_mode()
def nats_per_word(base: Base, texts: Sequence[str]) -> np.ndarray:
    """Cross-entropy of each text, summed over its pieces and divided by its words (n,)."""
    nats = np.empty(len(texts))
    for batch in grouped(texts):
        rows = [opened(base, texts[i]) for i in batch]
        pieces, is_text = padded(rows)
        states, _ = read(base, pieces)
        losses = cross_entropies(base, states[:, :-1][is_text[:, 1:]], pieces[:, 1:][is_text[:, 1:]])
        sums = [float(losses_of.sum()) for losses_of in losses.split([len(row) - 1 for row in rows])]
        nats[batch] = [total / len(texts[i].split()) for i, total in zip(batch, sums, strict=True)]
    return nats


@torch.inference_mode()
def continued(base: Base, texts: Sequence[str]) -> np.ndarray:
    """Share of the NEXT words after a text's first half that the model's own continuation has, in order (n,)."""
    shares = np.empty(len(texts))
    for batch in grouped(texts):
        words = [texts[i].split() for i in batch]
        halves = [len(text_words) // 2 for text_words in words]
        firsts = [" ".join(text_words[:half]) for text_words, half in zip(words, halves, strict=True)]
        expected = [text_words[half : half + NEXT] for text_words, half in zip(words, halves, strict=True)]
        continuations = [text.split()[:NEXT] for text in greedy(base, firsts, 2 * NEXT)]
        shares[batch] = [in_both(a, b) / len(a) for a, b in zip(expected, continuations, strict=True)]
    return shares


def grouped(texts: Sequence[str]) -> list[list[int]]:
    """Numbers of the texts, ROWS of about the same length together: little is padded."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    return [order[i : i + ROWS] for i in range(0, len(order), ROWS)]


def in_both(expected: Sequence[str], continued: Sequence[str]) -> int:
    """Words that both have, in order."""
    blocks = SequenceMatcher(None, expected, continued, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks)


def opened(base: Base, text: str) -> list[int]:
    """A text's pieces behind what a text begins with."""
    return ([] if base.tokens.bos is None else [base.tokens.bos]) + base.tokens.text(text)


def padded(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Pieces (B, N) of B texts, padded on the right, and which of them are a text's own (B, N)."""
    pieces = pad_sequence([torch.tensor(row) for row in rows], batch_first=True)
    return pieces, torch.arange(pieces.shape[1]) < torch.tensor([len(row) for row in rows])[:, None]


def read(base: Base, pieces: Tensor) -> tuple[Tensor, list[KeyValue]]:
    """States and memory of pieces (B, N); those on the right are hidden from a text, its padding with them."""
    n = pieces.shape[1]
    causal = mask_of(torch.ones(1, n, n, dtype=torch.bool).tril(), base.network.dtype)
    return base.network(pieces, torch.arange(n)[None], causal)


def cross_entropies(base: Base, states: Tensor, pieces: Tensor) -> Tensor:
    """-ln of the chance of pieces (N,) after states (N, D), (N,): SLICE logits at a time are in memory."""
    parts = zip(states.split(SLICE), pieces.split(SLICE), strict=True)
    return torch.cat([F.cross_entropy(scores(base, block), wanted, reduction="none") for block, wanted in parts])


def scores(base: Base, states: Tensor) -> Tensor:
    """Logits (N, V) of states (N, D)."""
    return F.linear(states, base.network.output_rows()).float()


def greedy(base: Base, texts: Sequence[str], pieces: int) -> list[str]:
    """The model's continuation of each text, so many pieces long."""
    read_so_far, is_text = padded([opened(base, text) for text in texts])
    lengths = is_text.sum(1, keepdim=True)  # (B, 1)
    states, memory = read(base, read_so_far)
    last = states[torch.arange(len(texts)), lengths[:, 0] - 1]  # (B, D)
    seen = [Seen(memory, mask_of(is_text[:, None], base.network.dtype))]
    no_mask = torch.zeros(1, 1, 1, 1, dtype=base.network.dtype)
    written: list[Tensor] = []
    for step in range(pieces):
        written.append(scores(base, last).argmax(-1))
        states, new = base.network(written[-1][:, None], lengths + step, no_mask, seen)
        last, seen = states[:, 0], [*seen, Seen(new, no_mask)]
    return [base.tokens.decode(row) for row in torch.stack(written, 1).tolist()]
