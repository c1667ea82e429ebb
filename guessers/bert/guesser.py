"""The BERT guesser: a pretrained text encoder and a classification head over pages.

The encoder reads a text passage by passage (guessers/bert/encoder.py); the head receives the weighted mean of the word
pieces' vectors before and after encoding: mean -> batch norm, dropout -> bottleneck -> softmax over pages.  As in the
GRU guesser, the mean starts from a weighted zero vector, which keeps the confidence low after few words.

Only the last passage of a text changes with the next word.  Each prefix of a text therefore costs one short passage,
and passages of similar length are read together.

A model's folder contains the head, the name of its encoder and the sha256 of the encoder's files.  Loading the model
with any other encoder raises DataError.

Shapes: N texts, H width of the encoder, D bottleneck, P pages.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from guessers import classifier_files, text
from guessers.bert import encoder as bert_encoder
from guessers.bert.encoder import ARITHMETIC, Encoder, spans
from sqa.core import Count, DataError, File, Guess, Positive, checked
from sqa.files import Device, Dtype, converted, folder_digest, place, resolve_model, write_tensors

VERSION = 1  # version of the code that turns words into guesses; raise it when guesses change
PRIOR = 4.0  # initial weight of the zero vector in the mean, in pieces of maximum rarity
BLOCK = 256  # texts scored at once; (BLOCK, P) float64 takes tens of megabytes


@dataclass(frozen=True, slots=True)
@checked
class BertConfig:
    """Options of `guesser: {name: bert, ...}`."""

    model: Annotated[File, "a bundled model (folder of data/models) or a folder"] = "bert"
    encoder: Annotated[File | None, "folder or hub name of its encoder; null = the encoder named in the model"] = None
    revision: Annotated[str | None, "branch, tag or commit of a hub encoder; required for a download"] = None
    download: Annotated[bool, "download a hub encoder that is not in the local cache"] = False
    temperature: Annotated[Positive, "divides the logits before the softmax: > 1 flattens the scores"] = 1.0
    batch_tokens: Annotated[Count, "maximum word pieces per batch, including padding"] = 2048
    device: Annotated[Device, "device of the encoder; auto = a GPU if there is one"] = "cpu"
    dtype: Annotated[Dtype, "element type of the encoder; int8 needs CTranslate2 and a CPU"] = "float32"
    ARITHMETIC: ClassVar = ARITHMETIC


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a head, saved with it."""

    width: int  # H of the encoder
    pages: int  # number of classes
    bottleneck: int  # D
    dropout: float  # dropout of the features in training


@dataclass(frozen=True, slots=True)
class EncoderName:
    """The encoder that a head belongs to."""

    name: str  # name for `find_encoder`
    revision: str | None
    sha256: str  # `weights_digest` of its folder


class Head(nn.Module):
    """Network from sums over word pieces to page logits."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.log_prior = nn.Parameter(torch.tensor([math.log(PRIOR)]))  # log weight of the zero vector in the mean
        self.norm = nn.BatchNorm1d(2 * shape.width)
        self.dropout = nn.Dropout(shape.dropout)
        self.bottleneck = nn.Linear(2 * shape.width, shape.bottleneck)
        self.pages = nn.Linear(shape.bottleneck, shape.pages)

    def forward(self, sums: Tensor) -> Tensor:
        """Return logits of shape (N, P) for sums of shape (N, 2 + 2 H), as returned by `Encoder.sums`."""
        return self.pages(self.bottleneck(self.dropout(self.norm(self.means(sums)))))

    def means(self, sums: Tensor) -> Tensor:
        """Return the mean piece vectors and mean states, of shape (N, 2 H), for sums of shape (N, 2 + 2 H)."""
        sums = sums.to(self.log_prior.device)
        weights = (sums[:, :2] + self.log_prior.exp()).repeat_interleave(self.shape.width, 1)  # (N, 2 H)
        return sums[:, 2:] / weights


@dataclass(frozen=True)
class Parts:
    """Contents of a model's folder except the head, fixed after training."""

    titles: tuple[str, ...]  # pages, sorted
    words: frozenset[str]  # stems of the training texts; a text with none of them has no guesses
    weights: np.ndarray  # (V,) float16, weight of each word piece
    encoder: EncoderName


class BertGuesser:
    """An encoder and a trained head."""

    def __init__(self, encoder: Encoder, head: Head, parts: Parts, temperature: float = 1.0, digest: str = "") -> None:
        """Store the head and compute in float64; `digest` represents the weights in the fingerprint."""
        if encoder.width != head.shape.width:
            raise DataError(
                f"the head reads vectors of {head.shape.width} numbers, the encoder writes {encoder.width}; "
                "they do not match"
            )
        self.encoder, self._head, self._parts = encoder, head.eval().to(torch.float64), parts
        self._temperature, self._digest = temperature, digest

    # --- guessing

    @property
    def pages(self) -> frozenset[str]:
        """All pages that the guesser can name."""
        return frozenset(self._parts.titles)

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """Return the best `n` pages for each text, none for a text without a known word; scores are probabilities.

        A text's scores depend on the other texts in the fifth digit (in bfloat16: the second), because the batch
        determines the order of the encoder's sums.  int8 adds no further dependence, since it scales each row
        separately.
        """
        return self._guess([line.split() for line in texts], n)

    def guess_prefixes(self, words: Sequence[str], n: int) -> list[list[Guess]]:
        """Return the guesses after each word; common parts of the prefixes are read once."""
        return self._guess([words[:end] for end in range(1, len(words) + 1)], n)

    def fingerprint(self) -> str:
        """Return a hash of the files of model and encoder, code version, arithmetic, device and temperature."""
        key = (
            VERSION,
            self._digest,
            self._parts.encoder.sha256,
            self.encoder.where.dtype,
            self.encoder.device,
            self._temperature,
        )
        return hashlib.sha256(f"bert {key!r}".encode()).hexdigest()

    def sums(self, texts: Sequence[Sequence[str]]) -> np.ndarray:
        """Return the sums of texts given as words, float64 of shape (N, 2 + 2 H); a repeated passage is read once."""
        cut = [[" ".join(words[a:b]) for a, b in spans(words)] for words in texts]
        rows = {passage: i for i, passage in enumerate(dict.fromkeys(p for of_text in cut for p in of_text))}
        of_passages = self.encoder.sums(list(rows))
        sums = np.zeros((len(texts), of_passages.shape[1]))
        for row, of_text in enumerate(cut):
            for passage in of_text:
                sums[row] += of_passages[rows[passage]]
        return sums

    @torch.inference_mode()
    def _guess(self, texts: Sequence[Sequence[str]], n: int) -> list[list[Guess]]:
        """Return the n best pages of each text, best first, with equal scores ordered by title."""
        guesses_by_text: list[list[Guess]] = [[] for _ in texts]
        readable = [i for i, words in enumerate(texts) if self._knows(words)] if n > 0 else []
        for start in range(0, len(readable), BLOCK):
            block = readable[start : start + BLOCK]
            sums = torch.from_numpy(self.sums([texts[i] for i in block]))
            logits = self._head(sums) / self._temperature  # (N, P)
            for i, best in zip(block, classifier_files.best_pages(logits, self._parts.titles, n), strict=True):
                guesses_by_text[i] = best
        return guesses_by_text

    def _knows(self, words: Sequence[str]) -> bool:
        return any(stem in self._parts.words for word in words for stem in text.content_stems(word))

    # --- files

    def save(self, folder: Path) -> None:
        """Write model.safetensors (element types as in `guessers.classifier_files`) and config.json."""
        tensors = classifier_files.pack(self._head, ("pages.weight",), sorted(self._parts.words), self._parts.titles)
        tensors["weights"] = self._parts.weights
        described = {"shape": asdict(self._head.shape), "encoder": asdict(self._parts.encoder)}
        write_tensors(folder, tensors, {"kind": "bert", "version": VERSION, **described})

    @classmethod
    def load(cls, folder: Path, config: BertConfig | None = None) -> BertGuesser:
        """Read a folder written by `save`, and the encoder that it names; raises DataError if they do not match."""
        config = config or BertConfig()
        head, parts = classifier_files.read(folder, "bert", VERSION, _parts)
        name = parts.encoder
        encoder_folder = bert_encoder.find_encoder(
            config.encoder or name.name, config.revision or name.revision, config.download
        )
        if (digest := bert_encoder.weights_digest(encoder_folder)) != name.sha256:
            raise DataError(
                f"{folder}: was trained on the encoder {name.name!r} with sha256 {name.sha256[:12]}..., "
                f"{encoder_folder} has {digest[:12] or 'no weights'}...; give that encoder or train again"
            )
        model, tokenizer = bert_encoder.load_encoder(encoder_folder)
        encoder = Encoder(model, tokenizer, parts.weights, place(config), config.batch_tokens)
        return cls(encoder, head, parts, config.temperature, folder_digest(folder))


def _parts(
    config: dict[str, Any], tensors: classifier_files.Tensors, words: list[str], titles: list[str]
) -> tuple[Head, Parts]:
    """Return the head of a folder, without its weights, and the folder's other contents."""
    shape, encoder = Shape(**config["shape"]), converted("encoder of the model", config["encoder"], EncoderName)
    weights = tensors.pop("weights")
    if len(titles) != shape.pages:
        raise ValueError(f"{len(titles)} titles for {shape.pages} pages")
    return Head(shape), Parts(tuple(titles), frozenset(words), weights, encoder)


def build(config: BertConfig) -> BertGuesser:
    """Return the guesser of a config; raises ConfigError for an unknown model or encoder."""
    return BertGuesser.load(resolve_model(config.model), config)
