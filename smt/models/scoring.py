"""Scores of the words of a given translation by the bundled Transformer, with and without the source.

    scorer = build("es-en")
    [scores] = scorer.score([(("Nació", "en", "Lima."), ("Born", "in", "Lima."))])
    scores.given      # ln p(word | source, the words before it), one number per target word

The whole source is read first, for any k, and the target words are given (teacher forcing).
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from smt.models.bundle import folder_fingerprint, load_model, model_folder
from smt.models.stepper import by_length
from smt.models.transformer import Transformer
from smt.models.transformer_stepper import TransformerWriter
from smt.models.vocab import BOS, EOS, PAD, Vocabulary
from smt.policies.waitk import pad
from sqa.diagnose.scores import Words, WordScores

ROWS = 32  # sentences scored together


class TransformerScorer:
    """Scorer of given translations; see the module's docstring."""

    group = "model"

    def __init__(self, model: Transformer, vocabulary: Vocabulary, fingerprint: str) -> None:
        self.model, self.vocabulary, self._fingerprint = model, vocabulary, fingerprint
        self.writer = TransformerWriter(model, vocabulary)

    def score(self, pairs: Sequence[tuple[Words, Words]]) -> list[WordScores]:
        """Return the scores of each pair (source words, target words); the pairs are independent of each other."""
        results = [WordScores((), (), ())] * len(pairs)
        for group in by_length([y for _, y in pairs], ROWS):
            rows = [i for i in group if pairs[i][1]]
            if rows:
                targets = [pairs[i][1] for i in rows]
                with_source, short = self._words([pairs[i][0] for i in rows], targets)
                without_source, _ = self._words([() for _ in rows], targets)
                for i, *numbers in zip(rows, with_source, without_source, short, strict=True):
                    results[i] = WordScores(*numbers)
        return results

    @torch.inference_mode()
    def _words(
        self, sources: Sequence[Words], targets: Sequence[Words]
    ) -> tuple[list[tuple[float, ...]], list[tuple[float, ...]]]:
        """Return ln p per sentence and word, and its difference from ln p of the most probable pieces."""
        source = pad([np.array([*self.vocabulary.words(x)[0], EOS]) for x in sources], PAD)  # (B, S)
        pieces, words = zip(*(self.vocabulary.words(y) for y in targets), strict=True)
        pieces_out = pad([np.array(ids) for ids in pieces], PAD)  # (B, T)
        self.writer.check(max(source.shape[1], pieces_out.shape[1]))
        inputs = torch.cat([torch.full((len(pieces_out), 1), BOS), pieces_out[:, :-1]], 1)
        visible = (source != PAD)[:, None].expand(-1, pieces_out.shape[1], -1)
        states, alignment, _ = self.model(source, inputs, visible)
        lexicon, score = self.writer.lexicon(source), self.writer.logits
        seen = [None] * states.shape[1] if alignment is None else alignment.unbind(1)
        scores = [score(state, links, lexicon) for state, links in zip(states.unbind(1), seen, strict=True)]
        ln_p = torch.stack(scores, 1).log_softmax(-1)  # (B, T, V)
        ln_chosen = ln_p.gather(2, pieces_out[:, :, None])[:, :, 0]
        short = ln_p.max(-1).values - ln_chosen
        return list(map(summed, ln_chosen, words)), list(map(summed, short, words))

    def fingerprint(self) -> str:
        """Return a hash of everything that the scores depend on."""
        return self._fingerprint


def summed(numbers: Tensor, index: Sequence[int]) -> tuple[float, ...]:
    """Return the sum over the pieces (T,) of each word, with 3 decimals; `index` gives the word of each piece."""
    return tuple(np.bincount(index, numbers[: len(index)].double().numpy(), index[-1] + 1).round(3).tolist())


def build(pair: str) -> TransformerScorer:
    """Return the scorer of a bundled model ("es-en"), or of a model's folder."""
    folder = model_folder(pair)
    model, vocabulary, _ = load_model(folder)
    return TransformerScorer(model, vocabulary, f"transformer 1 {folder_fingerprint(folder)}")
