"""Adapters: the weight changes from fine-tuning a language model, in files that the peft package also reads.

The bundled weights are packed (sqa/files/packed.py); peft reads them after `zstd -d`.

adapter_model.safetensors   the two low-rank factors of every linear map, float16
adapter_config.json         peft's configuration
config.json                 direction, base, a probe of the tokenizer, settings of the training run
pieces.safetensors          the pieces among which the output layer chooses, one bit per vocabulary entry
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file as load_arrays
from safetensors.numpy import save as save_arrays
from safetensors.torch import load, save
from torch import Tensor

from smt.lm.base import Base
from smt.lm.fine_tuning_config import LmConfig
from smt.lm.layout import OFFSET
from smt.lm.network import PROJECTIONS, CausalLM
from sqa.core.errors import DataError
from sqa.files.atomic import joined_digest, write_bytes, write_text
from sqa.files.model_files import CONFIG, check_weights, content, stored
from sqa.files.records import parse_json

KIND, VERSION = "lm-adapter", 1
WEIGHTS, PIECES, PEFT = "adapter_model.safetensors", "pieces.safetensors", "adapter_config.json"
FILES = (CONFIG, WEIGHTS, PIECES)
MAX_BYTES = 256 << 20
PROBE = "Żółć i mañana: Łódź, 1234 – the quick brown fox"  # tokenizers of different models split it differently
_PREFIX = "base_model.model.model.layers"


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter that makes a language model translate in one direction."""

    folder: Path
    weights: dict[str, Tensor]  # under peft's names
    pieces: Tensor  # (V,), pieces that the output layer can choose
    config: Mapping[str, Any]

    def put_into(self, base: Base) -> None:
        """Add the adapter to the weights of its base.  Raises DataError for another base or tokenizer."""
        origin = self.config["base"]
        if base.identity != origin["identity"]:
            raise DataError(f"{self.folder}: an adapter for {origin['name']}, not for the model in {base.folder}")
        if base.tokens.text(PROBE) != list(origin["probe"]):
            raise DataError(f"{base.folder}: its tokenizer differs from the one used to train {self.folder}")
        if not len(self.pieces) or int(self.pieces[-1]) >= base.network.shape.vocabulary:
            raise DataError(f"{self.folder}/{PIECES}: not pieces of a vocabulary of {base.network.shape.vocabulary}")
        base.network.adapt(self.config["rank"], self.config["scale"], 0)
        factors = tensors(base.network)
        if {name: value.shape for name, value in factors.items()} != {n: v.shape for n, v in self.weights.items()}:
            raise DataError(f"{self.folder}/{WEIGHTS}: not the factors of an adapter of rank {self.config['rank']}")
        self.copy_into(base.network)
        base.network.merge()

    @torch.no_grad()
    def copy_into(self, network: CausalLM) -> None:
        """Copy the factors into an adapter of equal rank that the network already has."""
        for name, value in tensors(network).items():
            value.copy_(self.weights[name])


def tensors(model: CausalLM) -> dict[str, Tensor]:
    """Return the factors in a model under peft's names."""
    factors: dict[str, Tensor] = {}
    for i, layer in enumerate(model.layers):
        for projection in (layer.qkv, layer.out, layer.gate_up, layer.down):
            for name, down, up in zip(projection.names, projection.down, projection.up, strict=True):
                part = "self_attn" if name[1] == "_" else "mlp"
                factors[f"{_PREFIX}.{i}.{part}.{name}.lora_A.weight"] = down.detach()
                factors[f"{_PREFIX}.{i}.{part}.{name}.lora_B.weight"] = up.detach()
    return factors


def save_adapter(folder: Path, base: Base, pieces: Tensor, config: LmConfig, pairs: int) -> Path:
    """Write the files of the adapter in `base`, trained by `config` on `pairs` sentence pairs."""
    settings = config.train
    bits = np.zeros(-(-base.network.shape.vocabulary // 8) * 8, np.uint8)
    bits[pieces.numpy()] = 1
    peft = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": config.base,
        "r": settings.rank,
        "lora_alpha": settings.rank * settings.scale,
        "lora_dropout": 0.0,
        "bias": "none",
        "inference_mode": True,
        "target_modules": list(PROJECTIONS),
    }
    about = {
        "kind": KIND,
        "version": VERSION,
        "source": config.direction[0],
        "target": config.direction[1],
        "rank": settings.rank,
        "scale": settings.scale,
        "offset": OFFSET,
        "base": {"name": config.base, "identity": base.identity, "probe": base.tokens.text(PROBE)},
        "bidirectional": settings.bidirectional_share > 0,
        "glosses": config.glosses is not None,
        "about": {"training": asdict(config), "steps": settings.steps, "pairs": pairs},
    }
    half = {key: value.to(torch.float16).cpu().contiguous() for key, value in sorted(tensors(base.network).items())}
    write_bytes(folder / WEIGHTS, save(half))
    write_bytes(folder / PIECES, save_arrays({"pieces": np.packbits(bits)}))
    write_text(folder / PEFT, json.dumps(peft, indent=1) + "\n")
    write_text(folder / CONFIG, json.dumps(about, indent=1, ensure_ascii=False) + "\n")
    return folder


def load_adapter(folder: Path) -> Adapter:
    """Read an adapter's files.  Raises DataError for missing, damaged or invalid files."""
    for name in FILES:
        file = stored(folder / name)
        if not file.is_file():
            raise DataError(f"{folder / name}: not found; an adapter's folder holds {', '.join(FILES)}")
        if file.stat().st_size > MAX_BYTES:
            raise DataError(f"{folder / name}: larger than {MAX_BYTES >> 20} MiB, refused")
    try:
        config = parse_json((folder / CONFIG).read_bytes())
        if (config["kind"], config["version"], config["offset"]) != (KIND, VERSION, OFFSET):
            raise DataError(f"{folder}/{CONFIG}: not an adapter of this program's version {VERSION}")
        weights = {name: value.float() for name, value in load(content(folder / WEIGHTS)).items()}
        bits = np.unpackbits(load_arrays(folder / PIECES)["pieces"])
        _ = (config["source"], config["target"], config["scale"] + 0.0, config["base"]["probe"])
        if {len(value) for name, value in weights.items() if name.endswith(".lora_A.weight")} != {config["rank"]}:
            raise ValueError(f"its factors are not of rank {config['rank']}")  # checked before anything is allocated
    except (ValueError, KeyError, TypeError, RecursionError, OSError, SafetensorError) as error:
        raise DataError(f"{folder}: a damaged adapter: {str(error).splitlines()[0]}") from error
    check_weights(f"{folder}/{WEIGHTS}", weights.items())
    return Adapter(folder, weights, torch.from_numpy(np.flatnonzero(bits)), config)


def adapter_digest(folder: Path) -> str:
    """Return the sha256 of the files that an adapter's output depends on."""
    return joined_digest((folder / name for name in FILES), content)
