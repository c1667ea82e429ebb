"""BLEU of a model by k on parallel sentences (sacrebleu, detokenised)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from smt.models.decode import decode_batch
from smt.models.stepper import Writer
from smt.models.transformer_stepper import TransformerWriter
from smt.policies.waitk import Schedule, parse_k

if TYPE_CHECKING:
    from smt.models.transformer import Transformer
    from smt.models.vocab import Vocabulary
    from smt.training.config import SmtConfig


def corpus_bleu(writer: Writer, pairs: Sequence[tuple[str, str]], schedule: Schedule) -> float:
    """BLEU, 0 to 100, of the greedy translations of (source, reference) lines."""
    import sacrebleu

    written = decode_batch(writer, [source.split() for source, _ in pairs], schedule)
    hypotheses = [" ".join(word.token for word in words) for words in written]
    return sacrebleu.corpus_bleu(hypotheses, [[reference for _, reference in pairs]]).score


def bleu_by_k(
    model: Transformer, vocabulary: Vocabulary, config: SmtConfig, ks: Sequence[int | str]
) -> dict[str, float]:
    """Corpus BLEU per k on the first sentences of the development part."""
    from smt.training.prepare import development_pairs

    training = model.training
    model.eval()
    rows = islice(development_pairs(config.corpus, config.development), config.train.evaluate_sentences)
    pairs, writer, rate = [row[:2] for row in rows], TransformerWriter(model, vocabulary), config.train.emission_rate
    scores = {str(k): corpus_bleu(writer, pairs, Schedule(parse_k(k), rate)) for k in ks}
    model.train(training)
    return scores
