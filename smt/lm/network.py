"""Causal language models of the Gemma 3, Llama, Qwen 2 and Qwen 3 families, limited to the needs of translation.

One forward pass serves training and decoding.  The caller gives attention masks and position numbers: a translator
numbers source and target separately (smt/lm/layout.py), so keys and values stay valid as the source grows.

Letters in the shape comments: B sentences, N positions, D width, H heads, G key/value heads, C head size, M attended
positions, V vocabulary.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from smt.models.int8 import Matrix8, multiplied, quantised

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes and options of a model; smt/lm/loading.py derives them from its config.json."""

    vocabulary: int
    width: int
    layers: int
    heads: int
    key_heads: int  # heads of keys and values; each serves heads / key_heads heads
    head_size: int
    inner: int  # width of the feed-forward's hidden layer
    norm_epsilon: float
    rope_bases: tuple[float, ...]  # per layer
    windows: tuple[int, ...]  # window per layer, from the config; 0 = none. Not applied, see `CausalLM.forward`
    activation: Literal["gelu_tanh", "silu"]
    embedding_scale: float = 1.0
    query_scale: float = 0.0  # factor of the scores; 0 = head_size ** -0.5
    head_norms: bool = False  # norms of queries and keys (Gemma 3, Qwen 3)
    output_norms: bool = False  # norms after attention and feed-forward as well (Gemma 3)
    attention_bias: bool = False  # Qwen 2: bias of queries, keys and values
    tied: bool = True  # whether the embedding is also the output layer


class KeyValue(NamedTuple):
    """Keys and values of one layer, each (B, G, M, C)."""

    key: Tensor
    value: Tensor


class Seen(NamedTuple):
    """Earlier positions that may be attended to: their keys and values in every layer, and an additive mask."""

    layers: Sequence[KeyValue]
    mask: Tensor  # (B, 1, N, M): 0 or -inf


class Norm(nn.Module):
    """Root-mean-square norm, computed in float32."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width), requires_grad=False)
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        y = x.float()
        return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + self.epsilon) * self.weight).to(x.dtype)


class Projection(nn.Module):
    """Parallel linear maps of one input, each with an optional low-rank adapter.

    An adapter's product B A is computed separately (Hu et al. 2022) until `merge` adds it to the weights.
    """

    def __init__(self, names: Sequence[str], inputs: int, outputs: Sequence[int], bias: bool) -> None:
        super().__init__()
        self.names, self.inputs, self.outputs = tuple(names), inputs, tuple(outputs)
        self.weight = nn.Parameter(torch.empty(sum(outputs), inputs), requires_grad=False)
        self.bias = nn.Parameter(torch.empty(sum(outputs)), requires_grad=False) if bias else None
        self.down, self.up = nn.ParameterList(), nn.ParameterList()
        self.scale = 0.0
        self.matrix8: Matrix8 | None = None  # replaces `weight` after `quantise`

    def adapt(self, rank: int, scale: float, generator: torch.Generator | None) -> None:
        """Add an adapter of this rank to each map; its matrix A is random, and its matrix B is zero."""
        self.scale = scale
        for outputs in self.outputs:
            down = torch.empty(rank, self.inputs).uniform_(-1, 1, generator=generator) * math.sqrt(3 / self.inputs)
            self.down.append(nn.Parameter(down.to(self.weight.device)))
            self.up.append(nn.Parameter(torch.zeros(outputs, rank, device=self.weight.device)))

    def forward(self, x: Tensor) -> Tensor:
        """Map (B, N, inputs) to (B, N, sum of outputs)."""
        if self.matrix8 is not None:
            y = multiplied(x, self.matrix8)
            return y if self.bias is None else y + self.bias.to(x.dtype)
        y = F.linear(x, self.weight.to(x.dtype), None if self.bias is None else self.bias.to(x.dtype))
        if not self.scale:
            return y
        down = torch.cat(list(self.down)).to(x.dtype)  # (maps * R, inputs)
        up = torch.block_diag(*self.up).to(x.dtype)  # (sum of outputs, maps * R)
        return y + F.linear(F.linear(x, down * self.scale), up)

    @torch.no_grad()
    def merge(self) -> None:
        """Add the adapter to the weights and drop it."""
        if self.scale:
            change = torch.block_diag(*self.up) @ torch.cat(list(self.down)) * self.scale
            self.weight.copy_((self.weight.float() + change).to(self.weight.dtype))
        self.down, self.up, self.scale = nn.ParameterList(), nn.ParameterList(), 0.0

    @torch.no_grad()
    def quantise(self) -> None:
        """Replace the weight by 8-bit integers, after merging an adapter; it cannot be trained afterwards."""
        self.merge()
        self.matrix8 = quantised(self.weight)
        self.weight = nn.Parameter(self.weight.new_empty(0), requires_grad=False)


class Layer(nn.Module):
    """Attention and feed-forward."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        s, qkv = shape, [shape.heads * shape.head_size, *[shape.key_heads * shape.head_size] * 2]
        self.shape = s
        self.query_scale = s.query_scale or s.head_size**-0.5
        self.qkv = Projection(PROJECTIONS[:3], s.width, qkv, s.attention_bias)
        self.out = Projection(PROJECTIONS[3:4], s.heads * s.head_size, [s.width], False)
        self.gate_up = Projection(PROJECTIONS[4:6], s.width, [s.inner, s.inner], False)
        self.down = Projection(PROJECTIONS[6:], s.inner, [s.width], False)
        self.norm_attention, self.norm_feed_forward = Norm(s.width, s.norm_epsilon), Norm(s.width, s.norm_epsilon)
        if s.head_norms:
            self.norm_query, self.norm_key = Norm(s.head_size, s.norm_epsilon), Norm(s.head_size, s.norm_epsilon)
        if s.output_norms:
            self.norm_attended, self.norm_fed = Norm(s.width, s.norm_epsilon), Norm(s.width, s.norm_epsilon)

    def forward(
        self, x: Tensor, turn: tuple[Tensor, Tensor], own: Tensor, seen: Sequence[tuple[KeyValue, Tensor]]
    ) -> tuple[Tensor, KeyValue]:
        """Apply the layer to x (B, N, D); return the same shape, and the keys and values of the N positions.

        Args:
            turn: Cosines and sines, (B, N, C/2).
            own: Mask among the N positions, (B, 1, N, N).
            seen: Earlier positions and their masks.
        """
        s = self.shape
        b, n, _ = x.shape
        q, k, v = self.qkv(self.norm_attention(x)).split(self.qkv.outputs, -1)
        q, k, v = q.view(b, n, s.heads, -1), k.view(b, n, s.key_heads, -1), v.view(b, n, s.key_heads, -1)
        if s.head_norms:
            q, k = self.norm_query(q), self.norm_key(k)
        q, k = rotate(q, *turn), rotate(k, *turn)
        new = KeyValue(k.transpose(1, 2), v.transpose(1, 2))
        attended = self.out(self.attend(q, [*seen, (new, own)]))
        x = x + (self.norm_attended(attended) if s.output_norms else attended)
        gate, up = self.gate_up(self.norm_feed_forward(x)).chunk(2, -1)
        gate = F.gelu(gate, approximate="tanh") if s.activation == "gelu_tanh" else F.silu(gate)
        fed = self.down(gate * up)
        return x + (self.norm_fed(fed) if s.output_norms else fed), new

    def attend(self, q: Tensor, seen: Sequence[tuple[KeyValue, Tensor]]) -> Tensor:
        """Attend from q (B, N, H, C); return (B, N, H C).

        The scores of all parts share one softmax, and keys and values are not copied.
        """
        b, n, h, c = q.shape
        g = self.shape.key_heads
        grouped = q.view(b, n, g, h // g, c).permute(0, 2, 3, 1, 4).reshape(b, g, h // g * n, c)
        scores = [
            (grouped @ memory.key.transpose(2, 3)).view(b, g, h // g, n, -1) * self.query_scale + mask[:, :, None]
            for memory, mask in seen
        ]
        weights = torch.cat(scores, -1).softmax(-1, dtype=torch.float32).to(q.dtype)  # (B, G, H/G, N, M)
        parts = weights.view(b, g, h // g * n, -1).split([memory.key.shape[2] for memory, _ in seen], -1)
        mixed = sum(part @ memory.value for part, (memory, _) in zip(parts, seen, strict=True))
        return mixed.view(b, g, h // g, n, c).permute(0, 3, 1, 2, 4).reshape(b, n, h * c)


def rotate(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Apply rotary positions (Su et al. 2021), halves paired: x (B, N, H, C), cosine and sine (B, N, C/2)."""
    a, b = x.chunk(2, -1)
    cosine, sine = cosine[:, :, None], sine[:, :, None]
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1)


class CausalLM(nn.Module):
    """Embedding, layers, and an output layer over selected pieces."""

    rates: Tensor  # (bases, C/2) rotation rates

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embedding = nn.Parameter(torch.empty(shape.vocabulary, shape.width), requires_grad=False)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.width, shape.norm_epsilon)
        if not shape.tied:
            self.output = nn.Parameter(torch.empty(shape.vocabulary, shape.width), requires_grad=False)
        half = torch.arange(0, shape.head_size, 2, dtype=torch.float32) / shape.head_size
        bases = sorted(set(shape.rope_bases))
        self.register_buffer("rates", torch.stack([base**-half for base in bases]), persistent=False)  # (bases, C/2)
        self.rate_of = [bases.index(base) for base in shape.rope_bases]
        self.dtype = torch.float32  # type of the states

    @property
    def device(self) -> torch.device:
        """Return the device of the weights."""
        return self.embedding.device

    def turns(self, positions: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return the cosines and sines (B, N, C/2) of positions (B, N), for each base."""
        angles = positions[..., None].float() * self.rates[:, None, None]  # (bases, B, N, C/2)
        return [(angle.cos().to(self.dtype), angle.sin().to(self.dtype)) for angle in angles]

    def forward(
        self, pieces: Tensor, positions: Tensor, own: Tensor, seen: Sequence[Seen] = ()
    ) -> tuple[Tensor, list[KeyValue]]:
        """Return states (B, N, D) after the last norm, and the keys and values of the N positions in each layer.

        Only the masks limit attention.  A layer's window (512 pieces in Gemma 3) is not applied, so a longer text is
        read differently from the original model.

        Args:
            pieces: (B, N).
            positions: (B, N).
            own: Mask among the N positions, (B, 1, N, N).
            seen: Earlier positions.
        """
        x = F.embedding(pieces, self.embedding).to(self.dtype) * self.shape.embedding_scale
        turns, new = self.turns(positions), []
        for i, layer in enumerate(self.layers):
            x, memory = layer(x, turns[self.rate_of[i]], own, [(part.layers[i], part.mask) for part in seen])
            new.append(memory)
        return self.norm(x), new

    def output_rows(self, pieces: Tensor | None = None) -> Tensor:
        """Return the rows of the output layer (V, D), optionally of these pieces only, in the type of the states."""
        table = self.embedding if self.shape.tied else self.output
        return (table if pieces is None else table[pieces]).to(self.dtype)

    def adapt(self, rank: int, scale: float, seed: int) -> None:
        """Add a new adapter to every map of every layer."""
        generator = torch.Generator().manual_seed(seed)
        for projection in self.projections():
            projection.adapt(rank, scale, generator)

    def merge(self) -> None:
        """Add the adapter to the weights, so that it takes no extra time."""
        for projection in self.projections():
            projection.merge()

    def quantise(self) -> None:
        """Convert all maps of all layers to 8-bit integers; embedding, norms and attention stay unchanged."""
        for projection in self.projections():
            projection.quantise()

    def projections(self) -> list[Projection]:
        """Return the projections of all layers, in order."""
        return [module for module in self.modules() if isinstance(module, Projection)]


def mask_of(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the mask to add to the scores, (B, 1, N, M), for allowed positions (B, N, M) bool."""
    return torch.zeros(allowed.shape, dtype=dtype, device=allowed.device).masked_fill_(~allowed, float("-inf"))[:, None]
