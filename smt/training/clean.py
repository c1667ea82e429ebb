"""Cleaner of parallel corpora: drops useless pairs and counts them by the step that drops them.

    normalise -> one test after another (PAIR_TESTS) -> duplicates -> overlap with development and test sets
              -> word alignment (needs a second pass, see `aligned_enough`)

Every step is a generator from pairs to pairs, so corpora can have any size.  Memory holds only a 64-bit number per pair
(for duplicates) and the held-out sentences.  `sqa train smt` writes the counts to clean.tsv.

A side in a wrong language is not detected by itself; few of its words align, so `min_aligned` drops the pair.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from smt.models.vocab import normalise
from sqa.core import Count, Share, Whole, checked, marks
from sqa.results import Table

Pair = tuple[str, str, str]  # source, target, corpus
VERSION = 2  # increase when the cleaner accepts other pairs, so that users' own pairs are prepared again
STEPS = ("length", "ratio", "noise", "copied", "letters", "overlap", "duplicate", "alignment")

_NOISE = re.compile(r"[<>{}|\\_$@#%=~^\[\]]|https?:|www\.|\.{4}|--\w|\(\*\)|\(\"|&\w|\w&|::|/\w+/")
# pairs per call of the aligner: larger blocks improve its statistics, smaller blocks save memory
_ALIGNED_TOGETHER = 200_000


@dataclass(frozen=True, slots=True)
@checked
class CleanConfig:
    """Limits of the cleaner."""

    min_words: Annotated[Count, "minimum number of words on either side; the lexicons provide shorter lines"] = 2
    max_words: Annotated[int, "maximum number of words on either side"] = 80
    max_ratio: Annotated[
        float, Meta(ge=1), "maximum ratio of the longer to the shorter side, with `ratio_slack` words added to both"
    ] = 2.0
    ratio_slack: Annotated[Whole, "words added to both sides before `max_ratio` applies"] = 3
    min_letters: Annotated[Share, "minimum share of characters that are letters, their marks or spaces"] = 0.7
    overlap_words: Annotated[Whole, "drop pairs that share this many consecutive words with held-out text; 0 = off"] = 0
    min_aligned: Annotated[Share, "minimum share of words linked in both directions; 0 = no alignment"] = 0.0

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        if self.min_words > self.max_words:
            return [f"min_words: must be <= max_words {self.max_words}, got {self.min_words}"]
        return []


@dataclass(slots=True)
class Report:
    """Counts of pairs per corpus: read, and dropped by each step."""

    read: Counter[str] = field(default_factory=Counter)  # corpus -> pairs
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)  # (corpus, step) -> pairs

    def table(self) -> Table:
        """Return one line per corpus, largest first, and their sum; read pairs = dropped pairs + kept pairs."""
        rows: list[tuple[Any, ...]] = []
        for corpus, n in self.read.most_common():
            dropped = [self.dropped[corpus, step] for step in STEPS]
            rows.append((corpus, n, *dropped, n - sum(dropped)))
        sums = [sum(row[i] for row in rows) for i in range(1, len(STEPS) + 3)]
        return Table(("corpus", "read", *STEPS, "kept"), [*rows, ("all", *sums)])


PAIR_TESTS: dict[str, Callable[[list[str], list[str], str, str, CleanConfig], bool]] = {
    "length": lambda x, y, s, t, c: c.min_words <= min(len(x), len(y)) and max(len(x), len(y)) <= c.max_words,
    "ratio": lambda x, y, s, t, c: (
        max(len(x), len(y)) + c.ratio_slack <= c.max_ratio * (min(len(x), len(y)) + c.ratio_slack)
    ),
    "noise": lambda x, y, s, t, c: not (_NOISE.search(s) or _NOISE.search(t)),
    "copied": lambda x, y, s, t, c: len(y) <= 3 or s != t,
    "letters": lambda x, y, s, t, c: all(
        sum(ch.isalpha() or ch == " " or ch in letter_marks for ch in side) >= c.min_letters * len(side)
        for side, letter_marks in ((s, marks(s)), (t, marks(t)))
    ),
}


def refused_by(source: str, target: str, config: CleanConfig) -> str | None:
    """Return the first of PAIR_TESTS that a normalised pair fails; None if it passes them all."""
    x, y = source.split(), target.split()
    return next((name for name, passes in PAIR_TESTS.items() if not passes(x, y, source, target, config)), None)


def clean(pairs: Iterable[Pair], held_out: Iterable[str], config: CleanConfig, report: Report) -> Iterator[Pair]:
    """Yield the normalised pairs that pass every step except the alignment, in order."""
    overlaps, seen = Overlap(held_out, config.overlap_words), set[int]()
    for source, target, corpus in pairs:
        source, target = normalise(source), normalise(target)
        report.read[corpus] += 1
        step = refused_by(source, target, config)
        if step is None and (overlaps(source) or overlaps(target)):
            step = "overlap"
        if step is None:
            letters = f"{_key(source)}\n{_key(target)}".encode()
            hashed = int.from_bytes(blake2b(letters, digest_size=8).digest())
            step = "duplicate" if hashed in seen else None
            seen.add(hashed)
        if step is None:
            yield source, target, corpus
        else:
            report.dropped[corpus, step] += 1


def _key(text: str) -> str:
    """Return the letters and digits of a text, by which pairs and held-out sentences are compared."""
    return re.sub(rf"[^\w{marks(text)}]+", "", text.lower())


class Overlap:
    """Detector of held-out sentences (by letters and digits), and of texts with `words` consecutive words of one."""

    def __init__(self, held_out: Iterable[str], words: int = 0) -> None:
        self.words = words
        self._whole: set[str] = set()
        self._runs: set[int] = set()
        for line in held_out:
            self._whole.add(_key(line))
            self._runs.update(self._hashes(line))

    def _hashes(self, text: str) -> Iterator[int]:
        if self.words:
            words = re.findall(rf"[\w{marks(text)}]+", text.lower())
            for i in range(len(words) - self.words + 1):
                yield hash(tuple(words[i : i + self.words]))

    def __call__(self, text: str) -> bool:
        return _key(text) in self._whole or any(run in self._runs for run in self._hashes(text))


def aligned_enough(pairs: Iterable[Pair], least: float, report: Report) -> Iterator[Pair]:
    """Yield pairs with at least the share `least` (0 to 1, both sides) of their words linked; see `coverage`."""
    stream = iter(pairs)
    while least > 0 and (chunk := list(islice(stream, _ALIGNED_TOGETHER))):
        for pair, share in zip(chunk, coverage([pair[:2] for pair in chunk]), strict=True):
            if share >= least:
                yield pair
            else:
                report.dropped[pair[2], "alignment"] += 1
    yield from stream


def coverage(pairs: Sequence[tuple[str, str]]) -> list[float]:
    """Return the share of a pair's words, both sides, that eflomal links in BOTH directions: 0 to 1.

    Source: Östling and Tiedemann 2016.  Words are compared by their first five letters, which halves the number of
    forms in an inflected language.  The aligner samples at random, so shares vary by a few hundredths between runs.
    """
    sources, targets = ([" ".join(pair[side].lower().split()) for pair in pairs] for side in (0, 1))
    shares = []
    for (source, target), (a, b) in zip(pairs, linked(sources, targets, letters=5), strict=True):
        agreed = [link.split("-") for link in set(a.split()) & set(b.split())]
        words = len({s for s, _ in agreed}) + len({t for _, t in agreed})
        shares.append(words / max(len(source.split()) + len(target.split()), 1))
    return shares


def linked(sources: Sequence[str], targets: Sequence[str], letters: int = 0) -> list[tuple[str, str]]:
    """Return eflomal's links of each pair of lines, "0-0 1-2 ...", in both directions.

    `letters` is the number of initial letters by which words are compared; 0 = all.
    """
    import tempfile

    import eflomal

    with tempfile.TemporaryDirectory() as folder:
        forward, reverse = (Path(folder) / name for name in ("forward", "reverse"))
        aligner = eflomal.Aligner(model=3, n_iterations=(2, 2, 2), source_prefix_len=letters, target_prefix_len=letters)
        aligner.align(sources, targets, links_filename_fwd=str(forward), links_filename_rev=str(reverse), quiet=True)
        return list(zip(*(path.read_text().split("\n")[:-1] for path in (forward, reverse)), strict=True))
