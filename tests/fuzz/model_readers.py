"""Every reader of models: a small model, ways to corrupt its numbers, and a guess, buzz or translation by the model."""

import atexit
import functools
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from fuzz import mutations as by
from fuzz.file_readers import JSON, TABLE, TENSORS, Reader
from fuzz.tensor_mutations import tensor_values

from buzzers.learnt import LearntConfig
from buzzers.learnt import mlp as build_mlp
from buzzers.recurrent import build as build_recurrent
from buzzers.threshold import ThresholdBuzzer
from guessers.gru.guesser import GruGuesser
from guessers.gru.network import Shape, network_of
from guessers.rerank.guesser import RerankGuesser
from guessers.retrieval.bm25 import Bm25Config, Bm25Guesser
from guessers.retrieval.counting import fit
from smt.lm.adapter import WEIGHTS as ADAPTER
from smt.lm.adapter import load_adapter
from smt.lm.network import load_network
from smt.models.bundle import save_model
from smt.models.transformer import ModelConfig, Transformer
from smt.models.vocab import Vocabulary
from smt.models.waitk_translator import WaitKConfig
from smt.models.waitk_translator import build as build_waitk
from smt.statistical.packed import CONFIG, NGRAMS, PHRASES, unpack, write_zst
from sqa.core import DATA, Guess
from sqa.data.priors import Priors
from sqa.diagnose.alignment import HmmAligner
from sqa.diagnose.detector import read_networks
from sqa.diagnose.signals import GROUPS
from sqa.files import content, load_weights

MODELS = DATA / "models"
HISTORY = [[Guess(f"page {i}", 9.0 - i + step) for i in range(12)] for step in range(8)]
TEXT = "Lima is the capital of this country in South America ."
WORDS = ["la", "casa", "grande", "en", "Perú"]
PHRASE_LINES = ["casa\thouse\t9\t12", "\thome\t3\t3", "la\tthe\t40\t90", "la casa\tthe house\t8\t8"]
NGRAM_LINES = ["the\t90", "house\t12", "home\t3", "the house\t8"]


@dataclass(frozen=True)
class Lesson:
    """A text and the page that it describes, for training."""

    text: str
    page: str


def made(make: Callable[[Path], object]) -> Callable[[], Path]:
    """Return a function that returns the path of a folder; its first call creates the folder and calls `make`."""

    @functools.cache
    def folder() -> Path:
        path = Path(tempfile.mkdtemp(prefix="sqa-fuzz-"))
        atexit.register(shutil.rmtree, path, ignore_errors=True)
        make(path)
        return path

    return folder


def counts(folder: Path) -> None:
    lessons = [Lesson(f"{TEXT} Number {i} of the country", f"Page {i % 5}") for i in range(20)]
    fit(lessons).index.save(folder)


def gru(folder: Path) -> None:
    words = sorted({"lima", "capit", "countri", "south", "america"})
    shape = Shape(len(words), 4, 6, 5, 3, 0.0)
    GruGuesser(network_of(shape), words, [f"Page {i}" for i in range(4)]).save(folder)


def transformer(folder: Path) -> None:
    torch.manual_seed(0)
    vocabulary = Vocabulary.train((f"la casa {i} grande\nthe big house {i}" for i in range(300)), 290)
    sizes = ModelConfig(vocabulary.size, 16, 2, 24, 1, 1, lexicon_width=3, max_pieces=64)
    save_model(Transformer(sizes), vocabulary, folder, {"source": "es", "target": "en"})


def phrase_based(folder: Path) -> None:
    shutil.copy(MODELS / "pbmt-es-en" / CONFIG, folder / CONFIG)
    write_zst(folder / PHRASES, iter(PHRASE_LINES))
    write_zst(folder / NGRAMS, iter(NGRAM_LINES))


def language(folder: Path) -> None:
    from stand_ins.lm_models import make

    make(folder, "qwen3")


def encoder(folder: Path) -> None:
    from stand_ins.quality_models import save_bert

    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    save_bert(folder, (), max_position_embeddings=16, **size)


def _guess(guesser: Bm25Guesser | GruGuesser | RerankGuesser) -> None:
    """Guess for whole texts and for prefixes; check that all scores are finite."""
    for row in [*guesser.guess([TEXT, "Peru"], 5), *guesser.guess_prefixes(TEXT.split(), 5)]:
        assert np.isfinite([guess.score for guess in row]).all()


def _decide(buzzer: object) -> None:
    assert np.isfinite([buzz.score for buzz in buzzer.decide(HISTORY)]).all()  # type: ignore[attr-defined]


def _align(folder: Path) -> None:
    HmmAligner(Priors.load(folder)).align([(WORDS, ["the", "big", "house"])])


def _detect(folder: Path) -> None:
    for group, network in read_networks(folder / "detector.json").items():
        assert np.isfinite(network.probabilities(np.ones((3, len(GROUPS[group]))))).all()


def _translate(folder: Path) -> None:
    list(build_waitk(WaitKConfig(model=str(folder), k=2)).translate(iter(WORDS)))


def _read(folder: Path) -> None:
    load_network(folder).read(torch.tensor([[2, 5, 7]]))


def _tensors(name: str, folder: Callable[[], Path], read: Callable[[Path], object], share: float = 1.0) -> list[Reader]:
    """Return a reader for each of the two files of a model, weights and config."""
    files = {"model.safetensors": (tensor_values, tensor_values, *TENSORS), "config.json": JSON}
    return [Reader(f"{name} {file}", {}, file, ways, read, folder, share=share) for file, ways in files.items()]


def model_readers() -> list[Reader]:
    """Return readers of every model format."""
    names = ("rerank", "align-es-en", "errors-es-en")
    bundled = {name: functools.partial(Path, MODELS, name) for name in names}
    mlp, recurrent, threshold = (
        functools.partial(Path, MODELS, f"buzzer-{name}-bm25") for name in ("mlp", "recurrent", "threshold")
    )
    phrases, adapter = made(phrase_based), functools.partial(Path, MODELS, "lm-es-en")
    zipped, factors = [by.zipped(change) for change in TABLE], {ADAPTER: content(adapter() / ADAPTER)}
    return [
        *_tensors("counts", made(counts), lambda f: _guess(Bm25Guesser.load(f, Bm25Config()))),
        *_tensors("tfidf", made(counts), lambda f: _guess(Bm25Guesser.load(f, Bm25Config(similarity="tfidf")))),
        *_tensors("gru", made(gru), lambda f: _guess(GruGuesser.load(f))),
        *_tensors("rerank", bundled["rerank"], lambda f: _guess(RerankGuesser.load(f)), 0.3),
        *_tensors("priors", bundled["align-es-en"], _align, 0.5),
        *_tensors("mlp", mlp, lambda f: _decide(build_mlp(LearntConfig(model=str(f))))),
        *_tensors("recurrent", recurrent, lambda f: _decide(build_recurrent(LearntConfig(model=str(f))))),
        *_tensors("threshold", threshold, lambda f: _decide(ThresholdBuzzer.load(f))),
        *_tensors("transformer", made(transformer), _translate),
        *_tensors("language model weights", made(language), _read),
        *_tensors("encoder", made(encoder), lambda f: load_weights(f, "AutoModel", "an encoder")),
        Reader("detector", {}, "detector.json", JSON, _detect, bundled["errors-es-en"]),
        Reader("phrases", {}, PHRASES, zipped, lambda f: unpack(f, f), phrases),
        Reader("n-grams", {}, NGRAMS, zipped, lambda f: unpack(f, f), phrases),
        Reader("phrases config.json", {}, CONFIG, JSON, lambda f: unpack(f, f), phrases),
        Reader("adapter tensors", factors, ADAPTER, (tensor_values,), load_adapter, adapter, share=0.1),
        Reader("adapter pieces", {}, "pieces.safetensors", (tensor_values,), load_adapter, adapter, share=0.1),
    ]
