"""Lucene's text analysis and BM25, which make the embedded BM25 guesser the twin of an Elasticsearch server.

Analyzers: `standard` (Elasticsearch's default: words split by Unicode's rules, in lower case) and `english`
(possessives and 33 stop words dropped, Porter stems).  Both take one word, delimited by white space, because no
splitting rule looks across white space.  Two differences do not matter for English text: an emoji of several
characters is several tokens, and letters follow the Unicode version of `regex` instead of Lucene's (which is older).

The similarity is `BM25Similarity` of Lucene 8 to 10, in its own single precision:

    score(t, d) = weight - weight / (1 + tf(t, d) / norm(d)),   norm(d) = k1 (1 - b + b length(d) / mean length)
    weight = boost * ln(1 + (N - df + 1/2) / (df + 1/2))

where length(d) is rounded to a byte (exact to 40, then 4 significant bits), and the mean is over exact lengths.
Elasticsearch uses `LegacyBM25Similarity`, the same score times (k1 + 1).

Sources: apache/lucene BM25Similarity.java, SmallFloat.java, StandardTokenizerImpl.jflex, EnglishAnalyzer.java;
elastic/elasticsearch LegacyBM25Similarity.java.  tests/golden/test_lucene.py compares with a running Lucene.

The stemmer is Snowball's `porter`, Porter's algorithm of 1980 (M. F. Porter, "An algorithm for suffix stripping",
Program 14(3), 1980), adjusted to Lucene's differences.  Words of one or two letters are unchanged, "bli" becomes
"ble" (the paper: "abli" "able"), and "logi" becomes "log".  Any doubled consonant except l, s, z becomes single
before -ed and -ing ("trekking").  Snowball's `english` (guessers/text.py) is a later algorithm.
"""

import functools
import re

import numpy as np
import regex  # type: ignore[import-untyped]
from snowballstemmer import stemmer

_porter = stemmer("porter")
_LATER = {"bli": "ble", "logi": "log"}  # endings that Porter replaced in a later version, if enough of the word is left


@functools.lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """Return the stem of a lower-case word: "possibly" -> "possibl"."""
    if len(word) < 3:
        return word
    short = str(_porter.stemWord(word))
    for ending, replaced in _LATER.items():
        left = short.removesuffix(ending)
        if left != short and not word.endswith("e") and _has_measure(left):
            return str(_porter.stemWord(left + replaced))
    if word in (f"{short}ed", f"{short}ing") and short[-1] == short[-2:-1] and short[-1] not in "aeiouylsz":
        return stem(short[:-1])
    return short


def _has_measure(word: str) -> bool:
    """Return whether a vowel is followed by a consonant (Porter's m > 0); y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape[-1:] == "c")
        shape += "v" if vowel else "c"
    return "vc" in shape


STOP_WORDS = frozenset(
    """a an and are as at be but by for if in into is it no not of on or such that the their then there these they this
    to was will with""".split()
)
MAX_TOKEN = 255  # characters; longer tokens are split

# Characters that are tokens of their own: Unicode's emoji and related characters, as in Lucene.
_SIGN = (
    "[©®‼⁉™↔-↙↩↪⌚⌛⌨⎈⏏⏩-⏳⏸-⏺▪▫▶◀◻-◾☀-★☇-☒☔-⚅⚐-✅✈-✒✔✖✝✡✨✳✴❄❇❌❎❓-❕❗❣-❧➕-➗➡➰➿⤴⤵⬅-⬇⬛⬜⭐⭕〰〽㊗㊙"
    "\U0001f300-\U0001f53d\U0001f546-\U0001f64f\U0001f680-\U0001f6ff\U0001f900-\U0001f9ff]"
)
_PLAIN = re.compile(r"[A-Za-z0-9]+")
_APOSTROPHES = str.maketrans("'’", "..")  # `regex` splits at some apostrophes, but joins letters at full stops
_MARK = regex.compile(r"(?<=\p{Latin}\p{M}*)\p{M}")
_FIRST = r"^[\p{M}\p{Cf}]+"  # marks without a letter before them
_PART = regex.compile(
    rf"{_FIRST}|\p{{Line_Break=Complex_Context}}+|{_SIGN}|(?:\b|(?<={_FIRST})).+?\b",
    regex.WORD | regex.V1 | regex.DOTALL,
)
_IS_TOKEN = regex.compile(rf"[\p{{Alphabetic}}\p{{Nd}}{_SIGN}]", regex.V1)


def _cut(word: str) -> list[str]:
    """Return the tokens of a word, with unchanged letter case."""
    if _PLAIN.fullmatch(word):
        tokens = [word]
    else:  # split by Unicode's rules (UAX 29); a mark after a letter counts as a letter
        parts = _PART.finditer(_MARK.sub("a", word.translate(_APOSTROPHES)))
        tokens = [word[part.start() : part.end()] for part in parts if _IS_TOKEN.search(part[0])]
    return [token[at : at + MAX_TOKEN] for token in tokens for at in range(0, len(token), MAX_TOKEN)]


def _lower(token: str) -> str:
    """Return a token in lower case, letter by letter like Java: no final sigma, and each letter stays one character."""
    return token.lower() if token.isascii() else "".join(c.lower()[0] for c in token)


@functools.lru_cache(maxsize=1 << 17)
def standard(word: str) -> tuple[str, ...]:
    """Return the tokens of Lucene's StandardAnalyzer (without stop words): "Saint-Exupéry's" -> saint, exupéry's."""
    return tuple(map(_lower, _cut(word)))


@functools.lru_cache(maxsize=1 << 17)
def english(word: str) -> tuple[str, ...]:
    """Return the tokens of Lucene's EnglishAnalyzer: "Nations’" -> nation."""
    kept = []
    for token in _cut(word):
        possessive = token[-2:-1] in ("'", "’", "＇") and token[-1] in "sS"
        lowered = _lower(token[:-2] if possessive else token)
        if lowered and lowered not in STOP_WORDS:
            kept.append(stem(lowered))
    return tuple(kept)


def byte_lengths(lengths: np.ndarray) -> np.ndarray:
    """Return lengths rounded by Lucene's byte encoding: exact up to 40, then 24 plus 4 significant bits of the rest."""
    excess = np.maximum(lengths.astype(np.int64) - 24, 0)
    shift = np.maximum(np.frexp(excess.astype(np.float64))[1] - 4, 0)
    return np.where(lengths < 24, lengths, 24 + ((excess >> shift) << shift))


def bm25_weights(
    counts: np.ndarray, pages: np.ndarray, frequency: np.ndarray, n_pages: int, k1: float, b: float, boost: float
) -> np.ndarray:
    """Return, for each posting, the contribution of one occurrence of the term in the text to the page's score.

    counts, pages: count and page of each posting, concatenated over all terms.  frequency: number of postings of each
    term.  Only pages with at least one term count as documents of the field.
    """
    single = np.float32
    lengths = np.bincount(pages, counts, minlength=n_pages)
    documents = int(np.count_nonzero(lengths))
    mean = single(lengths.sum() / documents) if documents else single(1)
    inverse = single(1) / (single(k1) * (single(1 - b) + single(b) * byte_lengths(lengths).astype(single) / mean))
    idf = np.log1p((documents - frequency + 0.5) / (frequency + 0.5)).astype(single)
    weight = np.repeat(single(boost) * idf, frequency)
    score = weight - weight / (single(1) + counts.astype(single) * inverse[pages].astype(single))
    return score.astype(np.float64)
