"""Scores of the words of a translation by a language model with a translation adapter.

    scorer = build("es-en")
    [scores] = scorer.score([(("Nació", "en", "Lima."), ("Born", "in", "Lima."))])
    scores.given      # ln p(word | source, the words before it), one number per target word

The whole source is read first and the target words are given (teacher forcing).  Each sentence takes one forward pass
with its source and one with an empty source, without decoding.  A piece's probability is normalised over the pieces
among which the adapter chooses.

Letters in the shape comments: S source pieces, A pieces of the prompt for the translation, T target pieces, D width, V
pieces among which the adapter chooses.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from smt.lm.causal_lm import CausalLmConfig, resolve, writer
from smt.lm.lm_stepper import LmWriter
from smt.lm.network import mask_of
from smt.lm.tokenizer import OFFSET
from sqa.core import DATA, ConfigError
from sqa.diagnose.alignment import Words
from sqa.diagnose.signals import WordScores

VERSION = 2  # increase when the numbers change


class LmScorer:
    """Scorer of given translations; see the module's docstring."""

    group = "lm"

    def __init__(self, load: Callable[[], LmWriter], fingerprint: str) -> None:
        self._load, self._fingerprint = load, fingerprint  # `load` is a function, since stored scores need no model

    @property
    def writer(self) -> LmWriter:
        """Return the loaded model."""
        return self._load()

    def fingerprint(self) -> str:
        """Return a hash of everything that the scores depend on."""
        return self._fingerprint

    def score(self, pairs: Sequence[tuple[Words, Words]]) -> list[WordScores]:
        """Return the scores of each pair (source words, target words); the pairs are independent of each other."""
        return [self._of(source, target) if target else WordScores((), (), ()) for source, target in pairs]

    def _of(self, source: Words, target: Words) -> WordScores:
        pieces, index = self.writer.tokens.words(target)
        with_source, best = self._forced(source, pieces)
        without_source, _ = self._forced((), pieces)
        return WordScores(*(_summed(numbers, index) for numbers in (with_source, without_source, best - with_source)))

    @torch.inference_mode()
    def _forced(self, source: Words, pieces: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return ln p of each piece, (T,), and ln p of the most probable piece at its position, (T,)."""
        w = self.writer
        source_pieces, _ = w.layout.source(w.tokens, source)
        target_inputs = [*w.layout.asking, *pieces[:-1]]  # (A + T - 1,); the last T positions predict the pieces
        positions = [*range(len(source_pieces)), *range(OFFSET, OFFSET + len(target_inputs))]
        tensor = partial(torch.tensor, device=w.device)
        allowed = torch.ones(1, len(positions), len(positions), dtype=torch.bool, device=w.device).tril()
        mask = mask_of(allowed, w.model.dtype)
        states = w.model(tensor([[*source_pieces, *target_inputs]]), tensor([positions]), mask)
        states = states[0, -len(pieces) :]  # (T, D)
        scores = F.linear(states, w.rows).float()  # (T, V)
        targets = tensor(pieces)
        target_scores = (states.float() * w.model.output_rows(targets).float()).sum(-1)  # (T,)
        in_choice = torch.isin(targets, w.pieces)
        total = scores.logsumexp(-1)
        total = torch.where(in_choice, total, torch.logaddexp(total, target_scores))
        best = torch.maximum(scores.max(-1).values, target_scores)
        return (target_scores - total).cpu(), (best - total).cpu()


def _summed(numbers: Tensor, index: Sequence[int]) -> tuple[float, ...]:
    """Return the sum over the pieces (T,) of each word, with 3 decimals; `index` gives the word of each piece."""
    return tuple(np.bincount(index, numbers[: len(index)].double().numpy(), index[-1] + 1).round(3).tolist())


def build(pair: str) -> LmScorer:
    """Return the scorer of a bundled adapter by its pair ("es-en"); raises ConfigError without adapter or base."""
    model = f"lm-{pair}"
    if not (DATA / "models" / model).is_dir():
        raise ConfigError(f"no language model translates {pair}: {DATA / 'models' / model} does not exist")
    found = resolve(CausalLmConfig(model))
    return LmScorer(partial(writer, found), f"language-model {VERSION} {found.where.dtype} {' '.join(found.files)}")
