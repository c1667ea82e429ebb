"""Models of the package `transformers` in local folders.

Weights are read only from safetensors, nothing is downloaded, and no code in a model's folder is run.
"""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from sqa.core.errors import DataError
from sqa.files.hub import check_folder
from sqa.files.model_files import check_weights
from sqa.files.records import parse_json

LARGEST = 1 << 22  # maximum of any size in a configuration
_LOCAL = {"local_files_only": True, "trust_remote_code": False}
_FAILURES = (ValueError, OSError, LookupError, TypeError, RuntimeError, ImportError, AttributeError, ArithmeticError)
_SIZES = ("layers", "layer", "_size", "_dim", "_model", "_heads", "position_embeddings")
WANTED = ("*.json", "*.safetensors", "*.txt", "*.model")  # files of a model on a hub


def _check_sizes(folder: Path) -> None:
    """Raise DataError for more layers or a larger embedding than there are weights, and for other sizes above LARGEST.

    `transformers` allocates every layer of a configuration before it reads the weights.
    """
    from safetensors import safe_open

    tensors = values = 0
    for path in folder.glob("*.safetensors"):
        with safe_open(path, framework="numpy") as file:
            tensors += len(file.keys())
            values += sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())
    config = parse_json((folder / "config.json").read_bytes())
    vocabulary, width = (config.get(key) for key in ("vocab_size", "hidden_size"))
    if isinstance(vocabulary, int) and isinstance(width, int) and vocabulary * width > values:
        raise DataError(f"{folder}/config.json: an embedding of {vocabulary} x {width}, but {values} stored weights")
    waiting: list[Any] = [config]
    while waiting:
        for key, value in waiting.pop().items():
            if isinstance(value, dict):
                waiting.append(value)
            most = tensors if key.endswith(("layers", "layer")) else LARGEST
            if key.endswith(_SIZES) and isinstance(value, int) and value > most:
                raise DataError(f"{folder}/config.json: {key} {value}, at most {most} fit its weights")


def load_pretrained(folder: Path, architecture: str, kind: str, dtype: str = "float32") -> tuple[Any, Any]:
    """Return the tokenizer and the model in a folder.  Raises DataError if the two do not match."""
    model = load_weights(folder, architecture, kind, dtype)
    loader: Any = import_module("transformers").AutoTokenizer
    fast = (folder / "tokenizer.json").is_file() or not any(folder.glob("*.model"))  # conversion needs protobuf
    try:
        with warnings.catch_warnings():  # Marian's tokenizer recommends a package that translation does not use
            warnings.filterwarnings("ignore", message="Recommended: pip install sacremoses", category=UserWarning)
            tokenizer = loader.from_pretrained(folder, use_fast=fast, **_LOCAL)
    except _FAILURES as error:
        raise DataError(f"{folder}: cannot be loaded as {kind}: {_first_line(error)}") from error
    pieces = model.get_input_embeddings().num_embeddings
    if len(tokenizer) > pieces:
        sizes = f"its tokenizer has {len(tokenizer)} pieces, the model {pieces}"
        raise DataError(f"{folder}: {sizes}; they belong to different models")
    return tokenizer, model


def load_weights(folder: Path, architecture: str, kind: str, dtype: str = "float32") -> Any:
    """Return the model of a folder in eval mode on the CPU.

    `architecture` is one of transformers' classes ("AutoModelForCausalLM"), and `kind` names the model in messages ("a
    reader").  Raises DataError for weights that cannot be loaded, do not match the configuration or are not finite.
    """
    import torch
    from safetensors import SafetensorError

    check_folder(folder)
    loader: Any = getattr(import_module("transformers"), architecture)
    try:
        _check_sizes(folder)
        with quiet():
            model, loading = loader.from_pretrained(
                folder, use_safetensors=True, dtype=getattr(torch, dtype), output_loading_info=True, **_LOCAL
            )
    except (*_FAILURES, SafetensorError) as error:
        raise DataError(f"{folder}: cannot be loaded as {kind}: {_first_line(error)}") from error
    lacking = sorted(name for name in loading["missing_keys"] if not name.startswith("pooler."))
    wrong = [*lacking, *sorted(name for name, *_ in loading["mismatched_keys"])]
    if wrong:
        raise DataError(f"{folder}: not {kind}: its weights do not match its config.json (see {wrong[0]})")
    check_weights(folder, model.named_parameters())
    return model.eval()


@contextmanager
def quiet() -> Iterator[None]:
    """Hide transformers' progress bars and its lists of missing and unused weights."""
    logging: Any = import_module("transformers").utils.logging
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        logging.enable_progress_bar()


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200] or type(error).__name__
