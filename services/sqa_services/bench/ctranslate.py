"""Compare our full-input decoding with CTranslate2's, on the same weights, texts and number of threads.

The weights are those of a bundled model without its lexicon, which CTranslate2 cannot represent.  (Without it, both
translations are poor but have the usual length.)  Both programs search greedily, in batches of similar length.
"""

import dataclasses
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from smt.engines.ctranslate import CTranslate, CTranslateConfig
from smt.engines.ctranslate_export import export
from smt.models.bundle import load_model, model_folder
from smt.models.decode import decode_batch
from smt.models.transformer import Transformer
from smt.models.transformer_stepper import TransformerWriter
from smt.policies.waitk import FULL, Schedule
from sqa.core.types import Question
from sqa_services.bench.speed import MODEL, Pair, rate

ROUNDS = 2


def without_lexicon(model: Transformer) -> Transformer:
    """Return a copy of the network without alignment head and lexicon."""
    plain = Transformer(dataclasses.replace(model.config, lexicon_width=0))
    kept = plain.state_dict().keys()
    plain.load_state_dict({name: value for name, value in model.state_dict().items() if name in kept})
    return plain.eval()


def pairs(questions: Sequence[Question]) -> Iterator[Pair]:
    """Yield the target words per second of CTranslate2 and of our decoder, each on one thread.

    The rate of each counts its own output words.  Both translate all sentences ROUNDS times, in alternation, and the
    fastest round counts, since other programs can only slow a round down.
    """
    model, vocabulary, _ = load_model(model_folder(MODEL))
    model = without_lexicon(model)
    writer, full = TransformerWriter(model, vocabulary), Schedule(FULL)
    sentences = [sentence for question in questions for sentence in question.sentences]
    texts = [" ".join(sentence) for sentence in sentences]
    before = torch.get_num_threads()
    with tempfile.TemporaryDirectory() as folder:
        folder_of_export = str(export(model, vocabulary, Path(folder) / MODEL))
        engine = CTranslate(CTranslateConfig(folder_of_export, threads=1, compute_type="float32", max_new_tokens=512))
        torch.set_num_threads(1)
        try:
            engine.words(texts[:8])
            decode_batch(writer, sentences[:8], full)  # warm up both
            rounds = [
                (
                    rate(lambda: sum(map(len, engine.words(texts)))),
                    rate(lambda: sum(map(len, decode_batch(writer, sentences, full)))),
                )
                for _ in range(ROUNDS)
            ]
        finally:
            torch.set_num_threads(before)
    theirs, ours = map(max, zip(*rounds, strict=True))
    yield "full input: CTranslate2 on our weights, ours", "words/s", theirs, ours
