"""A trained model in a folder: config.json, model.safetensors, vocabulary.model (and README.md, its card).

Matrices are stored as int8 with one scale per row, and everything else as float16 or float32.  This takes a quarter of
the size of float32, so a model fits into the repository.  Computation is float32 on the dequantised weights.  A model
converted from another toolkit keeps float32 weights and has vocabulary.json (`smt.models.vocab_bpe`) instead of
vocabulary.model.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from smt.models.vocab import Vocabulary
from smt.models.vocab_bpe import BpeVocabulary
from sqa.core import DATA, SOUGHT, ConfigError, DataError, Pair, pair_of
from sqa.files import check_weights, content, joined_digest, locked, parse_json, stored, write_bytes
from sqa.files.atomic import atomic
from sqa.files.model_files import MAX_BYTES, PACKED

if TYPE_CHECKING:
    from smt.models.transformer import Transformer  # only weights need torch

FORMAT = 1
FILES = ("config.json", "model.safetensors")
AnyVocabulary = Vocabulary | BpeVocabulary
VOCABULARIES = {kind.FILE: kind for kind in (Vocabulary, BpeVocabulary)}  # the folder holds one of these files


def save_model(
    model: Transformer, vocabulary: AnyVocabulary, folder: Path, about: dict[str, Any], quantised: bool = True
) -> Path:
    """Write the model into `folder`, each file atomically; store `about` (training config, steps) in config.json.

    Packing and formatting can fail, so both happen before the first existing file is replaced.
    """
    from safetensors.torch import save_file

    from smt.models.transformer import packed

    tensors = packed(model.state_dict(), quantised)
    text = json.dumps({"format": FORMAT, "model": asdict(model.config), "about": about}, indent=1, ensure_ascii=False)
    with locked(folder):  # two training runs must not mix their files
        with atomic(folder / "model.safetensors") as partial:
            save_file(tensors, partial)
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
    from safetensors.torch import load

    from smt.models.transformer import ModelConfig, filled

    config, vocabulary_file = _read_config(folder), vocabulary_path(folder)
    try:
        model = filled(ModelConfig(**{**config["model"], "dropout": 0.0}), load(content(folder / "model.safetensors")))
    except (ConfigError, ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise _not_ours(folder, error) from error
    check_weights(folder, model.state_dict().items())
    vocabulary = VOCABULARIES[vocabulary_file.name].load(vocabulary_file)
    sizes = (vocabulary.source_size, vocabulary.size)
    expected = (model.config.source_vocabulary or model.config.vocabulary, model.config.vocabulary)
    if sizes != expected:
        raise DataError(f"{vocabulary_file}: {sizes} source and target pieces, but the model has {expected}")
    return model.eval(), vocabulary, config["about"]


def languages_of(folder: Path) -> Pair | None:
    """Return the languages that a model names, without reading its weights; None if it names none."""
    return pair_of(_read_config(folder)["about"])


def _read_config(folder: Path) -> dict[str, Any]:
    """Return the content of config.json; raises DataError if a file of the model is missing, or for another format."""
    for path in (*(folder / name for name in FILES), vocabulary_path(folder)):
        if not stored(path).is_file():
            raise DataError(f"{path}: not found; a translator folder holds {', '.join((*FILES, Vocabulary.FILE))}")
        if stored(path).stat().st_size > MAX_BYTES:
            raise DataError(f"{path}: larger than {MAX_BYTES >> 20} MiB, refused")
    try:
        config = parse_json((folder / "config.json").read_bytes())
        if config["format"] != FORMAT:
            raise DataError(f"{folder}/config.json: format {config['format']}, not {FORMAT}")
        return {**config, "about": dict(config["about"])}
    except (ValueError, KeyError, TypeError) as error:
        raise _not_ours(folder, error) from error


def _not_ours(folder: Path, error: Exception) -> DataError:
    return DataError(f"{folder}: not a translator of this program: {' '.join(str(error).split()[:30])}")


def folder_fingerprint(folder: Path) -> str:
    """Return the sha256 of the files that determine a model's output."""
    return joined_digest([*(folder / name for name in FILES), vocabulary_path(folder)])


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
