"""Readers of models: a small model, ways to corrupt its numbers, and a translation or alignment by the model.

Tables of guessers, buzzers and phrase-based models are trusted, so only their files are checked.
"""

import atexit
import functools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from fuzz.file_readers import JSON, TENSORS, Reader
from fuzz.tensor_mutations import tensor_values

from guessers.gru.guesser import GruGuesser
from guessers.gru.network import Shape, network_of
from smt.lm.adapter import WEIGHTS as ADAPTER
from smt.lm.adapter import load_adapter
from smt.lm.network import load_network
from smt.models.bundle import save_model
from smt.models.transformer import ModelConfig, Transformer
from smt.models.vocab import Vocabulary
from smt.models.waitk_translator import WaitKConfig
from smt.models.waitk_translator import build as build_waitk
from sqa.core.paths import DATA
from sqa.data.priors import Priors
from sqa.diagnose.alignment import HmmAligner
from sqa.diagnose.detector import read_networks
from sqa.diagnose.signals import GROUPS
from sqa.files.hub import load_weights
from sqa.files.model_files import content

MODELS = DATA / "models"
WORDS = ["la", "casa", "grande", "en", "Perú"]


def made(make: Callable[[Path], object]) -> Callable[[], Path]:
    """Return a function that returns the path of a folder; its first call creates the folder and calls `make`."""

    @functools.cache
    def folder() -> Path:
        path = Path(tempfile.mkdtemp(prefix="sqa-fuzz-"))
        atexit.register(shutil.rmtree, path, ignore_errors=True)
        make(path)
        return path

    return folder


def gru(folder: Path) -> None:
    words = sorted({"lima", "capit", "countri", "south", "america"})
    shape = Shape(len(words), 4, 6, 5, 3, 0.0)
    GruGuesser(network_of(shape), words, [f"Page {i}" for i in range(4)]).save(folder)


def transformer(folder: Path) -> None:
    torch.manual_seed(0)
    vocabulary = Vocabulary.train((f"la casa {i} grande\nthe big house {i}" for i in range(300)), 290)
    sizes = ModelConfig(vocabulary.size, 16, 2, 24, 1, 1, lexicon_width=3, max_pieces=64)
    save_model(Transformer(sizes), vocabulary, folder, {"source": "es", "target": "en"})


def language(folder: Path) -> None:
    from stand_ins.lm_models import make

    make(folder, "qwen3")


def encoder(folder: Path) -> None:
    from stand_ins.quality_models import save_bert

    size = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    save_bert(folder, (), max_position_embeddings=16, **size)


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
    """Return readers of the models whose numbers are checked."""
    bundled = {name: functools.partial(Path, MODELS, name) for name in ("align-es-en", "errors-es-en", "lm-es-en")}
    adapter = bundled["lm-es-en"]
    factors = {ADAPTER: content(adapter() / ADAPTER)}
    return [
        *_tensors("priors", bundled["align-es-en"], _align, 0.5),
        *_tensors("transformer", made(transformer), _translate),
        *_tensors("language model weights", made(language), _read),
        *_tensors("encoder", made(encoder), lambda f: load_weights(f, "AutoModel", "an encoder")),
        Reader("detector", {}, "detector.json", JSON, _detect, bundled["errors-es-en"]),
        Reader("adapter tensors", factors, ADAPTER, (tensor_values,), load_adapter, adapter, share=0.1),
        Reader("adapter pieces", {}, "pieces.safetensors", (tensor_values,), load_adapter, adapter, share=0.1),
    ]
