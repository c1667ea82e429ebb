"""Features of a candidate: its evidence, alone and compared with the other candidates of its step.

There are T steps, M candidates over all steps, and D = len(NUMBERS) features for each.  The candidates are followed by
a row for "none of them" for every step, which has the step's features and zeros elsewhere.  The weights see one
candidate at a time, so the comparison with the other candidates of the step must be part of the features.
"""

from collections.abc import Sequence

import numpy as np

from guessers.rerank.evidence import EVIDENCE, WINDOWS

COMPARED = ("score", "bm25", "words", "pairs")  # each as its share of the maximum, ln of the share, and 6 / (5 + rank)
SPREAD = ("score", "bm25")  # in standard deviations from the step's mean
UNCHANGED = EVIDENCE[EVIDENCE.index("title") :]
STEP = ("words read", "top score", "lead")  # ln(1 + words), ln of the best TF-IDF score, ln of best over second
_FITS = ("kinds", "pronouns", "last kinds", "kind", "title", "title word", "length", "lessons")
_KINDS = ("untold kinds", "last kind")
RELATIVE = {  # comparison -> evidence that is compared with the other candidates of the step
    "behind": _FITS,  # minus the step's maximum
    "off": _FITS,  # minus the mean of the likely candidates
    "of the first": ("kinds", "title", "kind"),  # value of the best-scored candidate minus that of this candidate
    "ahead": (  # minus the maximum of the other candidates
        *(f"{what}: share" for what in COMPARED),
        *(f"last {window}" for window in WINDOWS),
        *("word hits", "pair hits", "most", "kinds", "last kinds", "kind", *_KINDS),
    ),
    "place": ("kinds", "last kinds", *_KINDS),  # 6 / (5 + rank)
}
LIKELY = 10.0  # weight of a candidate in the mean of the likely ones: exp(LIKELY (share of the best score - 1))
NUMBERS = (
    *(f"{what}: {how}" for what in COMPARED for how in ("share", "ln share", "place")),
    *(f"{what}: spread" for what in SPREAD),
    *(f"last {window}" for window in WINDOWS),
    *(f"last {window}: place" for window in WINDOWS),
    *("word hits", "pair hits", "most"),
    *UNCHANGED,
    *(f"{what}: {how}" for how, named in RELATIVE.items() for what in named),
    *STEP,
    "none of them",
)
_TINY = 1e-9
Columns = dict[str, np.ndarray]  # name -> array of shape (M,)


def numbers(evidence: np.ndarray, step: np.ndarray, words: Sequence[int]) -> np.ndarray:
    """Return the features, of shape (M + T, D), for evidence of shape (M, R).

    `step` has the step of each candidate, ascending, and contains every step 0 .. T - 1; `words` has the number of
    words read at each step.
    """
    of = {name: evidence[:, column] for column, name in enumerate(EVIDENCE)}
    of["score"] = of["words"] + of["pairs"]
    firsts = np.flatnonzero(np.diff(step, prepend=-1))
    read = np.asarray(words, np.float64)
    top = np.maximum.reduceat(of["score"], firsts)
    own = _own(of, step, firsts, read, top)
    columns = [*own.values(), *_relative(of | own, step, firsts)]
    of_step = np.stack([np.log1p(read), np.log(top + _TINY), _lead(of["score"], step, firsts)], axis=1)  # (T, 3)
    m, t = len(step), len(read)
    rows = np.zeros((m + t, len(NUMBERS)))
    rows[:m, : len(columns)] = np.stack(columns, axis=1)
    rows[:, len(columns) : -1] = of_step[np.concatenate([step, np.arange(t)])]
    rows[m:, -1] = 1
    return rows


def _own(of: Columns, step: np.ndarray, firsts: np.ndarray, read: np.ndarray, top: np.ndarray) -> Columns:
    """Return the features before RELATIVE's, by name; `read` has the words read at each step, `top` the best scores."""
    count = np.diff(firsts, append=len(step))
    own: Columns = {}
    for name in COMPARED:
        own[f"{name}: share"] = share = of[name] / (np.maximum.reduceat(of[name], firsts) + _TINY)[step]
        own[f"{name}: ln share"] = np.clip(np.log(share + _TINY), -4, 0)
        own[f"{name}: place"] = _reciprocal_rank(of[name], step, firsts)
    for name in SPREAD:
        off = of[name] - (np.bincount(step, of[name]) / count)[step]
        deviation = np.sqrt(np.bincount(step, off * off) / count)
        own[f"{name}: spread"] = off / (deviation[step] + _TINY)
    windows = [f"last {window}" for window in WINDOWS]
    own |= {name: of[name] / (top[step] + _TINY) for name in windows}
    own |= {f"{name}: place": _reciprocal_rank(of[name], step, firsts) for name in windows}
    own |= {name: of[name] / read[step] for name in ("word hits", "pair hits")}
    own["most"] = of["most"] / (of["score"] + _TINY)
    return own | {name: of[name] for name in UNCHANGED}


def _relative(of: Columns, step: np.ndarray, firsts: np.ndarray) -> list[np.ndarray]:
    """Return the columns of RELATIVE, in its order."""
    values = {how: np.stack([of[name] for name in names], axis=1) for how, names in RELATIVE.items()}
    weight = np.exp(LIKELY * (of["score: share"] - 1))[:, None]
    mean = np.add.reduceat(weight * values["off"], firsts) / np.add.reduceat(weight, firsts)
    first = _order(of["score"], step)[firsts]
    columns = {
        "behind": values["behind"] - np.maximum.reduceat(values["behind"], firsts)[step],
        "off": values["off"] - mean[step],
        "of the first": values["of the first"][first][step] - values["of the first"],
        "ahead": values["ahead"] - _others(values["ahead"], step, firsts),
        "place": np.stack([_reciprocal_rank(column, step, firsts) for column in values["place"].T], axis=1),
    }
    return [column for how in RELATIVE for column in columns[how].T]


def _others(values: np.ndarray, step: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    """Return, for each value, the largest value of the step's other candidates, or the value itself without others."""
    top = values == np.maximum.reduceat(values, firsts)[step]
    second = np.maximum.reduceat(np.where(top, -np.inf, values), firsts)[step]
    alone = top & (np.add.reduceat(top.astype(np.int64), firsts) == 1)[step] & np.isfinite(second)
    return np.where(alone, second, np.maximum.reduceat(values, firsts)[step])


def _order(values: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Return the indices that sort the candidates by step, then best first; ties keep their order."""
    return np.lexsort((-values, step))


def _reciprocal_rank(values: np.ndarray, step: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    """Return 6 / (5 + rank) within the step, 1 at the top."""
    rank = np.empty(len(values))
    rank[_order(values, step)] = np.arange(len(values)) - firsts[step]
    return 6 / (6 + rank)


def _lead(values: np.ndarray, step: np.ndarray, firsts: np.ndarray) -> np.ndarray:
    """Return ln(best / second) for each step, clipped to 0 .. 4, or 4 without a second candidate."""
    ordered = values[_order(values, step)]
    alone = np.diff(firsts, append=len(values)) < 2
    second = ordered[np.minimum(firsts + 1, len(values) - 1)]
    lead = np.clip(np.log((ordered[firsts] + _TINY) / (second + _TINY)), 0, 4)
    return np.where(alone, 4.0, lead)
