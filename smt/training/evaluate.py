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


def translated_lines(writer: Writer, lines: Sequence[str], schedule: Schedule) -> list[str]:
    """One translation per line, as text."""
    written = decode_batch(writer, [line.split() for line in lines], schedule)
    return [" ".join(word.token for word in words) for words in written]


def bleu_by_k(
    model: Transformer, vocabulary: Vocabulary, config: SmtConfig, ks: Sequence[int | str]
) -> dict[str, float]:
    """Corpus BLEU per k on the first sentences of the development part."""
    import sacrebleu

    from smt.training.prepare import development_pairs

    training = model.training
    model.eval()
    pairs = development_pairs(config.corpus, config.development)
    rows = list(islice(pairs, config.train.evaluate_sentences))
    sources, references = [row[0] for row in rows], [row[1] for row in rows]
    scores, writer = {}, TransformerWriter(model, vocabulary)
    for k in ks:
        hypotheses = translated_lines(writer, sources, Schedule(parse_k(k), config.train.emission_rate))
        scores[str(k)] = sacrebleu.corpus_bleu(hypotheses, [references]).score
    model.train(training)
    return scores
