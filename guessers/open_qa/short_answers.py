"""Rule-based short answers from retrieved passages, without a trained reader.

    title    the title of the best passage
    typed    the first item of the kind that the question's first words request, in the best passages:

        when, what/which year|century|decade ...  a date or a year      "14 March 1879", "1492", "19th century"
        how many, how much, how long|old|tall ... a number              "1,500", "twelve"
        a question that begins with is, did, ...  "yes", which is twice as frequent as "no" in XOR-TyDi
        anything else                             the title of the best passage

The rule selects the best passage with an item of that kind, then, of its sentences with such an item, the one that
shares the most stems with the question, then the first item there.  A title that occurs in the question is not an
answer, so the next passage's title is used.  If nothing is found, the answer is the title; without a passage it is "".

The rules are for English questions only.
"""

import re
from collections.abc import Sequence
from typing import Literal

from guessers.open_qa.passages import Passage
from guessers.text import line_stems, tokens

VERSION = 1  # increase when answers change

Kind = Literal["date", "number", "yes", "thing"]

_ASKS_YES = frozenset(
    "is are was were am do does did has have had can could will would shall should may might must".split()
)
_TIMES = frozenset("year years date day month century decade".split())
_MEASURES = frozenset("many much old long tall high big large deep far wide heavy fast often hot cold".split())
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_YEAR = r"(?:1\d{3}|20\d{2})"
_DATE = re.compile(
    rf"\b(?:(?:{_MONTH}) \d{{1,2}}, {_YEAR}|\d{{1,2}} (?:{_MONTH}) {_YEAR}|(?:{_MONTH}),? {_YEAR}|{_YEAR}s?"
    r"|\d{1,2}(?:st|nd|rd|th) century|\d{1,4} (?:BCE?|AD|CE))(?![\d-])"
)
_FIGURES = r"(?<![\w.,-])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?: (?:million|billion))?(?![\w-])"
_WORDS = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|hundred|thousand|million"
_NUMBER = re.compile(rf"{_FIGURES}|\b(?:{_WORDS})\b")
_ENDS = re.compile(r"(?<=[.!?])\s+")  # between sentences
_DISAMBIGUATION = re.compile(r"\s*\([^()]*\)$")


def kind_of(question: str) -> Kind:
    """Return the kind of answer that an English question requests."""
    words = [token for word in question.lower().split() for token in tokens(word)]
    first, second = (*words[:2], "", "")[:2]
    if first in _ASKS_YES:
        return "yes"
    if first == "how" and second in _MEASURES:
        return "number"
    asked = words[: words.index("the")] if "the" in words else words[:5]  # only the beginning: "in what year did ..."
    if "when" in words[:2] or ({"what", "which"} & set(asked) and _TIMES & set(asked[:4])):
        return "date"
    return "thing"


def title_answer(question: str, passages: Sequence[Passage]) -> str:
    """Return the first title that the question does not name, without a final "(...)"; "" if there is none."""
    question_stems = line_stems(question)
    for passage in passages:
        title = _DISAMBIGUATION.sub("", passage.title)
        if not line_stems(title) <= question_stems:
            return title
    return ""


def typed_answer(question: str, passages: Sequence[Passage]) -> str:
    """Return the answer by the `typed` rule."""
    kind = kind_of(question)
    if kind == "yes":
        return "yes"
    if kind != "thing":
        pattern = _DATE if kind == "date" else _NUMBER
        question_stems = line_stems(question)
        for passage in passages:
            found = [(sentence, match) for sentence in _ENDS.split(passage.text) if (match := pattern.search(sentence))]
            if found:  # the first of the sentences with the most stems of the question
                return max(found, key=lambda pair: len(line_stems(pair[0]) & question_stems))[1].group()
    return title_answer(question, passages)
