"""Vectors of pages from English texts, computed at first use and kept in the cache folder.

A page stands for the end of its last training tossup, where a Quizbowl question says most plainly what it asks for,
with the title before it.  Nothing is trained.  Blocks of 256 are kept as they are made, so a killed run goes on
after the last whole one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from tqdm import tqdm

from guessers.lessons import mapped_tossups
from guessers.retrieval.bm25 import Index
from sqa.core.errors import DataError
from sqa.core.paths import cache_dir
from sqa.files.atomic import atomic
from sqa.files.model_files import resolve_model
from sqa.files.store import digest

VERSION = 1  # of the texts below; raise it when a page would get other ones
BLOCK = 256  # pages a file
WORDS = 28  # of a tossup's end
FOLDS = ("guesser", "buzzer", "dev")  # as the bundled BM25 counts them


class Encoder(Protocol):
    """Unit vectors of texts."""

    dimensions: int

    def identity(self) -> str: ...

    def passages(self, texts: Sequence[str]) -> np.ndarray: ...


def page_texts(model: str) -> dict[str, str]:
    """title -> the English text that stands for it, of every page of a BM25 model that a training tossup asks for."""
    titles = set(Index.load(resolve_model(model)).titles)
    last = {tossup.page: tossup.text for tossup in mapped_tossups(FOLDS) if tossup.page in titles}
    return {
        page: f"{page.replace('_', ' ')}. {' '.join(text.split()[-WORDS:])}"
        for page, text in sorted(last.items())
        if page is not None
    }


def page_vectors(encoder: Encoder, texts: Sequence[str]) -> np.ndarray:
    """(texts, dimensions) float32 unit vectors; those in the cache folder are read, others kept there."""
    folder = cache_dir() / "e5" / digest([VERSION, encoder.identity(), list(texts)])[:16]
    starts = range(0, len(texts), BLOCK)
    missing = [start for start in starts if not _file(folder, start).is_file()]
    for start in tqdm(missing, desc="page vectors", disable=not missing, file=sys.stderr, mininterval=1):
        block = encoder.passages(texts[start : start + BLOCK]).astype(np.float16)
        with atomic(_file(folder, start)) as partial, partial.open("wb") as file:
            np.save(file, block)
    parts = [_read(_file(folder, start), min(BLOCK, len(texts) - start), encoder.dimensions) for start in starts]
    vectors = np.concatenate(parts).astype(np.float32) if parts else np.zeros((0, encoder.dimensions), np.float32)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def _file(folder: Path, start: int) -> Path:
    return folder / f"{start:06d}.npy"


def _read(path: Path, rows: int, dimensions: int) -> np.ndarray:
    try:
        vectors = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{path}: vectors of pages that cannot be read ({error}); delete it and run again") from error
    if vectors.shape != (rows, dimensions) or vectors.dtype != np.float16 or not np.isfinite(vectors).all():
        raise DataError(f"{path}: not the vectors of {rows} pages; delete it and run again")
    return vectors
