"""Short answers in English against a list of right ones: exact match and F1 by the official rule of XOR-TyDi.

The rule is that of SQuAD 1.1 (Rajpurkar et al. 2016), which XOR-TyDi's own evaluation of English spans uses
(github.com/AkariAsai/XORQA at 7ad88d92, evals/eval_xor_engspan.py; Asai et al. 2021):

    normalise      lower case; ASCII punctuation deleted (not replaced: "20-year" -> "20year"); the words a, an, the
                   deleted; white space collapsed
    exact match    1 if the normalised texts are equal, else 0
    F1             2 P R / (P + R) over the normalised words as multisets, 0 where none is shared
    of a question  the best over its right answers; no answer given counts as ""
    of a language  the mean over its questions
    of a set       the mean over its languages, each counted once however many questions it has

The official script prints percentages; here all values are in 0..1.  SQuAD 2.0's rule differs in one case: two texts
that are both empty once normalised share no word, so their F1 is 0 here and 1 there.
"""

import functools
import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sqa.core.errors import DataError, NotComputable
from sqa.core.types import Floats

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


@functools.lru_cache(maxsize=1 << 15)
def normalise(text: str) -> str:
    """The text without case, ASCII punctuation, articles and extra white space."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, right: Sequence[str]) -> float:
    """1.0 if the answer is one of the right ones, else 0.0.  No right answer at all: DataError."""
    given = normalise(answer)
    return float(any(given == normalise(text) for text in _checked(right)))


def f1(answer: str, right: Sequence[str]) -> float:
    """The best F1, 0..1, against one of the right answers.  No right answer at all: DataError."""
    given = normalise(answer).split()
    return max(word_f1(given, normalise(text).split()) for text in _checked(right))


def word_f1(given: Sequence[str], wanted: Sequence[str]) -> float:
    """F1 of the words of two texts as multisets, 0..1; 0 where none is shared, so also where a text is empty."""
    shared = (Counter(given) & Counter(wanted)).total()
    if shared == 0:
        return 0.0
    precision, recall = shared / len(given), shared / len(wanted)
    return 2 * precision * recall / (precision + recall)


def says(text: str, right: Sequence[str]) -> bool:
    """True if the text has a right answer as whole words, both normalised; an empty answer does not count."""
    inside = f" {normalise(text)} "
    wanted = (normalise(answer) for answer in _checked(right))
    return any(answer and f" {answer} " in inside for answer in wanted)


def _checked(right: Sequence[str]) -> Sequence[str]:
    if not right:
        raise DataError("a question needs at least one right answer")
    return right


@dataclass(frozen=True, slots=True)
class LanguageMean:
    """The mean over languages of the mean over each language's questions, for `sqa.core.significance`.

    stats (n, 2 L): in the two columns of its language a question has its value and 1, elsewhere 0 (`by_language`).
    """

    name: str

    def score(self, stats: Floats) -> float:
        """(2 L,) -> the mean.  A language without questions: NotComputable."""
        value = float(self.score_many(stats[None])[0])
        if np.isnan(value):
            raise NotComputable(f"{self.name}: a language has no questions")
        return value

    def score_many(self, stats: Floats) -> Floats:
        """(B, 2 L) -> (B,), nan where a language has no questions."""
        sums, counts = stats[:, 0::2], stats[:, 1::2]  # (B, L) each
        means = np.full(sums.shape, np.nan)
        np.divide(sums, counts, out=means, where=counts > 0)
        return np.asarray(means.mean(axis=1))


def by_language(values: Sequence[float], languages: Sequence[str]) -> Floats:
    """(n, 2 L) statistics of `LanguageMean`, languages in the order of their names; a nan is left out of the means."""
    order = sorted(set(languages))
    stats = np.zeros((len(values), 2 * len(order)))
    for row, value, language in zip(stats, values, languages, strict=True):
        if not np.isnan(value):
            column = 2 * order.index(language)
            row[column : column + 2] = value, 1.0
    return stats
