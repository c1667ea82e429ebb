"""An encoder-decoder Transformer whose cross-attention can be restricted by a wait-k mask.

Letters in the shape comments: B sentences, T target pieces, S source pieces, D width, H heads, V vocabulary.

The network has pre-norm layers (Xiong et al. 2020), sinusoidal positions, and one embedding for source, target and
output.  Two parts make small models usable:

* an alignment head: an attention over the source that is trained towards statistical word alignments (guided
  alignment, Chen et al. 2016) and aligns each target piece to its source;
* a lexicon: that attention's mixture of piece translation probabilities is added to the logits in log space
  (Arthur, Neubig and Nakamura 2016), so that rare names need not be learnt by gradient descent.

Both see only the source pieces that the wait-k mask allows.

The last options of ModelConfig build the variants of models trained elsewhere (`smt.engines.fairseq` converts them).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Annotated, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from smt.models.int8 import fast_linear, quantised
from smt.models.vocab import BOS, EOS, PAD
from sqa.core import BelowOne, checked
from sqa.files import embedding

MOST_PIECES = 1 << 16  # maximum positions that a configuration may request
LEXICON_FLOOR = 1e-3  # probability added before the logarithm (Arthur et al. 2016, their epsilon)


def default_lexicon() -> int:
    """Return the default number of translations per source piece, 0 if the aligner eflomal is not installed."""
    return 24 if find_spec("eflomal") else 0


@dataclass(frozen=True, slots=True)
@checked
class ModelConfig:
    """Sizes and options of the network."""

    vocabulary: Annotated[int, "pieces"] = 8000
    width: Annotated[int, "D"] = 256
    heads: Annotated[int, "H; must divide width"] = 4
    feed_forward: int = 1024
    encoder_layers: int = 4
    decoder_layers: int = 2
    dropout: BelowOne = 0.1
    encoder: Annotated[Literal["causal", "bidirectional"], "bidirectional: for full input only"] = "causal"
    lexicon_width: Annotated[int, "0 = neither lexicon nor alignment head"] = field(default_factory=default_lexicon)
    source_vocabulary: Annotated[int, "pieces of the source embedding; 0 = one embedding for both languages"] = 0
    tied_output: Annotated[bool, "whether the target embedding is also the output layer"] = True
    encoder_norm: Annotated[
        Literal["pre", "post"], "position of the normalisation: before each part, or after its residual"
    ] = "pre"
    decoder_norm: Literal["pre", "post"] = "pre"
    encoder_final_norm: Annotated[bool, "whether to normalise once more after the last layer"] = True
    decoder_final_norm: bool = True
    activation: Literal["relu", "gelu"] = "relu"
    positions: Annotated[
        Literal["interleaved", "halves", "learned"], "order of sines and cosines, or learned vectors"
    ] = "interleaved"
    position_offset: Annotated[int, "index of the first position, for sines and cosines"] = 0
    max_pieces: Annotated[int, "maximum number of positions"] = 1024
    decoder_start: Annotated[Literal["bos", "eos"], "special symbol that precedes the first target piece"] = "bos"

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        wrong = []
        if self.heads < 1 or self.width % self.heads:
            wrong.append(f"heads: must divide width {self.width}, got {self.heads}")
        if not 1 <= self.max_pieces <= MOST_PIECES or not 0 <= self.position_offset <= MOST_PIECES:
            given = f"{self.max_pieces} and {self.position_offset}"
            wrong.append(f"max_pieces and position_offset: must be at most {MOST_PIECES}, got {given}")
        if self.lexicon_width and self.source_vocabulary:
            wrong.append("lexicon_width: must be 0 if the source has its own vocabulary")
        return wrong


class KeyValue(NamedTuple):
    """Keys and values of one attention, each (B, H, S, D/H)."""

    key: Tensor
    value: Tensor


class Cache(NamedTuple):
    """The target written so far, in one decoder layer."""

    past: KeyValue  # (B, H, Tmax, D/H)
    at: Tensor  # (B,) next position to be written
    filled: Tensor  # (B, 1, 1, Tmax) additive mask of the filled positions, including the next one


class Memory(NamedTuple):
    """The encoded source in the form that the decoder reads."""

    cross: list[KeyValue]  # one per decoder layer
    align_key: Tensor | None  # (B, S, D)
    pieces: Tensor  # (B, S) source piece ids


def sinusoid(length: int, width: int) -> Tensor:
    """Return the position vectors (length, D) of Vaswani et al. 2017."""
    position = torch.arange(length, dtype=torch.float32).unsqueeze(1)
    rate = torch.exp(torch.arange(0, width, 2, dtype=torch.float32) * (-math.log(10000.0) / width))
    table = torch.zeros(length, width)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate)
    return table


def sinusoid_halves(length: int, width: int) -> Tensor:
    """Return the position vectors (length, D) of tensor2tensor and fairseq: all sines, then all cosines.

    The rates end at 1/10000.
    """
    half = width // 2
    rate = torch.exp(torch.arange(half, dtype=torch.float32) * -(math.log(10000) / (half - 1)))
    angle = torch.arange(length, dtype=torch.float32).unsqueeze(1) * rate
    return F.pad(torch.cat([torch.sin(angle), torch.cos(angle)], 1), (0, width % 2))


def additive(allowed: Tensor) -> Tensor:
    """Return a mask (B, S) as additive scores (B, 1, 1, S): 0 where attention is allowed, -inf elsewhere."""
    return torch.zeros(allowed.shape, device=allowed.device).masked_fill_(~allowed, float("-inf"))[:, None, None]


class Attention(nn.Module):
    """Multi-head attention with separately callable projections, so that callers hold the caches."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.output = nn.Linear(width, width)

    def _split(self, x: Tensor) -> Tensor:
        b, t, d = x.shape
        return x.view(b, t, self.heads, d // self.heads).transpose(1, 2)  # (B, H, T, D/H)

    def project(self, x: Tensor) -> KeyValue:
        """Return the keys and values of x (B, S, D)."""
        key, value = self.key_value(x).chunk(2, dim=-1)
        return KeyValue(self._split(key), self._split(value))

    def forward(self, x: Tensor, memory: KeyValue, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """Attend from x (B, T, D) to memory; mask (B, 1, T, S): additive, or bool (True = attention is allowed)."""
        query, dropout = self._split(self.query(x)), self.dropout if self.training else 0.0
        attended = F.scaled_dot_product_attention(query, *memory, mask, dropout, causal)  # (B, H, T, D/H)
        return self.output(attended.transpose(1, 2).flatten(2))


class FeedForward(nn.Sequential):
    """Two linear maps with a non-linear function between them."""

    def __init__(self, config: ModelConfig) -> None:
        width, inner = config.width, config.feed_forward
        activation = nn.GELU() if config.activation == "gelu" else nn.ReLU()
        super().__init__(nn.Linear(width, inner), activation, nn.Dropout(config.dropout), nn.Linear(inner, width))


class Layer(nn.Module):
    """A layer: self-attention, a decoder's attention to the source, and feed-forward."""

    def __init__(self, config: ModelConfig, norm: str, reads_source: bool = False) -> None:
        """Build the layer; norm: "pre" = before each part, "post" = after its residual."""
        super().__init__()
        self.norm_attention = nn.LayerNorm(config.width)
        self.attention = Attention(config.width, config.heads, config.dropout)
        if reads_source:
            self.norm_cross = nn.LayerNorm(config.width)
            self.cross = Attention(config.width, config.heads, config.dropout)
        self.norm_feed_forward = nn.LayerNorm(config.width)
        self.feed_forward = FeedForward(config)
        self.dropout = nn.Dropout(config.dropout)
        self.pre_norm = norm == "pre"

    def added(self, x: Tensor, norm: nn.Module, part: Callable[[Tensor], Tensor]) -> Tensor:
        """Add the output of `part` to x (B, T, D), normalised before or after."""
        return x + self.dropout(part(norm(x))) if self.pre_norm else norm(x + self.dropout(part(x)))

    def encode(self, x: Tensor, mask: Tensor | None, causal: bool, past: KeyValue | None) -> tuple[Tensor, KeyValue]:
        """Encode x (B, S, D); return the same shape, and the keys and values of all positions so far."""
        entering = self.norm_attention(x) if self.pre_norm else x
        memory = self.attention.project(entering)
        if past is not None:
            memory = KeyValue(torch.cat([past.key, memory.key], 2), torch.cat([past.value, memory.value], 2))
        x = x + self.dropout(self.attention(entering, memory, mask, causal))
        x = x if self.pre_norm else self.norm_attention(x)
        return self.added(x, self.norm_feed_forward, self.feed_forward), memory

    def forward(self, x: Tensor, cross: KeyValue, visible: Tensor, cache: Cache | None = None) -> Tensor:
        """Decode x (B, T, D) to the same shape.

        In training, x is the whole target with a causal mask.  In decoding, T = 1, and the step's key and value are
        added to the cache.
        """

        def attend(x: Tensor) -> Tensor:
            memory = self.attention.project(x)
            if cache is None:
                return self.attention(x, memory, causal=True)
            rows = torch.arange(x.shape[0], device=x.device)
            cache.past.key[rows, :, cache.at] = memory.key[:, :, 0]
            cache.past.value[rows, :, cache.at] = memory.value[:, :, 0]
            return self.attention(x, cache.past, cache.filled)

        x = self.added(x, self.norm_attention, attend)
        x = self.added(x, self.norm_cross, lambda x: self.cross(x, cross, visible))
        return self.added(x, self.norm_feed_forward, self.feed_forward)


class Transformer(nn.Module):
    """Encoder, decoder, output layer and (optionally) alignment head with lexicon."""

    MAX_PIECES = 1024
    positions: Tensor  # (max_pieces, D), for sines and cosines
    lexicon_ids: Tensor  # (V, W) target pieces of each source piece, int32
    lexicon_probabilities: Tensor  # (V, W)

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = embedding(config.vocabulary, config.width, config.width**-0.5)
        if config.positions == "learned":
            self.source_positions = nn.Parameter(torch.randn(config.max_pieces, config.width) * config.width**-0.5)
            self.target_positions = nn.Parameter(torch.randn(config.max_pieces, config.width) * config.width**-0.5)
        else:
            table = sinusoid if config.positions == "interleaved" else sinusoid_halves
            with torch.device("cpu"):  # arithmetic on the meta device would import torch's compiler
                positions = table(config.position_offset + config.max_pieces, config.width)[config.position_offset :]
            self.register_buffer("positions", positions, persistent=False)
        self.encoder = nn.ModuleList(Layer(config, config.encoder_norm) for _ in range(config.encoder_layers))
        self.encoder_norm = nn.LayerNorm(config.width) if config.encoder_final_norm else nn.Identity()
        self.decoder = nn.ModuleList(Layer(config, config.decoder_norm, True) for _ in range(config.decoder_layers))
        self.decoder_norm = nn.LayerNorm(config.width) if config.decoder_final_norm else nn.Identity()
        self.dropout = nn.Dropout(config.dropout)
        if config.lexicon_width:
            self.align_query = nn.Linear(config.width, config.width)
            self.align_key = nn.Linear(config.width, config.width)
            self.lexicon_scale = nn.Parameter(torch.ones(()))
            shape = (config.vocabulary, config.lexicon_width)
            self.register_buffer("lexicon_ids", torch.zeros(shape, dtype=torch.int32))
            self.register_buffer("lexicon_probabilities", torch.zeros(shape))
        if config.source_vocabulary:
            self.source_embedding = embedding(config.source_vocabulary, config.width, config.width**-0.5)
        untied = None if config.tied_output else nn.Linear(config.width, config.vocabulary, bias=False)
        self.output: nn.Module | None = untied

    @property
    def device(self) -> torch.device:
        """Return the device of the weights."""
        return self.embedding.weight.device

    def embed(self, pieces: Tensor, at: Tensor | int, source: bool = False) -> Tensor:
        """Embed piece ids (B, T) with position vectors from `at` on: an offset, or each row's own position (B,)."""
        if self.config.positions == "learned":
            table: Tensor = self.source_positions if source else self.target_positions
        else:
            table = self.positions
        position = table[at : at + pieces.shape[1]] if isinstance(at, int) else table[at].unsqueeze(1)  # ([B,] T, D)
        if self.config.decoder_start == "eos" and not source:
            pieces = pieces.masked_fill(pieces == BOS, EOS)
        embedding = self.source_embedding if source and self.config.source_vocabulary else self.embedding
        return self.dropout(embedding(pieces) * math.sqrt(self.config.width) + position)

    def encode(self, pieces: Tensor, past: list[KeyValue] | None = None) -> tuple[Tensor, list[KeyValue]]:
        """Encode source pieces (B, S) that follow those in `past`; return states (B, S, D) and all keys and values."""
        before, n = past[0].key.shape[2] if past else 0, pieces.shape[1]
        x = self.embed(pieces, before, source=True)
        mask, causal = None, past is None
        if self.config.encoder == "bidirectional":
            mask, causal = (pieces != PAD)[:, None, None, :], False
        elif past is not None and n > 1:
            mask = torch.ones(n, before + n, dtype=torch.bool, device=pieces.device).tril(before)[None, None]
        present: list[KeyValue] = []
        for i, layer in enumerate(self.encoder):
            x, memory = layer.encode(x, mask, causal, past[i] if past else None)  # type: ignore[operator]
            present.append(memory)
        return self.encoder_norm(x), present

    def remember(self, states: Tensor, pieces: Tensor) -> Memory:
        """Return encoder states (B, S, D) in the form that the decoder reads."""
        cross = [layer.cross.project(states) for layer in self.decoder]  # type: ignore[operator]
        return Memory(cross, self.align_key(states) if self.config.lexicon_width else None, pieces)

    def lexicon_matrix(self, pieces: Tensor) -> Tensor:
        """Return p(target piece | source piece) + LEXICON_FLOOR per source position: (B, S) -> (B, S, V)."""
        dense = torch.full((*pieces.shape, self.config.vocabulary), LEXICON_FLOOR, device=pieces.device)
        return dense.scatter_add_(2, self.lexicon_ids[pieces].long(), self.lexicon_probabilities[pieces])

    def alignment(self, x: Tensor, memory: Memory, visible: Tensor) -> Tensor:
        """Return the log attention of the alignment head: x (B, T, D), visible (B, T, S) -> (B, T, S)."""
        assert memory.align_key is not None
        scores = self.align_query(x) @ memory.align_key.transpose(1, 2) / math.sqrt(self.config.width)
        return scores.float().masked_fill(~visible, -1e9).log_softmax(-1)

    def forward(self, source: Tensor, target_input: Tensor, visible: Tensor) -> tuple[Tensor, Tensor | None, Memory]:
        """Run the training pass: source (B, S), target_input (B, T), visible (B, T, S).

        Returns decoder states (B, T, D), log alignment (B, T, S) or None, and the memory.
        """
        states, _ = self.encode(source)
        memory = self.remember(states, source)
        x = self.embed(target_input, 0)
        for layer, cross in zip(self.decoder, memory.cross, strict=True):
            x = layer(x, cross, visible.unsqueeze(1))
        x = self.decoder_norm(x)
        return x, self.alignment(x, memory, visible) if self.config.lexicon_width else None, memory

    def step(
        self, pieces: Tensor, at: Tensor, memory: Memory, visible: Tensor, past: list[KeyValue], cached: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """Decode one target position per sentence: pieces (B,), at (B,), visible (B, S), cached (B, Tmax).

        `past` (B, H, Tmax, D/H) receives the step's keys and values; `cached` marks the filled positions, including the
        step's.  Returns decoder states (B, 1, D) and log alignment (B, 1, S) or None.
        """
        x = self.embed(pieces.unsqueeze(1), at)
        seen, written = additive(visible), additive(cached)  # computed once for all layers
        for layer, cross, kept in zip(self.decoder, memory.cross, past, strict=True):
            x = layer(x, cross, seen, Cache(kept, at, written))
        x = self.decoder_norm(x)
        return x, self.alignment(x, memory, visible[:, None]) if self.config.lexicon_width else None

    @torch.no_grad()
    def accelerate(self, dtype: str) -> None:
        """Convert all matrices to the device's fastest layers in `dtype`; afterwards the network can only decode."""
        if (fast := fast_linear(dtype, self.device)) is None:
            return
        for part in list(self.modules()):
            for name, layer in part.named_children():
                if isinstance(layer, nn.Linear):
                    setattr(part, name, fast(layer.weight, layer.bias))
        if self.output is None:
            self.output = fast(self.embedding.weight, None)

    def logits(self, x: Tensor, lexical: Tensor | None) -> Tensor:
        """Map decoder states (N, D) and floored lexical probabilities (N, V) to unnormalised log probabilities."""
        scores = F.linear(x, self.embedding.weight) if self.output is None else self.output(x)
        return scores if lexical is None else scores + self.lexicon_scale * lexical.log()


def packed(state: dict[str, Tensor], as_int8: bool) -> dict[str, Tensor]:
    """Return the tensors to store (smt/models/bundle.py), with matrices as int8 if `as_int8`."""
    out: dict[str, Tensor] = {}
    for name, value in state.items():
        if name == "lexicon_ids":
            out[name] = value.to(torch.uint16)
        elif name == "lexicon_probabilities":
            out[name] = value.to(torch.float16)
        elif value.ndim == 2 and as_int8:
            out[name], out[f"{name}.scale"] = quantised(value)
        else:
            out[name] = value.float()
    return {name: value.contiguous() for name, value in out.items()}


def _unpacked(stored: dict[str, Tensor]) -> dict[str, Tensor]:
    out: dict[str, Tensor] = {}
    for name, value in stored.items():
        if name.endswith(".scale"):
            continue
        if value.dtype == torch.int8:
            if (scale := stored[f"{name}.scale"]).shape != value.shape[:1]:
                raise ValueError(f"{name}.scale has shape {tuple(scale.shape)}, expected {tuple(value.shape[:1])}")
            out[name] = value.float() * scale[:, None]
        elif name == "lexicon_ids":
            out[name] = value.to(torch.int32)
        else:
            out[name] = value.float()
    return out


def filled(config: ModelConfig, stored: dict[str, Tensor]) -> Transformer:
    """Return the network of a configuration with these weights.

    Raises ValueError or RuntimeError if they do not fit.  A configuration may state any size, so no memory is allocated
    for it.
    """
    if max(config.encoder_layers, config.decoder_layers) > len(stored):
        raise ValueError(f"{config.encoder_layers} and {config.decoder_layers} layers, {len(stored)} tensors")
    with torch.device("meta"):
        model = Transformer(config)
    model.load_state_dict(_unpacked(stored), assign=True)
    if config.lexicon_width:
        ids, probabilities = model.lexicon_ids, model.lexicon_probabilities
        if ids.min() < 0 or ids.max() >= config.vocabulary or probabilities.min() < 0 or probabilities.max() > 1:
            raise ValueError(f"the lexicon must hold pieces below {config.vocabulary} and probabilities of 0 to 1")
    return model
