"""Average token delay (Kano et al. 2023, arXiv 2211.13173), as SimulEval 1.1 computes it.

The output consists of chunks, which are words written after the same delay.  Target word t is paired with the source
token

    s = min(t - max(0, Y - X), X')        Y, X: target and source tokens of all earlier chunks;  X': X plus this chunk's

ATD is the mean over t of  end(t) - end(s).  A source token ends when it has been read.  Target words follow each other:
end(t) = max(d_t, end(t - 1)) + length of a target word.

    text      a source word and a target word take one unit of time each
    speech    a source token takes 300 ms, the last of a chunk the rest; a target word of text takes no time

If delays decrease, SimulEval continues as follows.  Source chunks are the steps between the distinct delays, in order
of first occurrence; a backward step has a negative size.  For the k-th chunk of the output, X and X' count the
tokens of the first k - 1 and k source chunks, or of all source chunks if there are fewer.  `_of_falling` computes such
sentences one by one.

With computing time the chunks are still those of the delays.  A target word additionally takes its computing time, the
growth of  elapsed - delay  since the previous word.  Elapsed times that are all 0 were not measured and count as
delays.
"""

from bisect import bisect_left
from dataclasses import replace
from itertools import accumulate, groupby, pairwise

import numpy as np

from sqa.core import Floats
from sqa.metrics.delays import Delays, divide, running_maximum

SPEECH_TOKEN = 300.0  # ms


def average_token_delay(delays: Delays) -> Floats:
    """Return ATD of each sentence (S,) in source units; nan for a sentence without words."""
    takes = np.full(len(delays.flat), 0.0 if delays.speech else 1.0)  # (N,) duration of each target word
    if delays.read is not None:
        takes += _computing(delays)
        delays = replace(delays, flat=delays.read)
    risen = running_maximum(delays.flat, delays.index)  # (N,)
    values = _of_rising(replace(delays, flat=risen), takes)
    falls = delays.flat < risen
    for sentence in np.unique(delays.sentence[falls]):
        of = delays.sentence == sentence
        values[sentence] = _of_falling(delays.flat[of], takes[of], delays.speech)
    return values


def _computing(delays: Delays) -> Floats:
    """Return the computing time of each target word (N,)."""
    spent = delays.flat - (delays.flat if delays.read is None else delays.read)  # (N,) computing time up to each word
    measured = delays.total(np.abs(delays.flat)) > 0  # (S,)
    before = np.concatenate(([0.0], spent[:-1])) * (delays.index > 0)
    return np.where(measured[delays.sentence], spent - before, 0.0)


def _of_falling(delays: Floats, takes: Floats, speech: bool) -> float:
    """Return ATD of the delays (n,) of one sentence, step by step as in SimulEval's `ATDScorer`."""
    unit = SPEECH_TOKEN if speech else 1.0
    distinct = list(dict.fromkeys(delays.tolist()))
    counts, times, sizes = [0.0], [0.0], [0.0]  # source tokens and their time so far; tokens per chunk
    for before, until in pairwise([0.0, *distinct]):
        whole, remainder = divmod(until - before, unit)
        whole = max(whole, 0.0)
        counts.append(counts[-1] + whole + (remainder > 0))
        times.append(times[-1] + whole * unit + remainder)
        sizes.append(counts[-1] - counts[-2] if speech else until - before)
    sizes += [0.0] * (len(delays) - len(distinct))
    source = list(accumulate(sizes))  # tokens up to the end of each chunk
    lags: list[float] = []
    end = 0.0
    for chunk, (_, words) in enumerate(groupby(delays.tolist()), start=1):
        earlier = len(lags)
        for delay in words:
            end = max(delay, end) + takes[len(lags)]
            paired = min(len(lags) + 1 - max(0.0, earlier - source[chunk - 1]), source[chunk])
            holder = max(bisect_left(counts, paired), 1)  # the chunk that contains that token
            lags.append(end - min(times[holder - 1] + (paired - counts[holder - 1]) * unit, times[holder]))
    return float(np.mean(lags))


def _of_rising(delays: Delays, takes: Floats) -> Floats:
    """Return ATD of each sentence (S,) whose delays do not decrease; `takes` (N,) are durations of target words."""
    if not len(delays.flat):
        return np.full(len(delays.source), np.nan)
    unit = SPEECH_TOKEN if delays.speech else 1.0
    taken = np.cumsum(takes)  # (N,) over all sentences
    taken -= (taken - takes)[delays.index == 0].repeat(delays.hypothesis[delays.hypothesis > 0].astype(np.int64))
    end = running_maximum(delays.flat - (taken - takes), delays.index) + taken  # (N,)
    before = np.concatenate(([0.0], delays.flat[:-1])) * (delays.index > 0)  # (N,) d of the previous word, or 0
    start = (delays.index == 0) | (delays.flat != before)  # (N,) first word of a chunk
    chunk = np.cumsum(start) - 1  # (N,) index of the chunk, over all sentences
    begin, until = before[start], delays.flat[start]  # (C,) source time of each chunk
    tokens = np.ceil((until - begin) / unit)  # (C,)
    total = np.cumsum(tokens)  # (C,) source tokens up to the end of a chunk, over all sentences
    first = np.zeros(len(delays.source), dtype=np.int64)  # (S,) first chunk of the sentence
    first[delays.sentence[delays.index == 0]] = chunk[delays.index == 0]
    base = (total - tokens)[first][delays.sentence]  # (N,) source tokens of earlier sentences
    earlier_target = delays.index[start][chunk]  # (N,) Y
    earlier_source = (total - tokens)[chunk] - base  # (N,) X
    paired = np.minimum(delays.index + 1 - np.maximum(0, earlier_target - earlier_source), total[chunk] - base)  # (N,)
    holder = np.minimum(np.searchsorted(total, base + paired), len(total) - 1)  # (N,) chunk with that token
    token_end = begin[holder] + unit * (base + paired - (total - tokens)[holder])
    token_end = np.where(paired > 0, np.minimum(token_end, until[holder]), 0.0)
    return divide(delays.total(end - token_end), delays.hypothesis)
