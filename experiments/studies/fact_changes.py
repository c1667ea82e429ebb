"""Perturbations that change one place in an English text, as in AskQE (Ki, Duh and Carpuat 2025).

Minor changes keep the meaning: a misspelt common word, a synonym, swapped words.  Critical changes mislead: another
name, another number, an added or removed negation.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from sqa.core.languages import language_of
from sqa.core.numbers import word_value
from sqa.core.types import Question
from sqa.data.perturb import PERTURBATIONS, Change, Perturbation
from sqa.metrics.quality.facts import facts_in

SYNONYMS = dict(
    pair.split("/")
    for pair in "said/stated big/large also/too but/yet many/numerous begin/start important/significant "
    "however/nevertheless show/reveal help/assist problem/difficulty buy/purchase small/little about/concerning "
    "after/following because/since country/nation people/persons work/labour found/discovered says/states "
    "children/kids very/extremely get/obtain need/require about/around between/among during/throughout against/versus "
    "only/merely".split()
)
AUXILIARIES = frozenset("is are was were has have had will would can could should must may might does did".split())


def one_place(able: Callable[[str], bool], change: Callable[[str, random.Random], str]) -> Change:
    """Return a perturbation that applies `change` to one random word for which `able` is true."""

    def changed(question: Question, rng: random.Random) -> Question:
        words = list(question.words)
        if positions := [position for position, word in enumerate(words) if able(word)]:
            position = rng.choice(positions)
            words[position] = change(words[position], rng)
        return _sentence(question, words)

    return changed


def swapped(word: str, rng: random.Random) -> str:
    """Return a word with two neighbouring letters swapped, neither the first nor the last."""
    at = rng.choice([at for at in range(1, len(word) - 2) if word[at] != word[at + 1]] or [1])
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def order(question: Question, rng: random.Random) -> Question:
    """Swap two random neighbouring words that are neither capitalised nor numbers."""
    words = list(question.words)
    if positions := [
        position for position in range(len(words) - 1) if _common(words[position]) and _common(words[position + 1])
    ]:
        position = rng.choice(positions)
        words[position : position + 2] = words[position + 1], words[position]
    return _sentence(question, words)


def entity(question: Question, rng: random.Random) -> Question:
    """Replace one name by a random given name."""
    names = sorted(" ".join(language_of("es").given_names).split())
    return _fact(question, rng, "name", lambda _: rng.choice(names))


def number_changed(question: Question, rng: random.Random) -> Question:
    """Replace one number by another one between 21 and 98."""
    return _fact(question, rng, "number", lambda text: rng.choice([str(n) for n in range(21, 99) if str(n) != text]))


def _fact(question: Question, rng: random.Random, kind: str, other: Callable[[str], str]) -> Question:
    words = list(question.words)
    if facts := [fact for fact in facts_in(words) if fact.kind == kind]:
        fact = rng.choice(facts)
        end = re.search(r"\W*$", words[fact.last])
        words[fact.first : fact.last + 1] = [other(fact.text) + (end.group() if end else "")]
    return _sentence(question, words)


def negation(question: Question, rng: random.Random) -> Question:
    """Remove "not" from a sentence that has it; otherwise insert it after an auxiliary."""
    words = list(question.words)
    if "not" in words:
        words.remove("not")
    elif positions := [position for position, word in enumerate(words) if word in AUXILIARIES]:
        words.insert(rng.choice(positions) + 1, "not")
    return _sentence(question, words)


def _sentence(question: Question, words: Sequence[str]) -> Question:
    return replace(question, sentences=(tuple(words),))


def _common(word: str) -> bool:
    return word.isalpha() and word.islower() and word_value(word, "en") is None


CONTRAST = {
    "minor": (
        Perturbation("spelling", "minor", one_place(lambda w: _common(w) and len(w) > 4, swapped)),
        Perturbation("synonym", "minor", one_place(SYNONYMS.__contains__, lambda word, _: SYNONYMS[word])),
        Perturbation("order", "minor", order),
        *(PERTURBATIONS[name] for name in ("casing", "punctuation", "diacritics")),
    ),
    "critical": (
        Perturbation("entity", "critical", entity),
        Perturbation("number", "critical", number_changed),
        Perturbation("negation", "critical", negation),
    ),
}
