"""A simulated second torch device, whose tensors are in CPU memory but cannot be mixed with CPU tensors.

Code that moves a model to this device but creates a tensor without `device=` fails at the first operation that uses
both, as on a GPU.
"""

from functools import cache
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_flatten, tree_map
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

from sqa.files import devices

NAME = "second"
DEVICE = f"{NAME}:0"
LIBRARY = torch.library.Library("aten", "IMPL")
MOVES = {"aten::_to_copy", "aten::copy_", "aten::_has_compatible_shallow_copy_type"}
BY_LENGTHS = {"aten::_pack_padded_sequence"}  # torch requires the lengths on the CPU


class There(torch.Tensor):
    """A tensor of the second device that wraps a CPU tensor."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> "There":
        with torch.inference_mode(False):  # otherwise a view of a weight would be an inference tensor
            tensor = torch.Tensor._make_wrapper_subclass(
                cls,
                inner.shape,
                strides=inner.stride(),
                storage_offset=inner.storage_offset(),
                dtype=inner.dtype,
                device=torch.device(DEVICE),
            )
        tensor.inner = inner
        return tensor

    def tolist(self) -> Any:
        return self.inner.tolist()

    def __repr__(self) -> str:  # type: ignore[override]
        return f"There({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})


def _computed(func: Any, args: Any, kwargs: Any) -> Any:
    name = func.name().partition(".")[0]
    given, _ = tree_flatten((args, kwargs))
    there = [value for value in given if isinstance(value, There)]
    here = [value for value in given if isinstance(value, torch.Tensor) and not isinstance(value, There)]
    if there and any(value.dim() for value in here) and name not in MOVES | BY_LENGTHS:
        raise AssertionError(f"{func} takes tensors of two devices, one of them made without device=")
    device = kwargs.get("device")
    is_there = bool(there) if device is None else torch.device(device).type == NAME
    kwargs = {key: "cpu" if key == "device" and value is not None else value for key, value in kwargs.items()}
    result = func(*tree_map(_inner, args), **tree_map(_inner, kwargs))
    if name == "aten::copy_":
        is_there = isinstance(args[0], There)
    if not is_there:
        return result
    if name in BY_LENGTHS:
        return There(result[0]), result[1]
    wrapped = {id(value.inner): value for value in there}

    def outer(value: Any) -> Any:
        if id(value) in wrapped:  # the result of an in-place operation
            return wrapped[id(value)]
        return There(value) if isinstance(value, torch.Tensor) else value

    return tree_map(outer, result)


def _inner(value: Any) -> Any:
    return value.inner if isinstance(value, There) else value


class _Module(_DummyBackendModule):
    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]


@cache
def second_device() -> str:
    """Register the device once and return its name."""
    _setup_privateuseone_for_python_backend(NAME, _Module())

    def empty_strided(size: Any, stride: Any, *, dtype: Any = None, **_: Any) -> There:
        return There(torch.empty_strided(size, stride, dtype=dtype))

    def empty(size: Any, *, dtype: Any = None, **_: Any) -> There:
        return There(torch.empty(size, dtype=dtype))

    def copy_from(source: Any, target: Any, non_blocking: bool = False) -> Any:
        _inner(target).copy_(_inner(source))
        return target

    LIBRARY.impl("_copy_from", copy_from, "PrivateUse1")
    LIBRARY.impl("empty_strided", empty_strided, "PrivateUse1")
    LIBRARY.impl("empty.memory_format", empty, "PrivateUse1")
    return DEVICE


second_device()  # must be registered before the first backward pass, which counts the devices


def as_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `device: cuda` select the second device."""
    monkeypatch.setattr(devices, "device_of", lambda device: second_device() if device == "cuda" else device)
