"""Numbers that are none (NaN, infinity): no training goes on with them, and no model is used that holds them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from sqa.core.errors import DataError, NotComputable


def finite_loss(loss: float, where: str) -> float:
    """The loss of a training step, or NotComputable with the remedy; `where` names the training and the step."""
    if not math.isfinite(loss):
        raise NotComputable(f"{where}: the loss is {loss}, training stops; lower the learning rate and start anew")
    return loss


def check_weights(where: object, tensors: Iterable[tuple[str, Any]]) -> None:
    """DataError naming the first of (name, array or torch tensor) that holds a NaN or an infinity.  Integers do not."""
    for name, tensor in tensors:
        sound = tensor.isfinite().all() if hasattr(tensor, "isfinite") else np.isfinite(tensor).all()
        if not bool(sound):
            raise DataError(f"{where}: {name} holds numbers that are not finite; restore the model or train it again")
