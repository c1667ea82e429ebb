"""Matrix layers that are faster than torch's own, for decoding.

With bfloat16 and float16 the products use these types and the states stay float32.

With float32 the matrix is arranged once in oneDNN's layout, while MKL arranges it for each product.  This is twice as
fast on AMD processors.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn


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
    if dtype != "float32":
        return partial(Linear16, dtype=getattr(torch, dtype))
    return Linear32 if device.type == "cpu" and torch.backends.mkldnn.is_available() else None
