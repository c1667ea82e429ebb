"""Layout of a sentence pair in a causal language model that reads and writes at the same time.

    source segment    <bos> "Spanish:" w1 w2 ... wn "\\n"       positions 0, 1, 2, ...
    target segment    "English:" t1 t2 ... tm "\\n"             positions OFFSET, OFFSET + 1, ...

The source segment attends only backwards to itself, so its keys and values stay valid when more words are read.  A
target piece attends to the preceding target pieces and to the source pieces of the words read when it was chosen.
Source and target positions are numbered separately, so neither segment moves when the other grows (Guo et al., ACL
2024: Decoder-only Streaming Transformer; Raffel et al., EMNLP 2024: SimulMask).  The line break after the source marks
its end and is one more READ, as in smt/policies/waitk.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smt.lm.tokenizer import Tokens
from sqa.core.languages import language_of

OFFSET = 96  # position of the first target piece; longer sources are rare but supported


def name_of(code: str) -> str:
    """Return a language's name in the prompt: its English name if sqa/core/languages has it, else its code."""
    return language_of(code).name or code


@dataclass(frozen=True, slots=True)
class Layout:
    """The fixed pieces of one direction."""

    opening: tuple[int, ...]  # before the first source word
    asking: tuple[int, ...]  # before the first target word
    end: int  # the line break that ends either segment

    @classmethod
    def of(cls, tokens: Tokens, source_language: str, target_language: str) -> Layout:
        """Return the layout of a direction; languages are given by ISO 639-1 code or by name."""
        [end] = tokens.text("\n")
        opening = ([] if tokens.bos is None else [tokens.bos]) + tokens.text(f"{name_of(source_language)}:")
        return cls(tuple(opening), tuple(tokens.text(f"{name_of(target_language)}:")), end)

    def source(self, tokens: Tokens, words: Sequence[str]) -> tuple[list[int], list[int]]:
        """Return the pieces of a whole source segment, and the number of words to read before each is visible.

        The opening needs 0 words, the pieces of word n (from 1) need n, and the line break one more than the number of
        words.
        """
        pieces, index = tokens.words(words)
        needs = [0] * len(self.opening) + [i + 1 for i in index] + [len(words) + 1]
        return [*self.opening, *pieces, self.end], needs
