"""The tags of a question: answer category, length, number of sentences, whether its page is guessable.

    category:History      of the answer page: the question's own, else what most training tossups of the page are
    length:50-74          source words, by steps of 25
    sentences:3           source sentences; 6 and more are one tag
    guessable:yes         the page is one that the bundled guesser can name, since its training data had it

A category that nothing tells is no tag.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from functools import cache

from sqa.core.answers import key
from sqa.core.registry import GUESSERS
from sqa.core.types import Question
from sqa.data import download, texts

STEP, LAST = 25, 125  # words
MANY = 6  # sentences
GUESSER = "bm25"


def tags_of(question: Question, category: str | None, guessable: Collection[str]) -> list[str]:
    """All tags of a question; `guessable` holds `answers.key` of the pages that can be named."""
    start = min(len(question.words) // STEP * STEP, LAST)
    length = f"{start}+" if start == LAST else f"{start}-{start + STEP - 1}"
    sentences = f"{MANY}+" if len(question.sentences) >= MANY else str(len(question.sentences))
    category_tags = [f"category:{category}"] if category else []
    yes = "yes" if key(question.page) in guessable else "no"
    return [*category_tags, f"length:{length}", f"sentences:{sentences}", f"guessable:{yes}"]


@cache
def guessable_pages() -> frozenset[str]:
    """`answers.key` of every page that the bundled guesser can name."""
    guesser = GUESSERS.build(GUESSER, GUESSERS.config_class(GUESSER)(model=GUESSER))
    return frozenset(map(key, guesser.pages))


def page_categories() -> Mapping[str, str]:
    """`answers.key` of a page -> the category of most of its training tossups; empty while these are not at hand."""
    return {} if download.where("tossups") is None else _categories()


@cache
def _categories() -> Mapping[str, str]:
    counts: dict[str, Counter[str]] = {}
    for tossup in texts.load_tossups():
        if tossup.page and tossup.category:
            counts.setdefault(key(tossup.page), Counter())[tossup.category] += 1
    return {page: min(counter, key=lambda name: (-counter[name], name)) for page, counter in counts.items()}
