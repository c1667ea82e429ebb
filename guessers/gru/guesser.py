"""The GRU guesser: a recurrent classifier over pages that carries its state from word to word.

It follows Han et al. (2022) and QANTA's RNN guesser.  The bundled network is adapted to little data and one CPU.  It
reads only forwards, so each further word costs one step.  It reads stems without stop words, and its softmax layer is
factorised.  The published bidirectional network is the training option `direction: bidirectional`.  Both networks are
in guessers/gru/network.py.

Shapes: L tokens, N prefixes, F features, P pages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np

from guessers import text
from sqa.core import File, Guess, Positive, checked
from sqa.files import Arithmetic, Device, Dtype, Place, folder_digest, place, resolve_model, write_tensors

if TYPE_CHECKING:
    from guessers.classifier_files import Tensors
    from guessers.gru.network import Network

VERSION = 1  # version of the code that turns words into guesses; raise it when guesses change
TABLES = ("embedding.weight", "pages.weight")  # one row per word or page
BLOCK = 512  # prefixes scored at once; (BLOCK, P) float32 takes tens of megabytes
DOUBLE = Place("cpu", "float64")

Unit = Literal["stems", "words"]
UNITS: Mapping[str, Callable[[str], tuple[str, ...]]] = {  # word -> tokens that the network reads
    "stems": text.content_stems,  # stems of its tokens, without stop words
    "words": text.tokens,  # all tokens of the word, unchanged (as in QANTA and pretrained vectors)
}


@dataclass(frozen=True, slots=True)
@checked
class GruConfig:
    """Options of `guesser: {name: gru, ...}`."""

    model: Annotated[File, "a bundled model (folder of data/models) or a folder"] = "gru"
    temperature: Annotated[Positive, "divides the logits before the softmax: > 1 flattens the scores"] = 1.0
    device: Annotated[Device, "auto = a GPU if there is one"] = "cpu"
    dtype: Annotated[
        Dtype, "auto = float64, in which scores do not depend on the number of prefixes computed at once"
    ] = "auto"
    ARITHMETIC: ClassVar = Arithmetic(("float32",), ("float64", "float32"))


class GruGuesser:
    """A trained network with its words and pages."""

    def __init__(
        self,
        network: Network,
        words: Sequence[str],
        pages: Sequence[str],
        units: Unit = "stems",
        temperature: float = 1.0,
        digest: str = "",
        where: Place = DOUBLE,
    ) -> None:
        """Store a network; compute in float64 unless `where` names another element type.

        In float32, the sixth digit of a prefix's scores depends on the number of prefixes computed at once.

        Args:
            words: Words, stems or tokens (`units`), by id from 1.
            pages: Page titles, sorted.
            digest: Digest that represents the weights in the fingerprint.
        """
        self._network: Network = where.take(network.eval())
        self._where = where
        self._ids = {word: id for id, word in enumerate(words, start=1)}
        self._words = tuple(words)
        self._titles = tuple(pages)
        self._units, self._tokens = units, UNITS[units]
        self._temperature = temperature
        self._digest = digest

    # --- guessing

    @property
    def pages(self) -> frozenset[str]:
        """All pages that the guesser can name."""
        return frozenset(self._titles)

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """Return the best `n` pages for each text, none for a text without a known word; scores are probabilities."""
        return [self._prefixes(line.split(), n, last_only=True)[-1] if line.split() else [] for line in texts]

    def guess_prefixes(self, words: Sequence[str], n: int) -> list[list[Guess]]:
        """Return the guesses after each word; a forward network reads every word once."""
        return self._prefixes(words, n, last_only=False) if words else []

    def fingerprint(self) -> str:
        """Return the sha256 of the weights' files, the code version and the config."""
        other = [] if self._where.dtype == "float64" else [self._where.dtype]
        key = " ".join(["gru", str(VERSION), self._digest, repr(self._temperature), *other, *self._where.key])
        return hashlib.sha256(key.encode()).hexdigest()

    def _prefixes(self, words: Sequence[str], n: int, *, last_only: bool) -> list[list[Guess]]:
        """Return the guesses after each word, or only after the last if `last_only`."""
        import torch

        from guessers.classifier_files import best_pages

        ids: list[int] = []  # of the tokens; 0 for an unknown one
        ends: list[int] = []  # number of tokens read after each word
        for word in words:
            ids += [self._ids.get(token, 0) for token in self._tokens(word)]
            ends.append(len(ids))
        n_known = np.cumsum(np.array(ids, dtype=np.int64) != 0)  # known tokens among the first t + 1
        ends = ends[-1:] if last_only else ends
        known_ends = sorted({end for end in ends if end and n_known[end - 1]})
        if not known_ends:
            return [[] for _ in ends]
        columns = torch.tensor(known_ends, device=self._where.device) - 1
        tokens = torch.tensor([ids], device=self._where.device)
        guesses: dict[int, list[Guess]] = {}
        with torch.inference_mode():
            features = self._network.features_at(tokens, torch.zeros_like(columns), columns)  # (N, F)
            for start in range(0, len(known_ends), BLOCK):
                logits = self._network.logits(features[start : start + BLOCK]) / self._temperature  # (N, P)
                best = best_pages(logits, self._titles, n)
                guesses.update(zip(known_ends[start : start + BLOCK], best, strict=True))
        return [list(guesses.get(end, ())) for end in ends]

    # --- files

    def save(self, folder: Path) -> None:
        """Write model.safetensors (element types as in `guessers.classifier_files`) and config.json."""
        from guessers.classifier_files import pack

        tensors = pack(self._network, TABLES, self._words, self._titles)
        shape = asdict(self._network.shape)
        write_tensors(folder, tensors, {"kind": "gru", "version": VERSION, "shape": shape, "units": self._units})

    @classmethod
    def load(cls, folder: Path, temperature: float = 1.0, where: Place = DOUBLE) -> GruGuesser:
        """Read a folder written by `save`."""
        from guessers.classifier_files import read

        network, words, titles, units = read(folder, "gru", VERSION, _parts)
        return cls(network, words, titles, units, temperature, folder_digest(folder), where)


def _parts(
    config: dict[str, Any], tensors: Tensors, words: list[str], titles: list[str]
) -> tuple[Network, list[str], list[str], Unit]:
    """Return the network of a folder, without its weights, and the arguments of a guesser."""
    from guessers.gru.network import Shape, network_of

    shape, units = Shape(**config["shape"]), config.get("units", "stems")
    if units not in UNITS or (len(words), len(titles)) != (shape.vocabulary, shape.pages):
        raise ValueError(f"{len(words)} {units} and {len(titles)} pages for {shape}")
    return network_of(shape), words, titles, units


def build(config: GruConfig) -> GruGuesser:
    """Return the guesser of a config; raises ConfigError for an unknown model."""
    return GruGuesser.load(resolve_model(config.model), config.temperature, place(config))
