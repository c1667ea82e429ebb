"""A small, randomly initialized wait-k model with a real vocabulary, for tests that do not depend on quality."""

import functools
from collections.abc import Callable, Iterator, Sequence

import torch

from smt.models.transformer import ModelConfig, Transformer
from smt.models.vocab import Vocabulary
from sqa.data.datasets import load_questions
from sqa.pipeline import CountedSource


@functools.cache
def vocabulary() -> Vocabulary:
    """Return a vocabulary of 600 pieces learnt from the bundled questions."""
    questions = [*load_questions("mini-es"), *load_questions("mini-en")]
    return Vocabulary.train((" ".join(s) for q in questions for s in q.sentences), 600)


def random_model(
    encoder: str = "causal", lexicon_width: int = 4, seed: int = 1, max_pieces: int = Transformer.MAX_PIECES
) -> Transformer:
    """Return a randomly initialized model whose weights are scaled up so that its output differs between steps."""
    torch.manual_seed(seed)
    config = ModelConfig(600, 32, 4, 64, 2, 2, 0.0, encoder=encoder, lexicon_width=lexicon_width, max_pieces=max_pieces)
    model = Transformer(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 2 and "embedding" not in name:
                parameter.mul_(3.0)
        if lexicon_width:
            model.lexicon_ids.copy_(torch.randint(4, 600, model.lexicon_ids.shape))
            model.lexicon_probabilities.copy_(torch.rand(model.lexicon_probabilities.shape) / lexicon_width)
    return model


def streamed(
    stream: Callable[[Iterator[str]], Iterator[str]], sentences: Sequence[Sequence[str]]
) -> list[list[tuple[str, int, bool]]]:
    """Translate each sentence and return a tuple (word, g, whether the source had ended) for each target word."""
    sources = [CountedSource(sentence) for sentence in sentences]
    return [[(token, source.read, source.ended) for token in stream(source)] for source in sources]
