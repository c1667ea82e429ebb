"""Unpacking of a GGUF file (llama.cpp's format) into a Hugging Face folder for smt/lm/loading.py.

Every tensor is dequantised once and stored in bfloat16.  The tokenizer is built from the file's own pieces and scores,
because the transformers package builds a tokenizer that segments words wrongly.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor

from smt.lm.tokenizer import from_scores
from sqa.core.errors import DataError
from sqa.core.packages import need
from sqa.core.paths import cache_dir
from sqa.files.atomic import atomic_folder, file_digest, held

VERSION = 1  # increase when the unpacked files change
MAGIC = b"GGUF"
FAMILIES = {"gemma3": "gemma3_text", "llama": "llama"}  # GGUF's name of an architecture -> model_type
GEMMA_LOCAL_BASE, GEMMA_FULL_EVERY = 10_000.0, 6  # constants of Gemma 3 that its GGUF files omit
_WHOLE = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_LAYER = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}


def unpacked(path: Path) -> Path:
    """Unpack a GGUF file into the user's cache and return the folder, which is named by the file's sha256.

    Raises DataError for a file in another format, a truncated file, or an unsupported model.
    """
    need("gguf", f"{path.name}")
    with path.open("rb") as file:
        if file.read(4) != MAGIC:
            raise DataError(f"{path}: not a GGUF file")
    folder = cache_dir() / "lm" / f"{file_digest(path)[:16]}-{VERSION}"
    with held(folder.parent):
        if not (folder / "config.json").is_file():
            with atomic_folder(folder) as partial:
                _unpack(path, partial)
    return folder


def _unpack(path: Path, folder: Path) -> None:
    from gguf import GGUFReader

    try:
        reader = GGUFReader(path)
        values = {name: field.contents() for name, field in reader.fields.items()}
        config = _config(path, values)
        save_file(_tensors(reader, config), folder / "model.safetensors")
        tokens = {key: values[f"tokenizer.ggml.{key}"] for key in ("tokens", "scores", "token_type")}
    except (ValueError, IndexError, KeyError, TypeError, OSError, OverflowError, MemoryError) as error:
        raise DataError(f"{path}: a damaged or incomplete GGUF file: {str(error).splitlines()[0]}") from error
    from_scores(tokens["tokens"], tokens["scores"], tokens["token_type"]).save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")


def _config(path: Path, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config.json of the model that a GGUF file describes."""
    architecture = values["general.architecture"]
    if architecture not in FAMILIES or values["tokenizer.ggml.model"] != "llama":
        raise DataError(
            f"{path}: architecture {architecture!r} with a tokenizer of kind {values['tokenizer.ggml.model']!r}; "
            f"supported are {', '.join(FAMILIES)} with SentencePiece pieces; give the Hugging Face folder instead"
        )

    def value(key: str, default: Any = None) -> Any:
        return values[f"{architecture}.{key}"] if default is None else values.get(f"{architecture}.{key}", default)

    heads, width, layers = value("attention.head_count"), value("embedding_length"), value("block_count")
    config = {
        "model_type": FAMILIES[architecture],
        "architectures": ["Gemma3ForCausalLM" if architecture == "gemma3" else "LlamaForCausalLM"],
        "vocab_size": len(values["tokenizer.ggml.tokens"]),
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": value("attention.head_count_kv", heads),
        "head_dim": value("attention.key_length", width // heads),
        "intermediate_size": value("feed_forward_length"),
        "rms_norm_eps": value("attention.layer_norm_rms_epsilon"),
        "rope_theta": value("rope.freq_base", 10_000.0),
        "max_position_embeddings": value("context_length"),
        "bos_token_id": values["tokenizer.ggml.bos_token_id"],
        "eos_token_id": values["tokenizer.ggml.eos_token_id"],
        "tie_word_embeddings": architecture == "gemma3",
    }
    if architecture == "gemma3":
        full = [(i + 1) % GEMMA_FULL_EVERY == 0 for i in range(layers)]
        config |= {
            "layer_types": ["full_attention" if f else "sliding_attention" for f in full],
            "sliding_window": value("attention.sliding_window"),
            "rope_local_base_freq": GEMMA_LOCAL_BASE,
            "query_pre_attn_scalar": config["head_dim"],
        }
    return config


def _tensors(reader: Any, config: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return all tensors in bfloat16 under Hugging Face's names."""
    from gguf.quants import dequantize

    gemma = config["model_type"] == "gemma3_text"
    weights: dict[str, Tensor] = {}
    for tensor in reader.tensors:
        name = _name(tensor.name, gemma)
        if name is None:
            continue
        values = torch.from_numpy(np.array(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32))
        if gemma and name.endswith("norm.weight"):
            values = values - 1.0  # llama.cpp stores 1 + w
        if not gemma and name.endswith(("q_proj.weight", "k_proj.weight")):
            key = "num_attention_heads" if "q_proj" in name else "num_key_value_heads"
            values = _unpaired(values, config[key])
        weights[name] = values.to(torch.bfloat16)
    if not gemma and "lm_head.weight" not in weights:
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"].clone()
    return weights


def _name(name: str, gemma: bool) -> str | None:
    """Return Hugging Face's name of a GGUF tensor; None for an unneeded tensor (tables of rotary positions)."""
    if name in _WHOLE:
        return _WHOLE[name]
    if not name.startswith("blk."):
        return None
    _, layer, part, kind = name.split(".")
    if part == "ffn_norm":
        return f"model.layers.{layer}.{'pre_feedforward' if gemma else 'post_attention'}_layernorm.{kind}"
    return f"model.layers.{layer}.{_LAYER[part]}.{kind}"


def _unpaired(weight: Tensor, heads: int) -> Tensor:
    """Separate the halves of each head's rotary pairs, which llama.cpp interleaves in the rows of `weight` (H C, D)."""
    rows, width = weight.shape
    return weight.view(heads, rows // heads // 2, 2, width).transpose(1, 2).reshape(rows, width)
