"""External models on the Hugging Face hub, and models of `transformers` in folders.

A model is a local folder or a name on the hub, downloaded only with `download: true`.  Weights are read only from
safetensors, and no code in a model's folder is run.
"""

import hashlib
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from sqa.core import DATA, ConfigError, DataError, need
from sqa.files.atomic import file_digest
from sqa.files.model_files import check_weights
from sqa.files.records import converted, json_document

T = TypeVar("T")
LARGEST = 1 << 22  # maximum of any size in a configuration
_LOCAL = {"local_files_only": True, "trust_remote_code": False}
_FAILURES = (ValueError, OSError, LookupError, TypeError, RuntimeError, ImportError, AttributeError, ArithmeticError)
_SIZES = ("layers", "layer", "_size", "_dim", "_model", "_heads", "position_embeddings")
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
    """The keys of a model's config.json that are read."""

    model_type: str
    transformers_weights: str | None = None  # a weights file in place of the usual one


class _Shards(Struct):
    """The key of an index of shards that is read."""

    weight_map: dict[str, str]  # name of a tensor -> file


def check_folder(folder: Path, pickled: bool = False) -> str:
    """Return the model_type of a folder with a model.

    Raises DataError if config.json or the weights are missing or damaged, or if loading would read weights from a file
    other than its *.safetensors: config.json, or an index of shards, may name any file.  `pickled` permits a folder
    without *.safetensors.
    """
    if not (folder / "config.json").is_file():
        raise DataError(f"{folder}: no config.json; give a folder written by model.save_pretrained")
    config = _read(folder / "config.json", _Config)
    if not pickled and not any(folder.glob("*.safetensors")):
        hint = "pickled weights are not supported; on the hub, refs/pr/N often has safetensors"
        raise DataError(f"{folder}: no *.safetensors weights ({hint})")
    named = {"config.json": {config.transformers_weights} - {None}}
    indices = sorted(folder.glob("*.safetensors.index.json"))
    named |= {index.name: set(_read(index, _Shards).weight_map.values()) for index in indices}
    for source, weights in named.items():
        names = f"{folder / source}: names"
        for file in filter(None, weights):
            if not file.endswith((".safetensors", ".safetensors.index.json")) or Path(file).name != file:
                raise DataError(f"{names} {file!r}; weights must be *.safetensors files in that folder")
            if not (folder / file).is_file():
                raise DataError(f"{names} {file!r}, which is missing; download the whole model again")
            if file.endswith(".safetensors"):
                _check_file(folder / file)
    return config.model_type


def _read(path: Path, kind: type[T]) -> T:
    return converted(str(path), json_document(path), kind)


def _check_file(path: Path) -> None:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy"):
            pass
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: not a safetensors file ({error}); download it again") from error


def files_digest(folder: Path, wanted: Sequence[str]) -> str:
    """Return the sha256 (hex) over names and bytes of a folder's files that match one of the patterns."""
    total = hashlib.sha256()
    paths = {path for pattern in wanted for path in folder.glob(pattern) if path.is_file()}
    for path in sorted(paths):
        total.update(f"{path.relative_to(folder).as_posix()} {file_digest(path)}\n".encode())
    return total.hexdigest()


# ------------------------------------------------------------------------------------------------------ of transformers


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
    config = json_document(folder / "config.json")
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
