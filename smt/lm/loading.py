"""Reader of a language model's folder in Hugging Face's format, without the transformers package.

Reads config.json and *.safetensors.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from smt.lm.network import PROJECTIONS, CausalLM, Layer, Shape
from sqa.core.errors import DataError
from sqa.files.records import parse_json

CONFIG = "config.json"
FAMILIES = ("gemma3_text", "llama", "qwen2", "qwen3")
LARGEST = 1 << 22  # maximum of any size in a configuration


def read_shape(folder: Path) -> tuple[Shape, dict[str, Any]]:
    """Return the shape of the network that a folder's config.json describes, and the file's content.

    Raises DataError for an unsupported family or a damaged file.
    """
    path = folder / CONFIG
    try:
        config = parse_json(path.read_bytes())
        shape = shape_of(config)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}; give the folder of a language model") from error
    except (ValueError, DataError) as error:
        raise DataError(f"{path}: {error}") from error
    except (KeyError, TypeError, AttributeError, ArithmeticError) as error:
        raise DataError(f"{path}: not the configuration of a language model: {error}") from error
    return shape, config


def shape_of(config: Mapping[str, Any]) -> Shape:
    """Return the shape of a configuration; raises DataError if this network does not support it."""
    family = config.get("model_type")
    if family not in FAMILIES:
        raise DataError(f"a language model of type {family!r}; supported are {', '.join(FAMILIES)}")
    for key in ("attn_logit_softcapping", "final_logit_softcapping", "attention_bias", "mlp_bias"):
        if config.get(key):
            raise DataError(f"{key} {config[key]} is not supported")
    gemma = family == "gemma3_text"
    width, layers, heads = (_size(config, name) for name in ("hidden_size", "num_hidden_layers", "num_attention_heads"))
    kinds = config.get("layer_types") or ["full_attention"] * layers
    sliding = [kind == "sliding_attention" for kind in kinds]
    rope_base = {kind: _rope_base(config, kind) for kind in set(kinds)}
    shape = Shape(
        vocabulary=_size(config, "vocab_size"),
        width=width,
        layers=layers,
        heads=heads,
        key_heads=_size(config, "num_key_value_heads", heads),
        head_size=_size(config, "head_dim", width // heads),
        inner=_size(config, "intermediate_size"),
        norm_epsilon=float(config["rms_norm_eps"]),
        rope_bases=tuple(rope_base[kind] for kind in kinds),
        windows=tuple(int(config.get("sliding_window") or 0) if local else 0 for local in sliding),
        activation="gelu_tanh" if gemma else "silu",
        embedding_scale=width**0.5 if gemma else 1.0,
        query_scale=config["query_pre_attn_scalar"] ** -0.5 if gemma else 0.0,
        head_norms=family in ("gemma3_text", "qwen3"),
        output_norms=gemma,
        attention_bias=family == "qwen2",
        tied=bool(config.get("tie_word_embeddings", gemma)),
    )
    if problem := _problem(shape):
        raise DataError(problem)
    return shape


def _rope_base(config: Mapping[str, Any], kind: str) -> float:
    """Return the rotary base of a kind of layer, as transformers 4 or 5 writes it.

    Raises DataError for scaled rotations.
    """
    parameters = config.get("rope_parameters") or {}
    own = parameters.get(kind, parameters)  # transformers 5: per kind, or the same for all layers
    for scaling in (config.get("rope_scaling"), own):
        if scaling and scaling.get("rope_type", scaling.get("type", "default")) != "default":
            raise DataError(f"rope_scaling {scaling} is not supported")
    if own:
        return float(own["rope_theta"])
    if kind == "sliding_attention" and config["model_type"] == "gemma3_text":
        return float(config["rope_local_base_freq"])
    return float(config.get("rope_theta", 10_000.0))


def _problem(shape: Shape) -> str:
    """Return the problem of an invalid shape, or "" if the shape is valid."""
    if len(shape.rope_bases) != shape.layers:
        return f"layer_types: {shape.layers} expected, got {len(shape.rope_bases)}"
    if shape.heads % shape.key_heads or shape.head_size % 2:
        heads = f"{shape.heads} heads, {shape.key_heads} key heads, size {shape.head_size}"
        return f"{heads}: the number of heads must be a multiple of the key heads, and their size even"
    scales = (shape.norm_epsilon, *shape.rope_bases, shape.query_scale + 1)
    if not all(math.isfinite(scale) and scale > 0 for scale in scales):
        return "rms_norm_eps, rope_theta and query_pre_attn_scalar must be finite and above 0"
    return ""


def _size(config: Mapping[str, Any], key: str, default: int | None = None) -> int:
    value = config[key] if default is None else config.get(key) or default
    if not isinstance(value, int) or not 1 <= value <= LARGEST:
        raise TypeError(f"{key} must be a whole number from 1 to {LARGEST}, got {value!r}")
    return value


def load_network(folder: Path, dtype: torch.dtype) -> CausalLM:
    """Return a folder's model with frozen matrices and states in `dtype`; raises DataError if weights do not fit."""
    shape, config = read_shape(folder)
    paths = sorted(folder.glob("*.safetensors"))
    if not paths:
        raise DataError(f"{folder}: contains no *.safetensors; pickled weights are never read")
    stored: dict[str, Tensor] = {}
    try:
        for path in paths:
            with safe_open(path, framework="pt") as file:
                stored |= {name.removeprefix("model."): file.get_tensor(name) for name in file.keys()}
        return _filled(shape, stored, config["model_type"] == "gemma3_text", dtype)
    except (SafetensorError, OSError) as error:
        raise DataError(f"{folder}: its weights cannot be read: {str(error).splitlines()[0]}") from error
    except KeyError as error:
        raise DataError(f"{folder}: its weights lack {error.args[0]}; they do not belong to its {CONFIG}") from error
    except RuntimeError as error:
        raise DataError(f"{folder}: its weights do not fit its {CONFIG}: {str(error).splitlines()[0]}") from error


def _filled(shape: Shape, stored: Mapping[str, Tensor], gemma: bool, dtype: torch.dtype) -> CausalLM:
    if shape.layers > len(stored):
        raise RuntimeError(f"{shape.layers} layers, {len(stored)} tensors")
    with torch.device("meta"):  # a configuration may state any size, so only existing weights are allocated
        model = CausalLM(shape)
    half = torch.arange(0, shape.head_size, 2, dtype=torch.float32) / shape.head_size
    model.rates = torch.stack([base**-half for base in sorted(set(shape.rope_bases))])
    model.dtype = dtype
    _set(model, "embedding", stored["embed_tokens.weight"].to(dtype))
    if not shape.tied:
        _set(model, "output", stored["lm_head.weight"].to(dtype))
    offset = 1.0 if gemma else 0.0  # Gemma stores its norms' weights minus 1
    _set(model.norm, "weight", stored["norm.weight"].float() + offset)
    for i, layer in enumerate(model.layers):
        prefix = f"layers.{i}."
        own = {name.removeprefix(prefix): value for name, value in stored.items() if name.startswith(prefix)}
        _fill_layer(layer, own, offset, dtype)
    return model.eval()


def _fill_layer(layer: Layer, stored: Mapping[str, Tensor], offset: float, dtype: torch.dtype) -> None:
    names = {name: f"{'self_attn' if name[1] == '_' else 'mlp'}.{name}" for name in PROJECTIONS}
    for projection in (layer.qkv, layer.out, layer.gate_up, layer.down):
        parts = [stored[f"{names[name]}.weight"] for name in projection.names]
        _set(projection, "weight", torch.cat(parts).to(dtype))
        if projection.bias is not None:
            _set(projection, "bias", torch.cat([stored[f"{names[name]}.bias"] for name in projection.names]).float())
    norms = {"norm_attention": "input_layernorm", "norm_feed_forward": "post_attention_layernorm"}
    if layer.shape.output_norms:
        norms |= {"norm_attended": "post_attention_layernorm", "norm_feed_forward": "pre_feedforward_layernorm"}
        norms["norm_fed"] = "post_feedforward_layernorm"
    if layer.shape.head_norms:
        norms |= {"norm_query": "self_attn.q_norm", "norm_key": "self_attn.k_norm"}
    for name, stored_name in norms.items():
        _set(getattr(layer, name), "weight", stored[f"{stored_name}.weight"].float() + offset)


def _set(module: torch.nn.Module, name: str, value: Tensor) -> None:
    """Set a parameter to a tensor of the expected shape, without a copy."""
    expected = getattr(module, name)
    if expected.shape != value.shape:
        raise RuntimeError(f"{name} of {tuple(value.shape)} where {tuple(expected.shape)} is expected")
    setattr(module, name, torch.nn.Parameter(value, requires_grad=False))
