"""How a sentence pair lies in a causal language model, so that it can be read and written at the same time.

    source segment    <bos> "Spanish:" w1 w2 ... wn "\\n"       positions 0, 1, 2, ...
    target segment    "English:" t1 t2 ... tm "\\n"             positions OFFSET, OFFSET + 1, ...

The source segment looks at itself only, backwards: its keys and values never change when more is read.  A target piece
looks at the target pieces before it and at the source pieces of the words that were read when it was chosen.  Source
and target are numbered separately, so neither has to move when the other grows (Guo et al., ACL 2024: Decoder-only
Streaming Transformer; Raffel et al., EMNLP 2024: SimulMask).  The line break after the source says that it has ended;
as in smt/policies/waitk.py it is one more READ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smt.lm.tokenizer import Tokens
from sqa.core.languages import language_of

OFFSET = 96  # position of the first target piece; few sources are longer, and nothing breaks if one is


def name_of(code: str) -> str:
    """Return a language's name in the prompt: its English name where sqa/core/languages has it, else its code."""
    return language_of(code).name or code


@dataclass(frozen=True, slots=True)
class Layout:
    """The fixed pieces of one direction."""

    opening: tuple[int, ...]  # before the first source word
    asking: tuple[int, ...]  # before the first target word
    end: int  # the line break that ends either segment

    @classmethod
    def of(cls, tokens: Tokens, source_language: str, target_language: str) -> Layout:
        """The pieces of a direction; languages by ISO 639-1 code or by name."""
        [end] = tokens.text("\n")
        opening = ([] if tokens.bos is None else [tokens.bos]) + tokens.text(f"{name_of(source_language)}:")
        return cls(tuple(opening), tuple(tokens.text(f"{name_of(target_language)}:")), end)

    def source(self, tokens: Tokens, words: Sequence[str]) -> tuple[list[int], list[int]]:
        """Pieces of a whole source segment, and the number of words to be read before each is seen.

        The opening needs none, the pieces of word n (from 1) n, the line break one more than there are words.
        """
        pieces, index = tokens.words(words)
        needs = [0] * len(self.opening) + [i + 1 for i in index] + [len(words) + 1]
        return [*self.opening, *pieces, self.end], needs
