"""The stemmer of Lucene's English analyzer: Porter's algorithm of 1980 with the three changes its author made later.

Source: M. F. Porter, "An algorithm for suffix stripping", Program 14(3), 1980, and tartarus.org/martin/PorterStemmer.
The changes: words of one or two letters stay, "bli" becomes "ble" (the paper: "abli" "able"), "logi" becomes "log".
Snowball's `porter` has none of them, and its `english` (guessers/text.py) is a later algorithm.  Letters outside a-z
count as consonants, as they do in Lucene.
"""

from __future__ import annotations

import functools

_STEP_2 = {
    "ational": "ate", "tional": "tion", "enci": "ence", "anci": "ance", "izer": "ize", "bli": "ble", "alli": "al",
    "entli": "ent", "eli": "e", "ousli": "ous", "ization": "ize", "ation": "ate", "ator": "ate", "alism": "al",
    "iveness": "ive", "fulness": "ful", "ousness": "ous", "aliti": "al", "iviti": "ive", "biliti": "ble", "logi": "log",
}  # fmt: skip
_STEP_3 = {"icate": "ic", "ative": "", "alize": "al", "iciti": "ic", "ical": "ic", "ful": "", "ness": ""}
_STEP_4 = (
    "al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ion", "ou", "ism", "ate", "iti",
    "ous", "ive", "ize",
)  # fmt: skip
_LONGEST_2, _LONGEST_3, _LONGEST_4 = (sorted(step, key=len, reverse=True) for step in (_STEP_2, _STEP_3, _STEP_4))


@functools.lru_cache(maxsize=1 << 17)
def stem(word: str) -> str:
    """The stem of a lower-case word: "possibly" -> "possibl"."""
    if len(word) < 3:
        return word
    for step in (_plurals, _endings, _final_y, _double_suffixes, _single_suffixes, _last_suffix, _final_e):
        word = step(word)
    return word


def _shape(word: str) -> str:
    """v for a vowel, c for a consonant; y is a vowel after a consonant."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape[-1:] == "c")
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    """How often a run of vowels is followed by a consonant: Porter's m."""
    return _shape(word).count("vc")


def _doubled(word: str) -> bool:
    return len(word) > 1 and word[-1] == word[-2] and _shape(word)[-1] == "c"


def _short(word: str) -> bool:
    """Ends in consonant, vowel, consonant, and the last is not w, x or y."""
    return _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"


def _plurals(word: str) -> str:
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith("ies"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _endings(word: str) -> str:
    """-eed, -ed and -ing."""
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) > 0 else word
    for suffix in ("ed", "ing"):
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            return _mended(rest) if "v" in _shape(rest) else word
    return word


def _mended(rest: str) -> str:
    """What -ed or -ing was taken from, as a word: hop(p), rat(e)."""
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if _doubled(rest):
        return rest if rest[-1] in "lsz" else rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _short(rest) else rest


def _final_y(word: str) -> str:
    return word[:-1] + "i" if word.endswith("y") and "v" in _shape(word[:-1]) else word


def _double_suffixes(word: str) -> str:
    for suffix in _LONGEST_2:
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            return rest + _STEP_2[suffix] if _measure(rest) > 0 else word
    return word


def _single_suffixes(word: str) -> str:
    for suffix in _LONGEST_3:
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            return rest + _STEP_3[suffix] if _measure(rest) > 0 else word
    return word


def _last_suffix(word: str) -> str:
    for suffix in _LONGEST_4:
        if word.endswith(suffix):
            rest = word[: -len(suffix)]
            if suffix == "ion" and not rest.endswith(("s", "t")):
                continue
            return rest if _measure(rest) > 1 else word
    return word


def _final_e(word: str) -> str:
    """A final e, and one l of two."""
    if word.endswith("e"):
        rest = word[:-1]
        measure = _measure(rest)
        if measure > 1 or (measure == 1 and not _short(rest)):
            word = rest
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word
