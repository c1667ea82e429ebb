"""Wait-k (Ma et al. 2019): the schedule of decoding and of the training mask, and the policy around any system.

k counts WORDS, in training and in the configuration.  Target word j (1-based) is written after g(j) source words have
been read:

    g(j) = min(k + j - 1, |S|)

Every piece of that word sees exactly the pieces of those source words.  The end of the source is one more read: its
piece is visible from the word with k + j - 1 > |S| on.

In decoding, k may count PIECES instead, as in fairseq (smt/models/decode.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import numpy as np

from smt.policies.policy import Words, append
from sqa.core import ConfigError
from sqa.core.schema import LONGEST

if TYPE_CHECKING:
    from torch import Tensor  # a config is read without torch

FULL = LONGEST  # value of k for full-input translation
HIDDEN_WORD = 2 * FULL  # word index of source padding, which is hidden at any k


Unit = Literal["word", "piece"]


@dataclass(frozen=True, slots=True)
class Schedule:
    """Schedule of reads: k source words or pieces first, then one for each word or piece written (at rate 1)."""

    k: int  # at least 1; FULL = read the whole source first
    rate: float = 1.0  # target words written per source word read, 0.5 to 2, see `after`
    unit: Unit = "word"  # unit of k, on both sides

    def __post_init__(self) -> None:
        if not 0.5 <= self.rate <= 2:
            raise ConfigError(f"emission_rate: must be in [0.5, 2], got {self.rate}")
        if self.unit not in get_args(Unit):
            raise ConfigError(f"unit: must be word or piece, got {self.unit!r}")

    def after(self, written: Tensor) -> Tensor:
        """Return the number of words to read beyond k when `written` words are written: floor(written / rate), int64.

        An emission rate below 1 reads an extra word now and then, so that a translation shorter than its source stays k
        words behind (Ma et al. 2019, Section 4: catch-up).
        """
        return written if self.rate == 1.0 else (written.double() / self.rate).floor().long()

    def words_after(self, words: Tensor) -> Tensor:
        """Return the number of words to read after target word `words` (from 1): 1 at rate 1, 0 if k counts pieces."""
        if self.unit == "piece":
            return words.new_zeros(words.shape)
        return words.new_ones(words.shape) if self.rate == 1.0 else self.after(words) - self.after(words - 1)

    def pieces_before(self, pieces: Tensor) -> Tensor:
        """Return the source pieces (with the end) to read before target piece pieces + 1, or 1 if k counts words."""
        return self.k + self.after(pieces) if self.unit == "piece" else pieces.new_ones(pieces.shape)

    def visible(self, source_word: Tensor, target_word: Tensor) -> Tensor:
        """Return the training mask: source_word (B, S) and target_word (B, T) -> (B, T, S) bool.

        The arguments hold the 0-based word of each piece.  Source padding has a word index beyond FULL, so that no k
        reveals it.
        """
        return source_word[:, None, :] < self.after(target_word)[:, :, None] + self.k


@dataclass(frozen=True, slots=True)
class WaitK:
    """Prefix wait-k around any system that translates whole texts: `policy: wait-k, k: 6`.

    From the k-th source word on, each read shows one more word of the newest translation, if it has one.
    """

    k: Annotated[int, "source words, >= 1; FULL = all source words"]

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
    """Pad ragged rows into one (B, longest) int64 tensor."""
    import torch

    out = np.full((len(rows), max(len(row) for row in rows)), value, dtype=np.int64)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row
    return torch.from_numpy(out)
