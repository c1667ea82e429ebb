"""Matrix layers in the fastest element type of the processor.

8-bit integers use half the memory of bfloat16.  With VNNI, which they require (`sqa.files.devices.is_fast`), they run
about twice as fast.  Each output has its own scale, and each row of the input gets a scale when it is multiplied.  A
sentence therefore does not depend on the other sentences of its batch.  The sums are exact integers (Dettmers et al.,
NeurIPS 2022, without their outlier columns).

With bfloat16 and float16 the products use these types and the states stay float32.

With float32 the matrix is arranged once in oneDNN's layout, while MKL arranges it for each product.  This is twice as
fast on AMD processors.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

TOP = 127  # the largest integer used
TINY = 1e-8  # minimum of a row's largest magnitude, which prevents division by 0 in a row of zeros


class Matrix8(NamedTuple):
    """A matrix (O, I): `values` int8 (O, I) times `scales` float32 (O,)."""

    values: Tensor
    scales: Tensor


def quantised(weight: Tensor) -> Matrix8:
    """Return the nearest integers of a matrix (O, I), with a scale per row."""
    values, scales = _rounded(weight.float())
    return Matrix8(values, scales[:, 0])


def multiplied(x: Tensor, matrix: Matrix8) -> Tensor:
    """Multiply float x (..., I) by the matrix and return (..., O) in the type of x.

    The int32 sums cannot overflow up to I = 133,000.
    """
    values, scales = _rounded(x.reshape(-1, x.shape[-1]).float())
    sums = torch._int_mm(values, matrix.values.t())  # torch's only product of int8 matrices
    return ((sums * scales).mul_(matrix.scales)).to(x.dtype).view(*x.shape[:-1], -1)


def _rounded(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Round float32 (N, I) to int8 (N, I) and scales (N, 1)."""
    scales = rows.abs().amax(1, keepdim=True).clamp_min_(TINY) / TOP
    return (rows / scales).round_().to(torch.int8), scales


class Linear8(nn.Module):
    """A linear map in 8-bit integers."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.matrix, self.bias = quantised(weight), bias

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., I) to (..., O)."""
        y = multiplied(x, self.matrix)
        return y if self.bias is None else y.add_(self.bias)


class Linear32(nn.Module):
    """A linear map in oneDNN's layout."""

    ROWS = 128  # number of input rows for which the layout is optimised; other numbers also work

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.matrix, self.bias = torch.ops.mkldnn._reorder_linear_weight(weight, self.ROWS), bias

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., I) to (..., O)."""
        y: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.matrix, self.bias, "none", [], "")
        return y


class Linear16(nn.Module):
    """A linear map with products in bfloat16 or float16."""

    def __init__(self, weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> None:
        super().__init__()
        self.matrix, self.bias = weight.to(dtype), None if bias is None else bias.to(dtype)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., I) to (..., O)."""
        return F.linear(x.to(self.matrix.dtype), self.matrix, self.bias).to(x.dtype)


def fast_linear(dtype: str, device: torch.device) -> Callable[[Tensor, Tensor | None], nn.Module] | None:
    """Return the fastest layer class for a matrix (O, I) and its bias; None for torch's own layer."""
    if dtype == "int8":
        return Linear8
    if dtype != "float32":
        return partial(Linear16, dtype=getattr(torch, dtype))
    return Linear32 if device.type == "cpu" and torch.backends.mkldnn.is_available() else None
