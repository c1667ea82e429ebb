"""The inner loops of the word aligner, compiled to machine code if numba is installed.

They are the forward and backward passes of an HMM over one sentence pair.  States are the words of the picked side,
each once as a link and once as "no link".  "No link" means that the picking word has no counterpart and that the
position does not change (Och and Ney 2003).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

WIDEST = 10  # maximum jump in words; longer jumps count as jumps of this length


class Side(NamedTuple):
    """One direction's texts as arrays: picking words are rows, picked words are columns."""

    pairs: np.ndarray  # indices into the table of word pairs, row by row, for all sentence pairs
    starts: np.ndarray  # start of each sentence pair in `pairs`
    rows: np.ndarray
    columns: np.ndarray
    given: np.ndarray  # per entry of the table: index of the picked form
    mass: np.ndarray  # per picked form: occurrences in the priors
    empty: np.ndarray  # per picking word: its share of the words of its language
    empty_starts: np.ndarray


def _moves(positions: int, jumps: np.ndarray, no_link: float) -> np.ndarray:
    """Return the probabilities of the next position given the last one, (I, I); each row sums to 1 - no_link."""
    move = np.empty((positions, positions))
    for a in range(positions):
        total = 0.0
        for b in range(positions):
            move[a, b] = jumps[min(max(b - a, -WIDEST), WIDEST) + WIDEST]
            total += move[a, b]
        for b in range(positions):
            move[a, b] *= (1.0 - no_link) / total
    return move


def _posteriors(
    emission: np.ndarray, empty: np.ndarray, jumps: np.ndarray, no_link: float, counts: np.ndarray
) -> np.ndarray:
    """Return P(word j of one side is linked to word i of the other | sentence), (J, I).

    `emission` (J, I) is the probability of word j given word i, `empty` (J,) its probability without a link.  `jumps`
    (2 WIDEST + 1,) holds weights of the step from one position to the next.  `counts`, with the same shape, receives
    the expected jumps.
    """
    words, positions = emission.shape
    move = moves(positions, jumps, no_link)
    forward = np.zeros((words, 2, positions))  # 0: linked at this position; 1: not linked, last position
    scale = np.zeros(words)
    for j in range(words):
        reached = np.zeros(positions)
        if j > 0:
            for a in range(positions):  # row-wise over `move`, which is faster than column-wise
                mass = forward[j - 1, 0, a] + forward[j - 1, 1, a]
                for b in range(positions):
                    reached[b] += mass * move[a, b]
        for b in range(positions):
            if j == 0:
                # The first word usually links to the first position, so the model jumps from the position before it.
                first = jumps[min(b + 1, WIDEST) + WIDEST] / positions
                forward[0, 0, b] = (1.0 - no_link) * first * emission[0, b]
                forward[0, 1, b] = no_link / positions * empty[0]
            else:
                forward[j, 0, b] = reached[b] * emission[j, b]
                forward[j, 1, b] = (forward[j - 1, 0, b] + forward[j - 1, 1, b]) * no_link * empty[j]
            scale[j] += forward[j, 0, b] + forward[j, 1, b]
        for b in range(positions):
            forward[j, 0, b] /= scale[j]
            forward[j, 1, b] /= scale[j]
    backward = np.ones(positions)  # equal for linked and unlinked states
    result = np.zeros((words, positions))
    for j in range(words - 1, -1, -1):
        for b in range(positions):
            result[j, b] = forward[j, 0, b] * backward[b]
        if j == 0:
            break
        before, ahead = np.zeros(positions), np.empty(positions)
        for a in range(positions):
            mass = forward[j - 1, 0, a] + forward[j - 1, 1, a]
            for b in range(positions):
                ahead[b] = move[a, b] * emission[j, b] * backward[b] / scale[j]
            total, back, on = 0.0, counts[0], counts[2 * WIDEST]
            for b in range(positions):
                total += ahead[b]
                if b <= a - WIDEST:
                    back += mass * ahead[b]
                elif b >= a + WIDEST:
                    on += mass * ahead[b]
                else:
                    counts[b - a + WIDEST] += mass * ahead[b]
            counts[0], counts[2 * WIDEST], before[a] = back, on, total
            before[a] += no_link * empty[j] * backward[a] / scale[j]
        backward = before
    return result


def _all_posteriors(
    side: Side,
    counts: np.ndarray,
    totals: np.ndarray,
    jumps: np.ndarray,
    no_link: float,
    weights: np.ndarray,
    linked: np.ndarray,
    logs: np.ndarray,
    expected: np.ndarray,
    jumped: np.ndarray,
) -> None:
    """Run one pass over all sentence pairs.

    `counts` and `totals` are the links of each table entry and of each form.  A sentence's own links (`linked` from the
    previous pass, weighted by weights[n]) are subtracted, so that only OTHER sentences determine its word translations.
    `linked` receives the new posteriors, `logs` ln p(picking | picked), `expected` and `jumped` the expected counts.
    """
    for n in range(len(side.rows)):
        first, words, positions = side.starts[n], side.rows[n], side.columns[n]
        empty = side.empty[side.empty_starts[n] : side.empty_starts[n] + words]
        emission = np.empty((words, positions))
        for i in range(positions):
            mass_of_word = 0.0
            for j in range(words):
                mass_of_word += linked[first + j * positions + i]
            for j in range(words):
                at = first + j * positions + i
                entry = side.pairs[at]
                count = max(counts[entry] - weights[n] * linked[at], 0.0)
                total = max(totals[side.given[entry]] - weights[n] * mass_of_word, 0.0)
                emission[j, i] = (count + empty[j]) / (max(total, count) + 1.0)
                logs[at] = np.log(emission[j, i])
        steps = np.zeros(len(jumped))
        posterior = posteriors(emission, empty, jumps, no_link, steps)
        for j in range(words):
            for i in range(positions):
                at = first + j * positions + i
                linked[at] = posterior[j, i]
                expected[side.pairs[at]] += weights[n] * posterior[j, i]
        jumped += weights[n] * steps


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function with numba if the extra `fast` is installed; the results are the same.

    The machine code is cached beside the source file or in the user's cache folder.  The import of numba takes half a
    second.
    """
    try:
        import numba
    except ModuleNotFoundError:
        return function
    try:
        machine: Callable[..., Any] = numba.njit(cache=True)(function)
    except RuntimeError:  # neither folder is writable, so every process compiles
        machine = numba.njit(function)
    return machine


moves = _compiled(_moves)
posteriors = _compiled(_posteriors)
all_posteriors = _compiled(_all_posteriors)
