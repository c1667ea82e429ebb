"""The fusion guesser: any guessers as one.

Reciprocal rank (Cormack, Clarke and Buettcher 2009): a page scores the sum over guessers of 1 / (constant + its rank
there), nothing where it is not among the best 50.

Learnt weights: every page that a guesser names is described by its ranks and scores (guessers/fusion/candidates.py),
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

from guessers.fusion.candidates import DEPTH, candidates, width
from guessers.fusion.scorer import Scorer, best
from sqa.core.errors import ConfigError, DataError, NotNegative, checked
from sqa.core.registry import GUESSERS
from sqa.core.types import ChecksTexts, Guess, Guesser, KnowsPages, guesses_per_word
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
    constant: NotNegative = 5.0  # of the reciprocal rank, >= 0: how little the first ranks count beside the others

    def problems(self) -> list[str]:
        """Beside the bounds."""
        is_double = self.model is not None and bool(self.guessers)
        return ["guessers: a model has its own; leave out one of the two"] if is_double else []


class FusionGuesser:
    """Several guessers as one."""

    def __init__(
        self,
        parts: Sequence[tuple[ComponentConfig, Guesser]],
        scorer: Scorer | None,
        constant: float = 5.0,
        digest: str = "",
    ) -> None:
        """Without a `scorer` by reciprocal rank; `digest` names its weights in the fingerprint."""
        self._parts, self._scorer, self._constant, self._digest = list(parts), scorer, constant, digest

    # --- guessing

    @property
    def pages(self) -> frozenset[str] | None:
        """All pages that any of the guessers can name; None if one cannot say."""
        named = [part.pages for _, part in self._parts if isinstance(part, KnowsPages) and part.pages is not None]
        return frozenset().union(*named) if len(named) == len(self._parts) else None

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
        lists = [guesses_per_word(part, words, DEPTH) for _, part in self._parts]
        return self.fused(lists, range(1, len(words) + 1), n)

    def fused(self, lists: Sequence[Sequence[Sequence[Guess]]], words: Sequence[int], n: int) -> list[list[Guess]]:
        """The best `n` pages of each step from the guesses of each guesser (by guesser, by step) and the words read."""
        if not len(words):
            return []
        of_step = candidates(lists, words)
        if self._scorer is None:
            scores = np.where(of_step.ranks < DEPTH, 1 / (self._constant + 1 + of_step.ranks), 0.0).sum(1)
        else:
            scores = self._scorer.chances(of_step.rows, of_step.step)
        return best(scores, of_step.pages, of_step.step, len(words), n)

    def fingerprint(self) -> str:
        """sha256 of the guessers, the weights, the code version and the constant."""
        parts = [(config.name, fingerprint_of(GUESSERS, config, part)) for config, part in self._parts]
        key = (VERSION, self._digest, None if self._scorer else self._constant, parts)
        return hashlib.sha256(f"fusion {key!r}".encode()).hexdigest()

    # --- files

    def save(self, folder: Path) -> None:
        """Write model.safetensors and config.json; the guessers are named, not copied.  ConfigError without weights."""
        if self._scorer is None:
            raise ConfigError("fusion: by reciprocal rank there is nothing to save")
        named = [to_mapping(config) for config, _ in self._parts]
        write_tensors(folder, self._scorer.tensors, {"kind": KIND, "version": VERSION, "guessers": named})

    @classmethod
    def load(cls, folder: Path) -> FusionGuesser:
        """Read what `save` wrote, and the guessers that it names.  DataError if it is damaged."""
        tensors, config = read_tensors(folder, KIND, VERSION)
        reader = Reader()
        parts = reader.guessers(config.get("guessers"), "guessers")
        if reader.problems or not parts:
            raise DataError(f"{folder}: config.json: {'; '.join(reader.problems) or 'guessers: none'}; train it again")
        try:
            scorer = Scorer(tensors, width(len(parts)))
        except ValueError as error:
            raise DataError(f"{folder}: not a fusion ({error}); restore or train it again") from error
        return cls(built(parts), scorer, digest=folder_digest(folder))


def built(parts: Sequence[ComponentConfig]) -> list[tuple[ComponentConfig, Any]]:
    """Each config with its guesser."""
    return [(part, GUESSERS.build(part.name, part.options)) for part in parts]


def build(config: FusionConfig) -> FusionGuesser:
    """The guesser of a config. Raises ConfigError for an unknown model."""
    if config.guessers:
        return FusionGuesser(built(config.guessers), None, config.constant)
    return FusionGuesser.load(resolve_model(config.model or BUNDLED))
