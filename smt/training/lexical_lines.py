"""`python -m smt.training.lexical_lines pl-en`: rough Polish for English lines, from stdin to stdout.

This is a full-input system for the translator `command` (configs/smt_pl_en.yaml) and for `python -m guessers.noise
--there "python -m smt.training.lexical_lines pl-en"`.  Equal lines give equal Polish.  A line becomes empty if the
lexicon lacks too many of its words.

The Polish is a source side for training without an English-Polish system.  Each English sentence gets Polish words from
a bilingual lexicon, inflected by Morfeusz 2 (Wolinski 2014) in the case that its preposition requires.  Adjectives
agree with the following noun, articles and subject pronouns are dropped, and names keep their stem and take a Polish
ending.  The result is not grammatical Polish, but a translator learns three things from it that parallel text from
software lacks: the English of the questions, the inflected forms of many thousand words, and the copying of names.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from smt.training.prepare import lexicon_pairs
from sqa.core import DATA, need, returns_exit_code

_TOKEN = re.compile(r"[\w'’-]+|[^\w\s]+")

_CASES = ("nom", "gen", "acc", "inst", "loc")
# English ending -> endings of the dictionary form
_ENDINGS = {"ies": ("y",), "es": ("", "e"), "s": ("",), "ied": ("y",), "ed": ("", "e"), "ing": ("", "e")}
_CASE_CHANCE = (0.45, 0.15, 0.25, 0.08, 0.07)


def _fits(tag: str, ending: str) -> bool:
    """Return whether a verb tag of Morfeusz suits an English word's ending."""
    if ending == "ed":
        return tag.startswith(("praet:sg", "praet:pl")) and ":pri" not in tag and ":sec" not in tag
    if ending == "s":
        return tag.startswith("fin:sg:ter")
    if ending == "ing":
        return tag.startswith(("ger:sg", "pcon", "pact:sg:nom"))
    return tag.startswith(("inf", "fin:pl:ter", "praet:sg"))


def _stems(word: str) -> list[tuple[str, str]]:
    """Return the possible dictionary forms of an English word, with the removed ending."""
    stems = [(word, "")]
    for ending, restored in _ENDINGS.items():
        if word.endswith(ending) and len(word) > len(ending) + 2:
            kind = "ed" if ending.endswith("ed") else "ing" if ending == "ing" else "s"
            stem = word[: -len(ending)]
            stems.extend((stem + letter, kind) for letter in restored)
            if len(stem) > 2 and stem[-1] == stem[-2]:
                stems.append((stem[:-1], kind))
    return stems


class _Writer:
    """A writer of rough Polish for single English sentences."""

    def __init__(self, lexicon: dict[str, list[str]], table: dict[str, Any], seed: int) -> None:
        """Combine a lexicon with `table`: Polish words of English function words, and endings of names."""
        import morfeusz2

        self.lexicon, self.table, self.rng = lexicon, table, np.random.default_rng(seed)
        self.morfeusz = morfeusz2.Morfeusz(generate=True, analyse=False)
        self.forms = lru_cache(maxsize=100_000)(self._forms)

    def pick(self, choices: Sequence[str]) -> str:
        return choices[int(self.rng.integers(len(choices)))]

    def _forms(self, lemma: str) -> list[tuple[str, str]]:
        """Return the (form, tag) pairs of a lemma; empty if Morfeusz does not know it."""
        if not lemma or " " in lemma:
            return []
        return [(row[0], row[2]) for row in self.morfeusz.generate(lemma) if not row[2].startswith("ign")]

    def inflect(self, lemma: str, case: str, plural: bool, ending: str = "") -> str:
        """Return a form of `lemma` for this case and number or, for verbs, one that matches the English `ending`."""
        number, forms = "pl" if plural else "sg", self.forms(lemma)
        nominal = [
            f for f, tag in forms if f":{number}:" in tag and case in re.split(r"[:.]", tag) and ":neg" not in tag
        ]
        verbal = [f for f, tag in forms if _fits(tag, ending)]
        return self.pick([f for f in nominal if not f.startswith("nie")] or verbal or [f for f, _ in forms] or [lemma])

    def write(self, sentence: str) -> str:
        """Return a rough Polish version of the sentence, or "" if too many words are unknown."""
        tokens, out = _TOKEN.findall(sentence), []
        case, unknown, i = "nom", 0, 0
        while i < len(tokens):
            token, lower, used = tokens[i], tokens[i].lower(), 1
            if not token[0].isalnum():
                words, case = [token], "nom" if token in ".,;" else case
            elif lower in self.table["prepositions"]:
                preposition, case = self.table["prepositions"][lower]
                words = [preposition]
            elif lower in self.table["fixed"]:
                words = [self.pick(self.table["fixed"][lower])]
            elif lower in self.table["adjectival"]:
                words = [self.inflect(self.table["adjectival"][lower], case, lower == "these")]
            else:
                words, used, is_known = self.content(tokens, i, case)
                unknown += not is_known
                if case == "nom" or self.rng.random() < 0.5:
                    case = str(self.rng.choice(_CASES, p=_CASE_CHANCE))
            out += words
            i += used
        return "" if unknown > 0.2 * len(tokens) else _join(out)

    def content(self, tokens: list[str], i: int, case: str) -> tuple[list[str], int, bool]:
        """Return the Polish for the content word or phrase at i, the number of tokens used, and whether it is known."""
        for length in (3, 2):
            phrase = " ".join(tokens[i : i + length]).lower()
            if len(tokens) - i >= length and phrase in self.lexicon:
                return self.pick(self.lexicon[phrase]).split(), length, True
        token = tokens[i]
        capitalised = token[0].isupper() and i > 0
        if not capitalised or token.lower() in self.lexicon:
            for stem, ending in _stems(token.lower()):
                if stem in self.lexicon:
                    polish = self.pick(self.lexicon[stem])
                    words = polish.split() if " " in polish else [self.inflect(polish, case, ending == "s", ending)]
                    return words, 1, True
        if token[0].isupper():
            return [self.decline(token, case)], 1, True
        return [token], 1, any(c.isdigit() for c in token)

    def decline(self, name: str, case: str) -> str:
        """Return a foreign name with the Polish ending of its case, sometimes without an ending."""
        if case == "nom" or self.rng.random() < 0.35 or len(name) < 4 or not name.isalpha():
            return name
        if name.endswith("a"):
            return name[:-1] + self.table["feminine_endings"][case]
        return name + self.table["name_endings"][case] if name[-1] not in "eiouyáéíó" else name


def _join(tokens: Sequence[str]) -> str:
    """Join tokens by spaces, except before closing punctuation and inside quotes and brackets; capitalise the text."""
    text = re.sub(r"\s+", " ", " ".join(token for token in tokens if token)).strip()
    text = re.sub(r" ([.,;:!?)\]]+)", r"\1", text)
    text = re.sub(r"([(\[]) ", r"\1", text)
    text = re.sub(r"\" ([^\"]*) \"", r'"\1"', text)
    return text[:1].upper() + text[1:]


def back_translate_lexically(english: Sequence[str], entries: Iterable[tuple[str, str, str]], seed: int) -> list[str]:
    """Return a line of rough Polish for each English sentence, or "" if the lexicon lacks too many words.

    `entries` are (Polish, English, origin) lexicon rows.
    """
    lexicon: dict[str, list[str]] = {}
    for polish, translation, _ in entries:
        lexicon.setdefault(translation.lower(), []).append(polish)
    table = tomllib.loads((DATA / "rough_polish.toml").read_text(encoding="utf-8"))
    writer = _Writer(lexicon, table, seed)
    return [writer.write(sentence) for sentence in english]


SEED = 0


@returns_exit_code
def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    program, description = "python -m smt.training.lexical_lines", (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("pair", choices=("pl-en",), help="languages of the lexicon")
    pair = parser.parse_args(arguments).pair
    need("morfeusz2", "rough Polish")
    lines = [line.rstrip("\n") for line in sys.stdin]
    print("\n".join(back_translate_lexically(lines, lexicon_pairs(pair), SEED)))


if __name__ == "__main__":
    sys.exit(main())
