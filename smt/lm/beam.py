"""Beam search over full input with a causal language model.

n hypotheses of each sentence are kept, ranked by their log probability per piece (the piece that ends them included).
Those that have ended keep their place, so the beam of the others shrinks; the search is over when the best has ended.
With n = 1 these are the words of smt/lm/decode.py.

Letters in the shape comments: A sentences, n hypotheses of each, R = A n of them, V pieces that may be chosen.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from smt.lm.decode import ALIVE, BATCH_ROWS, WHOLE, Sentences, Writer, decode_batch
from smt.models.decode import Written, by_length
from smt.models.next_piece import Past, piece_limit
from smt.policies.waitk import HIDDEN_WORD, pad
from sqa.core.errors import ConfigError

VERSION = 1  # raise when the search changes its output
WIDEST = 64


def check(n: int) -> None:
    """ConfigError for a beam that is none."""
    if not 1 <= n <= WIDEST:
        raise ConfigError(f"beam: must be 1 to {WIDEST}, got {n}")


def whole(writer: Writer, sentences: Sequence[Sequence[str]], n: int) -> list[list[Written]]:
    """Translations of sentences that are read to their end first; greedy for n = 1.  An empty one gives no words."""
    if n == 1:
        return decode_batch(writer, sentences, WHOLE)
    written: list[list[Written]] = [[] for _ in sentences]
    for group in by_length(sentences, max(1, BATCH_ROWS // n)):
        for number, pieces in zip(group, _search(writer, [sentences[i] for i in group], n), strict=True):
            g = len(sentences[number])
            written[number] = [Written(token, g, True) for token in _words(writer, pieces)]
    return written


def full_input(writer: Writer, texts: Sequence[str], n: int = 1) -> list[tuple[str, ...]]:
    """Target words of whole texts."""
    return [tuple(w.token for w in words) for words in whole(writer, [text.split() for text in texts], n)]


@torch.inference_mode()
def _search(writer: Writer, sentences: Sequence[Sequence[str]], n: int) -> list[list[int]]:
    """The places of the pieces of each sentence's best hypothesis; no sentence is empty."""
    found: list[list[int]] = [[] for _ in sentences]
    numbers = list(range(len(sentences)))
    rows, limit = _begin(writer, sentences, n)
    first = (torch.arange(len(limit)) % n == 0).float()
    score = first.log()  # (R,) log probability so far; all hypotheses begin as one
    length = torch.zeros(len(limit))  # (R,) pieces, the one that ends included
    pieces = torch.zeros(len(limit), int(limit.max()) + 1, dtype=torch.long)  # (R, T)
    while True:
        finished = ~rows.alive
        log_p = _log_probabilities(rows, rows.written >= limit, finished)
        parent, piece, score = _best(score[:, None] + log_p, length + ~finished, n)
        _take(rows, parent)
        length, pieces, limit = length[parent], pieces[parent], limit[parent]
        live = rows.alive
        length = length + live
        commit = live & (piece != writer.end)
        pieces[commit, rows.written[commit]] = piece[commit]
        _append(rows, piece, commit)
        rows.alive = commit & ~score.isneginf()
        over = (~rows.alive).view(-1, n)[:, 0]  # (A,) the best has ended
        for a in over.nonzero()[:, 0].tolist():
            if numbers[a] >= 0:
                found[numbers[a]] = pieces[a * n, : int(rows.written[a * n])].tolist()
                numbers[a] = -1
        going = torch.tensor([number >= 0 for number in numbers])
        if not bool(going.any()):
            return found
        if int(going.sum()) < ALIVE * len(going):
            kept = going.repeat_interleave(n)
            rows.keep(kept)
            score, length, pieces, limit = score[kept], length[kept], pieces[kept], limit[kept]
            numbers = [number for number in numbers if number >= 0]


def _begin(writer: Writer, sentences: Sequence[Sequence[str]], n: int) -> tuple[Sentences, Tensor]:
    """n rows for each sentence with the source read, and the most pieces that each may have (R,)."""
    segments = [writer.layout.source(writer.tokens, words) for words in sentences]
    rows = Sentences(writer, len(sentences))
    rows.length = torch.tensor([len(words) for words in sentences])
    rows.read = rows.length + 1
    rows.hear(pad([np.array(s) for s, _ in segments], 0), pad([np.array(m) for _, m in segments], HIDDEN_WORD))
    rows.keep(torch.arange(len(sentences)).repeat_interleave(n))
    limit = piece_limit((rows.needs < HIDDEN_WORD).sum(1))
    assert isinstance(limit, Tensor)
    return rows, limit


def _log_probabilities(rows: Sentences, full: Tensor, finished: Tensor) -> Tensor:
    """(R, V): of each next piece; what has finished goes on as it is, what is full can only end."""
    w = rows.writer
    scores = w.scores(rows.look()).log_softmax(-1)
    log_p = w.rules.forbid(scores, rows.word_open, rows.past)
    ends = log_p[:, w.end].clone()
    log_p[full | finished] = float("-inf")
    log_p[:, w.end] = torch.where(finished, 0.0, ends)
    return log_p


def _best(total: Tensor, length: Tensor, n: int) -> tuple[Tensor, Tensor, Tensor]:
    """The n best of each sentence, best first: the row that each goes on from, its piece, its score; all (R,)."""
    a, v = len(total) // n, total.shape[1]
    best = (total / length[:, None]).view(a, n * v).topk(n).indices  # (A, n)
    parent = best // v + n * torch.arange(a)[:, None]
    return parent.flatten(), (best % v).flatten(), total.view(a, n * v).gather(1, best).flatten()


def _take(rows: Sentences, parent: Tensor) -> None:
    """Go on from these rows (R,), each of the same sentence as the row whose place it takes."""
    if not torch.equal(parent, torch.arange(len(parent))):
        rows.move(parent)


def _append(rows: Sentences, piece: Tensor, commit: Tensor) -> None:
    longer = rows.past.then(piece)
    rows.past = Past(*(torch.where(commit[:, None], a, b) for a, b in zip(longer, rows.past, strict=True)))
    rows.last = torch.where(commit, rows.writer.pieces[piece], rows.last)
    rows.word_open = rows.word_open | commit
    rows.at = rows.at + commit
    rows.written = rows.written + commit


def _words(writer: Writer, pieces: Sequence[int]) -> list[str]:
    """The words that pieces (places among those that may be chosen) spell; those that come out empty are left out."""
    words: list[list[int]] = []
    for piece in pieces:
        if not words or bool(writer.rules.starts_word[piece]):
            words.append([])
        words[-1].append(int(writer.pieces[piece]))
    return [token for token in map(writer.tokens.decode, words) if token]
