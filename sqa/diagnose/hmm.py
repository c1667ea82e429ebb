"""The word aligner: an HMM in both directions with priors, trained on a run's texts for each of several seeds.

The model is that of Vogel, Ney and Tillmann (1996) in the form of Och and Ney (2003).  EM trains it on the texts to be
aligned and on the priors' counts (sqa/data/priors.py).  Seeds simulate the variation of texts and priors by the
Bayesian bootstrap (Rubin 1981): each sentence pair has a weight drawn from Exp(1), and each prior count c becomes
Gamma(c).  The same texts and seeds give the same links on every machine with the same rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from sqa.core import Floats
from sqa.data.priors import Priors, form, similar

if TYPE_CHECKING:
    from sqa.diagnose.hmm_kernel import Side

PASSES = (3, 4)  # numbers of passes over the texts, first with equal jumps (IBM model 1), then with learnt jumps
SIMILAR = 5.0  # prior links of two similar words
NO_LINK = 0.15  # prior probability that a word has no counterpart
EMPTY_FLOOR = 0.5  # number of occurrences assigned to a form that the priors lack

Words = Sequence[str]


@dataclass(frozen=True, slots=True)
class Links:
    """Link probabilities and lifts of one sentence pair for one seed."""

    forward: Floats  # (J, I): target word j picks source word i
    reverse: Floats  # (J, I): source word i picks target word j
    lift: Floats  # (J, I): ln of p(form of j | form of i) over p(form of j)


def draw(pairs: Sequence[tuple[Words, Words]], priors: Priors, seeds: Sequence[int]) -> list[list[Links]]:
    """Return for each seed the links of every sentence pair; neither side of a pair may be empty."""
    languages = priors.pair.split("-")
    sources, targets = ([[form(w, lang) for w in pair[side]] for pair in pairs] for side, lang in enumerate(languages))
    counts = _prior_links(pairs, list(zip(sources, targets, strict=True)), priors.links)
    keys = sorted(counts)
    index = {key: at for at, key in enumerate(keys)}
    forward, forward_keys = _side(targets, sources, priors.source, priors.target)
    back, back_keys = _side(sources, targets, priors.target, priors.source)
    forward_at = [index[key] for key in forward_keys]
    back_at = [index[s, t] for t, s in back_keys]
    links_of_seeds = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        weights = rng.exponential(size=len(pairs))
        drawn = rng.gamma([counts[key] for key in keys])
        sides = _learn(forward, drawn[forward_at], weights), _learn(back, drawn[back_at], weights)
        links_of_seeds.append([Links(f, r.T.copy(), lift) for (f, lift), (r, _) in zip(*sides, strict=True)])
    return links_of_seeds


def _prior_links(
    pairs: Sequence[tuple[Words, Words]],
    forms: Sequence[tuple[list[str], list[str]]],
    links: Mapping[tuple[str, str], int],
) -> dict[tuple[str, str], float]:
    """Return the prior links of forms that occur together: their counts, plus SIMILAR for similar words."""
    counts: dict[tuple[str, str], float] = {}
    for (x, y), (source, target) in zip(pairs, forms, strict=True):
        for (word, s), (target_word, t) in product(zip(x, source, strict=True), zip(y, target, strict=True)):
            if (s, t) not in counts:
                counts[s, t] = links.get((s, t), 0) + (SIMILAR if similar(word, target_word) else 0.0)
    return counts


def _side(
    picking: Sequence[list[str]], picked: Sequence[list[str]], mass: Mapping[str, int], occurrences: Mapping[str, int]
) -> tuple[Side, list[tuple[str, str]]]:
    """Return the arrays of one direction, and the pair (picked form, picking form) of each entry of its table."""
    from sqa.diagnose.hmm_kernel import Side

    entry: dict[tuple[str, str], int] = {}
    number: dict[str, int] = {}
    pairs: list[int] = []
    for row, column in zip(picking, picked, strict=True):
        for word in row:
            for picked_word in column:
                number.setdefault(picked_word, len(number))
                pairs.append(entry.setdefault((picked_word, word), len(entry)))
    sizes = np.array([[len(row), len(column)] for row, column in zip(picking, picked, strict=True)], dtype=np.int64)
    total = sum(occurrences.values()) + 1.0
    shares = [max(occurrences.get(word, 0), EMPTY_FLOOR) / total for row in picking for word in row]
    side = Side(
        np.array(pairs, dtype=np.int64),
        np.concatenate([[0], np.cumsum(sizes.prod(1))]),
        sizes[:, 0].copy(),
        sizes[:, 1].copy(),
        np.array([number[picked_word] for picked_word, _ in entry], dtype=np.int64),
        np.array([float(mass.get(word, 0)) for word in number]),
        np.array(shares),
        np.concatenate([[0], np.cumsum(sizes[:, 0])]),
    )
    return side, list(entry)


def _learn(side: Side, prior: Floats, weights: Floats) -> list[tuple[Floats, Floats]]:
    """Return two arrays (rows, columns) per sentence pair: posteriors, and ln of p(picking | picked) / p(picking)."""
    from sqa.diagnose.hmm_kernel import WIDEST, all_posteriors  # local, since the import of numba is slow

    jumps = np.ones(2 * WIDEST + 1)
    expected, posteriors, logs = np.zeros(len(prior)), np.zeros(len(side.pairs)), np.zeros(len(side.pairs))
    # prior counts of a form with words that do not occur with it in these texts
    listed = np.bincount(side.given, prior, len(side.mass))
    elsewhere = np.maximum(side.mass - listed, 0.0)
    for step in range(sum(PASSES)):
        counts, jumped = prior + expected, np.zeros(2 * WIDEST + 1)
        totals = np.bincount(side.given, counts, len(side.mass)) + elsewhere
        expected = np.zeros(len(prior))
        all_posteriors(side, counts, totals, jumps, NO_LINK, weights, posteriors, logs, expected, jumped)
        if step + 1 >= PASSES[0]:
            jumps = (jumped + 1.0) / (jumped.sum() + len(jumped)) * len(jumped)
    return [
        (
            posteriors[a : a + r * c].reshape(r, c).copy(),
            logs[a : a + r * c].reshape(r, c) - np.log(side.empty[e : e + r, None]),
        )
        for a, e, r, c in zip(side.starts[:-1], side.empty_starts[:-1], side.rows, side.columns, strict=True)
    ]
