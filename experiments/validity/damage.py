"""Damage of a known kind in the human translation of questions, sentence by sentence.

A name is a capitalised word that no reference of the set writes in lower case.  A number has a digit or is one of the
English words in NUMBERS.  These definitions are independent of the rules of the metric `facts`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from experiments.studies.fact_changes import AUXILIARIES
from sqa.core.languages import language_of
from sqa.core.types import Question
from sqa.data.perturb import rng_for

INTACT, OTHER = "intact", "another question's text"
NUMBERS = tuple(
    "two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand "
    "second third fourth fifth sixth seventh eighth ninth tenth".split()
)
_CORE = re.compile(r"^(\W*)(.*?)((?:['’]s)?\W*)$", re.DOTALL)  # a word with the punctuation marks around it
Sentence = list[str]


class Words(NamedTuple):
    """Word lists of a data set."""

    lower: frozenset[str]  # every word that a reference writes in lower case
    names: tuple[str, ...]  # every occurrence of a name in the references

    def is_name(self, word: str) -> bool:
        """Return whether a word is a name, by the rule of this module."""
        core = bare(word)
        return len(core) > 1 and core[0].isupper() and core.lower() not in self.lower


Change = Callable[[Sentence, random.Random, Words], Sentence]


def bare(word: str) -> str:
    """Return a word without its genitive and the punctuation around it."""
    return _CORE.match(word).group(2)


def with_core(word: str, core: str) -> str:
    """Return `word` with its core replaced by `core`, and the same punctuation."""
    before, _, after = _CORE.match(word).groups()
    return f"{before}{core}{after}"


def unmarked(sentence: Sentence, rng: random.Random, words: Words) -> Sentence:
    """Return the words in lower case without punctuation, which a listener would not notice."""
    return [core for word in sentence if (core := re.sub(r"[^\w\s'’-]", "", word).lower())]


def shuffled(sentence: Sentence, rng: random.Random, words: Words) -> Sentence:
    """Return the words in random order."""
    return rng.sample(sentence, len(sentence))


def roles_swapped(sentence: Sentence, rng: random.Random, words: Words) -> Sentence:
    """Swap the first name with the next different name."""
    runs = [(is_name, list(run)) for is_name, run in groupby(sentence, words.is_name)]
    named = [i for i, (is_name, _) in enumerate(runs) if is_name]
    others = [i for i in named[1:] if [*map(bare, runs[i][1])] != [*map(bare, runs[named[0]][1])]]
    if others:
        a, b = named[0], others[0]
        runs[a], runs[b] = runs[b], runs[a]
    return [word for _, run in runs for word in run]


def negated(sentence: Sentence, rng: random.Random, words: Words) -> Sentence:
    """Insert "not" after the first auxiliary verb, or remove every existing "not"."""
    if "not" in sentence:
        return [word for word in sentence if word != "not"]
    at = next((i for i, word in enumerate(sentence) if word.lower() in AUXILIARIES), None)
    return sentence if at is None else [*sentence[: at + 1], "not", *sentence[at + 1 :]]


def numbers_changed(sentence: Sentence, rng: random.Random, words: Words) -> Sentence:
    """Replace every number by another number of the same form."""

    def other(word: str) -> str:
        core = bare(word)
        if any(c.isdigit() for c in core):
            return with_core(word, "".join(rng.choice("123456789".replace(c, "")) if c.isdigit() else c for c in core))
        if core.lower() in NUMBERS:
            return with_core(word, rng.choice([n for n in NUMBERS if n != core.lower()]))
        return word

    return [other(word) for word in sentence]


def names_only(sentence: Sentence, rng: random.Random, words: Words) -> Sentence:
    """Return the names."""
    return [word for word in sentence if words.is_name(word)]


def names_removed(sentence: Sentence, rng: random.Random, words: Words) -> Sentence:
    """Return all words except the names."""
    return [word for word in sentence if not words.is_name(word)]


def no_function_words(sentence: Sentence, rng: random.Random, words: Words) -> Sentence:
    """Return all words except function words."""
    return [word for word in sentence if bare(word).lower() not in language_of("en").function_words]


EACH: Mapping[str, Change] = {  # changes of one sentence
    "lower case, no punctuation": unmarked,
    "shuffled within sentences": shuffled,
    "roles swapped": roles_swapped,
    "negated": negated,
    "numbers changed": numbers_changed,
    "function words removed": no_function_words,
    "names removed": names_removed,
    "names only": names_only,
}
REPLACED = "entities replaced"


def sentences(question: Question) -> list[Sentence]:
    """Return the words of the human translation for each source sentence.

    If the numbers of sentences differ, the words are split in proportion to the lengths of the source sentences.
    """
    if len(question.reference) == len(question.sentences):
        return [text.split() for text in question.reference]
    return laid(question.reference_text.split(), [len(s) for s in question.sentences])


def laid(words: Sentence, lengths: Sequence[int]) -> list[Sentence]:
    """Split words into sentences in proportion to `lengths`, the lengths of the source sentences."""
    ends = np.cumsum(lengths) * len(words) // sum(lengths)
    return [list(words[start:end]) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def texts(questions: Sequence[Question]) -> dict[str, list[list[Sentence]]]:
    """Return the texts of each group, intact and changed; a text is a list of the words for each source sentence."""
    intact = [sentences(question) for question in questions]
    every = [bare(word) for text in intact for sentence in text for word in sentence]
    lower = frozenset(word for word in every if word and word[0].islower())
    words = Words(lower, tuple(w for w in every if Words(lower, ()).is_name(w)))
    groups = {INTACT: intact}
    for name, change in EACH.items():
        drawn = [rng_for(0, question.id, name) for question in questions]
        groups[name] = [[change(s, rng, words) for s in text] for text, rng in zip(intact, drawn, strict=True)]
    drawn = [rng_for(0, question.id, REPLACED) for question in questions]
    groups[REPLACED] = [replaced(text, rng, words) for text, rng in zip(intact, drawn, strict=True)]
    far = len(questions) // 2
    others = [*intact[far:], *intact[:far]]
    groups[OTHER] = [
        laid([word for sentence in other for word in sentence], [len(s) for s in question.sentences])
        for other, question in zip(others, questions, strict=True)
    ]
    return groups


def replaced(text: Sequence[Sentence], rng: random.Random, words: Words) -> list[Sentence]:
    """Replace every name by a name from other texts of the set, consistently within a question."""
    names = {bare(word) for sentence in text for word in sentence if words.is_name(word)}
    pool = [name for name in words.names if name not in names]
    new = {name: rng.choice(pool) for name in sorted(names)}
    return [[with_core(w, new[bare(w)]) if words.is_name(w) else w for w in sentence] for sentence in text]
