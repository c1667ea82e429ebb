"""The GRU guesser: a recurrent classifier over pages that carries its state from word to word.

After Han et al. (2022) and QANTA's RNN guesser: word vectors -> one GRU layer -> batch-normalised features, dropout ->
softmax over pages.  Different from theirs, for few data and one CPU: the GRU reads forwards only (so a prefix that
grew by one word costs one step), stems without stop words, and the features are the last state together with a running
weighted mean of states and word vectors and a running maximum of the states (all computable step by step); the
softmax layer is factorised (features -> bottleneck -> pages).  The running mean starts from the zero vector with some
weight: a mean of three words would otherwise be as long as one of a hundred, and the guesser as sure.

Shapes: B texts, L tokens, E embedding, H hidden, F features, D bottleneck, P pages.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from guessers import text
from sqa.errors import ConfigError, DataError
from sqa.models import folder_digest, pack_strings, read_tensors, resolve_model, unpack_strings, write_tensors
from sqa.types import Guess

PRIOR = 8.0  # first weight of the zero vector in the running mean, in words that count fully
VERSION = 1  # of the code that turns words into guesses; raise it when guesses change
BLOCK = 512  # prefixes scored at once: (BLOCK, P) float32 stays in tens of megabytes


@dataclass(frozen=True, slots=True)
class GruConfig:
    """What `guesser: {name: gru, ...}` takes."""

    model: str = "gru"  # a bundled model (folder of data/models) or a folder
    temperature: float = 1.0  # divides the logits before the softmax; > 1 flattens the scores, the order stays

    def __post_init__(self) -> None:
        if self.temperature <= 0:
            raise ConfigError(f"temperature: must be > 0, got {self.temperature}")


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a network; saved with it."""

    vocabulary: int  # word types, without the unknown word
    pages: int  # classes
    embedding: int  # E
    hidden: int  # H, states of one direction
    bottleneck: int  # D
    dropout: float  # on word vectors and features, in training

    @property
    def features(self) -> int:
        """F: last state, mean of states and word vectors, maximum of states."""
        return 3 * self.hidden + self.embedding


class PrefixGru(nn.Module):
    """Token ids -> logits over pages after every token that is asked for. Id 0 is the unknown word."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(shape.vocabulary + 1, shape.embedding)
        self.gru = nn.GRU(shape.embedding, shape.hidden, batch_first=True)
        self.salience = nn.Linear(shape.embedding, 1)  # how much a word counts in the running mean, 0..1
        self.log_prior = nn.Parameter(torch.tensor([math.log(PRIOR)]))  # weight of the zero vector in it
        self.norm = nn.BatchNorm1d(shape.features)
        self.dropout = nn.Dropout(shape.dropout)
        self.bottleneck = nn.Linear(shape.features, shape.bottleneck)
        self.pages = nn.Linear(shape.bottleneck, shape.pages)

    def features(self, ids: Tensor) -> Tensor:
        """(B, L) int64 -> (B, L, F): what is known after each token; position t depends on ids[:, : t + 1] only."""
        words = self.dropout(self.embedding(ids))  # (B, L, E)
        states, _ = self.gru(words)  # (B, L, H)
        weight = torch.sigmoid(self.salience(words))  # (B, L, 1)
        total = torch.cumsum(weight, 1) + self.log_prior.exp()
        mean = torch.cumsum(weight * torch.cat([states, words], -1), 1) / total  # (B, L, H + E)
        return torch.cat([states, mean, torch.cummax(states, 1).values], -1)

    def logits(self, features: Tensor) -> Tensor:
        """(N, F) -> (N, P)."""
        return self.pages(self.bottleneck(self.dropout(self.norm(features))))


class GruGuesser:
    """A trained network with its words and pages."""

    def __init__(
        self, network: PrefixGru, words: Sequence[str], pages: Sequence[str], temperature: float = 1.0, digest: str = ""
    ) -> None:
        """`words` in order of id from 1, `pages` sorted; `digest` names the weights in the fingerprint.

        Takes the network over and computes in float64: in float32 the guesses of a prefix would depend, in the sixth
        digit, on how many prefixes are computed at once.
        """
        self._network = network.eval().to(torch.float64)
        self._ids = {word: id for id, word in enumerate(words, start=1)}
        self._words = tuple(words)
        self._titles = tuple(pages)
        self._temperature = temperature
        self._digest = digest

    # --- guessing

    @property
    def pages(self) -> frozenset[str]:
        """All pages it can name."""
        return frozenset(self._titles)

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """The best `n` pages for each text; none for a text without a known word. Scores are probabilities."""
        return [self._prefixes(line.split(), n, last_only=True)[-1] if line.split() else [] for line in texts]

    def guess_prefixes(self, words: Sequence[str], n: int) -> list[list[Guess]]:
        """The guesses after each word. The network reads every word once."""
        return self._prefixes(words, n, last_only=False) if words else []

    def fingerprint(self) -> str:
        """sha256 of the weights' files, the code version and the config."""
        return hashlib.sha256(f"gru {VERSION} {self._digest} {self._temperature!r}".encode()).hexdigest()

    def encode(self, word: str) -> list[int]:
        """The ids of a word's tokens; 0 for an unknown token."""
        return [self._ids.get(stem, 0) for stem in text.content_stems(word)]

    @torch.inference_mode()
    def _prefixes(self, words: Sequence[str], n: int, *, last_only: bool) -> list[list[Guess]]:
        """Guesses after each word (a single list, after the last, if `last_only`)."""
        ids: list[int] = []
        ends: list[int] = []  # tokens read after each word
        for word in words:
            ids += self.encode(word)
            ends.append(len(ids))
        known = np.cumsum(np.array(ids, dtype=np.int64) != 0)  # known tokens among the first t + 1
        ends = ends[-1:] if last_only else ends
        wanted = sorted({end for end in ends if end and known[end - 1]})
        if not wanted:
            return [[] for _ in ends]
        features = self._network.features(torch.tensor([ids]))[0]  # (L, F)
        at = torch.tensor(wanted) - 1
        found: dict[int, list[Guess]] = {}
        for start in range(0, len(wanted), BLOCK):
            rows = self._top(self._network.logits(features[at[start : start + BLOCK]]), n)
            found.update(zip(wanted[start : start + BLOCK], rows, strict=True))
        return [list(found.get(end, ())) for end in ends]

    def _top(self, logits: Tensor, n: int) -> list[list[Guess]]:
        """(N, P) -> the n best of each row, best first, equal scores by title."""
        scores = torch.softmax(logits / self._temperature, -1)
        values, pages = torch.topk(scores, min(n, scores.shape[1]), dim=1)
        rows = []
        for row_values, row_pages in zip(values.tolist(), pages.tolist(), strict=True):
            pairs = sorted(zip(row_values, row_pages, strict=True), key=lambda pair: (-pair[0], pair[1]))
            rows.append([Guess(self._titles[page], score) for score, page in pairs])
        return rows

    # --- files

    def save(self, folder: Path) -> None:
        """Write model.safetensors (tables int8 by row, the rest float16) and config.json."""
        tensors: dict[str, np.ndarray] = {}
        for name, tensor in self._network.state_dict().items():
            if name in ("embedding.weight", "pages.weight"):
                tensors |= _quantise(name, tensor.numpy())
            elif tensor.is_floating_point():
                tensors[name] = tensor.numpy().astype(np.float32 if name.startswith("norm.") else np.float16)
        tensors["words"] = pack_strings(self._words)
        tensors["titles"] = pack_strings(self._titles)
        write_tensors(folder, tensors, {"kind": "gru", "version": VERSION, "shape": asdict(self._network.shape)})

    @classmethod
    def load(cls, folder: Path, temperature: float = 1.0) -> GruGuesser:
        """Read what `save` wrote."""
        tensors, config = read_tensors(folder, "gru", VERSION)
        try:
            network = PrefixGru(Shape(**config["shape"]))
            words, titles = unpack_strings(tensors.pop("words")), unpack_strings(tensors.pop("titles"))
            state = {name: torch.from_numpy(array) for name, array in _dequantise(tensors).items()}
            state["norm.num_batches_tracked"] = torch.tensor(0)
            network.load_state_dict(state)
        except (KeyError, TypeError, RuntimeError) as error:
            raise DataError(f"{folder}: not a GRU guesser of this version ({error}); train it again") from error
        return cls(network, words, titles, temperature, folder_digest(folder))


def _quantise(name: str, array: np.ndarray) -> dict[str, np.ndarray]:
    """(R, C) float -> int8 of the same shape and a float16 step per row: value = int8 * step."""
    step = (np.abs(array).max(1, keepdims=True) / 127).astype(np.float16)
    step = np.maximum(step, np.finfo(np.float16).tiny)
    codes = np.clip(np.rint(array / step.astype(np.float32)), -127, 127).astype(np.int8)
    return {name: codes, f"{name}.step": step}


def _dequantise(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All tensors as float32, codes multiplied by their steps."""
    plain = {}
    for name, array in tensors.items():
        if not name.endswith(".step"):
            step = tensors.get(f"{name}.step")
            plain[name] = array.astype(np.float32) * (1 if step is None else step.astype(np.float32))
    return plain


def build(config: GruConfig) -> GruGuesser:
    """The guesser of a config. Raises ConfigError for an unknown model."""
    return GruGuesser.load(resolve_model(config.model), config.temperature)
