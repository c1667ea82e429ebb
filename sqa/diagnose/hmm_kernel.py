"""The loops of the word aligner, as machine code where numba is installed.

Forward and backward passes of an HMM over one sentence pair.

States are the words of the side that is picked from, each once as a link and once as "no link" (the picking word has no
counterpart, and the position does not change: Och and Ney 2003).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

WIDEST = 10  # jumps farther than this many words count as this far


class Side(NamedTuple):
    """One direction's texts as numbers: words (rows) that pick, words (columns) that are picked."""

    pairs: np.ndarray  # numbers in the table of pairs of words, row by row, of all sentence pairs
    starts: np.ndarray  # in `pairs`, of each sentence pair
    rows: np.ndarray
    columns: np.ndarray
    given: np.ndarray  # per entry of the table, the number of the form that is picked
    mass: np.ndarray  # per form that is picked: occurrences in the priors
    empty: np.ndarray  # per picking word: its share of its language
    empty_starts: np.ndarray


def _moves(positions: int, jumps: np.ndarray, no_link: float) -> np.ndarray:
    """Probabilities of the next position given the last one, each row 1 - no_link in sum: (I, I)."""
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
    """P(word j of one side is linked to word i of the other), given the sentence: (J, I).

    emission (J, I) = probability of word j given word i, empty (J,) given none, jumps (2 WIDEST + 1,) weights of the
    step from one position to the next, `counts` of the same shape takes the expected jumps.
    """
    words, positions = emission.shape
    move = moves(positions, jumps, no_link)
    forward = np.zeros((words, 2, positions))  # 0: linked there, 1: not linked, last position there
    scale = np.zeros(words)
    for j in range(words):
        reached = np.zeros(positions)
        if j > 0:
            for a in range(positions):  # along the rows of `move`, which is faster than along its columns
                mass = forward[j - 1, 0, a] + forward[j - 1, 1, a]
                for b in range(positions):
                    reached[b] += mass * move[a, b]
        for b in range(positions):
            if j == 0:
                # the first word mostly belongs to the first position: a jump from before it
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
    backward = np.ones(positions)  # the same whether the position is linked or not
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
    """One pass over all sentence pairs.

    `counts` and `totals`: links of an entry of the table and of a form.  A sentence's own links (`linked` of the pass
    before, weighed by weights[n]) are taken out of what is known of its words: only OTHER sentences say what they mean.
    `linked` takes the new posteriors, `logs` ln p(picking | picked), `expected` and `jumped` the expected counts.
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

    Machine code is cached beside its file or in the user's cache folder.  The import of numba takes half a second.
    """
    try:
        import numba
    except ModuleNotFoundError:
        return function
    try:
        machine: Callable[..., Any] = numba.njit(cache=True)(function)
    except RuntimeError:  # neither folder is writable: every process compiles for itself
        machine = numba.njit(function)
    return machine


moves = _compiled(_moves)
posteriors = _compiled(_posteriors)
all_posteriors = _compiled(_all_posteriors)
