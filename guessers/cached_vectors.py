"""Vectors of many texts, computed in blocks and stored in a folder; a killed run resumes after the last block."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from tqdm import tqdm

from sqa.core.errors import DataError
from sqa.files.atomic import atomic


def cached_vectors(
    folder: Path, texts: Sequence[str], block: int, width: int, compute: Callable[[Sequence[str]], np.ndarray]
) -> np.ndarray:
    """Return the vectors of texts, a float16 array of shape (texts, width).

    Existing files in `folder`, each with the vectors of `block` texts, are read; missing ones are computed and written.
    Raises DataError if a file is damaged or has another shape.
    """
    files = {folder / f"{start:08d}.npy": texts[start : start + block] for start in range(0, len(texts), block)}
    missing = [path for path in files if not path.is_file()]
    for path in tqdm(missing, "vectors of texts", disable=not missing, file=sys.stderr, mininterval=4):
        with atomic(path) as partial, partial.open("wb") as file:
            np.save(file, compute(files[path]).astype(np.float16))
    parts = [_read(path, (len(of_file), width)) for path, of_file in files.items()]
    return np.concatenate([np.zeros((0, width), np.float16), *parts])


def _read(path: Path, shape: tuple[int, int]) -> np.ndarray:
    try:
        vectors = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: damaged vectors ({error}); delete it and run again") from error
    if vectors.shape != shape or vectors.dtype != np.float16 or not np.isfinite(vectors).all():
        raise DataError(f"{path}: not the vectors of {shape[0]} texts; delete it and run again")
    return vectors
