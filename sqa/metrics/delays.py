"""The delays of many sentences as arrays, the input of every latency formula."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from sqa.core import DataError, Floats, Ints


@dataclass(frozen=True, slots=True)
class Delays:
    """The concatenated delays of many sentences, as returned by `pack`."""

    flat: Floats  # (N,) float64, all delays in order
    sentence: Ints  # (N,) int64, sentence of each delay, ascending
    index: Ints  # (N,) int64, i-1: 0-based position within its sentence
    hypothesis: Floats  # (S,) float64, number of delays
    source: Floats  # (S,) float64, |x|
    reference: Floats  # (S,) float64, |y*|, nan without a reference
    speech: bool = False  # delays are milliseconds of speech, otherwise words or characters of text
    recording_end: Floats | None = None  # (S,) end of the recording, nan if unknown
    read: Floats | None = None  # (N,) delays without computing time, if `flat` includes it

    def total(self, values: Floats) -> Floats:
        """Return the sum of the values (N,) of each sentence, (S,)."""
        return np.asarray(np.bincount(self.sentence, weights=values, minlength=len(self.source)), dtype=np.float64)


def pack(
    delays: Sequence[Sequence[float]],
    source_lengths: Sequence[float],
    reference_lengths: Sequence[float] | None = None,
    speech: bool = False,
    recording_ends: Sequence[float | None] | None = None,
    signed: bool = False,
) -> Delays:
    """Concatenate the delays of S sentences, with |x| and, optionally, |y*| and the ends of recordings.

    Raises DataError for unequal numbers of sentences, non-finite values and, unless `signed`, negative delays.
    """
    if len(delays) != len(source_lengths) or (reference_lengths is not None and len(reference_lengths) != len(delays)):
        given = "none" if reference_lengths is None else len(reference_lengths)
        raise DataError(
            f"latency: {len(delays)} sentences with delays, {len(source_lengths)} source lengths, "
            f"{given} reference lengths; the numbers must agree"
        )
    hypothesis = np.fromiter((len(row) for row in delays), dtype=np.int64, count=len(delays))  # (S,)
    flat = np.fromiter(chain.from_iterable(delays), dtype=np.float64, count=int(hypothesis.sum()))  # (N,)
    number = np.arange(len(delays))  # (S,)
    sentence = np.repeat(number, hypothesis)  # (N,)
    source = np.asarray(source_lengths, dtype=np.float64)  # (S,)
    read = [("delay", flat, sentence), ("source length", source, number)]
    reference = np.full(len(delays), np.nan)
    if reference_lengths is not None:
        reference = np.asarray(reference_lengths, dtype=np.float64)
        read.append(("reference length", reference, number))
    for what, values, where in read:
        wrong = np.flatnonzero(~(np.isfinite(values) & ((values >= 0) | (signed and values is flat))))
        if len(wrong):
            raise DataError(f"latency: sentence {where[wrong[0]]}: {what} {values[wrong[0]]} is not a number >= 0")
    starts = np.cumsum(hypothesis) - hypothesis  # (S,)
    index = np.arange(len(flat)) - np.repeat(starts, hypothesis)
    ends = None if recording_ends is None else np.array(recording_ends, dtype=np.float64)  # None becomes nan
    return Delays(flat, sentence, index, hypothesis.astype(np.float64), source, reference, speech, ends)


def divide(numerator: Floats, denominator: Floats) -> Floats:
    """Return quotients, nan where the denominator is 0."""
    out = np.full(np.broadcast(numerator, denominator).shape, np.nan)
    return np.divide(numerator, denominator, out=out, where=denominator != 0)


def running_maximum(values: Floats, index: Ints) -> Floats:
    """Return the running maximum (N,) of values (N,) within each sentence; `index` as in `Delays`.

    The number of passes is the logarithm (base 2) of the words of the longest sentence.
    """
    running = values.copy()
    shift = 1
    longest = int(index.max(initial=0))
    while shift <= longest:
        inside = index[shift:] >= shift
        running[shift:] = np.where(inside, np.maximum(running[shift:], running[:-shift]), running[shift:])
        shift *= 2
    return running
