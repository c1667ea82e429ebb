"""Tables of a phrase-based system from aligned text: phrase pairs (Koehn, Och and Marcu 2003) and n-gram counts.

Both have the text formats that the decoder (Thot) reads.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path

import numpy as np

from sqa.files import write_text

Span = tuple[int, int, int, int]  # first and last source token, first and last target token (inclusive)


def spans(links: np.ndarray, longest: int) -> Iterator[Span]:
    """Yield phrase pairs consistent with `links` (I, J) bool, with at most `longest` tokens per side.

    A pair is consistent if it contains at least one link and no link crosses its border.  Unaligned tokens at the edges
    are optional and give several pairs.
    """
    size, width = links.shape
    rows = [np.flatnonzero(row).tolist() for row in links]
    columns = [np.flatnonzero(column).tolist() for column in links.T]
    for first in range(size):
        low, high = width, -1
        for last in range(first, min(size, first + longest)):
            if rows[last]:
                low, high = min(low, rows[last][0]), max(high, rows[last][-1])
            if high - low >= longest:
                break
            inside = columns[low : high + 1]
            if high >= 0 and not any(column and (column[0] < first or column[-1] > last) for column in inside):
                yield from ((first, last, a, b) for a, b in _edges(columns, low, high, longest))


def _edges(columns: list[list[int]], low: int, high: int, longest: int) -> Iterator[tuple[int, int]]:
    """Yield the target span low..high, extended over unaligned tokens on both sides up to `longest` tokens."""
    a = low
    while True:
        b = high
        while b - a < longest:
            yield a, b
            b += 1
            if b == len(columns) or columns[b]:
                break
        a -= 1
        if a < 0 or columns[a] or high - a >= longest:
            break


class PhraseCounts:
    """Counts of phrase pairs."""

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self.joint: Counter[str] = Counter()  # "target ||| source"
        self.target: Counter[str] = Counter()
        self.linked: Counter[tuple[str, str]] = Counter()  # (source token, target token)

    def add(self, x: Sequence[str], y: Sequence[str], links: np.ndarray) -> None:
        """Count the phrase pairs of a sentence pair; `links` is a bool array of shape (|x|, |y|)."""
        for i, k, j, m in spans(links, self.longest):
            target = " ".join(y[j : m + 1])
            self.target[target] += 1
            self.joint[f"{target} ||| {' '.join(x[i : k + 1])}"] += 1
        for i, j in np.argwhere(links).tolist():
            self.linked[x[i], y[j]] += 1

    def rows(self, best: int, once: int) -> Iterator[tuple[str, str, int, int]]:
        """Yield (target, source, count of target, count of both) for the `best` most frequent targets per source.

        Pairs seen once are kept only if their source has at most `once` tokens.  A source token that occurs only in
        longer phrases gets the target token with most links to it, so that every seen word is known.
        """
        pairs = ((pair.split(" ||| "), n) for pair, n in self.joint.items())
        kept = sorted((source, -n, target) for (target, source), n in pairs if n > 1 or source.count(" ") < once)
        sources = set()
        for source, group in groupby(kept, key=lambda row: row[0]):
            sources.add(source)
            for _, n, target in islice(group, best):
                yield target, source, self.target[target], -n
        for source, target in sorted(self.linked, key=lambda pair: (-self.linked[pair], pair)):
            if source not in sources:
                sources.add(source)
                yield target, source, self.target[target] + 1, 1


def write_rows(rows: Iterable[tuple[str, str, int, int]], path: Path) -> None:
    """Write phrase pairs in Thot's format, `target ||| source ||| c(target) c(both)`."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{target} ||| {source} ||| {total}.0 {both}.0\n" for target, source, total, both in rows)


def longest_source(table: Path) -> int:
    """Return the number of tokens of a table's longest source phrase, or 1 if the table is empty."""
    with table.open(encoding="utf-8") as file:
        return 1 + max((line.split(" ||| ", 2)[1].count(" ") for line in file), default=0)


def ngrams(sentences: Iterable[Sequence[str]], order: int) -> Iterator[tuple[str, int, int]]:
    """Yield (n-gram, count of its history, count) for 1 <= n <= order, by length, then in code point order.

    The first occurrence of every word counts as "<unk>", which gives the probability of a new word.
    """
    counts: list[Counter[str]] = [Counter() for _ in range(order)]
    seen: set[str] = set()
    total = 0
    for sentence in sentences:
        tokens = ["<s>", *(token if token in seen else "<unk>" for token in sentence), "</s>"]
        seen.update(sentence)
        total += len(tokens)
        for n in range(1, order + 1):
            counts[n - 1].update(" ".join(tokens[i : i + n]) for i in range(len(tokens) - n + 1))
    for n, table in enumerate(counts):
        for gram in sorted(table):
            history = total if n == 0 else counts[n - 1][gram.rpartition(" ")[0]]
            yield gram, history, table[gram]


def write_ngrams(sentences: Iterable[Sequence[str]], order: int, once: int, path: Path) -> None:
    """Write n-gram counts in Thot's format; n-grams of more than `once` words must be seen twice."""
    kept = (row for row in ngrams(sentences, order) if row[2] > 1 or row[0].count(" ") < once)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{gram} {history} {n}\n" for gram, history, n in kept)


def history_counts(counts: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield (n-gram, count of its history) of all n-grams, in order.  Raises KeyError if a history is missing."""
    total = sum(n for gram, n in counts.items() if " " not in gram)
    for gram in counts:
        history, several, _ = gram.rpartition(" ")
        yield gram, counts[history] if several else total


def only_ngrams_of(counts: Path, sentences: Iterable[Sequence[str]], order: int, out: Path) -> None:
    """Copy the n-grams that the model needs for the probability of `sentences`."""
    grams = {"<s>", "</s>", "<unk>"}
    for sentence in sentences:
        tokens = ["<s>", *sentence, "</s>"]
        for n in range(1, order + 1):
            grams.update(" ".join(tokens[i : i + n]) for i in range(len(tokens) - n + 1))
    with counts.open(encoding="utf-8") as file, out.open("w", encoding="utf-8", newline="\n") as copy:
        copy.writelines(line for line in file if line.rsplit(" ", 2)[0] in grams or "<unk>" in line)


LEXICON = np.dtype([("given", "<u4"), ("word", "<u4"), ("log_count", "<f4"), ("log_total", "<f4")])


def prune_lexicon(path: Path, least: float) -> None:
    """Drop word translations less probable than `least` from a lexicon file of Thot, and renormalise the rest."""
    table = np.fromfile(path, dtype=LEXICON)
    kept = table[np.exp(table["log_count"] - table["log_total"]) >= least]
    kept = kept[np.argsort(kept["given"], kind="stable")]
    start = np.unique(kept["given"], return_index=True)[1]
    if len(kept):
        totals = np.add.reduceat(np.exp(kept["log_count"].astype(np.float64)), start)
        kept["log_total"] = np.repeat(np.log(totals), np.diff([*start, len(kept)]))
    kept.tofile(path)


def write_language_weights(prefix: Path, order: int, weights: Sequence[float]) -> None:
    """Write Thot's file of interpolation weights: for each order, 3 buckets of the history's count, each 10 wide."""
    write_text(prefix.with_name(f"{prefix.name}.weights"), f"{order} 3 10 {' '.join(f'{w:.6f}' for w in weights)}\n")


def write_tokens(path: Path, sentences: Iterable[Sequence[str]]) -> None:
    """Write one sentence per line, with spaces between tokens."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(" ".join(sentence) + "\n" for sentence in sentences)


def read_tokens(path: Path) -> list[list[str]]:
    """Return the sentences written by `write_tokens`."""
    return [line.split(" ") if line else [] for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
