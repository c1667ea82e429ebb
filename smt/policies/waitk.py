"""Wait-k (Ma et al. 2019): the schedule that decoding and the training mask share, and the policy around any system.

k counts WORDS, in training and at the interface: target word j (1-based) is written after
g(j) = min(k + j - 1, |S|) source words were read; every piece of that word sees the pieces of those words and no
others.  The end of the source is one more read: its piece is seen from the word with k + j - 1 > |S| on.

When decoding, k may count PIECES instead, as fairseq's does: smt/models/decode.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from smt.policies.shown import Words, append
from sqa.core.errors import ConfigError
from sqa.core.k import LONGEST

if TYPE_CHECKING:
    from torch import Tensor  # the policy around any system needs no torch

FULL = LONGEST  # k of full-input translation
HIDDEN_WORD = 2 * FULL  # word index of source padding: no k reveals it


Unit = Literal["word", "piece"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """When to READ: k source words or pieces first, then one for each of the same kind written (at rate 1)."""

    k: int  # >= 1; FULL = all of the source first
    rate: float = 1.0  # emission rate: target words written per source word read, 0.5 to 2, see `after`
    unit: Unit = "word"  # what k counts, on both sides

    def __post_init__(self) -> None:
        if not 0.5 <= self.rate <= 2:
            raise ConfigError(f"emission_rate: must be in [0.5, 2], got {self.rate}")
        if self.unit not in get_args(Unit):
            raise ConfigError(f"unit: must be word or piece, got {self.unit!r}")

    def after(self, written: Tensor) -> Tensor:
        """Words beyond k to be read when so many are written, floor(written / rate); all int64.

        An emission rate below 1 reads one word more now and then, so that a translation shorter than its source keeps
        k words behind (Ma et al. 2019, Section 4: catch-up).
        """
        return written if self.rate == 1.0 else (written.double() / self.rate).floor().long()

    def words_after(self, words: Tensor) -> Tensor:
        """Words to READ when target word number `words` (from 1) is finished, 1 at rate 1; 0 where pieces count."""
        if self.unit == "piece":
            return words.new_zeros(words.shape)
        return words.new_ones(words.shape) if self.rate == 1.0 else self.after(words) - self.after(words - 1)

    def pieces_before(self, pieces: Tensor) -> Tensor:
        """Source pieces (the end is one) to be read before target piece number pieces + 1; 1 where words count."""
        return self.k + self.after(pieces) if self.unit == "piece" else pieces.new_ones(pieces.shape)

    def visible(self, source_word: Tensor, target_word: Tensor) -> Tensor:
        """Training mask: source_word (B, S) and target_word (B, T), 0-based word of each piece -> (B, T, S) bool.

        Padding has a word index beyond FULL on the source side, so that no k reveals it.
        """
        return source_word[:, None, :] < self.after(target_word)[:, :, None] + self.k


@dataclass(frozen=True, slots=True)
class WaitK:
    """Prefix wait-k, `policy: wait-k, k: 6`: around any system, word by word of its translations of the prefixes.

    After each READ from the k-th on one more word of the newest translation is shown (none where it has no more).
    """

    k: int  # source words, >= 1; FULL = all of them

    @property
    def start(self) -> int:
        return self.k

    def show(self, shown: Words, translations: Sequence[Words], ended: bool) -> Words:
        newest = translations[-1]
        return append(shown, newest if ended else newest[: len(shown) + 1])


def draw_k(choices: tuple[int, ...], weights: tuple[float, ...], rng: np.random.Generator) -> int:
    """Draw one k for a batch (multi-path training, Elbayad et al. 2020)."""
    p = np.asarray(weights, dtype=float)
    return int(choices[rng.choice(len(choices), p=p / p.sum())])


def pad(rows: list[np.ndarray], value: int) -> Tensor:
    """Ragged rows to one (B, longest) int64 tensor."""
    import torch

    out = np.full((len(rows), max(len(row) for row in rows)), value, dtype=np.int64)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return torch.from_numpy(out)
