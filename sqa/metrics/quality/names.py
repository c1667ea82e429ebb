"""Metrics of names and numbers, and of negations.

Names and numbers: the share that reaches the translation, and the share that is invented

A name or number is a word with a digit, or a capitalised word that does not begin a sentence.  Words are compared
without case, accents, punctuation and the English genitive.  Where answers depend on names, a fluent translation with a
high BLEU can still lose the question; this metric detects that.

    names            share of the human translation's names, counted with repetitions, that the output has
    names@copied     the same for names with equal spelling in source and human translation, which need no translation
    names@invented   share of the output's names that neither the source nor the human translation has

Negations: agreement with the human translation in their number

A negation is not, -n't, cannot, never, no, none, nobody, nothing, nowhere, neither, nor, without; "not only", "no
doubt", "no matter", "nothing but" and "No. 5" do not count.  The clause is not compared, and a negation is not a fact
of `facts`: only one negated clause in five has a name, a number or a date.  "Unable", "few" or "refuse" in place of a
negation counts as a lost negation.  Checked by hand on 40 sentences of newstest2013 with such words: precision 37 of
39, recall 37 of 41.
"""

import re
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal
from unicodedata import decomposition, normalize

import numpy as np

from sqa.core import Floats, QuestionTrace, language_of, unmarked
from sqa.core.quizbowl import UNDECOMPOSED
from sqa.metrics.measure import Family, MeanMetric, choices, lines

Side = Literal["kept", "copied", "invented"]

INITIALS = re.compile(r"\b(?:[A-Z]\.){2,}(?:[A-Z]\b)?")  # U.S., J.K.
_INVISIBLE = (
    "\u00ad\u061c\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufe0f\ufeff"
)
_VARIANTS = str.maketrans(
    dict.fromkeys("’ʼ‘′＇`´", "'") | dict.fromkeys("−⁃‒", "-") | {"٬": ","} | dict.fromkeys(_INVISIBLE)
)
_GENITIVE = re.compile(r"'s$")
_OUTSIDE = re.compile(r"^\W+|\W+$")
_ENDS_SENTENCE = re.compile(r"[.!?:;…]['\"”»)\]]*$")


@lru_cache(maxsize=1 << 16)
def plain(word: str) -> str:
    """Return a word with plain apostrophes and letters, without invisible characters and dots of initials."""
    letters = word.translate(_VARIANTS)  # before NFKC, which makes a space of ´
    fractions = "".join(c if "<fraction>" in decomposition(c) else normalize("NFKC", c) for c in letters)
    return INITIALS.sub(lambda match: match[0].replace(".", ""), fractions)


def spelled(word: str) -> str:
    """Return a word without case, accents, punctuation, typographic variants and genitive."""
    bare = _GENITIVE.sub("", _OUTSIDE.sub("", plain(word)))
    return unmarked(bare.casefold().translate(UNDECOMPOSED))


def ends_sentence(word: str) -> bool:
    """Return whether a word ends a sentence: it has an end mark and is not an abbreviation."""
    letters = word.removesuffix(".")
    abbreviated = word.endswith(".") and (letters in language_of("en").dotted or re.fullmatch(r"\w", letters))
    return bool(_ENDS_SENTENCE.search(word)) and not abbreviated


def names_in(text: str) -> list[str]:
    """Return the names and numbers of a text, in order and in the form of `spelled`."""
    names, begins = [], True
    for word in text.split():
        bare = _OUTSIDE.sub("", word)
        number = any(c.isdigit() for c in bare)
        if bare and (number or (bare[0].isupper() and not begins)) and spelled(word) not in language_of("en").pronouns:
            names.append(spelled(word))
        if bare or _ENDS_SENTENCE.search(
            word
        ):  # after a separate opening quote, the next word still begins the sentence
            begins = ends_sentence(word)
    return names


def lost_and_invented(source: str, hypothesis: str, reference: str) -> tuple[Counter[str], Counter[str]]:
    """Return the reference's names that the output lacks, and the output's names without a match in the other texts."""
    wanted, written_names = Counter(names_in(reference)), Counter(names_in(hypothesis))
    written = Counter(map(spelled, hypothesis.split()))
    supported = {spelled(word) for word in (*source.split(), *reference.split())}
    return wanted - written, Counter({name: n for name, n in written_names.items() if name not in supported})


@Family(
    "names",
    "Names kept",
    "{m.side}|segment:question|case:no|accents:no",
    version=2,
    parameters=(choices("side", "copied", "invented"),),
    shown={
        "copied": {"label": "Copied names kept"},
        "invented": {"label": "Names invented", "higher_is_better": False},
    },
)
@dataclass(frozen=True, slots=True)
class Names(MeanMetric):
    """Metric of names and numbers, see the module's docstring.

    stats = [names counted as kept or invented, names considered], (2,).
    """

    side: Side = "kept"

    def stats(self, trace: QuestionTrace) -> Floats:
        source, (hypothesis, reference) = trace.question.text, lines(trace)
        lost, invented = lost_and_invented(source, hypothesis, reference)
        if self.side == "invented":
            return np.array([invented.total(), len(names_in(hypothesis))], dtype=np.float64)
        wanted = Counter(names_in(reference))
        if self.side == "copied":
            spelled_there = set(map(spelled, source.split()))
            wanted = Counter({name: n for name, n in wanted.items() if name in spelled_there})
        missing = sum(min(n, lost[name]) for name, n in wanted.items())
        return np.array([wanted.total() - missing, wanted.total()], dtype=np.float64)


_NEGATION = re.compile(
    r"\b(?:not(?! only\b)|cannot|never|no(?! (?:doubt|matter)\b)(?!\.? ?\d)|none|nobody|nothing(?! but\b)|nowhere"
    r"|neither|nor|without"
    r"|(?:ca|do|does|did|is|are|was|were|have|has|had|wo|would|could|should|must|need) ?n['’ ]?t)\b",
    re.IGNORECASE,
)


def negations(text: str) -> int:
    """Count the negations of an English text."""
    return len(_NEGATION.findall(text))


@Family("negations", "Negations", "dice|segment:sentence")
def negation_agreement(trace: QuestionTrace) -> tuple[float, float]:
    """Return 2 min(n, m) and n + m of n negations in the human translation and m in the translation.

    Both are summed over sentences; the quotient is 0 to 1.  If the translations differ in their number of sentences,
    the question counts as one sentence.
    """
    pairs = [lines(trace)]
    if len(trace.hypotheses) == len(trace.question.reference):
        pairs = list(zip(trace.hypotheses, trace.question.reference, strict=True))
    counts = [(negations(written), negations(human)) for written, human in pairs]
    return 2 * sum(map(min, counts)), sum(map(sum, counts))
