"""Functions that corrupt the tensors of models, but keep the file formats valid."""

import functools
import random
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from sqa.files import pack_bytes

Array = NDArray[Any]
EXTREMES = (0, 1, 2, 127, 255, 1 << 15, (1 << 16) - 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
FLOATS = (0.0, -1.0, 1e-30, 65504.0, -65504.0, 1e30, float("nan"), float("inf"))


@functools.cache
def bomb() -> Array:
    """Return 128 MiB of zeros, compressed to 128 KiB."""
    return pack_bytes(bytes(1 << 27))


def tensor_values(rng: random.Random, data: bytes) -> bytes:
    """Change one to three tensors of a safetensors file."""
    tensors = load(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        name = rng.choice(sorted(tensors))
        kind = rng.random()
        if kind < 0.05 and len(tensors) > 1:
            del tensors[name]
        elif kind < 0.1:
            tensors[name] = tensors[rng.choice(sorted(tensors))]
        elif kind < 0.13:
            tensors[f"{name}x"] = tensors[name]
        else:
            tensors[name] = changed(rng, tensors[name])
    return save({name: np.ascontiguousarray(array) for name, array in tensors.items()})


def changed(rng: random.Random, array: Array) -> Array:
    """Return a packed table with corrupted content, or an array with another shape, type or other values."""
    if array.dtype == np.uint8 and array.ndim == 1 and rng.random() < 0.9:
        try:
            return _packed(rng, zlib.decompress(array.tobytes()))
        except zlib.error:
            pass
    return rng.choice((_shaped, _typed, _valued, _valued, _valued))(rng, array)


def _packed(rng: random.Random, data: bytes) -> Array:
    if rng.random() < 0.1:
        return bomb()
    if rng.random() < 0.4:  # decode the table as integers, the inverse of `pack_integers`
        whole = np.frombuffer(data[: len(data) // 4 * 4], np.uint8).reshape(4, -1).T
        numbers = np.ascontiguousarray(whole).view("<u4").ravel()
        numbers = _valued(rng, numbers) if rng.random() < 0.7 else _shaped(rng, numbers).ravel()
        return pack_bytes(np.ascontiguousarray(numbers.astype("<u4").view(np.uint8).reshape(-1, 4).T).tobytes())
    at = rng.randrange(len(data) + 1)
    odd = rng.choice((b"\xff", b"\n", b"\n\n", b"\0", b"\xed\xa0\x80", rng.randbytes(8)))
    whole_line = b"\n".join(rng.sample(lines := data.split(b"\n"), len(lines)))
    made = rng.choice((data[:at] + odd + data[at:], data[:at], data + data, b"", whole_line, b"\n" * 50))
    tensor = pack_bytes(made)
    return tensor if rng.random() < 0.9 else tensor[: rng.randrange(len(tensor))]


def _shaped(rng: random.Random, array: Array) -> Array:
    flat = array.ravel()
    ways = (flat, flat[:0], flat[:-1], array[None], array[..., None], np.concatenate([flat, flat]), array.T, flat[None])
    return rng.choice(ways)


def _typed(rng: random.Random, array: Array) -> Array:
    with np.errstate(all="ignore"):
        return array.astype(rng.choice((np.uint8, np.int8, np.float16, np.int64, np.float64, np.bool_, np.uint16)))


def _valued(rng: random.Random, array: Array) -> Array:
    if not array.size:
        return array
    other, flat = array.copy(), rng.random()
    places = np.array([rng.randrange(array.size) for _ in range(rng.choice((1, 3, array.size)))])
    with np.errstate(all="ignore"):
        if array.dtype.kind == "f":
            odd = np.array(rng.choice(FLOATS)).astype(array.dtype)
        else:
            odd = np.array(rng.choice((*EXTREMES, -1, rng.randrange(1 << 32)))).astype(array.dtype)
        other.reshape(-1)[places] = -array.reshape(-1)[places] if flat < 0.2 and array.dtype.kind == "f" else odd
    return other
