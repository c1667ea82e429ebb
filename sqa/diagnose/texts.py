"""The texts of a question's sentences in which every word that was shown is judged once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from sqa.core.trace import QuestionTrace


@dataclass(frozen=True, slots=True)
class Text:
    """A text of one sentence that was shown, and which step wrote each of its words."""

    sentence: int
    words: tuple[str, ...]
    steps: tuple[int, ...]
    judged: frozenset[int]  # steps whose word was last seen in this text
    final: bool


def texts_of(trace: QuestionTrace) -> list[Text]:
    """The final translation of each sentence, and every text of it from which words were retracted later.

    So each word, retracted or not, is judged once: in the longest text that showed it.  A sentence without words has
    a final text without words.
    """
    texts: list[Text] = []
    steps = list(enumerate(trace.emissions))
    by_sentence = {number: list(rows) for number, rows in groupby(steps, key=lambda row: row[1].sentence)}
    for number in range(len(trace.question.sentences)):
        words: list[str] = []
        wrote: list[int] = []
        for step, emission in by_sentence.get(number, []):
            kept = len(words) - emission.erase
            if emission.erase:
                texts.append(Text(number, tuple(words), tuple(wrote), frozenset(wrote[kept:]), False))
                del words[kept:], wrote[kept:]
            if emission.token:
                words.append(emission.token)
                wrote.append(step)
        texts.append(Text(number, tuple(words), tuple(wrote), frozenset(wrote), True))
    return texts
