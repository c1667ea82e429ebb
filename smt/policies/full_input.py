"""Systems that translate whole texts.

Any object with `words` and `fingerprint` can be used: a pretrained model, a command.  The
policies of `smt.policies.prefixes` make such a system simultaneous (or keep it full input) by requesting translations
of prefixes.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from sqa.core.compute import buckets

Row = TypeVar("Row", bound=Sequence[object])


class FullInput(Protocol):
    """A system that translates many whole texts at once, each independently of the others."""

    def words(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the target words (without spaces) of each text, in the given order, () for an empty text."""

    def fingerprint(self) -> str:
        """Return a SHA-256 of everything that can change the words."""


def in_batches(
    texts: Sequence[str],
    encode: Callable[[list[str]], Sequence[Row]],
    translate: Callable[[list[Row]], Sequence[tuple[str, ...]]],
    tokens: int,
) -> list[tuple[str, ...]]:
    """Return the target words of each text, which are () for a blank text.

    Texts of similar length are translated in batches of at most `tokens` pieces.
    """
    words: list[tuple[str, ...]] = [()] * len(texts)
    filled = [i for i, text in enumerate(texts) if text.strip()]
    rows = encode([texts[i] for i in filled])
    for group in buckets([len(row) for row in rows], tokens):
        for i, translation in zip(group, translate([rows[i] for i in group]), strict=True):
            words[filled[i]] = translation
    return words
