"""Reading a checkpoint that fairseq wrote, without fairseq and without running code named in the file.

A checkpoint is a pickle.  `torch.load(weights_only=True)` creates tensors and plain containers.  The only other class
that a fairseq checkpoint needs is argparse.Namespace (its arguments), which is allowed.  Some checkpoints hold their
configuration as omegaconf objects, or numpy numbers among their statistics.  The names of these classes are bound to an
inert record of this module, so that neither package is imported.  A file with any other name is refused.
"""

from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor
from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals

from sqa.core.errors import DataError

# names that are bound to _Record: types of configuration values, metadata and statistics
_RECORDS = ("omegaconf.", "fairseq.", "typing.", "numpy.", "pathlib.")
_RECORD_NAMES = {"_codecs.encode", *(f"builtins.{kind}" for kind in "bool dict float int list str tuple".split())}


class _Record:
    """Inert replacement for a pickled object, which stores the object's arguments and state."""

    def __init__(self, *args: object) -> None:
        self.args = args
        self.state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state


def _dictionary(*_: object) -> dict[object, object]:
    """Return an empty dictionary; replaces collections.defaultdict."""
    return {}


@dataclass(frozen=True)
class Checkpoint:
    """The parts of a checkpoint that a conversion needs."""

    path: Path
    arguments: Mapping[str, Any]  # the model's arguments, flat: encoder_embed_dim, ...
    weights: Mapping[str, Tensor]
    updates: int  # training steps; 0 if the file does not state them

    @property
    def architecture(self) -> str:
        """Return the name given to --arch."""
        return str(self.arguments.get("arch") or self.arguments.get("_name") or "?")


def read(path: Path) -> Checkpoint:
    """Read a checkpoint.  Raises DataError for any other file, and for a class that no checkpoint needs."""
    content = _load(path)
    weights = content.get("model") if isinstance(content, dict) else None
    if not isinstance(weights, dict) or not all(isinstance(value, Tensor) for value in weights.values()):
        raise DataError(f"{path}: not a fairseq checkpoint: it has no weights under 'model'")
    arguments = _plain(content.get("args"))
    if arguments is None:
        cfg = _plain(content.get("cfg"))
        arguments = cfg.get("model") if isinstance(cfg, dict) else None
    if not isinstance(arguments, dict):
        raise DataError(f"{path}: not a fairseq checkpoint: it has neither 'args' nor 'cfg' with the model's arguments")
    history = content.get("optimizer_history")
    last = history[-1] if isinstance(history, list) and history else {}
    updates = last.get("num_updates") if isinstance(last, dict) else None
    return Checkpoint(path, _flat(arguments), weights, updates if isinstance(updates, int) else 0)


def _load(path: Path) -> Any:
    """Return the unpickled file, made of tensors, containers, numbers, texts, Namespace and _Record."""
    try:
        with safe_globals([*_allowed(path)]):
            return torch.load(path, map_location="cpu", weights_only=True)
    except (UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise DataError(f"{path}: not a readable checkpoint: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """Return the line of an unpickling error that names the problem."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "GLOBAL" in line or "WeightsUnpickler error" in line]
    return (telling or [f"{type(error).__name__} {' '.join(lines[:1])}"])[0][:200]


def _allowed(path: Path) -> list[Callable[..., object] | tuple[Callable[..., object], str]]:
    """Return Namespace and stand-ins for the file's other harmless names; raises DataError for any other name."""
    allowed: list[Callable[..., object] | tuple[Callable[..., object], str]] = [Namespace]
    try:
        with safe_globals([Namespace]):
            names = get_unsafe_globals_in_checkpoint(path)
    except ValueError:  # in the format before torch 1.6, torch.load itself refuses such names
        return allowed
    refused = []
    for name in sorted(names):
        if name == "collections.defaultdict":
            allowed.append((_dictionary, name))
        elif name in _RECORD_NAMES or name.startswith(_RECORDS):
            allowed.append((_Record, name))
        else:
            refused.append(name)
    if refused:
        raise DataError(f"{path}: refused: this file would run {', '.join(refused[:5])}, which no model needs")
    return allowed


def _plain(value: Any) -> Any:
    """Convert namespaces and omegaconf records to dicts, lists and plain values."""
    if isinstance(value, Namespace):
        value = vars(value)
    if isinstance(value, _Record):
        state = value.state if isinstance(value.state, dict) else {}
        for key in ("_content", "_val"):
            if key in state:
                return _plain(state[key])
        return _plain(value.args[0]) if len(value.args) == 1 else None
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _flat(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments by command-line names: `encoder: {embed_dim: 512}` of newer files becomes encoder_embed_dim."""
    flat = dict(arguments)
    for side in ("encoder", "decoder"):
        nested = flat.pop(side, None)
        if isinstance(nested, dict):
            flat.update({f"{side}_{name}": value for name, value in nested.items()})
    return flat
