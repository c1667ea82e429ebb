"""Tiny, randomly initialized language models of the supported families, with a real tokenizer file."""

import json
from pathlib import Path

import torch
from needs import require

from smt.lm.adapter import adapt, factors, save_adapter
from smt.lm.base import Base, load_base
from smt.lm.fine_tuning_config import LmConfig, LmTrainConfig
from smt.lm.tokenizer import from_scores
from smt.training.config import CorpusConfig

WORDS = "el la casa perro grande the house dog big of is a Spanish English Polish".split()
SIZES = {"hidden_size": 32, "intermediate_size": 48, "max_position_embeddings": 512, "rms_norm_eps": 1e-6}
SIZES |= {"num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2}
KINDS = ["sliding_attention", "full_attention", "sliding_attention"]
FAMILIES = {
    "gemma3_text": {"head_dim": 16, "query_pre_attn_scalar": 24, "layer_types": KINDS, "sliding_window": 512},
    "llama": {"head_dim": 8, "tie_word_embeddings": False},
    "qwen2": {"tie_word_embeddings": True},
    "qwen3": {"head_dim": 16, "tie_word_embeddings": True},
}


def tokenizer():
    """Return a tokenizer of words, prefixes, letters and bytes that prefers longer pieces, and its list of pieces."""
    letters = [chr(c) for c in range(33, 127)] + list("áéíóúñąćęłńóśźż\n")
    pieces = ["<pad>", "<eos>", "<bos>", "<unk>", *[f"<0x{b:02X}>" for b in range(256)], *dict.fromkeys(letters), "▁"]
    for word in WORDS:
        pieces += [f"▁{word}"[:end] for end in range(2, len(word) + 2)]
        pieces += [word[:end] for end in range(2, len(word) + 1)]
    pieces = list(dict.fromkeys(pieces))
    types = [3, 3, 3, 2, *[6] * 256, *[1] * (len(pieces) - 260)]
    return from_scores(pieces, [float(len(p)) for p in pieces], types), pieces


def make(folder: Path, family: str, seed: int = 0) -> Path:
    """Write a model and its tokenizer to a folder, in the format of `save_pretrained`, and return the folder."""
    from transformers import AutoConfig, AutoModelForCausalLM

    tokens, pieces = tokenizer()
    size = {"vocab_size": len(pieces), "bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0, **SIZES}
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **size, **FAMILIES[family]))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.normal_(0, 0.3 if "norm" in name or "bias" in name else 0.15)
    model.eval().save_pretrained(folder)
    tokens.save(str(folder / "tokenizer.json"))
    return folder


def change(folder: Path, **values: object) -> None:
    """Set keys of a folder's config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def adapted(folder: Path, seed: int = 1, scale: float = 2.0, deviation: float = 0.1) -> Base:
    """Return the model in a folder with a randomly initialized, unmerged adapter."""
    require("peft")
    base = load_base(folder)
    adapt(base.network, 4, scale, 0)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for value in factors(base.network).values():
            value.normal_(0, deviation, generator=generator)
    return base


def adapter(folder: Path, target: Path, seed: int, bidirectional: bool = False) -> Path:
    """Write a randomly initialized Spanish-English adapter for the model in `folder`."""
    base = adapted(folder, seed, 1.0, 0.05)
    pieces = torch.arange(4, base.tokens.size)
    train = LmTrainConfig(rank=4, scale=1.0, bidirectional_share=0.5 * bidirectional)
    return save_adapter(target, base, pieces, LmConfig("a", str(folder), CorpusConfig("es-en"), train=train), 0)
