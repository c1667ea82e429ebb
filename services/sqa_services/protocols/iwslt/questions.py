"""Expected wins during a client's translation: the sentences of the corpus are those of questions.

Each received word is an emission with the g at its arrival, so the words of a question form a trace, on which the
pipeline computes guesses, buzzes and scores.  When the client is done, its scores equal those of a run that wrote the
same words at the same g.  If a client writes words of a later sentence before words of an earlier one, the trace puts
them after the earlier sentence.

Before the client is done, a score covers the questions up to the last one that has words, each as far as it is
translated.  Earlier questions without words count as unanswered.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from sacrebleu.metrics.bleu import BLEU

from sqa.core import Buzzer, DataError, Emission, Guesser, Metric, NotComputable, Question
from sqa.core.trace import Emissions, QuestionTrace, buzzes_rows, guesses_rows
from sqa.metrics import build
from sqa.metrics.quality.bleu import Bleu
from sqa.pipeline.engine import buzz, guess
from sqa_services.protocols.iwslt.corpus import EOS, Sentence, TextCorpus

MAX_WORDS = 2_000  # maximum number of words of one question's translation, ends included
KEYS = {"ew": "EW", "oracle-ew": "OracleEW", "accuracy": "Accuracy", "bleu": "BLEU"}  # metric -> key of the result

Row = dict[str, np.ndarray | None]  # metric -> its statistics on one question; None: not computable


class QuestionScorer:
    """The questions, their guesser and buzzer, and the scores; it takes one call at a time."""

    def __init__(self, questions: Sequence[Question], guesser: Guesser, buzzer: Buzzer | None) -> None:
        self.questions, self._guesser, self._buzzer = tuple(questions), guesser, buzzer
        metrics = build([name for name in KEYS if name != "bleu" and (buzzer is not None or name != "ew")])
        self.metrics: list[Metric] = [*metrics, Bleu(BLEU(force=True))]
        self._first = [0, *accumulate(len(question.sentences) for question in self.questions)]
        self._question = [i for i, question in enumerate(self.questions) for _ in question.sentences]

    def corpus(self) -> TextCorpus:
        """Return all sentences in order, as `corpus_of` does."""
        return corpus_of(self.questions)

    def has_room(self, number: int, tokens: int, sentences: Mapping[int, Sentence]) -> bool:
        """Return whether the question of sentence `number` of the corpus has room for `tokens` more tokens."""
        index = self._question[number]
        others = range(self._first[index], self._first[index + 1])
        return sum(len(sentences[n].tokens) for n in others if n in sentences) + tokens <= MAX_WORDS

    def row(self, index: int, emissions: Emissions) -> Row:
        """Run guesser and buzzer on one question and return its statistics."""
        question = self.questions[index]
        id = question.id
        guesses = guesses_rows(guess(self._guesser, [question], {id: emissions}, _silent)).get(id, ())
        buzzes = None
        if self._buzzer is not None:
            buzzes = buzzes_rows(buzz(self._buzzer, [question], {id: guesses}, _silent)).get(id, ())
        trace = QuestionTrace(question, emissions, guesses, buzzes)
        return {metric.name: _stats(metric, trace) for metric in self.metrics}

    def result(self, sentences: Mapping[int, Sentence], rows: dict[int, tuple[int, Row]]) -> dict[str, Any]:
        """Return the scores so far, None if undefined; questions that are not in `rows` are scored and added to it."""
        last = max((number for number, state in sentences.items() if state.tokens), default=-1)
        indices = range(self._question[last] + 1 if last >= 0 else 0)
        for index in indices:
            emissions = emissions_of(self.questions[index], self._first[index], sentences)
            if index not in rows or rows[index][0] != len(emissions):
                rows[index] = (len(emissions), self.row(index, emissions))
        scores = dict.fromkeys(KEYS.values())
        for metric in self.metrics:
            scores[KEYS[metric.name]] = _score(metric, [rows[index][1][metric.name] for index in indices])
        return scores | {"Questions": len(indices)}


def corpus_of(questions: Sequence[Question]) -> TextCorpus:
    """Return all sentences in order; references are "" if the question's reference has other sentence boundaries."""
    sources: list[tuple[str, ...]] = []
    targets: list[str] = []
    for question in questions:
        for sentence in question.sentences:
            if EOS in sentence:
                raise DataError(f"{question.id}: contains the word {EOS}, by which the protocol ends a sentence")
        even = len(question.reference) == len(question.sentences)
        sources += question.sentences
        targets += question.reference if even else [""] * len(question.sentences)
    return TextCorpus(tuple(sources), tuple(targets))


def emissions_of(question: Question, first: int, sentences: Mapping[int, Sentence]) -> Emissions:
    """Return the emissions received for a question whose sentences begin at `first`.

    The end of a sentence, once read, counts as a word.
    """
    emissions = []
    for index, source in enumerate(question.sentences):
        state = sentences.get(first + index)
        if state is not None:
            size = len(source)
            emissions += [
                Emission(index, token, min(int(delay), size), delay > size)
                for token, delay in zip(state.tokens, state.delays, strict=True)
                if token != EOS
            ]
    return tuple(emissions)


def _stats(metric: Metric, trace: QuestionTrace) -> np.ndarray | None:
    try:
        return metric.stats(trace)
    except NotComputable:
        return None


def _score(metric: Metric, rows: Sequence[np.ndarray | None]) -> float | None:
    computed = [row for row in rows if row is not None]
    if not rows or len(computed) < len(rows):
        return None
    return float(metric.score(np.stack(computed).sum(axis=0)))


def _silent(_: int) -> None:
    """Ignore progress."""
