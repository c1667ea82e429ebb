"""Tokeniser and detokeniser of the phrase-based system, and the case of a sentence's first word.

    "El autor (1930) escribió «Ana».".  ->  El autor (￭ 1930 ￭) escribió "￭ Ana ￭" ￭.

A joiner (￭, as in OpenNMT's tokenizer) shows on which side a token was attached.  Detokenisation therefore needs no
language-specific rules, and word-by-word translation keeps its punctuation.  The tokens of a word depend only on that
word.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from smt.models.vocab import normalise

VERSION = 1  # increase when tokens or words change
JOINER = "\uffed"

# A sequence of letters and digits (numbers keep inner . , :), an apostrophe with the following letters, or another
# character.
_PIECE = re.compile(r"\d+(?:[.,:]\d+)+|\w+|'\w+|[^\w\s]")
# Private letters replace signs with a meaning in the decoder's files ("|||", "<unk>", "({ })").
_SIGNS, _LETTERS = "|<>{}", "\ue000\ue001\ue002\ue003\ue004"
_HIDDEN, _SHOWN = str.maketrans(_SIGNS, _LETTERS), str.maketrans(_LETTERS, _SIGNS)
_WORD = re.compile(r"[^\W\d_]")


def tokenise(text: str) -> list[str]:
    """Return the tokens of a text; none is empty or contains whitespace, and the decoder's own signs are replaced."""
    return [token for word in normalise(text).split() for token in _tokens(word)]


def _tokens(word: str) -> list[str]:
    pieces = [piece.translate(_HIDDEN) for piece in _PIECE.findall(word.replace(JOINER, ""))]
    core = next((i for i, piece in enumerate(pieces) if piece[-1].isalnum()), 0)  # piece to which the others attach
    tokens = [piece + JOINER for piece in pieces[:core]] + pieces[core : core + 1]
    for before, piece in zip(pieces[core:], pieces[core + 1 :], strict=False):
        # A joiner on both sides keeps two pieces that end in letters together: "well-read" is  well ￭-￭ read
        tokens.append(JOINER + piece)
        if not before[-1].isalnum() and piece[-1].isalnum() and not piece.startswith("'"):
            tokens[-2] += JOINER
            tokens[-1] = piece
    return tokens


def words(tokens: Iterable[str]) -> tuple[str, ...]:
    """Return the words that tokens form; a joiner without a neighbour on its side is dropped."""
    text = "".join(f" {token}" for token in tokens).translate(_SHOWN)
    return tuple(text.replace(f"{JOINER} ", "").replace(f" {JOINER}", "").replace(JOINER, "").split())


def has_letter(token: str) -> bool:
    """Return whether a token has a letter; only such tokens have a usual case."""
    return _WORD.search(token) is not None


def count_forms(sentences: Iterable[Sequence[str]]) -> Counter[str]:
    """Count the tokens with letters, except at the start of a sentence, where case is not informative."""
    counts: Counter[str] = Counter()
    for tokens in sentences:
        at_start = True
        for token in tokens:
            if has_letter(token):
                if not at_start:
                    counts[token] += 1
                at_start = False
            elif token.strip(JOINER) in {".", "?", "!", ":", '"'}:
                at_start = True
    return counts


def usual_forms(counts: Mapping[str, int]) -> dict[str, str]:
    """Return the most frequent form of each lower-cased token (ties: the first in code point order)."""
    best: dict[str, str] = {}
    for token in sorted(counts, key=lambda token: (-counts[token], token)):
        best.setdefault(token.lower(), token)
    return best


def truecase(tokens: Sequence[str], forms: Mapping[str, str]) -> list[str]:
    """Return the tokens with the first word in its usual form; an unknown word stays unchanged."""
    first = next((i for i, token in enumerate(tokens) if has_letter(token)), None)
    return [forms.get(token.lower(), token) if i == first else token for i, token in enumerate(tokens)]


def capitalise(written: Sequence[str]) -> tuple[str, ...]:
    """Return the words with the first letter of the text in upper case."""
    text = " ".join(written)
    return tuple(_WORD.sub(lambda letter: letter.group().upper(), text, count=1).split(" ")) if written else ()


def begins_with_capital(text: str) -> bool:
    """Return whether the first letter of a text is in upper case."""
    letter = _WORD.search(text)
    return letter is not None and letter.group().isupper()
