"""Average token delay (Kano et al. 2023, arXiv 2211.13173), as SimulEval 1.1 computes it.

The output comes in chunks: words written after the same delay.  Target word t is paired with the source token

    s = min(t - max(0, Y - X), X')        Y, X: target and source tokens of all earlier chunks;  X': X plus this chunk's

and ATD is the mean over t of  end(t) - end(s),  where a source token ends when it has been read and target words
follow one another:  end(t) = max(d_t, end(t - 1)) + length of a target word.

    text      a source word and a target word take one unit of time each
    speech    a source token takes 300 ms, the last of a chunk what is left; a target word of text takes no time
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sqa.core.arrays import Floats

if TYPE_CHECKING:
    from sqa.metrics.delays import Delays

SPEECH_TOKEN = 300.0  # ms


def average_token_delay(delays: Delays) -> Floats:
    """ATD of each sentence (S,) in source units; nan for a sentence without words.

    Delays must not fall within a sentence: the caller checks.
    """
    from sqa.metrics.delays import divide, running_maximum

    if not len(delays.flat):
        return np.full(len(delays.source), np.nan)
    unit, word = (SPEECH_TOKEN, 0.0) if delays.speech else (1.0, 1.0)
    end = running_maximum(delays.flat - delays.index * word, delays.index) + (delays.index + 1) * word  # (N,)
    before = np.concatenate(([0.0], delays.flat[:-1])) * (delays.index > 0)  # (N,) d of the word before, 0 at the first
    start = (delays.index == 0) | (delays.flat != before)  # (N,) first word of a chunk
    chunk = np.cumsum(start) - 1  # (N,) number of the chunk, over all sentences
    begin, until = before[start], delays.flat[start]  # (C,) source time that each chunk covers
    tokens = np.ceil((until - begin) / unit)  # (C,)
    total = np.cumsum(tokens)  # (C,) source tokens up to the end of a chunk, over all sentences
    first = np.zeros(len(delays.source), dtype=np.int64)  # (S,) the sentence's first chunk
    first[delays.sentence[delays.index == 0]] = chunk[delays.index == 0]
    base = (total - tokens)[first][delays.sentence]  # (N,) source tokens of earlier sentences
    earlier_target = delays.index[start][chunk]  # (N,) Y
    earlier_source = (total - tokens)[chunk] - base  # (N,) X
    paired = np.minimum(delays.index + 1 - np.maximum(0, earlier_target - earlier_source), total[chunk] - base)  # (N,)
    holder = np.minimum(np.searchsorted(total, base + paired), len(total) - 1)  # (N,) the chunk that holds that token
    token_end = begin[holder] + unit * (base + paired - (total - tokens)[holder])
    token_end = np.where(paired > 0, np.minimum(token_end, until[holder]), 0.0)
    return divide(delays.total(end - token_end), delays.hypothesis)
