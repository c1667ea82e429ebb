"""Unpacking of a GGUF file (llama.cpp's format) into a Hugging Face folder.

Transformers dequantises every tensor once, and the folder holds them in bfloat16.  The tokenizer is built from the
file's own pieces and scores, because the tokenizer that transformers builds segments words wrongly.
"""

from pathlib import Path
from typing import Any

from smt.lm.tokenizer import FILE, from_scores
from sqa.core.errors import DataError
from sqa.core.packages import need
from sqa.core.paths import cache_dir
from sqa.files.atomic import atomic_folder, file_digest, held
from sqa.files.pretrained import quiet

VERSION = 2  # increase when the unpacked files change
MAGIC = b"GGUF"
FAMILIES = ("gemma3", "llama")


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
        values = {name: field.contents() for name, field in GGUFReader(path).fields.items()}
        architecture, kind = values["general.architecture"], values["tokenizer.ggml.model"]
        if architecture not in FAMILIES or kind != "llama":
            raise DataError(
                f"{path}: architecture {architecture!r} with a tokenizer of kind {kind!r}; supported are "
                f"{', '.join(FAMILIES)} with SentencePiece pieces; give the Hugging Face folder instead"
            )
        tokenizer = from_scores(*(values[f"tokenizer.ggml.{key}"] for key in ("tokens", "scores", "token_type")))
        model = load_gguf(path)
        model.config.bos_token_id = values["tokenizer.ggml.bos_token_id"]
    except (ValueError, IndexError, KeyError, TypeError, OSError, OverflowError, MemoryError, RuntimeError) as error:
        raise DataError(f"{path}: a damaged or incomplete GGUF file: {str(error).splitlines()[0]}") from error
    model.save_pretrained(folder)
    tokenizer.save(str(folder / FILE))


def load_gguf(path: Path) -> Any:
    """Return the model of a GGUF file in bfloat16; raises an error of transformers for a damaged file."""
    from transformers import AutoModelForCausalLM

    with quiet():
        return AutoModelForCausalLM.from_pretrained(
            path.parent, gguf_file=path.name, dtype="bfloat16", local_files_only=True
        )
