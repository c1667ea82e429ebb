"""A trained model in a folder: config.json, model.safetensors, vocabulary.model (and README.md, its card).

Matrices are stored as int8 with one scale per row, and everything else as float16 or float32.  This takes a quarter of
the size of float32, so a model fits into the repository.  Computation is float32 on the dequantised weights.  A model
converted from another toolkit keeps float32 weights and has vocabulary.json (`smt.models.vocab_bpe`) instead of
vocabulary.model.
"""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor

from smt.models.transformer import ModelConfig, Transformer
from smt.models.vocab import Vocabulary
from smt.models.vocab_bpe import BpeVocabulary
from sqa.core.errors import ConfigError, DataError
from sqa.core.paths import DATA
from sqa.core.schema import SOUGHT
from sqa.files.atomic import atomic, joined_digest, locked, write_bytes
from sqa.files.model_files import MAX_BYTES, PACKED, check_weights, content, stored
from sqa.files.records import parse_json

FORMAT = 1
FILES = ("config.json", "model.safetensors")
AnyVocabulary = Vocabulary | BpeVocabulary
VOCABULARIES = {kind.FILE: kind for kind in (Vocabulary, BpeVocabulary)}  # the folder holds one of these files


def quantise(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows of a matrix (R, C) as int8 and their scales (R,), such that weight ~ int8 * scale."""
    scale = weight.abs().amax(1).clamp(min=1e-12) / 127
    return torch.round(weight / scale[:, None]).to(torch.int8), scale


def _pack(state: dict[str, Tensor], quantised: bool) -> dict[str, Tensor]:
    out: dict[str, Tensor] = {}
    for name, value in state.items():
        if name == "lexicon_ids":
            out[name] = value.to(torch.uint16)
        elif name == "lexicon_probabilities":
            out[name] = value.to(torch.float16)
        elif value.ndim == 2 and quantised:
            out[name], out[f"{name}.scale"] = quantise(value.float())
        else:
            out[name] = value.float()
    return {name: value.contiguous() for name, value in out.items()}


def _unpack(stored: dict[str, Tensor]) -> dict[str, Tensor]:
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


def save_model(
    model: Transformer, vocabulary: AnyVocabulary, folder: Path, about: dict[str, Any], quantised: bool = True
) -> Path:
    """Write the model into `folder`, each file atomically; store `about` (training config, steps) in config.json.

    Packing and formatting can fail, so both happen before the first existing file is replaced.
    """
    packed = _pack(model.state_dict(), quantised)
    text = json.dumps({"format": FORMAT, "model": asdict(model.config), "about": about}, indent=1, ensure_ascii=False)
    with locked(folder):  # two training runs must not mix their files
        with atomic(folder / "model.safetensors") as partial:
            save_file(packed, partial)
        write_bytes(folder / vocabulary.FILE, vocabulary.model)
        others = {*VOCABULARIES} - {vocabulary.FILE}
        for name in (*others, *(name + PACKED for name in (FILES[1], *VOCABULARIES))):
            (folder / name).unlink(missing_ok=True)
        write_bytes(folder / "config.json", (text + "\n").encode())
    return folder


def vocabulary_path(folder: Path) -> Path:
    """Return the vocabulary file in a model's folder, or the path of vocabulary.model if there is none."""
    return next((folder / name for name in VOCABULARIES if stored(folder / name).is_file()), folder / Vocabulary.FILE)


def load_model(folder: Path) -> tuple[Transformer, AnyVocabulary, dict[str, Any]]:
    """Read a folder written by `save_model`; the model is in eval mode.

    Raises DataError for a missing file, another format, or weights that do not fit the configuration.
    """
    vocabulary_file = vocabulary_path(folder)
    for path in (*(folder / name for name in FILES), vocabulary_file):
        if not stored(path).is_file():
            raise DataError(f"{path}: not found; a translator folder holds {', '.join((*FILES, Vocabulary.FILE))}")
        if stored(path).stat().st_size > MAX_BYTES:
            raise DataError(f"{path}: larger than {MAX_BYTES >> 20} MiB, refused")
    try:
        config = parse_json((folder / "config.json").read_bytes())
        if config["format"] != FORMAT:
            raise DataError(f"{folder}/config.json: format {config['format']}, not {FORMAT}")
        about = dict(config["about"])
        model = _filled(ModelConfig(**{**config["model"], "dropout": 0.0}), load(content(folder / "model.safetensors")))
    except (ConfigError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        reason = " ".join(str(error).split()[:30])
        raise DataError(f"{folder}: not a translator of this program: {reason}") from error
    check_weights(folder, model.state_dict().items())
    vocabulary = VOCABULARIES[vocabulary_file.name].load(vocabulary_file)
    sizes = (vocabulary.source_size, vocabulary.size)
    expected = (model.config.source_vocabulary or model.config.vocabulary, model.config.vocabulary)
    if sizes != expected:
        raise DataError(f"{vocabulary_file}: {sizes} source and target pieces, but the model has {expected}")
    return model.eval(), vocabulary, about


def _filled(config: ModelConfig, stored: dict[str, Tensor]) -> Transformer:
    """Return the network of a configuration with these weights.

    Raises ValueError or RuntimeError if they do not fit.  A configuration may state any size, so no memory is allocated
    for it.
    """
    if max(config.encoder_layers, config.decoder_layers) > len(stored):
        raise ValueError(f"{config.encoder_layers} and {config.decoder_layers} layers, {len(stored)} tensors")
    with torch.device("meta"):
        model = Transformer(config)
    model.load_state_dict(_unpack(stored), assign=True)
    if config.lexicon_width:
        ids, probabilities = model.lexicon_ids, model.lexicon_probabilities
        if ids.min() < 0 or ids.max() >= config.vocabulary or probabilities.min() < 0 or probabilities.max() > 1:
            raise ValueError(f"the lexicon must hold pieces below {config.vocabulary} and probabilities of 0 to 1")
    return model


def folder_fingerprint(folder: Path) -> str:
    """Return the sha256 of the files that determine a model's output."""
    return joined_digest((*(folder / name for name in FILES), vocabulary_path(folder)), content)


def model_folder(model: str, key: str = "translator.model") -> Path:
    """Return the folder of a model, given a bundled model's name or a path.

    Raises ConfigError, naming `key` of the config, if neither exists.
    """
    bundled = DATA / "models" / model
    folder = bundled if stored(bundled / Vocabulary.FILE).is_file() else Path(model)
    if not folder.is_dir():
        names = sorted(path.parent.name for path in (DATA / "models").glob("*/vocabulary.model*"))
        known = f"bundled are {', '.join(names) or 'none'}, or give a folder"
        raise ConfigError(f"{key}: no model {model!r}; {known}; {SOUGHT}")
    return folder
