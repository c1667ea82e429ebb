"""Loops over numbers as machine code where numba is installed (the extra `fast`), else as they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with the same results; machine code is kept beside its file or in the user's cache folder.

    The import of numba takes half a second, so modules that call this are imported where their loops are needed.
    """
    try:
        import numba
    except ModuleNotFoundError:
        return function
    try:
        machine: Callable[..., Any] = numba.njit(cache=True)(function)
    except RuntimeError:  # neither folder can be written: every process compiles for itself
        machine = numba.njit(function)
    return machine
