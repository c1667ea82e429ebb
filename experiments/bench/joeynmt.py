"""A training step of ours beside one of joeynmt (Kreutzer et al. 2019), same Transformer, same batches, one thread.

    python -m experiments.bench.joeynmt      # needs joeynmt 2.3.0; not an extra of ours

joeynmt pins an old protobuf that our own pins exclude, so give it a virtual environment of its own.  Both train a full-
input Transformer without a lexicon: joeynmt has neither wait-k nor lexicon.  A step is forward, label-smoothed loss,
backward, clipping and the optimiser, on batches of the bundled Spanish questions that lie ready; the programs take
turns, so that both see the machine in the same state.  Prints TSV.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from smt.models.bundle import model_folder
from smt.models.transformer import ModelConfig
from smt.models.vocab import BOS, EOS, PAD, UNK, Vocabulary
from smt.training.batches import Batch
from smt.training.config import CorpusConfig, SmtConfig, TrainConfig
from smt.training.corpus import pack
from smt.training.train import Trainer, denormals_flushed
from sqa.data.datasets import load_questions

SIZES = {"d=256, 4+2 layers": (256, 4, 1024, 4, 2), "d=512, 6+6 layers": (512, 8, 2048, 6, 6)}  # width, heads, inner
BATCH_PIECES = 2000
ROUNDS = 7  # timed steps of each program; the median counts


def main() -> None:
    """Measure and print."""
    if find_spec("joeynmt") is None:
        print("joeynmt is not installed: nothing to compare with (pip install joeynmt==2.3.0)", file=sys.stderr)
        return
    torch.set_num_threads(1)
    print("model", "program", "parameters", "seconds_per_step", "target_words_per_s", "ratio_to_joeynmt", sep="\t")
    for name, size in SIZES.items():
        measure(name, *size)


def measure(name: str, width: int, heads: int, inner: int, encoder: int, decoder: int) -> None:
    """One model size: three lines."""
    with tempfile.TemporaryDirectory() as folder:
        data = prepared(Path(folder) / "data")
        model = ModelConfig(8000, width, heads, inner, encoder, decoder, 0.1, "bidirectional", lexicon_width=0)
        ours = {f"ours, compile: {str(on).lower()}": Trainer(config(model, on), Path(folder)) for on in (True, False)}
        batches = [ours["ours, compile: false"].batches.at(i) for i in range(4)]
        theirs, their_step = joeynmt(model)
        converted = [convert(batch) for batch in batches]
        steps: dict[str, Callable[[int], object]] = {key: _turn(trainer) for key, trainer in ours.items()}
        steps["joeynmt"] = lambda i: their_step(converted[i % len(converted)]())
        with denormals_flushed():  # for both
            times = alternate(steps, len(batches))
        words = words_per_batch(batches, Vocabulary.load(data / "vocabulary.model"))
    parameters = {key: _size(trainer.model) for key, trainer in ours.items()} | {"joeynmt": _size(theirs)}
    for program, seconds in times.items():
        per_second, ratio = words / seconds, times["joeynmt"] / seconds
        print(
            name,
            program,
            parameters[program],
            f"{seconds:.3f}",
            f"{per_second:.0f}",
            f"{ratio:.2f}",
            sep="\t",
            flush=True,
        )


def _turn(trainer: Trainer) -> Callable[[int], object]:
    return lambda _: trainer.train_step()


def _size(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


def prepared(data: Path) -> Path:
    """The bundled questions in the pieces of the bundled Spanish model."""
    vocabulary = Vocabulary.load(model_folder("es-en") / "vocabulary.model")
    pairs = [
        (" ".join(source), target, "mini")
        for q in load_questions("mini-es")
        for source, target in zip(q.sentences, q.reference, strict=True)
    ]
    pack(pairs, vocabulary, None).save(data / "packed")
    (data / "vocabulary.model").write_bytes(vocabulary.model)
    return data


def config(model: ModelConfig, compiled: bool) -> SmtConfig:
    """A full-input training with joeynmt's ingredients."""
    train = TrainConfig(batch_pieces=BATCH_PIECES, k=("full",), alignment_weight=0.0, compile=compiled, threads=1)
    return SmtConfig("bench", CorpusConfig("es-en", lexicon_width=0), model, train)


def alternate(steps: dict[str, Callable[[int], object]], batches: int) -> dict[str, float]:
    """Median seconds of a step of each program, taking turns over the batches after one unmeasured pass."""
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for i in range(ROUNDS + batches):
        for name, step in steps.items():
            start = time.perf_counter()
            step(i)
            if i >= batches:
                taken[name].append(time.perf_counter() - start)
    return {name: median(seconds) for name, seconds in taken.items()}


def words_per_batch(batches: list[Batch], vocabulary: Vocabulary) -> float:
    """Mean target words of a batch."""
    starts = torch.from_numpy(vocabulary.starts_word)
    return sum(int(starts[batch.target].sum()) for batch in batches) / len(batches)


# ------------------------------------------------------------------------------------------------------- joeynmt


def joeynmt(model: ModelConfig) -> tuple[nn.Module, Callable[[object], float]]:
    """Its model of the same size, and its training step (`TrainManager._train_step` and the update that follows)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from joeynmt.model import build_model
        from joeynmt.vocabulary import Vocabulary as JoeyVocabulary
    logging.disable(logging.INFO)  # it configures a handler per module
    symbols = SimpleNamespace(
        unk_token="<unk>", pad_token="<pad>", bos_token="<s>", eos_token="</s>", sep_token=None, lang_tags=[],
        unk_id=0, pad_id=1, bos_id=2, eos_id=3,
    )  # fmt: skip
    vocabulary = JoeyVocabulary([f"piece{i}" for i in range(4, model.vocabulary)], symbols)
    part = {
        "type": "transformer", "num_heads": model.heads, "hidden_size": model.width, "ff_size": model.feed_forward,
        "dropout": model.dropout, "layer_norm": "pre",
        "embeddings": {"embedding_dim": model.width, "scale": True, "dropout": model.dropout},
    }  # fmt: skip
    built = build_model(
        {
            "encoder": {**part, "num_layers": model.encoder_layers},
            "decoder": {**part, "num_layers": model.decoder_layers},
            "tied_embeddings": True, "tied_softmax": True, "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
        },
        vocabulary, vocabulary,
    )  # fmt: skip
    built.loss_function = ("crossentropy", 0.1)
    optimizer = torch.optim.Adam(built.parameters(), lr=1e-4, betas=(0.9, 0.98))

    def step(batch: Any) -> float:
        built.train()
        batch.sort_by_src_length()
        total, _, _, _ = built(return_type="loss", **vars(batch))
        loss = batch.normalize(total, normalization="tokens")
        loss.backward()
        nn.utils.clip_grad_norm_(built.parameters(), 1.0)
        optimizer.step()
        built.zero_grad()
        return float(loss.detach())

    return built, step


def convert(batch: Batch) -> Callable[[], object]:
    """Makes joeynmt's form of a batch: the same pieces, numbered as joeynmt numbers its special symbols."""
    from joeynmt.batch import Batch as JoeyBatch

    swap = torch.arange(max(int(batch.source.max()), int(batch.target.max())) + 1)
    swap[PAD], swap[UNK] = UNK, PAD  # theirs: unknown 0, padding 1, begin 2, end 3
    assert (BOS, EOS) == (2, 3)
    begin = torch.full((len(batch.target), 1), BOS)
    source, target = swap[batch.source], swap[torch.cat([begin, batch.target], 1)]
    length = (batch.source != PAD).sum(1)

    def made() -> object:
        tensors: tuple[Tensor, ...] = (source.clone(), length.clone(), target.clone())
        return JoeyBatch(
            tensors[0], tensors[1], None, tensors[2], None, torch.arange(len(length)), torch.device("cpu"), UNK, EOS
        )

    return made


if __name__ == "__main__":
    main()
