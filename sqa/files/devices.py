"""The device and element type of components with weights.

The config class of such a component has the keys `device` and `dtype`, and a class variable ARITHMETIC that lists the
supported arithmetic.  From these, `place` chooses a device and an element type that this machine has.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sqa.core import ConfigError

if TYPE_CHECKING:
    from torch.nn import Embedding

Device = Literal[
    "auto", "cpu", "mps", "cuda", "cuda:0", "cuda:1", "cuda:2", "cuda:3", "cuda:4", "cuda:5", "cuda:6", "cuda:7"
]
Dtype = Literal["auto", "float32", "bfloat16", "float16", "int8"]
FLOATS = ("float32", "bfloat16", "float16")


class Arithmetic(NamedTuple):
    """Arithmetic that a component supports."""

    can: tuple[str, ...] = (*FLOATS, "int8")  # element types
    # candidates for `dtype: auto`: the first fast type of the device is used, else the last type
    auto: tuple[str, ...] = ("float32",)
    fast: tuple[str, ...] = ()  # element types, in addition to float32 and float64, that need no special instructions


class Place(NamedTuple):
    """The device of a component, and the element type of its matrix products."""

    device: str  # torch's name: "cpu", "cuda", "cuda:1", "mps"
    dtype: str

    def take(self, model: Any) -> Any:
        """Move a torch module to the device, with its weights in the element type."""
        import torch

        return model.to(self.device, getattr(torch, self.dtype))

    def autocast(self) -> Any:
        """Return a context in which torch uses bfloat16 where that is safe, if bfloat16 is the element type."""
        import torch

        return torch.autocast(self.device.partition(":")[0], torch.bfloat16, enabled=self.dtype == "bfloat16")

    @property
    def key(self) -> list[str]:
        """Part of a store key that marks results of a GPU, which differ in the last digits; empty for the CPU."""
        return [] if self.device == "cpu" else [self.device.partition(":")[0]]

    @property
    def signature(self) -> str:
        """The end of a metric's signature; empty for float32 on the CPU."""
        device = "".join(f"|device:{device}" for device in self.key)
        return device + ("" if self.dtype == "float32" else f"|dtype:{self.dtype}")


CPU = Place("cpu", "float32")


def place(config: Any) -> Place:
    """Return the device and element type for a config's `device`, `dtype` and ARITHMETIC.

    An element type that the component or the device lacks becomes float32, and a slow one is kept; both print a
    warning. Raises ConfigError for a device that this machine lacks.
    """
    arithmetic: Arithmetic = config.ARITHMETIC
    device = device_of(config.device)

    def fast(dtype: str) -> bool:
        return (device == "cpu" and dtype in arithmetic.fast) or is_fast(dtype, device)

    if config.dtype == "auto":
        return Place(device, next(filter(fast, arithmetic.auto), arithmetic.auto[-1]))
    if config.dtype in arithmetic.can and (fast(config.dtype) or config.dtype != "int8"):
        if not fast(config.dtype):
            _warn(f"dtype {config.dtype} of {_part(config)} is slower than float32 on this {_kind(device)}")
        return Place(device, config.dtype)
    _warn(f"{_part(config)} does not support {config.dtype} on this {_kind(device)}; using float32")
    return Place(device, "float32")


def device_of(device: str) -> str:
    """Return a device's name for torch; auto = a GPU if there is one.  Raises ConfigError for a missing device."""
    if device == "cpu":
        return device
    import torch

    kind, _, number = device.partition(":")
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if device == "auto":
        return next((name for name, is_there in there.items() if is_there), "cpu")
    if not there[kind] or int(number or 0) >= (torch.cuda.device_count() if kind == "cuda" else 1):
        raise ConfigError(f"device: no GPU {device} is available; use auto or cpu")
    return device


@cache
def is_fast(dtype: str, device: str = "cpu") -> bool:
    """Return whether a device has instructions for an element type, so that it is not slower than float32."""
    if dtype in ("float32", "float64"):
        return dtype == "float32" or device != "mps"
    import torch

    if device != "cpu":
        return dtype == "float16" or (dtype == "bfloat16" and device != "mps" and torch.cuda.is_bf16_supported(False))
    if "AVX512" not in torch.backends.cpu.get_cpu_capability():
        return False
    names = {
        "bfloat16": ("_is_avx512_bf16_supported", "_is_amx_tile_supported"),
        "float16": ("_is_amx_fp16_supported",),
        "int8": ("_is_vnni_supported",),
    }
    if not any(getattr(torch.cpu, name, lambda: False)() for name in names[dtype]):
        return False
    x = torch.full((32, 64), 127, dtype=torch.int8)  # without VNNI oneDNN saturates sums of two products in 16 bits
    return dtype != "int8" or bool((torch._int_mm(x, x.t()) == 64 * 127**2).all())


def embedding(rows: int, width: int, *deviations: float) -> Embedding:
    """Return an embedding with normal weights, drawn with standard deviation 1 and again with each of the given ones.

    On the meta device it has only a shape.  A draw there would make torch import its compiler, which takes a second.
    """
    import torch
    from torch import nn

    table: Embedding = nn.Embedding.from_pretrained(torch.empty(rows, width), freeze=False)  # type: ignore[no-untyped-call]
    for deviation in () if table.weight.is_meta else (1.0, *deviations):
        nn.init.normal_(table.weight, std=deviation)
    return table


def _part(config: Any) -> str:
    return type(config).__name__.removesuffix("Config")


def _kind(device: str) -> str:
    return "processor" if device == "cpu" else "device"


@cache
def _warn(message: str) -> None:
    """Print a warning on stderr; each message is printed only once."""
    print(f"sqa: {message}", file=sys.stderr)
