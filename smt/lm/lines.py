"""Completion of many prompts, one line each, by a causal language model that reads their common beginning once.

The prompts of a batch are completed in parallel, so the output layer, which dominates the time of a single line, is
read from memory once for all of them.  The other prompts of a batch can change the order of a sum, and hence the last
bits of a score.

Letters in the shape comments: B prompts, N positions, M positions of the beginning, D width, V pieces.
"""

from collections.abc import Sequence
from functools import partial

import torch
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence

from smt.lm.base import Base
from smt.lm.network import Memory, mask_of
from sqa.net.chat import Reply

ROWS, GPU_ROWS = 16, 256  # prompts completed in parallel on a CPU, and on a GPU with 10 GB of free memory
BREAK = "\n"  # ends a line


class LineWriter:
    """A model that has read the common beginning of all prompts."""

    @torch.inference_mode()
    def __init__(self, base: Base, beginning: str, ends: Sequence[int] = (), begins: bool = True) -> None:
        """Read the beginning; a reply ends before one of the pieces `ends`, or by default with its line.

        With `begins`, the piece that begins texts comes first, if the model has one.
        """
        self._network, self._tokens = base.network, base.tokens
        self._rows = base.network.output_rows()  # (V, D)
        self._ends, self._is_line = frozenset(ends or base.tokens.text(BREAK)), not ends
        pieces = [base.tokens.bos] if begins and base.tokens.bos is not None else []
        pieces += base.tokens.text(beginning)
        self._begun, self._device, self._beginning = len(pieces), base.network.device, Memory()
        if pieces:
            base.network.read(torch.tensor([pieces], device=self._device), self._beginning)

    def write(self, prompts: Sequence[str], most: int) -> list[Reply]:
        """Return the greedily decoded line after each non-empty prompt, cut off at `most` pieces.

        A line begins with a space if it begins a new word.  Tokens are pieces; those of a prompt include the beginning.
        """
        pieces = [self._tokens.text(prompt) for prompt in prompts]
        written: dict[int, Reply] = {}
        order = sorted(range(len(prompts)), key=lambda i: len(pieces[i]))
        rows = ROWS if self._device.type == "cpu" else GPU_ROWS
        for group in (order[i : i + rows] for i in range(0, len(order), rows)):
            for i, line in zip(group, self._lines([pieces[i] for i in group], most), strict=True):
                text, blank = self._tokens.decode(line), " " if line and self._tokens.starts_word[line[0]] else ""
                text = blank + text.partition(BREAK)[0].strip() if self._is_line else text
                written[i] = Reply(text, self._begun + len(pieces[i]), len(line))
        return [written[i] for i in range(len(prompts))]

    @torch.inference_mode()
    def _lines(self, prompts: Sequence[Sequence[int]], most: int) -> list[list[int]]:
        arange, begun = partial(torch.arange, device=self._device), self._begun
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=self._device)  # (B,)
        padded = pad_sequence([torch.tensor(prompt) for prompt in prompts], batch_first=True).to(self._device)
        b, n = padded.shape
        memory = self._beginning.map(lambda x: x[:, :, :begun].expand(b, -1, -1, -1))
        last = self._network.read(padded, memory, begun)[arange(b), lengths - 1]  # (B, D)
        seen = arange(begun + n) < begun + lengths[:, None]  # (B, M), False for padding
        lines: list[list[int]] = [[] for _ in prompts]
        going = [True] * b
        for step in range(most):
            piece = F.linear(last, self._rows).argmax(-1)  # (B,)
            for i, number in enumerate(piece.tolist()):
                going[i] = going[i] and number not in self._ends
                if going[i]:
                    lines[i].append(number)
            if not any(going):
                break
            seen = torch.cat([seen, seen.new_ones(b, 1)], 1)
            memory.fill(torch.full((b, 1), begun + n + step, device=self._device), begun + n + step + 1)
            positions = (begun + lengths + step)[:, None]
            last = self._network(piece[:, None], positions, mask_of(seen[:, None], self._network.dtype), memory)[:, -1]
        return lines
