"""Systems that translate whole texts.

Anything with `words` and `fingerprint` takes part: a pretrained model, a CTranslate2 folder, a command.  The policies
of `smt.policies.prefixes` make such a system simultaneous (or leave it full input) by asking it for prefixes.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from sqa.core.compute import buckets

Row = TypeVar("Row", bound=Sequence[object])


class FullInput(Protocol):
    """Translates whole texts, many at once; each as if it were alone."""

    def words(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Target words (without blanks) of each text, in the order given; an empty text gives ()."""

    def fingerprint(self) -> str:
        """sha256 of everything that can change the words."""


def in_batches(
    texts: Sequence[str],
    encode: Callable[[list[str]], Sequence[Row]],
    translate: Callable[[list[Row]], Sequence[tuple[str, ...]]],
    tokens: int,
) -> list[tuple[str, ...]]:
    """Target words of each text, in batches of similar length with at most `tokens` pieces; a blank text gives ()."""
    words: list[tuple[str, ...]] = [()] * len(texts)
    filled = [i for i, text in enumerate(texts) if text.strip()]
    rows = encode([texts[i] for i in filled])
    for group in buckets([len(row) for row in rows], tokens):
        for i, translation in zip(group, translate([rows[i] for i in group]), strict=True):
            words[filled[i]] = translation
    return words
