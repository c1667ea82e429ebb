"""Signals that a target word is wrong, from the alignment, from spelling and vocabulary, and from a model's scores.

Each signal is one number per target word.  No signal uses the human translation, the guesses or other questions, except
that the aligner learns words from all texts.
"""

import math
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache
from itertools import groupby
from typing import NamedTuple

import numpy as np
from snowballstemmer import stemmer

from sqa.core import DATA, DataError, Floats, language_of, unmarked
from sqa.data.priors import bundled_priors, folded, form, is_content, similar, strip_edges
from sqa.diagnose.alignment import Alignment, Evidence, Words
from sqa.files import read_tensors, unpack_integers, unpack_strings

FOLDER = DATA / "models" / "bm25"
KIND, VERSION = "bm25", 1
SHARED_PAGES = 100  # a word on at least this many pages also counts as English
EVERYWHERE = 5000  # number of pages assigned to a function word
_TOKEN = re.compile(r"[a-z0-9]+")
_stemmer = stemmer("english")


@cache
def _pages() -> dict[str, int]:
    """Return a dict that maps each stem to the number of pages whose questions contain it."""
    tensors, _ = read_tensors(FOLDER, KIND, VERSION)
    try:
        words, pages = unpack_strings(tensors["words"]), unpack_integers(tensors["pages_per_term"])
    except (KeyError, ValueError) as error:
        raise DataError(f"{FOLDER}: the guesser's words are damaged ({error}); restore the folder") from error
    return dict(zip(words, pages.tolist(), strict=False))  # word pairs follow the single words


@lru_cache(maxsize=1 << 17)
def foreign(word: str, language: str) -> bool:
    """Return whether a word belongs to the source language and not to English.

    A word that no question contains is foreign.  If there are priors and they lack its English form, a word that is
    rare in questions is also foreign if it is a function word of the source language or the priors have its source
    form.
    """
    bare, priors = strip_edges(word).lower(), bundled_priors(f"{language}-en")
    if bare in language_of("en").function_words or pages(bare) >= SHARED_PAGES:
        return False
    if priors is None or form(bare, "en") in priors.target:
        return pages(bare) == 0
    in_language = form(bare, language) in priors.source or bare in language_of(language).function_words
    return in_language or pages(bare) == 0


@lru_cache(maxsize=1 << 17)
def pages(word: str) -> int:
    """Return the number of pages with a word's rarest part, or 0 for a word outside the English vocabulary.

    Hyphens, apostrophes and dots separate parts.  Numbers and single letters count as being on every page.
    """
    bare = unmarked(word.replace("’", "'").replace("ł", "l").replace("Ł", "L")).lower().removesuffix("'s")
    if bare in language_of("en").function_words:
        return EVERYWHERE
    parts = [part for part in _TOKEN.findall(bare) if len(part) > 1 and not part.isdigit()]
    return min((_pages().get(str(_stemmer.stemWord(part)), 0) for part in parts), default=EVERYWHERE)


TARGET = "en"  # all translations are English
NEAR = 4  # words; lost source words up to this distance from a target word's approximate position are near it
ALIGNED = tuple(("untrusted spread picks unpicked rival lift before after sentence uncovered beside").split())
SPELT = tuple(
    ("unknown rare name number copied alike garbled foreign new_name new_number again_source pair_again long").split()
)
SCORED = ("given", "gain", "short", "given_after", "short_after", "given_sentence")
# The direct signals have a weight of their own, even if they are rare: unknown, garbled, foreign, new_number,
# again_source and pair_again.
# groups: without a model, and with scores of a language model
_JUDGED = ALIGNED + SPELT
GROUPS: dict[str, tuple[str, ...]] = {"words": _JUDGED, "lm": _JUDGED + SCORED}
LOOP, FAR_LOOP = 4, 12  # maximum distance in words of a repetition, if the source has and has no repeated word
MOST_LIFT, LEAST_LN = 14.0, -25.0


class WordScores(NamedTuple):
    """Scores of one translation: one natural logarithm per target word."""

    given: tuple[float, ...]  # ln p(word | source, words before)
    alone: tuple[float, ...]  # ln p(word | words before), without the source
    short: tuple[float, ...]  # >= 0, ln p of the likeliest pieces in the word's place minus ln p of its own pieces


def word_signals(
    source: Words, target: Words, alignment: Alignment, language: str, scores: WordScores | None = None
) -> Floats:
    """Return the signals (J, F) of the J target words.

    The F signals are GROUPS["words"], or with scores GROUPS["lm"].
    """
    parts = [_aligned(source, target, alignment, language), _spelt(tuple(source), tuple(target), language)]
    if scores is not None:
        parts.append(_scored(scores))
    return np.concatenate(parts, 1)


# -------------------------------------------------------------------------------------------------------- alignment


def _aligned(source: Words, target: Words, alignment: Alignment, language: str) -> Floats:
    evidence = alignment.evidence or _bare(alignment)
    trust = np.array(alignment.target)
    content = np.array([is_content(word, TARGET) for word in target])
    read = zip(source, alignment.source, strict=True)
    lost = [1.0 - trusted if is_content(word, language) else 0.0 for word, trusted in read]
    rows = []
    for j in range(len(target)):
        before = [trust[i] for i in range(j - 1, -1, -1) if content[i]][:1]
        after = [trust[i] for i in range(j + 1, len(target)) if content[i]][:1]
        position = _position(alignment, j, len(source), len(target))
        near = lost[max(0, position - NEAR) : position + NEAR + 1]
        linked = {s for s, t in alignment.links if t == j}
        adjacent = {s for s, t in alignment.links if abs(t - j) == 1}
        rows.append(
            [
                1.0 - trust[j],
                evidence.spread[j],
                evidence.picks[j],
                1.0 - evidence.picked[j],
                evidence.rival[j],
                min(evidence.lift[j], MOST_LIFT) / MOST_LIFT,
                1.0 - (before[0] if before else 1.0),
                1.0 - (after[0] if after else 1.0),
                1.0 - float(trust[content].mean()) if content.any() else 0.0,
                max(near, default=0.0),
                float(any(abs(a - b) <= 1 for a in linked for b in adjacent)),
            ]
        )
    return np.array(rows).reshape(-1, len(ALIGNED))


def _bare(alignment: Alignment) -> Evidence:
    """Return the evidence of an aligner that provides only trust values."""
    none = (0.0,) * len(alignment.target)
    lift = tuple(MOST_LIFT * trust for trust in alignment.target)
    return Evidence(none, alignment.target, alignment.target, none, lift)


def _position(alignment: Alignment, j: int, sources: int, targets: int) -> int:
    """Return the approximate source position of a target word, beside the source of the nearest linked word if any."""
    linked = [(abs(t - j), s + (j > t) - (j < t)) for s, t in alignment.links if t != j]
    return min(linked)[1] if linked else round(j * sources / max(targets, 1))


# --------------------------------------------------------------------------------------------- spelling and vocabulary


@lru_cache(maxsize=1 << 14)  # equal for every alignment of a text
def _spelt(source: tuple[str, ...], target: tuple[str, ...], language: str) -> Floats:
    bare = [strip_edges(word) for word in target]
    forms = [form(word, TARGET) for word in target]
    source_words = {folded(word) for word in source}
    numbers = {n for word in source for n in digits(word)}
    meant = [form(word, language) for word in source if is_content(word, language)]
    doubled = len(meant) - len(set(meant))
    pairs = [tuple(forms[j : j + 2]) for j in range(len(forms))]
    rows = []
    for j, word in enumerate(bare):
        name = word[:1].isupper() and j > 0
        number = any(c.isdigit() for c in word)
        same = folded(word) in source_words
        near = nearest(word, source) if not same else 1.0
        page_count = pages(word)
        unknown = float(page_count == 0)
        odd = unknown * (1.0 - float(same))
        again = [i for i in range(j) if forms[i] == forms[j] and is_content(word, TARGET)]
        runs = digits(word)
        rows.append(
            [
                odd,
                1.0 / (1.0 + math.log1p(max(page_count, 1))),
                float(name),
                float(number),
                float(same),
                near,
                odd * near,
                float(same and not name and not number and foreign(word, language)),
                float(name) * (1.0 - near),
                float(number and not set(runs) <= numbers),
                float(bool(again)) / (1.0 + doubled),
                float(_repeated(pairs, j, LOOP if doubled else FAR_LOOP)),
                min(len(word), 15) / 15,
            ]
        )
    return np.array(rows).reshape(-1, len(SPELT))


def _repeated(pairs: Sequence[tuple[str, ...]], j: int, within: int) -> bool:
    """Return whether the word and a neighbour occurred together within the last `within` words."""
    bigrams = {i: pairs[i] for i in (j - 1, j) if i >= 0 and len(pairs[i]) == 2}
    return any(pairs[i] == pair for at, pair in bigrams.items() for i in range(max(0, at - within), at))


def digits(word: str) -> tuple[str, ...]:
    """Return the runs of digits in a word, after removal of separators: "4.500" -> ("4500",)."""
    runs = groupby(word.replace(".", "").replace(",", ""), str.isdigit)
    return tuple("".join(run) for is_digits, run in runs if is_digits)


@lru_cache(maxsize=1 << 18)  # translations of the same questions share words
def nearest(word: str, source: tuple[str, ...]) -> float:
    """Return the similarity to the most similar source word: 0-1, 1 = equal except for case, marks and ending."""
    bare = folded(word)
    return max((1.0 if similar(each, word) else _spelling_ratio(bare, folded(each)) for each in source), default=0.0)


@lru_cache(maxsize=1 << 18)
def _spelling_ratio(a: str, b: str) -> float:
    if min(len(a), len(b)) < 3 or a[0] != b[0]:
        return 0.0
    return SequenceMatcher(None, a, b, autojunk=False).ratio()


# ------------------------------------------------------------------------------------------------------ model's scores


def _scored(scores: WordScores) -> Floats:
    given, alone, short = (np.clip(np.array(x, dtype=np.float64), LEAST_LN, -LEAST_LN) for x in scores)
    if not len(given):
        return np.zeros((0, len(SCORED)))
    after = np.append(given[1:], 0.0)
    rows = [given, given - alone, short, after, np.append(short[1:], 0.0), np.full(len(given), given.mean())]
    return np.stack(rows, 1) / 10
