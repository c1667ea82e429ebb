"""External models on the Hugging Face hub, and models of `transformers` in folders.

A model is a local folder or a name on the hub, downloaded only with `download: true`.  Weights are read from
safetensors, and no code in a model's folder is run.  Only use models that you trust: sizes are not limited.
"""

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from sqa.core.errors import ConfigError, DataError
from sqa.core.packages import need
from sqa.core.paths import DATA
from sqa.files.atomic import file_digest
from sqa.files.model_files import check_weights
from sqa.files.records import converted, json_document

T = TypeVar("T")
_LOCAL = {"local_files_only": True, "trust_remote_code": False}
_FAILURES = (ValueError, OSError, LookupError, TypeError, RuntimeError, ImportError, AttributeError, ArithmeticError)
WANTED = ("*.json", "*.safetensors", "*.txt", "*.model")  # files of a model on a hub


def find_model(model: str, revision: str | None, download: bool, wanted: Sequence[str], key: str = "revision") -> Path:
    """Return `model` if it is a folder, else the local copy of the hub model's files that match the patterns `wanted`.

    Raises ConfigError beginning "model X not found" if the model is missing, and DataError if a download fails.  A
    download needs a revision, because the hub's newest version changes; `key` is the revision's key in the config.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder.resolve()
    if model.startswith((".", "/", "~")) or model.count("/") > 1:
        raise ConfigError(f"model {model} not found: this folder does not exist")
    if wrong := unpinned(model, revision, download, key):
        raise ConfigError(wrong)
    need("huggingface_hub", f"the model {model}")
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    patterns = list(wanted)
    try:
        return Path(snapshot_download(model, revision=revision, local_files_only=not download, allow_patterns=patterns))
    except HFValidationError as error:
        raise ConfigError(f"model {model} not found: neither a folder nor a name on the Hugging Face hub") from error
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        if download:
            problem = f"the Hugging Face hub did not provide it: {_first_line(error)}"
            raise DataError(f"model {model} not found: {problem}") from error
        at = f" at revision {revision}" if revision else ""
        raise ConfigError(
            f"model {model} not found{at}: neither a folder nor in the local Hugging Face cache; "
            f"set download: true to fetch it, with `{key}: COMMIT` (https://huggingface.co/{model}/commits)"
        ) from error


def unpinned(model: str, revision: str | None, download: bool, key: str = "revision") -> str:
    """Return the problem if a hub model would be downloaded without a revision, else ""."""
    if not download or revision or Path(model).expanduser().is_dir():
        return ""
    return (
        f"{key}: missing; the hub's newest version changes, so name a commit of {model}: "
        f"`{key}: COMMIT`, "
        f"one of https://huggingface.co/{model}/commits (`{key}: main` is the newest, and the run records its commit)"
    )


def commit_of(model: str, revision: str | None) -> str | None:
    """Return the commit of a hub model in the local cache; None for a folder or a missing model."""
    bundled = (DATA / "models" / model).is_dir()
    if bundled or Path(model).expanduser().exists() or find_spec("huggingface_hub") is None:
        return None
    try:
        folder = find_model(model, revision, False, ("config.json",))
    except ConfigError:
        return None
    return folder.name if folder.parent.name == "snapshots" else None


class _Config(Struct):
    """The key of a model's config.json that is read."""

    model_type: str


def check_folder(folder: Path, pickled: bool = False) -> str:
    """Return the model_type of a folder with a model.

    Raises DataError if config.json is missing or damaged, or if the folder has no *.safetensors.  `pickled` permits a
    folder without *.safetensors.
    """
    path = folder / "config.json"
    if not path.is_file():
        raise DataError(f"{folder}: no config.json; give a folder written by model.save_pretrained")
    config = converted(str(path), json_document(path), _Config)
    if not pickled and not any(folder.glob("*.safetensors")):
        hint = "pickled weights are not supported; on the hub, refs/pr/N often has safetensors"
        raise DataError(f"{folder}: no *.safetensors weights ({hint})")
    return config.model_type


def files_digest(folder: Path, wanted: Sequence[str]) -> str:
    """Return the sha256 (hex) over names and bytes of a folder's files that match one of the patterns."""
    total = hashlib.sha256()
    paths = {path for pattern in wanted for path in folder.glob(pattern) if path.is_file()}
    for path in sorted(paths):
        total.update(f"{path.relative_to(folder).as_posix()} {file_digest(path)}\n".encode())
    return total.hexdigest()


# ------------------------------------------------------------------------------------------------------ of transformers


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
