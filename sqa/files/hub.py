"""External models and question files on the Hugging Face hub.

A model is a local folder or a name on the hub, downloaded only with `download: true`.  A question file is named
`hf://datasets/OWNER/NAME@COMMIT/FILE.jsonl` and downloaded once into the hub's own cache.
"""

import hashlib
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqa.core.errors import ConfigError, DataError
from sqa.core.packages import need
from sqa.core.paths import DATA
from sqa.files.atomic import file_digest
from sqa.files.records import json_document

MAX_QUESTIONS = 1 << 26  # bytes of a question file on the hub
_ADDRESS = re.compile(r"hf://datasets/([^/@]+/[^/@]+)(?:@([^/]*))?/(.+\.jsonl?(?:\.gz|\.zst)?)")
_COMMIT = re.compile(r"[0-9a-f]{40}")


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
            reason = str(error).strip().partition("\n")[0]
            raise DataError(f"model {model} not found: the Hugging Face hub did not provide it: {reason}") from error
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


def pinned(address: str, key: str = "dataset.name") -> dict[str, Any]:
    """Return the arguments with which huggingface_hub finds a question file.

    Raises ConfigError unless the address names a commit.
    """
    parts = _ADDRESS.fullmatch(address)
    repository, revision, file = parts.groups() if parts else ("OWNER/NAME", None, "FILE.jsonl")
    if parts and revision and _COMMIT.fullmatch(revision):
        return {"repo_id": repository, "filename": file, "revision": revision, "repo_type": "dataset"}
    problem = f"the revision {revision!r} is no commit and may change" if revision else "no commit is named"
    raise ConfigError(
        f"{key}: {address!r}: {problem if parts else 'not the address of a question file'}; write "
        f"hf://datasets/{repository}@COMMIT/{file} with the 40 hexadecimal digits of one of "
        f"https://huggingface.co/datasets/{repository}/commits"
    )


def cached_questions(address: str) -> Path | None:
    """Return the path of a question file in the local cache, or None if it is not there."""
    place = pinned(address)
    need("huggingface_hub", "a question file on the Hugging Face hub")
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        copy = try_to_load_from_cache(**place)
    except HFValidationError as error:
        raise ConfigError(f"dataset.name: {address!r}: {error}") from error
    return Path(copy) if isinstance(copy, str) else None


def questions_file(address: str) -> Path:
    """Return the path of a question file in the local cache; download it if needed, or raise DataError."""
    if copy := cached_questions(address):
        return copy
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url

    try:
        size = get_hf_file_metadata(hf_hub_url(**pinned(address))).size
        if size is not None and size <= MAX_QUESTIONS:
            return Path(hf_hub_download(**pinned(address)))
    except Exception as error:  # each major version of the library has another HTTP client with its own errors
        reason = str(error).strip().partition("\n")[0]
        raise DataError(f"{address}: the Hugging Face hub did not provide it: {reason}") from error
    found = "an unknown number of" if size is None else size
    raise DataError(f"{address}: has {found} bytes; a question file may have at most {MAX_QUESTIONS}")


def check_shards(folder: Path) -> None:
    """Raise DataError if loading a folder would read weights from a file other than its *.safetensors.

    An index of shards, or config.json, may name any file, including a pickle, which would then be loaded.
    """
    named = {"config.json": _weights_of_config(folder)}
    named |= {path.name: _shards(path) for path in sorted(folder.glob("*.safetensors.index.json"))}
    for index, shards in named.items():
        for shard in shards:
            if not shard.endswith((".safetensors", ".safetensors.index.json")) or Path(shard).name != shard:
                raise DataError(
                    f"{folder / index}: names {shard!r}; weights must be *.safetensors files in that folder"
                )
            if not (folder / shard).is_file():
                raise DataError(f"{folder / index}: names {shard!r}, which is missing; download the whole model again")
            if shard.endswith(".safetensors"):
                _check_shard(folder / shard)


def _check_shard(path: Path) -> None:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy"):
            pass
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: not a safetensors file ({error}); download it again") from error


def _shards(index: Path) -> set[str]:
    """Return the files that an index of shards names."""
    document = json_document(index)
    weights = document.get("weight_map") if isinstance(document, dict) else None
    if not isinstance(weights, dict) or not all(isinstance(shard, str) for shard in weights.values()):
        raise DataError(f"{index}: no weight_map of names to files; download the model again")
    return set(weights.values())


def _weights_of_config(folder: Path) -> set[str]:
    """Return the weights file that a config.json names, if any."""
    config = json_document(folder / "config.json") if (folder / "config.json").is_file() else {}
    named = config.get("transformers_weights") if isinstance(config, dict) else None
    return set() if named is None else {str(named)}


def files_digest(folder: Path, wanted: Sequence[str]) -> str:
    """Return the sha256 (hex) over names and bytes of a folder's files that match one of the patterns."""
    total = hashlib.sha256()
    paths = {path for pattern in wanted for path in folder.glob(pattern) if path.is_file()}
    for path in sorted(paths):
        total.update(f"{path.relative_to(folder).as_posix()} {file_digest(path)}\n".encode())
    return total.hexdigest()
