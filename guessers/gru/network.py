"""The two networks of the GRU guesser: a forward network, and the published bidirectional one.

PrefixGru           word vectors -> one forward GRU -> last state, running weighted mean of states and word vectors,
                    running maximum of the states -> batch norm -> dropout -> bottleneck -> pages.  All features can be
                    computed step by step, so each further word costs one step.  The running mean starts from the zero
                    vector with some weight.  Otherwise, the mean of three words would be as long as the mean of a
                    hundred, and the guesser as confident.
BidirectionalGru    QANTA's RNN guesser (Pinafore/qb, qanta/guesser/rnn.py, with dropout on the word vectors as in its
                    later PyTorch version): word vectors -> one GRU in each direction -> last state of each -> linear ->
                    batch norm over the pages -> dropout.  The backward GRU begins at the end of the prefix, so every
                    prefix is read from its start.

Shapes: B texts, L tokens, N prefixes, E embedding, H hidden, F features, D bottleneck, P pages.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from sqa.files import embedding

PRIOR = 8.0  # initial weight of the zero vector in the running mean, in words of weight 1

READ_TOGETHER = 128  # prefixes of similar length per pass of the bidirectional network

Direction = Literal["forward", "bidirectional"]


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a network, saved with it."""

    vocabulary: int  # number of word types, without the unknown word
    pages: int  # number of classes
    embedding: int  # E
    hidden: int  # H, number of states of one direction
    bottleneck: int  # D; ignored by the bidirectional network, which has none
    dropout: float  # dropout in training: of word vectors, and of features (forward) or logits (bidirectional)
    direction: Direction = "forward"

    @property
    def features(self) -> int:
        """Number of features: last state, means of states and word vectors, maximum of states; or two last states."""
        return 3 * self.hidden + self.embedding if self.direction == "forward" else 2 * self.hidden


class PrefixGru(nn.Module):
    """Network from token ids to page logits after every requested token; id 0 is the unknown word."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = embedding(shape.vocabulary + 1, shape.embedding)
        self.gru = nn.GRU(shape.embedding, shape.hidden, batch_first=True)
        self.salience = nn.Linear(shape.embedding, 1)  # weight of a word in the running mean, 0..1
        self.log_prior = nn.Parameter(torch.tensor([math.log(PRIOR)]))  # log weight of the zero vector in the mean
        self.norm = nn.BatchNorm1d(shape.features)
        self.dropout = nn.Dropout(shape.dropout)
        self.bottleneck = nn.Linear(shape.features, shape.bottleneck)
        self.pages = nn.Linear(shape.bottleneck, shape.pages)

    def features(self, ids: Tensor) -> Tensor:
        """Return the features after each token, of shape (B, L, F); position t depends only on ids[:, : t + 1]."""
        words = self.dropout(self.embedding(ids))  # (B, L, E)
        states, _ = self.gru(words)  # (B, L, H)
        weight = torch.sigmoid(self.salience(words))  # (B, L, 1)
        total = torch.cumsum(weight, 1) + self.log_prior.exp()
        mean = torch.cumsum(weight * torch.cat([states, words], -1), 1) / total  # (B, L, H + E)
        return torch.cat([states, mean, torch.cummax(states, 1).values], -1)

    def features_at(self, ids: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Return the features of ids[row, : column + 1] for each of N rows and columns, of shape (N, F)."""
        return self.features(ids)[rows, columns]

    def logits(self, features: Tensor) -> Tensor:
        """Return logits of shape (N, P) for features of shape (N, F)."""
        return self.pages(self.bottleneck(self.dropout(self.norm(features))))


class BidirectionalGru(nn.Module):
    """Network from token ids to page logits of the requested prefixes; id 0 is the unknown word."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = embedding(shape.vocabulary + 1, shape.embedding)
        self.gru = nn.GRU(shape.embedding, shape.hidden, batch_first=True, bidirectional=True)
        self.pages = nn.Linear(shape.features, shape.pages)
        self.norm = nn.BatchNorm1d(shape.pages)
        self.dropout = nn.Dropout(shape.dropout)

    def features_at(self, ids: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Return both directions' last states of ids[row, : column + 1] for N rows and columns, of shape (N, F).

        Outside training, READ_TOGETHER prefixes are read at a time, which is fastest if they are ordered by length.
        """
        if self.training:
            return self._last_states(ids, rows, columns)
        parts = zip(rows.split(READ_TOGETHER), columns.split(READ_TOGETHER), strict=True)
        return torch.cat([self._last_states(ids, *part) for part in parts])

    def _last_states(self, ids: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        lengths = columns + 1
        words = self.dropout(self.embedding(ids[rows, : int(lengths.max())]))  # (N, L, E)
        packed = pack_padded_sequence(words, lengths.cpu(), batch_first=True, enforce_sorted=False)
        _, last = self.gru(packed)  # (2, N, H)
        return torch.cat([last[0], last[1]], -1)

    def logits(self, features: Tensor) -> Tensor:
        """Return logits of shape (N, P) for features of shape (N, F)."""
        return self.dropout(self.norm(self.pages(features)))


Network = PrefixGru | BidirectionalGru


def network_of(shape: Shape) -> Network:
    """Return an untrained network with these sizes.  Raises KeyError for an unknown direction."""
    networks: Mapping[str, type[Network]] = {"forward": PrefixGru, "bidirectional": BidirectionalGru}
    return networks[shape.direction](shape)
