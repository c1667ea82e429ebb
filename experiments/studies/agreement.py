"""Agreement of a measure with people about systems and sentences.

Systems with the same text are compared pair by pair:

    tau          Kendall's tau_b of the order of the systems by people and by a measure
    spa          soft pairwise accuracy, 1 - |p - q| averaged over pairs of systems, where p and q are the one-sided
                 p-values of people and of the measure (Thompson et al. 2024); 0.5 if the measure is random
    told apart   share of the pairs of translations of a sentence rated differently by people that the measure also
                 rates differently
    concordance  share of these with the order that people give; 0.5 if the measure is random
"""

from collections.abc import Iterator

import numpy as np

from sqa.core import Floats
from sqa.core.significance import TIE, Resampled

EXCHANGES = 100  # random exchanges behind each p-value


def compared_pairs(metric: Resampled, stats: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the difference of each pair of systems in the sum of weighted statistics, and its one-sided p-value."""
    score, (a, b) = metric.score_many, np.triu_indices(len(stats), 1)
    swapped = np.random.default_rng(0).integers(0, 2, (EXCHANGES, len(weights))) * weights
    total, moved = np.einsum("n,snd->sd", weights, stats), np.einsum("rn,snd->srd", swapped, stats, optimize=True)
    change = moved[b] - moved[a]  # (pairs, EXCHANGES, d)
    sides = (np.concatenate(total[side][:, None] + sign * change) for side, sign in ((a, 1), (b, -1)))
    difference = score(total)[a] - score(total)[b]
    null = np.subtract(*map(score, sides)).reshape(len(a), EXCHANGES)
    return difference, (1 + (null >= difference[:, None] - TIE).sum(axis=1)) / (1 + EXCHANGES)


def tau(human: tuple[Floats, Floats], measured: tuple[Floats, Floats]) -> float:
    """Return Kendall's tau_b of two sets of differences of pairs; nan if all systems are equal."""
    a, b = np.sign(human[0]), np.sign(measured[0])
    ordered = (a != 0).sum() * (b != 0).sum()
    return float((a * b).sum() / np.sqrt(ordered)) if ordered else np.nan


def soft(human: tuple[Floats, Floats], measured: tuple[Floats, Floats]) -> float:
    """Return the soft pairwise accuracy of two sets of p-values."""
    return float(1 - np.abs(human[1] - measured[1]).mean())


def concordance(human: Floats, metric: Resampled, stats: Floats) -> Iterator[tuple[str, Floats]]:
    """Yield the names and tables of statistics (sentences, 2) of the agreement about single sentences."""
    # The score of a sentence without facts is undefined: a tie.
    scores = np.nan_to_num(np.stack([metric.score_many(table) for table in stats]), nan=-1.0)
    a, b = np.triu_indices(len(scores), 1)
    people, rule = (np.sign(np.round(each[a] - each[b], 9)) for each in (human[..., 0], scores))
    yield "told apart", np.column_stack([(people * rule != 0).sum(axis=0), (people != 0).sum(axis=0)])
    yield "concordance", np.column_stack([(people * rule > 0).sum(axis=0), (people * rule != 0).sum(axis=0)])
