"""The wait-k schedule (Ma et al. 2019) and its training mask.

k counts WORDS, in training and at the interface: target word j (1-based) is written after
g(j) = min(k + j - 1, |S|) source words were read; every piece of that word sees the pieces of those words and no
others.  The end of the source is one more read: its piece is seen from the word with k + j - 1 > |S| on.

When decoding, k may count PIECES instead, as fairseq's does: smt/models/decode.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from sqa.core.errors import ConfigError

FULL = 10_000  # k of full-input translation: longer than any sentence
HIDDEN_WORD = 2 * FULL  # word index of source padding: no k reveals it


def parse_k(k: int | str) -> int:
    """A config's k: a number of words >= 1, or "full"."""
    if k == "full":
        return FULL
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        quoted = "; write it without quotes" if isinstance(k, str) and k.isdecimal() else ""
        raise ConfigError(f"k: must be >= 1 or 'full', got {k!r}{quoted}")
    return k


def paced(words: Tensor, emission_rate: float) -> Tensor:
    """Source words beyond k read before target word number words + 1, floor(words / r); all int64.

    An emission rate r below 1 (target words written per source word read) reads one word more now and then, so that a
    translation shorter than its source keeps k words behind (Ma et al. 2019, Section 4: catch-up).
    """
    return words if emission_rate == 1.0 else (words.double() / emission_rate).floor().long()


def check_rate(emission_rate: float) -> None:
    """ConfigError for an emission rate of a translator outside 0.5 to 2."""
    if not 0.5 <= emission_rate <= 2:
        raise ConfigError(f"emission_rate: must be in [0.5, 2], got {emission_rate}")


def reads_after(words: Tensor, emission_rate: float) -> Tensor:
    """READs due when target word number `words` is finished (int64, from 1): 1 at rate 1."""
    return paced(words, emission_rate) - paced(words - 1, emission_rate)


Unit = Literal["word", "piece"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """When to READ: k source words or pieces first, then one for each of the same kind written (at rate 1)."""

    k: int  # >= 1; FULL = all of the source first
    rate: float = 1.0  # emission rate, see `paced`
    unit: Unit = "word"  # what k counts, on both sides

    def __post_init__(self) -> None:
        if self.unit not in get_args(Unit):
            raise ConfigError(f"unit: must be word or piece, got {self.unit!r}")

    def words_after(self, words: Tensor) -> Tensor:
        """Words to READ when target word number `words` is finished; none where pieces are counted."""
        return reads_after(words, self.rate) if self.unit == "word" else torch.zeros_like(words)

    def pieces_before(self, pieces: Tensor) -> Tensor:
        """Source pieces (the end is one) to be read before target piece number pieces + 1; 1 where words count."""
        return self.k + paced(pieces, self.rate) if self.unit == "piece" else torch.ones_like(pieces)


def visible(source_word: Tensor, target_word: Tensor, k: int) -> Tensor:
    """Training mask: source_word (B, S) and target_word (B, T), 0-based word of each piece -> (B, T, S) bool.

    Padding has a word index beyond FULL on the source side, so that no k reveals it.
    """
    return source_word[:, None, :] < target_word[:, :, None] + k


def draw_k(choices: tuple[int, ...], weights: tuple[float, ...], rng: np.random.Generator) -> int:
    """One k for one batch (multi-path training, Elbayad et al. 2020)."""
    p = np.asarray(weights, dtype=float)
    return int(choices[rng.choice(len(choices), p=p / p.sum())])


def pad(rows: list[np.ndarray], value: int) -> Tensor:
    """Ragged rows to one (B, longest) int64 tensor."""
    out = np.full((len(rows), max(len(row) for row in rows)), value, dtype=np.int64)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return torch.from_numpy(out)
