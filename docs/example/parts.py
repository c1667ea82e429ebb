"""Examples of your own parts.  A part is a class, and the fields of a dataclass are its keys in a config."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import numpy as np
from words import english  # the file beside this one

from sqa.core import Buzz


@dataclass(frozen=True)
class Translator:
    """Translate word by word with wait-k.   sqa run own.yaml translator=parts.py:Translator"""

    k: Annotated[int, "source words read before the first target word"] = 2

    def translate(self, source):
        read = []
        for word in source:  # pulling a word means reading it
            read.append(word)
            if len(read) >= self.k:
                yield english(read.pop(0))
        yield from map(english, read)


@dataclass(frozen=True)
class Guesser:
    """Rank pages by the number of words shared with the text.   sqa run own.yaml guesser=parts.py:Guesser"""

    file: Annotated[str, "JSON Lines of {text, page}, beside this file"] = "pages.jsonl"

    def guess(self, texts, n):
        found = []
        for text in texts:
            words = set(text.lower().split())
            shared = {page: len(words & set(its.split())) for page, its in pages(self.file).items()}
            best = sorted((page for page in shared if shared[page]), key=lambda page: (-shared[page], page))
            found.append([(page, shared[page]) for page in best[:n]])
        return found

    def fingerprint(self):  # everything else that the guesses depend on
        return str(pages(self.file))


@cache
def pages(file):
    """Return the joined texts of each page."""
    found = {}
    for line in Path(__file__).with_name(file).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found[row["page"]] = f"{found.get(row['page'], '')} {row['text'].lower()}"
    return found


@dataclass(frozen=True)
class Buzzer:
    """Buzz if the best page has stayed the same for some words.   sqa run own.yaml buzzer=parts.py:Buzzer"""

    words: Annotated[int, "target words during which the best page stays the same"] = 3

    def decide(self, history):
        stayed, buzzes, before = 0, [], None
        for guesses in history:
            best = guesses[0].page if guesses else None
            stayed = stayed + 1 if best and best == before else 0
            before = best
            buzzes.append(Buzz(stayed, stayed >= self.words))
        return buzzes


@dataclass(frozen=True)
class Policy:
    """Write words in groups.   sqa run own.yaml translator.policy=parts.py:Policy"""

    words: Annotated[int, "target words per group"] = 3
    start: Annotated[int, "source words read before the first translation"] = 1

    def show(self, shown, translations, ended):
        newest = translations[-1]  # the translation of all words read so far
        whole = len(newest) // self.words * self.words
        return newest if ended else newest[: max(len(shown), whole)]


class Metric:
    """Number of target words per source word.   sqa run own.yaml 'metrics=[ew,parts.py:Metric]'"""

    name, label, unit, digits, kind, higher_is_better = "length", "Length", "per word", 2, "quality", False

    def signature(self):
        return "length"

    def stats(self, trace):  # statistics of one question; the sum over questions is scored
        return np.array([len(trace.emissions), len(trace.question.words)], dtype=float)

    def score(self, stats):
        return float(stats[0] / stats[1])
