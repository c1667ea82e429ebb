"""Systems that translate whole texts.

Anything with `words` and `fingerprint` takes part: a pretrained model, a CTranslate2 folder, a command.  The policies
of `smt.policies.prefixes` make such a system simultaneous (or leave it full input) by asking it for prefixes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol


class FullInput(Protocol):
    """Translates whole texts, many at once; each as if it were alone."""

    def words(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Target words (without blanks) of each text, in the order given; an empty text gives ()."""
        ...

    def fingerprint(self) -> str:
        """sha256 of everything that can change the words."""
        ...


def batches(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Indices in groups of similar length, longest first, each padding to at most `tokens` (or one row alone)."""
    group: list[int] = []
    for i in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if group and (len(group) + 1) * lengths[group[0]] > tokens:
            yield group
            group = []
        group.append(i)
    if group:
        yield group
