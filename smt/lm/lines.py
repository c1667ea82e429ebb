"""A causal language model that ends many prompts with a line each; their common beginning is read once.

The prompts of a batch are written side by side, so that the output layer, most of the work of a single line, is read
from memory once for all of them.  What else is in a batch can change the order of a sum, so the last bits of a score.

Letters in the shape comments: B prompts, N positions, M positions of the beginning, D width, V pieces.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

from smt.lm.base import Base, base_folder, load_base, load_fingerprint
from smt.lm.causal_lm import fast_precision
from smt.lm.lm_stepper import joined
from smt.lm.network import Seen, mask_of
from sqa.files.store import digest

ROWS = 16  # prompts written side by side
BREAK = "\n"  # ends a line


def dtype_of(precision: str) -> torch.dtype:
    """The arithmetic of a config's `precision`."""
    return getattr(torch, fast_precision() if precision == "auto" else precision)


def model_identity(base: str, precision: str) -> str:
    """Hash of a model's files and the arithmetic.  ConfigError if it is not there."""
    return digest([load_fingerprint(base_folder(base)), str(dtype_of(precision))])


def load(base: str, precision: str) -> Base:
    """The model by any of its names (smt/lm/base.py)."""
    return load_base(base_folder(base), dtype_of(precision))


class LineWriter:
    """A model that has read the beginning of every prompt."""

    @torch.inference_mode()
    def __init__(self, base: Base, beginning: str) -> None:
        self._network, self._tokens = base.network, base.tokens
        self._rows = base.network.output_rows()  # (V, D)
        [self._end] = base.tokens.text(BREAK)
        pieces = ([] if base.tokens.bos is None else [base.tokens.bos]) + base.tokens.text(beginning)
        n = self._begun = len(pieces)
        causal = mask_of(torch.ones(1, n, n, dtype=torch.bool).tril(), base.network.dtype)
        _, self._beginning = base.network(torch.tensor([pieces]), torch.arange(n)[None], causal)

    def write(self, prompts: Sequence[str], most: int) -> list[str]:
        """The likeliest line after each prompt, piece by piece; cut off after `most` pieces.  A prompt has pieces.

        A line that begins a new word begins with a blank.
        """
        pieces = [self._tokens.text(prompt) for prompt in prompts]
        written = [""] * len(prompts)
        order = sorted(range(len(prompts)), key=lambda i: len(pieces[i]))
        for group in (order[i : i + ROWS] for i in range(0, len(order), ROWS)):
            for i, line in zip(group, self._lines([pieces[i] for i in group], most), strict=True):
                blank = " " if line and self._tokens.starts_word[line[0]] else ""
                written[i] = blank + self._tokens.decode(line).partition(BREAK)[0].strip()
        return written

    @torch.inference_mode()
    def _lines(self, prompts: Sequence[Sequence[int]], most: int) -> list[list[int]]:
        dtype, lengths = self._network.dtype, torch.tensor([len(prompt) for prompt in prompts])  # (B,)
        padded = pad_sequence([torch.tensor(prompt) for prompt in prompts], batch_first=True)
        b, n = padded.shape
        begun = Seen(self._beginning, torch.zeros(1, 1, n, self._begun, dtype=dtype))
        causal = mask_of(torch.ones(n, n, dtype=torch.bool).tril().expand(b, n, n), dtype)
        states, memory = self._network(padded, self._begun + torch.arange(n).expand(b, n), causal, [begun])
        last = states[torch.arange(b), lengths - 1]  # (B, D)
        is_piece = torch.arange(n) < lengths[:, None]  # (B, N): no padding
        begun = Seen(self._beginning, torch.zeros(1, 1, 1, self._begun, dtype=dtype))
        alone = torch.zeros(b, 1, 1, 1, dtype=dtype)
        lines: list[list[int]] = [[] for _ in prompts]
        going = [True] * b
        for step in range(most):
            piece = F.linear(last, self._rows).argmax(-1)  # (B,)
            for i, number in enumerate(piece.tolist()):
                going[i] = going[i] and number != self._end
                if going[i]:
                    lines[i].append(number)
            if not any(going):
                break
            seen = [begun, Seen(memory, mask_of(is_piece[:, None], dtype))]
            positions = (self._begun + lengths + step)[:, None]
            states, new = self._network(piece[:, None], positions, alone, seen)
            memory = [joined(*pair) for pair in zip(memory, new, strict=True)]
            is_piece = torch.cat([is_piece, torch.ones(b, 1, dtype=torch.bool)], 1)
            last = states[:, -1]
        return lines
