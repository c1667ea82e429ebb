"""Perturbed copies of questions: pure functions of the question and of (seed, id).

    fairness       names            replaces given names by others of the same gender
                   gender           swaps gendered words and their articles
    robustness     typos            one keyboard slip in a tenth of the words of at least four letters
                   casing           lower case
                   punctuation      removes punctuation
                   diacritics       removes diacritics: "pingüino" -> "pinguino", "łódź" -> "lodz"
    simultaneous   asr              imitates a speech recogniser: lower case, no punctuation, wrong or missing words
                   disfluencies     adds fillers and repeated words
                   reordering       permutes the sentences

A copy has the id <id>_<name>, the same answer page and the same reference.  Reordering also reorders the reference
sentences if source and reference have equally many.  A question that would not change has no copy.  The fairness
perturbations never change a word of the answer.

A user-defined perturbation is "module:build" or "file.py:build", a function without parameters that returns a
`Perturbation`.  Its copies must keep the answer page and the language.
"""

import random
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqa.core import STROKES, ConfigError, NoKeys, Question, Registry, did_you_mean, key, language_of, marks, unmarked

Sentences = tuple[tuple[str, ...], ...]
Change = Callable[[Question, random.Random], Question]

TYPO_SHARE, MISHEARD_SHARE, MISSED_SHARE = 0.1, 0.1, 0.02  # shares of words
FILLER_SHARE, REPEAT_SHARE = 0.05, 0.05
KEYBOARD = {  # letter -> its neighbours on a QWERTY keyboard
    keys[0]: keys[1:]
    for keys in (
        "qwa wqes ewrd retf tryg ytuh uyij iuok oipl pol aqsz sawdx dsefc fdrgv gfthb hgyjn jhukm kjil lkop zasx xzsdc "
        "cxdfv vcfgb bvghn nbhjm mnjk"
    ).split()
}
_CORE = re.compile(r"^(\W*)(.*?)(\W*)$", re.DOTALL)  # punctuation, core of the word, punctuation


@dataclass(frozen=True, slots=True)
class Perturbation:
    """A named perturbation, its family and its function."""

    name: str  # suffix of the copies' ids, other than those of the perturbations above
    family: str  # one of FAMILIES
    change: Change


def rng_for(seed: int, id: str, name: str) -> random.Random:
    """Return the random generator for a question and a perturbation; it does not depend on the order of questions."""
    return random.Random(f"{seed}:{name}:{id}")


def perturb(question: Question, kind: Perturbation, seed: int) -> Question | None:
    """Return the perturbed copy of a question, or None if nothing changes."""
    changed = kind.change(question, rng_for(seed, question.id, kind.name))
    if changed.sentences == question.sentences:
        return None
    return replace(changed, id=f"{question.id}_{kind.name}")


def chosen(names: Sequence[str]) -> tuple[Perturbation, ...]:
    """Return the perturbations of these names, or of users ("file.py:build").

    Raises ConfigError with all unknown and repeated names, or for a user's build function without a valid perturbation.
    """
    known = f"{', '.join(PERTURBATIONS)}, or your own 'file.py:build'"
    wrong = [
        f"perturbation: unknown {name!r}{did_you_mean(name, PERTURBATIONS)}; known: {known}"
        for name in names
        if name not in PERTURBATIONS and ":" not in name
    ]
    kinds = [PERTURBATIONS.get(name) or _own(name) for name in names if name in PERTURBATIONS or ":" in name]
    used = [kind.name for kind in kinds]
    wrong += [f"perturbation: {name!r} is named twice" for name in sorted({n for n in used if used.count(n) > 1})]
    if wrong:
        raise ConfigError(wrong)
    return tuple(kinds)


def _own(target: str) -> Perturbation:
    """Return the perturbation that a user's function builds."""
    kind = Registry("perturbation", {}).build(target, NoKeys())
    if not isinstance(kind, Perturbation) or kind.family not in FAMILIES or kind.name in PERTURBATIONS:
        expected = f"a Perturbation with a new name and one of the families {', '.join(FAMILIES)}"
        raise ConfigError(f"perturbation {target!r}: expected {expected}")
    return kind


def _each_word(question: Question, change: Callable[[str], str]) -> Question:
    """Apply `change` to every word; a sentence that would lose all of its words stays unchanged."""
    return replace(question, sentences=tuple(_kept(s, tuple(map(change, s))) for s in question.sentences))


def _kept(sentence: tuple[str, ...], changed: Sequence[str]) -> tuple[str, ...]:
    return tuple(" ".join(changed).split()) or sentence


# ------------------------------------------------------------------------------------------------------ fairness


def names(question: Question, rng: random.Random) -> Question:
    """Replace given names listed for the language with others of the same gender, consistently within a question."""
    table = {name: group.split() for group in language_of(question.language).given_names for name in group.split()}
    drawn: dict[str, str] = {}

    def change(word: str) -> str:
        before, core, after = _CORE.match(word).groups()  # type: ignore[union-attr]
        if core not in table or core.casefold() in answer:
            return word
        if core not in drawn:
            drawn[core] = rng.choice([name for name in table[core] if name != core])
        return before + drawn[core] + after

    answer = _answer_words(question)
    return _each_word(question, change)


def gender(question: Question, rng: random.Random) -> Question:
    """Replace gendered words by their counterparts; a preceding article or demonstrative also changes."""
    spoken = language_of(question.language)
    answer = _answer_words(question)

    def change(sentence: tuple[str, ...]) -> tuple[str, ...]:
        words = list(sentence)
        for index, word in enumerate(sentence):
            before, core, after = _CORE.match(word).groups()  # type: ignore[union-attr]
            counterpart = spoken.genders.get(core.casefold())
            if counterpart is None or core.casefold() in answer:
                continue
            words[index] = before + _cased(counterpart, core) + after
            if index and (companion := spoken.agreeing.get(sentence[index - 1].casefold())):
                short = spoken.contractions.get((sentence[index - 2].casefold(), companion)) if index > 1 else None
                if short:
                    words[index - 2 : index] = [_cased(short, sentence[index - 2]), ""]
                else:
                    words[index - 1] = _cased(companion, sentence[index - 1])
        return _kept(sentence, words)

    return replace(question, sentences=tuple(map(change, question.sentences)))


def _answer_words(question: Question) -> set[str]:
    return set(re.findall(r"\w+", key(question.page)))


def _cased(word: str, like: str) -> str:
    return word[:1].upper() + word[1:] if like[:1].isupper() else word


# ---------------------------------------------------------------------------------------------------- robustness


def typos(question: Question, rng: random.Random) -> Question:
    """In a tenth of the words, swap two letters, drop or double a letter, or replace it by a keyboard neighbour."""
    return _each_word(question, lambda word: _typo(word, rng) if rng.random() < TYPO_SHARE else word)


def _typo(word: str, rng: random.Random) -> str:
    letters = [index for index, c in enumerate(word) if c.isalpha()]
    if len(letters) < 4:
        return word
    at = rng.choice(letters[1:-1])  # typos rarely affect the ends of a word
    c, kind = word[at], rng.choice(("swap", "drop", "double", "neighbour"))
    if kind == "swap":
        return word[:at] + word[at + 1] + c + word[at + 2 :]
    if kind == "drop":
        return word[:at] + word[at + 1 :]
    if kind == "double":
        return word[:at] + c + word[at:]
    near = rng.choice(KEYBOARD.get(_bare(c.lower()), "e"))
    return word[:at] + (near.upper() if c.isupper() else near) + word[at + 1 :]


def casing(question: Question, rng: random.Random) -> Question:
    """Convert to lower case."""
    return _each_word(question, str.lower)


def punctuation(question: Question, rng: random.Random) -> Question:
    """Remove punctuation; marks inside a word split it (l'Hôpital), except between digits (4.700, 1914-1918)."""
    return _each_word(question, _unpunctuated)


def diacritics(question: Question, rng: random.Random) -> Question:
    """Remove diacritics."""
    return _each_word(question, _bare)


def _unpunctuated(word: str) -> str:
    mark = rf"[^\w\s{marks(word)}]"
    kept = re.sub(rf"(?<!\d){mark}|{mark}(?!\d)", " ", word)
    return " ".join(kept.split())


def _bare(text: str) -> str:
    return unicodedata.normalize("NFC", unmarked(text, "NFD").translate(STROKES))


# -------------------------------------------------------------------------------------------------- simultaneous


def asr(question: Question, rng: random.Random) -> Question:
    """Convert to lower case and remove punctuation; respell a tenth of the words by sound and drop a fiftieth."""
    sounds = language_of(question.language).sounds

    def change(word: str) -> str:
        heard = _unpunctuated(word).lower()
        if rng.random() < MISSED_SHARE:
            return ""
        return _misheard(heard, sounds, rng) if rng.random() < MISHEARD_SHARE else heard

    return _each_word(question, change)


def _misheard(word: str, sounds: Sequence[tuple[str, str]], rng: random.Random) -> str:
    applicable = [(written, heard) for written, heard in sounds if written in word]
    if not applicable:
        return word
    written, heard = rng.choice(applicable)
    return word.replace(written, heard, 1) or word


def disfluencies(question: Question, rng: random.Random) -> Question:
    """Insert fillers before some words and repeat other words."""
    fillers = language_of(question.language).fillers

    def change(word: str) -> str:
        draw = rng.random()
        if draw < FILLER_SHARE and fillers:
            return f"{rng.choice(fillers)} {word}"
        bare = _unpunctuated(word)
        return f"{bare} {word}" if draw > 1 - REPEAT_SHARE and bare else word

    return _each_word(question, change)


def reordering(question: Question, rng: random.Random) -> Question:
    """Put the sentences in a random order other than the original."""
    size = len(question.sentences)
    if size < 2 or len(set(question.sentences)) == 1:
        return question
    order = list(range(size))
    while [question.sentences[i] for i in order] == list(question.sentences):
        rng.shuffle(order)
    reference = question.reference
    if len(reference) == size:
        reference = tuple(reference[i] for i in order)
    return replace(question, sentences=tuple(question.sentences[i] for i in order), reference=reference)


FAMILIES = ("fairness", "robustness", "simultaneous")
PERTURBATIONS: Mapping[str, Perturbation] = {
    change.__name__: Perturbation(change.__name__, family, change)
    for family, changes in (
        ("fairness", (names, gender)),
        ("robustness", (typos, casing, punctuation, diacritics)),
        ("simultaneous", (asr, disfluencies, reordering)),
    )
    for change in changes
}
