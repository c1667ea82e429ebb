"""Matrices as a processor multiplies them fastest.

8-bit integers: half the memory of bfloat16, and on a processor with VNNI about twice its speed.  Each output has a
scale of its own, and each row of the input gets one when it is multiplied, so a sentence does not depend on the others
of its batch; the sums are integers and exact on every processor, without VNNI at the speed of float32 (Dettmers et al.,
NeurIPS 2022, without their outlier columns).

float32 in the layout of oneDNN: arranged once, not for each product as MKL does; on a processor of AMD twice as fast.
"""

from collections.abc import Callable
from functools import cache
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

Precision = Literal["float32", "int8"]
TOP = 127  # the largest integer used
TINY = 1e-8  # of a row of zeros
EXACT = 1024  # products of two integers whose sum float32 holds exactly: 1024 x 127 x 127 < 2^24


class Matrix8(NamedTuple):
    """A matrix (O, I): `values` int8 (O, I) times `scales` float32 (O,)."""

    values: Tensor
    scales: Tensor


def quantised(weight: Tensor) -> Matrix8:
    """The nearest integers of a matrix (O, I), with a scale per row."""
    values, scales = _rounded(weight.float())
    return Matrix8(values, scales[:, 0])


def multiplied(x: Tensor, matrix: Matrix8) -> Tensor:
    """x (..., I) float times the matrix, (..., O) in the type of x."""
    values, scales = _rounded(x.reshape(-1, x.shape[-1]).float())
    return ((_sums(values, matrix.values) * scales).mul_(matrix.scales)).to(x.dtype).view(*x.shape[:-1], -1)


def _sums(x: Tensor, y: Tensor) -> Tensor:
    """Int8 (N, I) and (O, I) -> the products of their rows, int32 (N, O), exact: |sums| < 2^31 up to I = 133,000."""
    if _is_exact():
        return torch._int_mm(x, y.t())  # the only product of int8 matrices that torch has
    sums = x.new_zeros(len(x), len(y), dtype=torch.int32)
    for a, b in zip(x.split(EXACT, 1), y.split(EXACT, 1), strict=True):
        sums += (a.float() @ b.float().t()).to(torch.int32)
    return sums


@cache
def _is_exact() -> bool:
    """Return whether torch multiplies int8 matrices exactly: without VNNI oneDNN saturates sums of two in 16 bits."""
    x = torch.full((32, 64), TOP, dtype=torch.int8)
    return bool((torch._int_mm(x, x.t()) == 64 * TOP**2).all())


def _rounded(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Float32 (N, I) -> int8 (N, I) and scales (N, 1)."""
    scales = rows.abs().amax(1, keepdim=True).clamp_min_(TINY) / TOP
    return (rows / scales).round_().to(torch.int8), scales


class Linear8(nn.Module):
    """A linear map by 8-bit integers."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.matrix, self.bias = quantised(weight), bias

    def forward(self, x: Tensor) -> Tensor:
        """(..., I) -> (..., O)."""
        y = multiplied(x, self.matrix)
        return y if self.bias is None else y.add_(self.bias)


class Linear32(nn.Module):
    """A linear map in oneDNN's layout."""

    ROWS = 128  # of the input that the layout is chosen for; others are multiplied, too

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.matrix, self.bias = torch.ops.mkldnn._reorder_linear_weight(weight, self.ROWS), bias

    def forward(self, x: Tensor) -> Tensor:
        """(..., I) -> (..., O)."""
        y: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.matrix, self.bias, "none", [], "")
        return y


def fast_linear(precision: Precision) -> Callable[[Tensor, Tensor | None], nn.Module] | None:
    """The class of the fastest layer of a matrix (O, I) and its bias; None: torch's own."""
    if precision == "int8":
        return Linear8
    return Linear32 if torch.backends.mkldnn.is_available() else None
