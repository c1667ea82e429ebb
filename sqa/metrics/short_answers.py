"""Score short English answers against lists of right answers: exact match and F1 by the official rule of XOR-TyDi.

The rule is that of SQuAD 1.1 (Rajpurkar et al. 2016).  XOR-TyDi's evaluation of English spans also uses it
(github.com/AkariAsai/XORQA at 7ad88d92, evals/eval_xor_engspan.py; Asai et al. 2021):

    normalise      lower case; ASCII punctuation deleted (not replaced: "20-year" -> "20year"); the words a, an, the
                   deleted; white space collapsed
    exact match    1 if the normalised texts are equal, else 0
    F1             2 P R / (P + R) over the normalised words as multisets, 0 if they share no word
    question       the best value over its right answers; a missing answer counts as ""
    language       the mean over its questions
    data set       the mean over its languages, all with equal weight

The official script prints percentages; here all values are in 0..1.  SQuAD 2.0 differs in one case: the F1 of two
texts that are both empty after normalisation is 1 there and 0 here.
"""

import functools
import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sqa.core import DataError, Floats, NotComputable

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


@functools.lru_cache(maxsize=1 << 15)
def normalise(text: str) -> str:
    """Return the text without case, ASCII punctuation, articles and extra white space."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact_match(answer: str, right: Sequence[str]) -> float:
    """Return 1.0 if the answer is one of the right ones, else 0.0.  Raises DataError if `right` is empty."""
    given = normalise(answer)
    return float(any(given == normalise(text) for text in _checked(right)))


def f1(answer: str, right: Sequence[str]) -> float:
    """Return the best F1, 0..1, over the right answers.  Raises DataError if `right` is empty."""
    given = normalise(answer).split()
    return max(word_f1(given, normalise(text).split()) for text in _checked(right))


def word_f1(given: Sequence[str], wanted: Sequence[str]) -> float:
    """Return the F1 of two texts' words as multisets, 0..1; it is 0 if they share no word or a text is empty."""
    shared = (Counter(given) & Counter(wanted)).total()
    if shared == 0:
        return 0.0
    precision, recall = shared / len(given), shared / len(wanted)
    return 2 * precision * recall / (precision + recall)


def says(text: str, right: Sequence[str]) -> bool:
    """Return True if the text contains a right answer as whole words, both normalised; empty answers are ignored."""
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

    stats (n, 2 L): a question has its value and 1 in the two columns of its language, and 0 elsewhere (`by_language`).
    """

    name: str

    def score(self, stats: Floats) -> float:
        """Return the mean of statistics (2 L,).  Raises NotComputable for a language without questions."""
        value = float(self.score_many(stats[None])[0])
        if np.isnan(value):
            raise NotComputable(f"{self.name}: a language has no questions")
        return value

    def score_many(self, stats: Floats) -> Floats:
        """Return means (B,) of statistics (B, 2 L), nan where a language has no questions."""
        sums, counts = stats[:, 0::2], stats[:, 1::2]  # (B, L) each
        means = np.full(sums.shape, np.nan)
        np.divide(sums, counts, out=means, where=counts > 0)
        return np.asarray(means.mean(axis=1))


def by_language(values: Sequence[float], languages: Sequence[str]) -> Floats:
    """Return statistics (n, 2 L) of `LanguageMean`, languages sorted by name; nan values are left out of the means."""
    order = sorted(set(languages))
    stats = np.zeros((len(values), 2 * len(order)))
    for row, value, language in zip(stats, values, languages, strict=True):
        if not np.isnan(value):
            column = 2 * order.index(language)
            row[column : column + 2] = value, 1.0
    return stats
