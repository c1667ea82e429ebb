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
from smt.lm.lm_stepper import joined
from smt.lm.network import KeyValue, Seen, mask_of

BREAK = "\n"  # end of a title


class Reader:
    """A model, and the keys and values of the last prompt."""

    def __init__(self, base: Base, titles: Iterable[str] | None) -> None:
        """Load the output rows; `titles` restricts likelihoods to the pieces of these titles, None = any text."""
        self._network, self._tokens = base.network, base.tokens
        self._tensor = partial(torch.tensor, device=base.network.device)
        self._titles = {title: self._tokens.text(f" {title}{BREAK}") for title in titles or ()}
        pieces = sorted({piece for title in self._titles.values() for piece in title})
        self._column = {piece: index for index, piece in enumerate(pieces)}
        self._rows = self._network.output_rows(self._tensor(pieces) if titles is not None else None)  # (V, D)
        self._read: list[tuple[str, list[KeyValue]]] = []  # portions of the last prompt, with their keys and values
        self._asked: tuple[tuple[str, ...], Tensor, list[KeyValue]] | None = None  # last prompt, state, keys, values
        self.pieces_run = 0

    @torch.inference_mode()
    def likelihoods(self, portions: Sequence[str], asking: str, titles: Sequence[str]) -> list[float]:
        """Return log P (nats) of each title and the following line break, after the portions and `asking`."""
        state, before = self._ask(portions, asking)
        rows = [self._titles[title] for title in titles]
        states = state.expand(len(rows), -1, -1)  # (B, 1, D)
        if longest := max(map(len, rows)) - 1:
            padded = [row[:-1] + row[-1:] * (longest + 1 - len(row)) for row in rows]
            states = torch.cat([states, self._run(padded, before)[0]], 1)  # (B, N, D)
        chances = F.log_softmax(F.linear(states, self._rows).float(), -1)  # (B, N, V)
        return [
            float(chances[i, : len(row)].gather(1, self._tensor([[self._column[p]] for p in row])).sum())
            for i, row in enumerate(rows)
        ]

    @torch.inference_mode()
    def write(self, portions: Sequence[str], asking: str, most: int) -> tuple[str, float]:
        """Return the line that greedy decoding writes after a prompt, at most `most` pieces, and its log P in nats."""
        before, pieces, total = self._memory(portions), self._tokens.text(asking), 0.0
        [end] = self._tokens.text(BREAK)
        written: list[int] = []
        while len(written) < most:
            states, new = self._run([pieces], before)
            before = [joined(*pair) for pair in zip(before, new, strict=True)]
            chances = F.log_softmax(F.linear(states[0, -1], self._rows).float(), -1)  # (V,)
            piece = int(chances.argmax())
            total += float(chances[piece])
            if piece == end:
                break
            written.append(piece)
            pieces = [piece]
        return self._tokens.decode(written).partition(BREAK)[0].strip(), total

    def _ask(self, portions: Sequence[str], asking: str) -> tuple[Tensor, list[KeyValue]]:
        """Return the last state (1, 1, D) of a prompt, and its keys and values; the last prompt is not rerun."""
        prompt = (*portions, asking)
        if self._asked is None or self._asked[0] != prompt:
            before = self._memory(portions)
            states, new = self._run([self._tokens.text(asking)], before)
            self._asked = prompt, states[:, -1:], [joined(*pair) for pair in zip(before, new, strict=True)]
        return self._asked[1:]

    def _memory(self, portions: Sequence[str]) -> list[KeyValue]:
        """Return the keys and values of a prompt's portions, (1, G, M, C) per layer; cached portions are not rerun."""
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1][0], zip(portions, self._read, strict=False)))
        if same == len(portions):
            return self._read[same - 1][1]
        del self._read[same:]
        for portion in portions[same:]:
            first = [] if self._read or self._tokens.bos is None else [self._tokens.bos]
            before = self._read[-1][1] if self._read else []
            _, new = self._run([first + self._tokens.text(portion)], before)
            whole = [joined(*pair) for pair in zip(before, new, strict=True)] if before else new
            self._read.append((portion, whole))
        return self._read[-1][1]

    def _run(self, rows: Sequence[Sequence[int]], before: Sequence[KeyValue]) -> tuple[Tensor, list[KeyValue]]:
        """Return states of shape (B, N, D), keys and values of pieces that follow M pieces shared by all rows."""
        pieces = self._tensor(rows)
        b, n = pieces.shape
        m = before[0].key.shape[2] if before else 0
        dtype = self._network.dtype
        causal = mask_of(pieces.new_ones(n, n, dtype=torch.bool).tril().expand(b, n, n), dtype)
        seen = [Seen(before, pieces.new_zeros(1, 1, n, m, dtype=dtype))] if before else []
        self.pieces_run += b * n
        return self._network(pieces, torch.arange(m, m + n, device=pieces.device).expand(b, n), causal, seen)
