"""Our full-input decoding beside CTranslate2's, on the same weights, texts and number of threads.

    python -m experiments.bench.ctranslate

The weights are a bundled model's without its lexicon, which CTranslate2 cannot express.  (What both write is poor, but
of the usual length.)  Both search greedily, in batches of similar length.
"""

from __future__ import annotations

import dataclasses
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import torch

from smt.engines.ctranslate import CTranslate, CTranslateConfig
from smt.engines.ctranslate_export import export
from smt.models.bundle import load_model, model_folder
from smt.models.decode import decode_batch
from smt.models.transformer import Transformer
from smt.policies.waitk import FULL

MODEL = "es-en"
ROUNDS = 2
Arithmetic = Literal["float32", "int8"]


class Speeds(NamedTuple):
    """Target words per second."""

    ours: float
    ctranslate2: float


def without_lexicon(model: Transformer) -> Transformer:
    """The same network without alignment head and lexicon."""
    plain = Transformer(dataclasses.replace(model.config, lexicon_width=0))
    kept = plain.state_dict().keys()
    plain.load_state_dict({name: value for name, value in model.state_dict().items() if name in kept})
    return plain.eval()


def speeds(sentences: Sequence[Sequence[str]], threads: int = 1, arithmetic: Arithmetic = "float32") -> Speeds:
    """Target words per second of our decoder and of CTranslate2; each counts the words it wrote.

    Both translate everything ROUNDS times in turn and the faster round counts, for other programs only slow it down.
    """
    model, vocabulary, _ = load_model(model_folder(MODEL))
    model = without_lexicon(model)
    texts = [" ".join(sentence) for sentence in sentences]
    before = torch.get_num_threads()
    with tempfile.TemporaryDirectory() as folder:
        there = str(export(model, vocabulary, Path(folder) / MODEL))
        engine = CTranslate(CTranslateConfig(there, threads=threads, compute_type=arithmetic, max_new_tokens=512))
        torch.set_num_threads(threads)
        try:
            engine.words(texts[:8])
            decode_batch(model, vocabulary, sentences[:8], FULL)  # warm-up of both
            rounds = [
                Speeds(
                    _rate(lambda: sum(map(len, decode_batch(model, vocabulary, sentences, FULL)))),
                    _rate(lambda: sum(map(len, engine.words(texts)))),
                )
                for _ in range(ROUNDS)
            ]
        finally:
            torch.set_num_threads(before)
    return Speeds(max(r.ours for r in rounds), max(r.ctranslate2 for r in rounds))


def _rate(work: Callable[[], int]) -> float:
    """Units of work per second of wall time."""
    start = time.perf_counter()
    done = work()
    return done / (time.perf_counter() - start)
