"""Files of trained models: a folder with config.json and model.safetensors.

Weights and vocabularies of bundled models are packed by zstd: model.safetensors.zst, vocabulary.model.zst.  Training
runs write plain files.  Digests use the unpacked bytes, so packing a model changes no store key.
"""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from sqa.core import DATA, SOUGHT, ConfigError, DataError, did_you_mean
from sqa.files.atomic import bytes_digest, locked, write_bytes
from sqa.files.records import parse_json

WEIGHTS, CONFIG = "model.safetensors", "config.json"
MAX_BYTES = 2 << 30  # maximum bytes of a weights file; no model of these kinds is larger
PACKED, PACKED_ENDS = ".zst", (".safetensors.zst", ".model.zst")
MAX_RATIO = 16  # limit of unpacked over packed size; int8 and float16 weights reach 1.2, a vocabulary 2.4
MAX_UNPACKED = 1 << 24  # unpacked bytes; larger tensors may have at most RATIO or TEXT_RATIO times the packed size
RATIO, TEXT_RATIO = 100, 10  # limits for numbers and texts; the bundled models reach 23 and 3


def resolve_model(model: str, prefix: str = "") -> Path:
    """Return the folder of the bundled model <prefix><model>, or else the folder `model`.

    Raises ConfigError if neither exists.
    """
    bundled = DATA / "models"
    for folder in (bundled / f"{prefix}{model}", Path(model).expanduser()):
        if (folder / CONFIG).is_file():
            return folder
    names = sorted(path.parent.name.removeprefix(prefix) for path in bundled.glob(f"{prefix}*/{CONFIG}"))
    near = did_you_mean(model, names)
    raise ConfigError(f"model: {model!r} is neither a bundled model nor a folder with a {CONFIG}{near}; {SOUGHT}")


def joined_digest(paths: Iterable[Path]) -> str:
    """Return the sha256 (hex) over the concatenated bytes of files, each unpacked if only its packed form exists."""
    return bytes_digest(b"".join(map(content, paths)))


def files_digest(folder: Path) -> str:
    """Return the sha256 (hex) of a model's files, except its card."""
    return joined_digest(model_files(folder))


def model_files(folder: Path) -> list[Path]:
    """Return the files of a model except its card, sorted; packed files have their unpacked names."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "README.md")
    return sorted(path.with_suffix("") if path.name.endswith(PACKED_ENDS) else path for path in files)


def stored(path: Path) -> Path:
    """Return the path of a model's file, or of its packed form if only that exists."""
    packed = path.with_name(path.name + PACKED)
    return packed if packed.is_file() and not path.is_file() else path


def content(path: Path) -> bytes:
    """Return the bytes of a model's file, or of its packed form, unpacked; raises DataError if that is damaged."""
    file = stored(path)
    return path.read_bytes() if file == path else _unpacked(file)


def _unpacked(file: Path) -> bytes:
    """Return the unpacked bytes of a file.

    Raises DataError if it is damaged, states no size, or unpacks to more than MAX_RATIO times its own size.
    """
    from sqa.core import need

    need("zstandard", str(file))
    import zstandard

    data = file.read_bytes()
    try:
        if not 0 <= zstandard.frame_content_size(data) <= MAX_RATIO * len(data):
            raise DataError(f"{file}: states no size, or unpacks to over {MAX_RATIO} times its own size; restore it")
        return zstandard.ZstdDecompressor().decompress(data, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise DataError(f"{file}: the model is damaged ({error}); restore or train it again") from error


def write_tensors(folder: Path, tensors: Mapping[str, NDArray[Any]], config: Mapping[str, Any]) -> None:
    """Write model.safetensors and config.json atomically, in this order."""
    arrays = {name: np.ascontiguousarray(array) for name, array in sorted(tensors.items())}
    with locked(folder):  # two training runs must not mix their files
        write_bytes(folder / WEIGHTS, save(arrays))
        (folder / (WEIGHTS + PACKED)).unlink(missing_ok=True)
        write_bytes(folder / CONFIG, (json.dumps(config, indent=1, sort_keys=True) + "\n").encode())


def read_tensors(folder: Path, kind: str, version: int) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Return tensors and config of a folder; raises DataError for damaged files or another kind or version."""
    data = _contents(folder)
    try:
        config, tensors = parse_json(data[0]), load(data[1])
    except (ValueError, KeyError, SafetensorError) as error:
        raise DataError(f"{folder}: the model is damaged ({error}); restore or train it again") from error
    check_weights(folder, ((name, array) for name, array in tensors.items() if array.dtype.kind == "f"))
    is_of = (config.get("kind"), config.get("version")) if isinstance(config, dict) else (None, None)
    if is_of != (kind, version):
        got = f"{is_of[0]!r}, {is_of[1]!r}"
        raise DataError(f"{folder}: expected a model of kind {kind!r}, version {version}, got {got}")
    return tensors, config


def folder_digest(folder: Path) -> str:
    """Return the sha256 (hex) over config.json and model.safetensors of a folder; raises DataError like `_contents`."""
    return bytes_digest(b"".join(_contents(folder)))


def _contents(folder: Path) -> tuple[bytes, bytes]:
    """Return the bytes of config.json and of model.safetensors; raises DataError if one is missing or too large."""
    try:
        if stored(folder / WEIGHTS).stat().st_size > MAX_BYTES:
            raise DataError(f"{folder}: the model is damaged ({WEIGHTS} is larger than {MAX_BYTES >> 20} MiB)")
        return (folder / CONFIG).read_bytes(), content(folder / WEIGHTS)
    except OSError as error:
        raise DataError(f"{folder}: cannot read the model: {error}") from error


def pack_bytes(data: bytes) -> NDArray[Any]:
    """Compress bytes into a (n,) uint8 tensor."""
    return np.frombuffer(zlib.compress(data, 9), dtype=np.uint8)


def unpack_bytes(tensor: NDArray[Any], ratio: int = RATIO) -> bytes:
    """Invert `pack_bytes`.

    Raises ValueError for damaged data, or for contents larger than both MAX_UNPACKED and `ratio` times the packed size.
    """
    most, stream = max(MAX_UNPACKED, ratio * tensor.nbytes), zlib.decompressobj()
    try:
        data = stream.decompress(tensor.tobytes(), most + 1)
    except zlib.error as error:
        raise ValueError(f"a packed table: {error}") from error
    if len(data) > most:
        raise ValueError(f"a packed table unpacks to more than {most} bytes")
    if not stream.eof or stream.unused_data:
        raise ValueError("a packed table is truncated or too long")
    return data


def pack_strings(strings: Sequence[str]) -> NDArray[Any]:
    """Compress strings without line breaks into one tensor."""
    return pack_bytes("\n".join(strings).encode())


def unpack_strings(tensor: NDArray[Any]) -> list[str]:
    """Invert `pack_strings`; raises ValueError for damaged data."""
    joined = unpack_bytes(tensor, TEXT_RATIO).decode()
    return joined.split("\n") if joined else []


def pack_integers(array: NDArray[Any]) -> NDArray[Any]:
    """Compress (n,) integers in 0..2^32 - 1 into one tensor: all lowest bytes first, then all second bytes, ..."""
    planes = array.astype("<u4").view(np.uint8).reshape(-1, 4).T
    return pack_bytes(np.ascontiguousarray(planes).tobytes())


def unpack_integers(tensor: NDArray[Any]) -> NDArray[Any]:
    """Invert `pack_integers` to (n,) int64; raises ValueError for damaged data."""
    planes = np.frombuffer(unpack_bytes(tensor), np.uint8)
    if len(planes) % 4:
        raise ValueError("a packed table of integers is truncated")
    return np.ascontiguousarray(planes.reshape(4, -1).T).view("<u4").ravel().astype(np.int64)


def check_weights(where: object, tensors: Iterable[tuple[str, Any]]) -> None:
    """Raise DataError if an array or torch tensor of the (name, tensor) pairs holds a NaN or an infinity."""
    for name, tensor in tensors:
        sound = tensor.isfinite().all() if hasattr(tensor, "isfinite") else np.isfinite(tensor).all()
        if not bool(sound):
            raise DataError(f"{where}: {name} has numbers that are not finite; restore the model or train it again")
