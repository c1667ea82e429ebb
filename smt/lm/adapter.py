"""Adapters: the weight changes from fine-tuning a language model, in files that the peft package also reads.

The bundled weights are packed (sqa/files/model_files.py); peft reads them after `zstd -d`.

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
from smt.lm.network import CausalLM
from smt.lm.tokenizer import OFFSET
from sqa.core import DataError, need
from sqa.files import CONFIG, check_weights, content, joined_digest, parse_json, stored, write_bytes, write_text

KIND, VERSION = "lm-adapter", 1
WEIGHTS, PIECES, PEFT = "adapter_model.safetensors", "pieces.safetensors", "adapter_config.json"
FILES = (CONFIG, WEIGHTS, PIECES)
MAX_BYTES = 256 << 20
PROBE = "Żółć i mañana: Łódź, 1234 – the quick brown fox"  # tokenizers of different models split it differently
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
RENAMED = {  # the identity of gemma3-270m in adapters of 1.0.0, which also hashed the sizes, and today's identity
    "14cf8e44b98c56de3e4df75a33b311249ca350e3c5d64100902a0448be6acd4b": (
        "2b721caca916ff7900cf756da4d71196c207bd0dc28325a71d634b5840803939"
    )
}


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter that makes a language model translate in one direction."""

    folder: Path
    weights: dict[str, Tensor]  # under peft's names
    pieces: Tensor  # (V,), pieces that the output layer can choose
    config: Mapping[str, Any]

    def put_into(self, base: Base) -> None:
        """Add the adapter to the weights of its base.  Raises DataError for another base or tokenizer."""
        origin, network = self.config["base"], base.network
        if base.identity != RENAMED.get(origin["identity"], origin["identity"]):
            raise DataError(f"{self.folder}: an adapter for {origin['name']}, not for the model in {base.folder}")
        if base.tokens.text(PROBE) != list(origin["probe"]):
            raise DataError(f"{base.folder}: its tokenizer differs from the one used to train {self.folder}")
        if not len(self.pieces) or int(self.pieces[-1]) >= network.vocabulary:
            raise DataError(f"{self.folder}/{PIECES}: not pieces of a vocabulary of {network.vocabulary}")
        adapt(network, self.config["rank"], self.config["scale"], 0)
        if {name: x.shape for name, x in factors(network).items()} != {n: x.shape for n, x in self.weights.items()}:
            raise DataError(f"{self.folder}/{WEIGHTS}: not the factors of an adapter of rank {self.config['rank']}")
        from peft import set_peft_model_state_dict  # `adapt` has checked that the package is installed

        set_peft_model_state_dict(network.model, self.weights)
        network.model = network.model.merge_and_unload()


def settings(rank: int, scale: float) -> dict[str, Any]:
    """Return the settings of peft's LoraConfig for an adapter of every map of every layer."""
    names = list(PROJECTIONS)
    return {"task_type": "CAUSAL_LM", "r": rank, "lora_alpha": rank * scale, "bias": "none", "target_modules": names}


def adapt(network: CausalLM, rank: int, scale: float, seed: int) -> None:
    """Add a new adapter; its matrix A is random, and its matrix B is zero."""
    need("peft", "an adapter of a language model")
    from peft import LoraConfig, get_peft_model

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network.model = get_peft_model(network.model, LoraConfig(**settings(rank, scale))).eval()


def factors(network: CausalLM) -> dict[str, Tensor]:
    """Return the factors of the adapter in a network under peft's names."""
    from peft import get_peft_model_state_dict

    return dict(get_peft_model_state_dict(network.model))


def save_adapter(folder: Path, base: Base, pieces: Tensor, config: LmConfig, pairs: int) -> Path:
    """Write the files of the adapter in `base`, trained by `config` on `pairs` sentence pairs."""
    train = config.train
    bits = np.zeros(-(-base.network.vocabulary // 8) * 8, np.uint8)
    bits[pieces.numpy()] = 1
    peft = {"peft_type": "LORA", "base_model_name_or_path": config.base, "inference_mode": True}
    peft |= settings(train.rank, train.scale)
    about = {
        "kind": KIND,
        "version": VERSION,
        "source": config.direction[0],
        "target": config.direction[1],
        "rank": train.rank,
        "scale": train.scale,
        "offset": OFFSET,
        "base": {"name": config.base, "identity": base.identity, "probe": base.tokens.text(PROBE)},
        "bidirectional": train.bidirectional_share > 0,
        "glosses": config.glosses is not None,
        "about": {"training": asdict(config), "steps": train.steps, "pairs": pairs},
    }
    half = {key: value.to(torch.float16).cpu().contiguous() for key, value in sorted(factors(base.network).items())}
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
    return joined_digest(folder / name for name in FILES)
