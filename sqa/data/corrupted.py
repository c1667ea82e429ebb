"""Corrupted tossups, on which buzzers and fusions of guessers that read machine translation are trained.

A translation loses words and puts wrong ones in their place, so a guesser's scores grow more slowly and lead by less
than on the original.  Here every word of a tossup is corrupted with a chance drawn once per tossup, uniformly from
`least` to `rate`: half of the corrupted words become "the", which tells a guesser nothing, half another tossup's word,
which misleads it.  The number of words, hence of steps, does not change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sqa.data.texts import Tossup

EMPTY = "the"


def corrupt(tossups: Sequence[Tossup], rate: float, least: float = 0.0) -> list[Tossup]:
    """The tossups with a part `least` to `rate` (0..1) of their words corrupted; the same ones every time."""
    words = [word for tossup in tossups for word in tossup.text.split()]
    return [_corrupted(tossup, words, rate, least) for tossup in tossups]


def _corrupted(tossup: Tossup, words: Sequence[str], rate: float, least: float) -> Tossup:
    seed = int.from_bytes(hashlib.sha256(f"spoilt {tossup.id}".encode()).digest()[:8], "big")
    rng = np.random.default_rng(seed)
    original = tossup.text.split()
    chance = rng.uniform(least, rate)
    draw, misled = rng.random(len(original)) < chance, rng.random(len(original)) < 0.5
    drawn = rng.integers(0, len(words), len(original))
    text = " ".join(
        word if not hit else words[index] if wrong else EMPTY
        for word, hit, wrong, index in zip(original, draw.tolist(), misled.tolist(), drawn.tolist(), strict=True)
    )
    return replace(tossup, text=text)
