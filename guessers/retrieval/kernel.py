"""The loop over a text's postings, BM25's fast path, as machine code where numba is installed.

Only `Bm25Guesser.guess_prefixes` imports this module.  The import and the first call take half a second, and two more
where no earlier process has left the machine code.
"""

import numpy as np

from sqa.core.compute import compiled


@compiled
def _climb(pages: np.ndarray, scores: np.ndarray, records: np.ndarray, rank: int) -> None:
    """Move what stands at `rank` up to where it belongs: best first, equal scores by page number."""
    page, score, record = pages[rank], scores[rank], records[rank]
    while rank > 0 and (scores[rank - 1] < score or (scores[rank - 1] == score and pages[rank - 1] > page)):
        pages[rank], scores[rank], records[rank] = pages[rank - 1], scores[rank - 1], records[rank - 1]
        rank -= 1
    pages[rank], scores[rank], records[rank] = page, score, record


@compiled
def best_pages(
    terms: np.ndarray,
    ends: np.ndarray,
    starts: np.ndarray,
    pages: np.ndarray,
    weights: np.ndarray,
    n_pages: int,
    n: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The `n` best pages of a text after each of its words.

    terms (K,) int64 are the text's in order, of which word t has terms[ends[t - 1] : ends[t]]; ends (T,) int64.
    starts (terms + 1,) int64, pages (postings,) int64 and weights (postings,) float64 are the index; 1 <= n <= n_pages.

    Returns record_pages (R,) int64, record_scores (R,) float64, listing (L,), first (T,) and last (T,) int64.  A record
    is a page with a score that it had while it was listed.  After word t the best pages are the records
    listing[first[t] : last[t]], best first, equal scores by page number; steps that change nothing share their part.

    Scores never fall, so a page outside the list can enter only when it gains: a posting costs an addition and, as a
    rule, one comparison.
    """
    all_scores, listed = np.zeros(n_pages), np.zeros(n_pages, np.bool_)
    best, scores, records, size = np.empty(n, np.int64), np.empty(n), np.empty(n, np.int64), 0  # the list now
    record_pages, record_scores, count = np.empty(len(terms) * n, np.int64), np.empty(len(terms) * n), 0
    listing, filled = np.empty(len(terms) * n, np.int64), 0
    first, last = np.zeros(len(ends), np.int64), np.zeros(len(ends), np.int64)
    for step in range(len(ends)):
        changed = False
        for term in terms[0 if step == 0 else ends[step - 1] : ends[step]]:
            for posting in range(starts[term], starts[term + 1]):
                page = pages[posting]
                score = all_scores[page] + weights[posting]
                all_scores[page] = score
                if listed[page]:
                    rank = 0
                    while best[rank] != page:
                        rank += 1
                elif size < n:
                    rank = size
                    size += 1
                elif score > scores[n - 1] or (score == scores[n - 1] and page < best[n - 1]):
                    rank = n - 1
                    listed[best[rank]] = False
                else:
                    continue
                listed[page] = changed = True
                best[rank], scores[rank], records[rank] = page, score, -1
                _climb(best, scores, records, rank)
        if changed:
            for rank in range(size):
                if records[rank] < 0:
                    record_pages[count], record_scores[count], records[rank] = best[rank], scores[rank], count
                    count += 1
                listing[filled + rank] = records[rank]
            filled += size
        first[step], last[step] = filled - size, filled
    return record_pages[:count], record_scores[:count], listing[:filled], first, last
