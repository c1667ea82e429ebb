"""Tiny models and files for every registered part, with two different variants of most of them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch


class Lesson(NamedTuple):
    """A text from which a retrieval model counts words, and the page that it describes."""

    id: str
    text: str
    page: str


LESSONS = [Lesson("1", "this capital of Peru lies at the coast", "Lima"), Lesson("2", "this fjord of Norway", "Oslo")]

UPPER = "import sys\nfor line in sys.stdin: print(line.rstrip().upper())\n"
AGENT = "from simuleval.agents import TextToTextAgent\nclass Other(TextToTextAgent):\n    def policy(self): ...\n"


class Places:
    """Files and folders by name, created on first use; NAME-2 is another variant of NAME."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, name: str) -> str:
        """Return the path of the file or folder `name`; skip the test if creating it needs a missing package."""
        path = self.root / name
        if not path.exists():
            kind = name.removesuffix("-2")
            try:
                MAKERS[kind](self, path, 1 if name == kind else 2)
            except ModuleNotFoundError as error:
                pytest.skip(f"needs the package {error.name}")
        return str(path)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _ours(places: Places, path: Path, seed: int) -> None:
    from smt_models import random_model, vocabulary

    from smt.models.bundle import save_model

    save_model(random_model("causal", 0, seed), vocabulary(), path, {"training": {"corpus": {"pair": "es-en"}}})


def _lm(places: Places, path: Path, seed: int) -> None:
    from stand_ins.lm_models import make

    make(path, "llama", seed)


def _adapter(places: Places, path: Path, seed: int) -> None:
    from stand_ins.lm_models import adapter

    adapter(Path(places.path("lm")), path, seed, bidirectional=True)


def _nllb(places: Places, path: Path, seed: int) -> None:
    from stand_ins.hub_models import save_models

    if seed == 1:
        save_models(path.parent, ("nllb",))
        return
    shutil.copytree(places.path("nllb"), path)
    write(path / "generation_config.json", json.dumps({"length_penalty": 2.0}))


def _pbmt(places: Places, path: Path, seed: int) -> None:
    from smt.statistical.packed import LANGUAGE, TABLE, WEIGHTS, Decoding, write_model

    write(path / f"{TABLE}.ttable", "a ||| b")
    write(path / f"{LANGUAGE}.lm", "b")
    write_model(path, [float(seed)] * WEIGHTS, Decoding(), {}, {})


def _log(places: Places, path: Path, seed: int) -> None:
    rows = [{"index": 0, "prediction": "a b", "delays": [seed, 3], "source_length": 4}]
    write(path, "".join(json.dumps(row) + "\n" for row in rows))


def _bm25(places: Places, path: Path, seed: int) -> None:
    from guessers.retrieval.counting import fit

    fit(LESSONS * seed, 1).save(path)


def _gru(places: Places, path: Path, seed: int) -> None:
    from guessers.gru.guesser import GruGuesser
    from guessers.gru.network import Shape, network_of

    torch.manual_seed(seed)
    GruGuesser(network_of(Shape(2, 2, 4, 4, 4, 0.0)), ["coast", "fjord"], ["Lima", "Oslo"]).save(path)


def _encoder(places: Places, path: Path, seed: int) -> None:
    from stand_ins.quality_models import save_bert

    save_bert(path)


def _bert(places: Places, path: Path, seed: int) -> None:
    from guessers.bert.encoder import Encoder, load_encoder, weights_digest
    from guessers.bert.guesser import BertGuesser, EncoderName, Head, Parts, Shape

    folder = Path(places.path("encoder"))
    model, tokenizer = load_encoder(folder)
    weights = np.ones(len(tokenizer), np.float16)
    name = EncoderName(str(folder), None, weights_digest(folder))
    torch.manual_seed(seed)
    head = Head(Shape(model.config.hidden_size, 2, 4, 0.0))
    parts = Parts(("Lima", "Oslo"), frozenset({"coast"}), weights, name)
    BertGuesser(Encoder(model, tokenizer, weights), head, parts).save(path)


def scorer_tensors(numbers: int, seed: int) -> dict[str, np.ndarray]:
    """Return random weights for the scorer of guessers/rerank/guesser.py with two hidden units."""
    rng = np.random.default_rng(seed)
    shapes = {"mean": (numbers,), "deviation": (numbers,), "hidden.weight": (2, numbers), "hidden.bias": (2,)}
    shapes |= {"output.weight": (1, 2), "output.bias": (1,)}
    return {name: rng.random(shape).astype(np.float32) for name, shape in shapes.items()}


def _rerank(places: Places, path: Path, seed: int) -> None:
    from guessers.rerank.answer_types import Kinds
    from guessers.rerank.evidence import Knowledge
    from guessers.rerank.features import NUMBERS
    from guessers.rerank.guesser import RerankGuesser, Scorer
    from guessers.retrieval.bm25 import Index

    index = Index.load(Path(places.path("bm25")))
    knowledge = Knowledge(index, Kinds.of(LESSONS, index.titles, 1))
    scorer = Scorer(scorer_tensors(len(NUMBERS), seed), len(NUMBERS))
    RerankGuesser(knowledge, scorer, places.path("bm25")).save(path)


def _comet(places: Places, path: Path, seed: int) -> None:
    hparams = f"class_identifier: regression_metric\npretrained_model: {places.path('lm')}\n"
    write(path / "hparams.yaml", hparams)
    write(path / "checkpoints" / "model.ckpt", f"weights {seed}")


MODELS = (_ours, _lm, _adapter, _nllb, _pbmt, _log, _bm25, _gru, _encoder, _bert, _rerank, _comet)
MAKERS: dict[str, Callable[[Places, Path, int], object]] = {
    made.__name__.removeprefix("_"): made for made in MODELS
} | {
    "agent.py": lambda places, path, seed: write(path, AGENT),
    "encoder-copy": lambda places, path, seed: shutil.copytree(places.path("encoder"), path),
    "upper.py": lambda places, path, seed: write(path, UPPER),
    "titles.txt": lambda places, path, seed: write(path, "Lima\nOslo\n"),
    "bleurt": lambda places, path, seed: write(path / "config.json", json.dumps({"model_type": "bleurt", "x": seed})),
}
