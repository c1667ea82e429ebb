"""A causal language model with a prompt cache: the part that a prompt shares with the previous one is not read again.

Letters in the shape comments: B rows, N positions, M positions before them, D width, V pieces that titles are made of.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import takewhile

import torch
import torch.nn.functional as F
from torch import Tensor

from smt.lm.base import Base
from smt.lm.network import Memory

BREAK = "\n"  # end of a title


class Reader:
    """A model that keeps the keys and values of the last prompt."""

    def __init__(self, base: Base, titles: Iterable[str] | None) -> None:
        """Load the output rows; `titles` restricts likelihoods to the pieces of these titles, None = any text."""
        self._network, self._tokens = base.network, base.tokens
        self._tensor = partial(torch.tensor, device=base.network.device)
        self._titles = {title: self._tokens.text(f" {title}{BREAK}") for title in titles or ()}
        pieces = sorted({piece for title in self._titles.values() for piece in title})
        self._column = {piece: index for index, piece in enumerate(pieces)}
        self._rows = self._network.output_rows(self._tensor(pieces) if titles is not None else None)  # (V, D)
        self._memory = Memory()
        self._read: list[tuple[str, int]] = []  # portions of the last prompt, with the number of pieces up to their end
        self._asked: tuple[tuple[str, ...], Tensor, int] | None = None  # last prompt, state, number of pieces
        self.pieces_run = 0

    @torch.inference_mode()
    def likelihoods(self, portions: Sequence[str], asking: str, titles: Sequence[str]) -> list[float]:
        """Return log P (nats) of each title and the following line break, after the portions and `asking`."""
        state, end = self._ask(portions, asking)
        rows = [self._titles[title] for title in titles]
        states = state.expand(len(rows), -1, -1)  # (B, 1, D)
        if longest := max(map(len, rows)) - 1:
            padded = [row[:-1] + row[-1:] * (longest + 1 - len(row)) for row in rows]
            memory = self._memory.map(lambda x: x[:, :, :end].expand(len(rows), -1, -1, -1))
            states = torch.cat([states, self._run(padded, memory, end)], 1)  # (B, N, D)
        chances = F.log_softmax(F.linear(states, self._rows).float(), -1)  # (B, N, V)
        return [
            float(chances[i, : len(row)].gather(1, self._tensor([[self._column[p]] for p in row])).sum())
            for i, row in enumerate(rows)
        ]

    @torch.inference_mode()
    def write(self, portions: Sequence[str], asking: str, most: int) -> tuple[str, float]:
        """Return the line that greedy decoding writes after a prompt, at most `most` pieces, and its log P in nats."""
        end, pieces, total = self._begin(portions), self._tokens.text(asking), 0.0
        [line_break] = self._tokens.text(BREAK)
        written: list[int] = []
        while len(written) < most:
            states = self._run([pieces], self._memory, end)
            end += len(pieces)
            chances = F.log_softmax(F.linear(states[0, -1], self._rows).float(), -1)  # (V,)
            piece = int(chances.argmax())
            total += float(chances[piece])
            if piece == line_break:
                break
            written.append(piece)
            pieces = [piece]
        return self._tokens.decode(written).partition(BREAK)[0].strip(), total

    def _ask(self, portions: Sequence[str], asking: str) -> tuple[Tensor, int]:
        """Return the last state (1, 1, D) of a prompt, and its number of pieces; the last prompt is not rerun."""
        prompt = (*portions, asking)
        if self._asked is None or self._asked[0] != prompt:
            end, pieces = self._begin(portions), self._tokens.text(asking)
            state = self._run([pieces], self._memory, end)[:, -1:]
            self._asked = prompt, state, end + len(pieces)
        return self._asked[1:]

    def _begin(self, portions: Sequence[str]) -> int:
        """Read a prompt's portions and return their number of pieces; portions in the memory are not rerun."""
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1][0], zip(portions, self._read, strict=False)))
        del self._read[same:]
        self._asked = None  # its slots are about to be filled again
        for portion in portions[same:]:
            first = [] if self._read or self._tokens.bos is None else [self._tokens.bos]
            pieces, end = first + self._tokens.text(portion), self._read[-1][1] if self._read else 0
            self._run([pieces], self._memory, end)
            self._read.append((portion, end + len(pieces)))
        return self._read[-1][1]

    def _run(self, rows: Sequence[Sequence[int]], memory: Memory, start: int) -> Tensor:
        """Return states (B, N, D) of pieces after the first `start` pieces of the memory."""
        pieces = self._tensor(rows)
        self.pieces_run += pieces.numel()
        return self._network.read(pieces, memory, start)
