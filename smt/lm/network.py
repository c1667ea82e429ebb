"""Causal language models of the transformers package, with the attention masks and positions of the caller.

A translator numbers source and target separately (smt/lm/tokenizer.py) and stores keys and values at slots of its
choice, so they stay valid as the source grows.

Letters in the shape comments: B sentences, N positions, M slots, D width, H heads, G key/value heads, C head size, V
vocabulary.
"""

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from smt.models.int8 import Linear8
from smt.models.stepper import GROWTH, lengthen
from sqa.core import DataError, need
from sqa.files import Place, check_folder, load_weights

FAMILIES = ("gemma3_text", "llama", "qwen2", "qwen3")
ATTENTION = "sqa"  # name under which transformers finds `attend`


class Memory:
    """Keys and values of every layer, at slots that the caller chooses."""

    def __init__(self) -> None:
        self.layers: list[tuple[Tensor, Tensor]] = []  # per layer, (B, G, M, C) each
        self._slots, self._end = torch.empty(0), 0

    def fill(self, slots: Tensor, end: int) -> None:
        """Choose the slots (B, N) of the next pieces, which may attend to all slots below `end`."""
        self._slots, self._end = slots, end

    @torch.compiler.disable
    def update(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Store keys and values (B, G, N, C) of a layer; return those of all slots below the end."""
        if layer == len(self.layers):
            self.layers.append((key[:, :, :0], value[:, :, :0]))
        keys, values = self.layers[layer]
        if keys.shape[2] < self._end:
            keys, values = (lengthen(part, 2, self._end + GROWTH) for part in (keys, values))
            self.layers[layer] = keys, values
        row = torch.arange(len(key), device=key.device)[:, None]
        keys[row, :, self._slots] = key.transpose(1, 2)  # (B, N, G, C)
        values[row, :, self._slots] = value.transpose(1, 2)
        return keys[:, :, : self._end], values[:, :, : self._end]

    def map(self, change: Any) -> "Memory":
        """Return a memory whose tensors (B, G, M, C) are `change` of these."""
        changed = Memory()
        changed.layers = [(change(key), change(value)) for key, value in self.layers]
        return changed


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor,
    scaling: float,
    memory: Memory | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Attend from query (B, H, N, C) to key and value (B, G, N, C) and the memory; return (B, N, H, C).

    The heads of a group become rows of one product, so keys and values are not copied for each head.
    """
    if memory is not None:
        key, value = memory.update(module.layer_idx, key, value)
    b, h, n, c = query.shape
    rows = query.reshape(b, key.shape[1], -1, c)
    mixed = F.scaled_dot_product_attention(rows, key, value, mask.repeat(1, 1, rows.shape[2] // n, 1), scale=scaling)
    return mixed.view(b, h, n, c).transpose(1, 2), None


class CausalLM(nn.Module):
    """A model of transformers without its output layer, which is applied to selected pieces."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model, self.config = model, model.config
        self.dtype, self.is_int8 = torch.float32, False  # type of the states, and whether the maps are 8-bit integers

    @property
    def device(self) -> torch.device:
        """Return the device of the weights."""
        return self.model.device

    @property
    def vocabulary(self) -> int:
        """Return the number of pieces."""
        return int(self.config.vocab_size)

    def forward(self, pieces: Tensor, positions: Tensor, mask: Tensor, memory: Memory | None = None) -> Tensor:
        """Return states (B, N, D) after the last norm.

        Only the mask limits attention.  A layer's window (512 pieces in Gemma 3) is not applied, so a longer text is
        read differently from the original model.

        Args:
            pieces: (B, N).
            positions: (B, N).
            mask: Mask to add to the scores, (B, 1, N, M) for the slots of the memory, or (B, 1, N, N) without one.
            memory: Earlier positions, which `Memory.fill` has prepared for these pieces.
        """
        output = self.model.get_decoder()(
            input_ids=pieces, position_ids=positions, attention_mask=mask, memory=memory, use_cache=False
        )
        states: Tensor = output.last_hidden_state
        return states

    def read(self, pieces: Tensor, memory: Memory | None = None, start: int = 0) -> Tensor:
        """Return states (B, N, D) of pieces (B, N) after `start` pieces in the memory; all attend only backwards."""
        b, n = pieces.shape
        slots = (start + torch.arange(n, device=self.device)).expand(b, n)
        if memory is not None:
            memory.fill(slots, start + n)
        backwards = torch.ones(1, n, start + n, dtype=torch.bool, device=self.device).tril(start)
        return self(pieces, slots, mask_of(backwards, self.dtype), memory)

    def output_rows(self, pieces: Tensor | None = None) -> Tensor:
        """Return the rows of the output layer (V, D), optionally of these pieces only, in the type of the states."""
        table = self.model.get_output_embeddings().weight.detach()
        return (table if pieces is None else table[pieces]).to(self.dtype)

    def place(self, where: Place) -> None:
        """Move the model to a device and convert its parameters; the rotation rates stay in float32.

        With int8, all maps of all layers become 8-bit integers, and states, embedding, norms and attention stay in
        float32.
        """
        self.model.to(where.device)
        self.is_int8 = where.dtype == "int8"
        if self.is_int8:
            for part in list(self.model.get_decoder().modules()):
                for name, layer in part.named_children():
                    if isinstance(layer, nn.Linear):
                        setattr(part, name, Linear8(layer.weight, layer.bias))
            return
        self.dtype = getattr(torch, where.dtype)
        for parameter in self.model.parameters():
            parameter.data = parameter.data.to(self.dtype)


def load_network(folder: Path) -> CausalLM:
    """Return a folder's model in float32 with frozen weights; raises DataError if weights or family do not fit."""
    need("transformers", f"the language model {folder.name}")
    from transformers import AttentionInterface

    if (family := check_folder(folder)) not in FAMILIES:
        raise DataError(f"{folder}: a language model of type {family!r}; supported are {', '.join(FAMILIES)}")
    model = load_weights(folder, "AutoModelForCausalLM", "a language model")
    AttentionInterface.register(ATTENTION, attend)
    model.set_attn_implementation(ATTENTION)
    return CausalLM(model.requires_grad_(False))


def mask_of(allowed: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the mask to add to the scores, (B, 1, N, M), for allowed positions (B, N, M) bool."""
    return torch.zeros(allowed.shape, dtype=dtype, device=allowed.device).masked_fill_(~allowed, float("-inf"))[:, None]
