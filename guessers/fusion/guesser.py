"""The fusion guesser: any guessers as one.

Reciprocal rank (Cormack, Clarke and Buettcher 2009): a page scores the sum over guessers of 1 / (constant + its rank
there), nothing where it is not among the best 50.

Learnt weights: every page that a guesser names is described by its places and scores (guessers/fusion/candidates.py),
by how sure the guessers are at this step and by how many words were read; one layer of rectified units makes a logit of
it, and a softmax over the pages of the step and "none of them" makes chances.  What a guesser counts for so depends on
how clean the text is.

The guessers are asked for 50 guesses each in their own incremental ways, if they have them; nothing else is kept from
word to word.

    guesser: {name: fusion}                                                   # the bundled weights and guessers
    guesser: {name: fusion, guessers: [{name: bm25}, {name: gru}]}            # reciprocal rank
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from guessers.fusion.candidates import DEPTH, Candidates, candidates, width
from guessers.fusion.judge import Judge, Tensors, best
from sqa.core.errors import ConfigError, DataError, NotNegative, checked
from sqa.core.interfaces import ChecksTexts, Guesser, IncrementalGuesser, KnowsPages
from sqa.core.registry import GUESSERS
from sqa.core.types import Guess
from sqa.files.model_files import folder_digest, read_tensors, resolve_model, write_tensors
from sqa.run.config import ComponentConfig, Reader, to_mapping
from sqa.run.parts import fingerprint_of

KIND = "fusion"
VERSION = 1  # of the files and of the code that turns guesses into guesses
BUNDLED = "fusion"


@dataclass(frozen=True, slots=True)
@checked
class FusionConfig:
    """What `guesser: {name: fusion, ...}` takes."""

    model: str | None = None  # learnt weights and their guessers: a bundled model or a folder; null = the bundled one
    guessers: tuple[ComponentConfig, ...] = ()  # these by reciprocal rank, in place of a model
    constant: NotNegative = 5.0  # of the reciprocal rank, >= 0: how little the first places count beside the others

    def problems(self) -> list[str]:
        """Beside the bounds."""
        both = self.model is not None and bool(self.guessers)
        return ["guessers: a model has its own; leave out one of the two"] if both else []


class Weights:
    """Learnt weights for one list of guessers."""

    def __init__(self, tensors: Tensors, guessers: int) -> None:
        """`tensors`: as in guessers/fusion/judge.py.  ValueError for other names or shapes."""
        self._judge = Judge(tensors, width(guessers))
        self.tensors = self._judge.tensors

    def chances(self, found: Candidates) -> np.ndarray:
        """(M,) the chance of each candidate; those of a step add up to 1 less the chance of none of them."""
        return self._judge.chances(found.rows, found.step)


class FusionGuesser:
    """Several guessers as one."""

    def __init__(
        self,
        parts: Sequence[tuple[ComponentConfig, Guesser]],
        weights: Weights | None,
        constant: float = 5.0,
        digest: str = "",
    ) -> None:
        """Without `weights` by reciprocal rank; `digest` names the weights in the fingerprint."""
        self._parts, self._weights, self._constant, self._digest = list(parts), weights, constant, digest

    # --- guessing

    @property
    def pages(self) -> frozenset[str] | None:
        """All pages that any of the guessers can name; None if one cannot say."""
        known = [part.pages if isinstance(part, KnowsPages) else None for _, part in self._parts]
        named = [pages for pages in known if pages is not None]
        return frozenset().union(*named) if len(named) == len(known) else None

    def check_texts(self, texts: Iterable[Sequence[str]]) -> None:
        """Shows them to the guessers that want to see all texts first."""
        wanting = [part for _, part in self._parts if isinstance(part, ChecksTexts)]
        kept = list(texts) if wanting else []
        for part in wanting:
            part.check_texts(kept)

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """The best `n` pages for each text; with learnt weights the scores are chances."""
        return self.fused([part.guess(texts, DEPTH) for _, part in self._parts], [len(t.split()) for t in texts], n)

    def guess_prefixes(self, words: Sequence[str], n: int) -> list[list[Guess]]:
        """The guesses after each word; each guesser goes on from word to word in its own way."""
        lists = []
        for _, part in self._parts:
            if isinstance(part, IncrementalGuesser):
                lists.append(part.guess_prefixes(words, DEPTH))
            else:
                lists.append(part.guess([" ".join(words[:end]) for end in range(1, len(words) + 1)], DEPTH))
        return self.fused(lists, range(1, len(words) + 1), n)

    def fused(self, lists: Sequence[Sequence[Sequence[Guess]]], words: Sequence[int], n: int) -> list[list[Guess]]:
        """The best `n` pages of each step from the guesses of each guesser (by guesser, by step) and the words read."""
        if not len(words):
            return []
        found = candidates(lists, words)
        if self._weights is None:
            named = found.ranks < DEPTH
            scores = np.where(named, 1 / (self._constant + 1 + found.ranks), 0.0).sum(1)
        else:
            scores = self._weights.chances(found)
        return best(scores, found.pages, found.step, len(words), n)

    def fingerprint(self) -> str:
        """sha256 of the guessers, the weights, the code version and the constant."""
        parts = [(config.name, fingerprint_of(GUESSERS, config, part)) for config, part in self._parts]
        key = (VERSION, self._digest, None if self._weights else self._constant, parts)
        return hashlib.sha256(f"fusion {key!r}".encode()).hexdigest()

    # --- files

    def save(self, folder: Path) -> None:
        """Write model.safetensors and config.json; the guessers are named, not copied.  ConfigError without weights."""
        if self._weights is None:
            raise ConfigError("fusion: by reciprocal rank there is nothing to save")
        named = [to_mapping(config) for config, _ in self._parts]
        write_tensors(folder, self._weights.tensors, {"kind": KIND, "version": VERSION, "guessers": named})

    @classmethod
    def load(cls, folder: Path) -> FusionGuesser:
        """Read what `save` wrote, and the guessers that it names.  DataError if it is damaged."""
        tensors, config = read_tensors(folder, KIND, VERSION)
        reader = Reader()
        parts = reader.guessers(config.get("guessers"), "guessers")
        if reader.problems or not parts:
            raise DataError(f"{folder}: config.json: {'; '.join(reader.problems) or 'guessers: none'}; train it again")
        try:
            weights = Weights(tensors, len(parts))
        except ValueError as error:
            raise DataError(f"{folder}: not a fusion ({error}); restore or train it again") from error
        return cls(built(parts), weights, digest=folder_digest(folder))


def built(parts: Sequence[ComponentConfig]) -> list[tuple[ComponentConfig, Any]]:
    """Each config with its guesser."""
    return [(part, GUESSERS.build(part.name, part.options)) for part in parts]


def build(config: FusionConfig) -> FusionGuesser:
    """The guesser of a config. Raises ConfigError for an unknown model."""
    if config.guessers:
        return FusionGuesser(built(config.guessers), None, config.constant)
    return FusionGuesser.load(resolve_model(config.model or BUNDLED))
