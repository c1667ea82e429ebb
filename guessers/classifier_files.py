"""Files of guessers: page classifiers (GRU and BERT) with the selection of the best pages, and vectors of texts.

Tables with one row per word or page are stored as int8 with one quantisation step per row, norms as float32, and all
other tensors as float16.  The vectors of many texts are computed in blocks and stored in a folder; a killed run resumes
after the last block.
"""

import sys
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from sqa.core import DataError, Guess
from sqa.files import pack_strings, read_tensors, unpack_strings
from sqa.files.atomic import atomic

P = TypeVar("P", bound=tuple[Any, ...])
Tensors = dict[str, np.ndarray]


def pack(network: nn.Module, tables: Container[str], words: Sequence[str], titles: Sequence[str]) -> Tensors:
    """Return the tensors of a float32 or float64 network for `write_tensors`; `tables` names the int8 tensors."""
    tensors: Tensors = {}
    for name, tensor in network.state_dict().items():
        tensor = tensor.cpu()
        if name in tables:
            tensors |= quantise(name, tensor.numpy())
        elif tensor.is_floating_point():
            tensors[name] = tensor.numpy().astype(np.float32 if name.startswith("norm.") else np.float16)
    return tensors | {"words": pack_strings(words), "titles": pack_strings(titles)}


def read(
    folder: Path,
    kind: str,
    version: int,
    make: Callable[[dict[str, Any], Tensors, list[str], list[str]], P],
) -> P:
    """Read a folder with tensors from `pack`; return the value of `make` from its config, tensors, words and titles.

    `make` removes the tensors that do not belong to the network.  It returns a tuple that begins with the network,
    whose weights are loaded afterwards.  Raises DataError if files are damaged, inconsistent or of another kind.
    """
    tensors, config = read_tensors(folder, kind, version)
    try:
        words, titles = unpack_strings(tensors.pop("words")), unpack_strings(tensors.pop("titles"))
        with torch.device("meta"):  # a config may state any size, so no memory is allocated for it
            parts = make(config, tensors, words, titles)
        state = {name: torch.from_numpy(array) for name, array in dequantise(tensors).items()}
        if (state["norm.running_var"] < 0).any():
            raise ValueError("norm.running_var has a negative variance")
        parts[0].load_state_dict(state | {"norm.num_batches_tracked": torch.tensor(0)}, assign=True)
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        reason = " ".join(str(error).split()[:30])
        raise DataError(f"{folder}: not a {kind.upper()} guesser of this version ({reason}); train it again") from error
    return parts


def quantise(name: str, array: np.ndarray) -> dict[str, np.ndarray]:
    """Quantise an array of shape (R, C) to int8 with a float16 step per row: value = int8 * step."""
    step = (np.abs(array).max(1, keepdims=True) / 127).astype(np.float16)
    step = np.maximum(step, np.finfo(np.float16).tiny)
    codes = np.clip(np.rint(array / step.astype(np.float32)), -127, 127).astype(np.int8)
    return {name: codes, f"{name}.step": step}


def dequantise(tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return all tensors as float32, codes multiplied by their steps.  Raises ValueError unless rows have one step."""
    plain = {}
    for name, array in tensors.items():
        if not name.endswith(".step"):
            step = tensors.get(f"{name}.step")
            if step is not None and step.shape != (len(array), 1):
                raise ValueError(f"{name}.step has shape {step.shape}, expected {(len(array), 1)}")
            plain[name] = array.astype(np.float32) * (1 if step is None else step.astype(np.float32))
    return plain


def best_pages(logits: Tensor, titles: Sequence[str], n: int) -> list[list[Guess]]:
    """Return the `n` most probable pages for each row of logits, best first, ties by index; scores are a softmax."""
    values, pages = torch.topk(torch.softmax(logits, -1), min(n, logits.shape[1]), dim=1)
    has_ties = (values[:, 1:] == values[:, :-1]).any(1).tolist()
    guesses = []
    for scores, row, tied in zip(values.tolist(), pages.tolist(), has_ties, strict=True):
        if tied:
            row = [page for _, page in sorted(zip([-score for score in scores], row, strict=True))]
        guesses.append(Guess.many(map(titles.__getitem__, row), scores))
    return guesses


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
