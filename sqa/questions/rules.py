"""Questions by rule: clozes of names, numbers, dates, roles and negations, and the reader that recognises answers.

The rules are those of the metric `facts` (sqa/metrics/quality/facts.py).  The reader answers a question as soon as the
answer stands in the text.  It recognises answers and understands no question, so it can be fooled by a text that lists
all names (docs/ask.md).

Roles and negations are asked about in English, and only where the rules are sure:

    role      "____ defeated Napoleon": two names with nothing in between but a VERB and perhaps an article.
              The reader wants both names in this order, or in the other one with "by" in between
    negation  "He did ____ leave": the only negation of a single sentence.  The reader wants any negation
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, compress, pairwise

from msgspec import structs

from sqa.core import BLANKLESS, language_of
from sqa.metrics.quality.facts import Fact, Text, counterpart, extract, find
from sqa.metrics.quality.names import ends_sentence, negations
from sqa.questions.files import TextQuestion, reference_digest

BLANK = "____"
KINDS = ("name", "number", "date", "role", "negation")
ENGLISH = KINDS[3:]  # kinds for English only
VERB = re.compile(
    r"beat|bought|built|led|left|made|saw|sent|shot|sold|told|took|won|wrote|(?!married|divorced)[a-z]+ed"
)
CASED = 0.5  # least share of letters with case in a script that writes names with capitals
_TOKEN = re.compile(rf"[{BLANKLESS}]|[^\s{BLANKLESS}]+")
_MARKS = re.compile(r"^\W+|\W+$")
_AFTER = re.compile(r"\W*$")


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a text; in a script without spaces, each character is a word."""
    return tuple(_TOKEN.findall(text))


def no_names(language: str, references: Sequence[str]) -> str:
    """Return the reason why names cannot be found by rule in these texts, or "" if they can."""
    if language_of(language).capital_nouns:
        return f"{language_of(language).name or language} writes all nouns with capitals"
    letters = [c for text in references for c in text if c.isalpha()]
    cased = sum(c.lower() != c.upper() for c in letters)
    return "" if cased >= CASED * len(letters) else "the script of the references has no capitals"


def clozes(segment: int, reference: str, source: str, pair: tuple[str, str]) -> Iterator[TextQuestion]:
    """Yield a question for each fact of a reference, with repetitions; every word of the fact is blank."""
    text = _text(reference, pair[1])
    for fact in extract(text):
        question = TextQuestion(segment, _blanked(text, fact), (fact.text,), fact.kind, "rules", (0, 1))
        yield placed(question, fact, (fact.first, fact.last + 1), (reference, source), pair)


def roles(segment: int, reference: str, source: str, pair: tuple[str, str]) -> Iterator[TextQuestion]:
    """Yield a question for each name that does something to the next name."""
    text = _text(reference, pair[1])
    for one, other in pairwise(extract(text)):
        between = text.words[one.last + 1 : other.first]
        between = between[:-1] if between[-1:] in (("the",), ("a",)) else between
        verb = between[0] if len(between) == 1 and text.words[one.last][-1].isalnum() else ""
        if VERB.fullmatch(verb) and {one.kind, other.kind} == {"name"}:
            question = TextQuestion(segment, _blanked(text, one), (one.text,), "role", "rules", (0, 1))
            yield placed(question, one, (one.first, one.last + 1), (reference, source), pair)


def negated(segment: int, reference: str, source: str, pair: tuple[str, str]) -> Iterator[TextQuestion]:
    """Yield a question for the negation of a reference that is one sentence with one negation."""
    words = words_of(reference)
    found = [n for n, word in enumerate(words) if negations(word)]
    if len(found) == negations(reference) == sum(map(ends_sentence, words)) == 1 < len(words) - 1:
        blanked = " ".join(BLANK if n in found else word for n, word in enumerate(words))
        question = TextQuestion(segment, blanked, (_MARKS.sub("", words[found[0]]),), "negation", "rules", (0, 1))
        fact = fact_of(question.answers[0], "name", pair[1])
        yield placed(question, fact, (found[0], found[0] + 1), (reference, source), pair)


def located(question: TextQuestion, texts: tuple[str, str], pair: tuple[str, str]) -> TextQuestion | None:
    """Return a question with the first place of its answer in (reference, source); None if it is not there."""
    words, answer = ([_MARKS.sub("", word).casefold() for word in words_of(t)] for t in (texts[0], question.answers[0]))
    size = len(answer)
    first = next((n for n in range(len(words)) if answer and words[n : n + size] == answer), None)
    if first is None:
        return None
    return placed(question, fact_of(question.answers[0], question.kind, pair[1]), (first, first + size), texts, pair)


def placed(
    question: TextQuestion, fact: Fact, span: tuple[int, int], texts: tuple[str, str], pair: tuple[str, str]
) -> TextQuestion:
    """Return a question with its place: the span in the reference, and the source word that completes the answer."""
    reference, source = texts
    index = counterpart(fact, _text(source, pair[0])) if source else None
    share = _share(words_of(reference), span[1] - 1) if index is None else _share(words_of(source), index)
    digest = reference_digest(reference)
    return structs.replace(question, span=span, source=index, share=share, reference=digest)


def _blanked(text: Text, fact: Fact) -> str:
    """Return a text with blanks in place of a fact, wherever it is told; punctuation after it stays."""
    blank = {text.at[n] for n, part in enumerate(text.parts) if part in fact.words}
    blank |= {text.at[n] for value, first, last in text.values if value == fact.value for n in range(first, last + 1)}
    blank |= {*range(fact.first, fact.last + 1)}
    kept = []
    for n, word in enumerate(text.words):
        if n not in blank:
            kept.append(word)
        elif n + 1 not in blank or not word[-1].isalnum():
            kept.append(BLANK + (_AFTER.search(word) or [""])[0])
    return " ".join(kept)


def _share(words: Sequence[str], index: int) -> float:
    """Return the share of the characters up to the end of a word, if all characters take equally long."""
    ends = list(accumulate(len(word) + 1 for word in words))
    return round(ends[index] / ends[-1], 6)


@lru_cache(maxsize=1 << 14)
def _text(text: str, language: str) -> Text:
    return Text.of(words_of(text), language)


@lru_cache(maxsize=1 << 16)
def fact_of(answer: str, kind: str, language: str) -> Fact:
    """Return an answer as a fact: a number or date if all of its words are one, else a name of its content words."""
    text = Text.of(("x", *words_of(answer)), language)  # after a word, "May" is a month, and "US" no headline
    parts, last = text.parts[1:], len(text.parts) - 1
    if kind != "name" and len(text.values) == 1 and text.values[0][1:] == (1, last):
        return Fact("date" if kind == "date" else "number", answer, (), text.values[0][0], 0, last)
    coded = [word != word.lower() or any(map(str.isdigit, word)) for word in text.written[1:]]
    capitals = tuple(compress(parts, coded))
    content = tuple(part for part in parts if part not in language_of(language).function_words)
    return Fact("name", answer, capitals or content or parts, "", 0, last)


def answers_in(question: TextQuestion, text: str, language: str) -> bool:
    """Return whether one of a question's answers stands in a text, in its role."""
    read = _text(text, language)
    if question.kind == "negation" and question.maker == "rules":
        return negations(text) > 0
    if question.kind == "role" and question.maker == "rules":
        asked = _text(question.question, language)
        other = next(fact for fact in extract(asked) if fact.first > asked.words.index(BLANK))
        one, two = find(fact_of(question.answers[0], "name", language), read), find(other, read)
        between = read.words[one:two] + read.words[two:one]  # one of them is empty
        return one is not None and two is not None and (one < two) != ("by" in between)
    return any(find(fact_of(answer, question.kind, language), read) is not None for answer in question.answers)


class Rules:
    """The reader that recognises answers."""

    name = "rules"
    every_word = True  # its readings cost nothing

    def __init__(self, language: str) -> None:
        self.language = language

    def right(self, asked: Sequence[tuple[TextQuestion, str]]) -> list[bool]:
        """Return whether each question is answered right from its text; without a text, from the question itself."""
        return [answers_in(question, text or question.question, self.language) for question, text in asked]
