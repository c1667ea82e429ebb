"""Bonus parts as training text: short clues with answers, except clues that repeat an evaluation question.

A quiz packet has tossups and bonuses.  A bonus has three short clues, and bonuses cover pages that no tossup has.  The
file (`bonus-parts` in data/manifest.yaml) was never checked against the evaluation questions of guessers and buzzers.
This module checks it against all of them (`held_out`): XQB's human references, QANTA's guessdev, the bundled questions,
the tossups of recorded human buzzes, and the tossups of the folds `buzzer` and `dev`.  A clue is dropped if it, or its
bonus's opening, repeats one of these questions:

    in wording   at least 25 % of its runs of four words, and at least 3 runs, are in the question
    in facts     it has the question's answer and at least 6 stems (except stop words), and at least 75 % of them are in
                 the question, in any order, as is typical of a clue that was translated back and forth

Runs in more than 20 questions ("this man who wrote") are ignored.  Shares half as large can arise by chance, because
descriptions of the same work use the same names.
"""

import functools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from tqdm import tqdm

from guessers import text
from sqa.core import DataError, answers
from sqa.data import download
from sqa.data.datasets import load_questions
from sqa.data.texts import fold_of, load_guessdev, load_tossups
from sqa.files import records

RUN = 4  # words per run
PHRASE = 20  # a run that occurs in more questions is a common phrase
WORDING, MIN_RUNS = 0.25, 3  # minimum share and number of repeated runs in a repetition
FACTS, MIN_STEMS = 0.75, 6  # minimum share of repeated stems in a repetition, and minimum number of stems of the clue
GUESSED_PAGES = frozenset({"skey", "alt-alias", "alt-assign", "or-alias"})  # labels given by unreliable rules


@dataclass(frozen=True, slots=True)
class Bonus:
    """One part of a bonus: a clue and its answer."""

    id: str
    text: str
    page: str | None  # page in the tossups' spelling; None if the answer has no known page
    answer: str
    opening: str  # text before all three parts, which may refer to any of them


def load_bonus() -> list[Bonus]:
    """Return all bonus parts in file order, unchecked, with pages in the tossups' spelling.

    57 ids occur twice; the later ones get "#2" appended.
    """
    spelling = {answers.key(tossup.page): tossup.page for tossup in load_tossups() if tossup.page}
    path = download.path_of("bonus-parts")
    parts: list[Bonus] = []
    seen: Counter[str] = Counter()
    for i, record in enumerate(records.json_lines(path)):
        try:
            name, clue, page, answer = (record[key] for key in ("id", "text", "page", "answer"))
            opening, source = record["leadin"], record["page_src"]
        except KeyError as error:
            raise DataError(f"{path}: record {i} has no {error}") from error
        seen[name] += 1
        title = None if page is None or source in GUESSED_PAGES else answers.canonical(page)
        parts.append(
            Bonus(
                id=name if seen[name] == 1 else f"{name}#{seen[name]}",
                text=" ".join(clue.split()),
                page=None if title is None else spelling.get(answers.key(title), title),
                answer=answer,
                opening=" ".join(opening.split()),
            )
        )
    return parts


def held_out() -> list[text.PageText]:
    """Return every evaluation question of guessers and buzzers, in English."""
    questions = [
        text.PageText(question.reference_text, question.page)
        for name in ("xqb-es", "xqb-pl", "mini-en")
        for question in load_questions(name)
    ]
    tossups = [*load_guessdev(), *(tossup for tossup in load_tossups() if fold_of(tossup.id) != "guesser")]
    questions += [text.PageText(tossup.text, tossup.page) for tossup in tossups]
    path = download.path_of("human-buzz-questions")
    questions += [text.PageText(record["text"], record.get("page")) for record in records.json_lines(path)]
    return questions


class Overlap:
    """Detector of clues that repeat a question."""

    def __init__(self, questions: Iterable[text.Profile]) -> None:
        with_run: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
        self._stems: defaultdict[str, list[frozenset[str]]] = defaultdict(list)  # by answer
        for number, question in enumerate(questions):
            for run in _runs(question.text):
                with_run[run].append(number)
            if question.page:
                self._stems[answers.key(question.page)].append(text.line_stems(question.text))
        self._phrases = frozenset(run for run, numbers in with_run.items() if len(numbers) > PHRASE)
        self._with_run = {run: numbers for run, numbers in with_run.items() if run not in self._phrases}

    def wording(self, clue: str) -> float:
        """Return the largest share, 0..1, of the clue's runs in one question; 0 for fewer than MIN_RUNS shared runs."""
        runs = _runs(clue) - self._phrases
        shared = Counter(number for run in runs for number in self._with_run.get(run, ()))
        most = max(shared.values(), default=0)
        return most / len(runs) if most >= MIN_RUNS else 0.0

    def facts(self, clue: str, page: str) -> float:
        """Return the largest share, 0..1, of the clue's stems in a question with that answer; 0 if it has few stems."""
        clue_stems = text.line_stems(clue)
        if len(clue_stems) < MIN_STEMS:
            return 0.0
        return max(
            (len(clue_stems & stems) / len(clue_stems) for stems in self._stems.get(answers.key(page), ())), default=0.0
        )

    def repeats(self, bonus: Bonus) -> bool:
        """Return whether a clue with a page, or its bonus's opening, repeats a question."""
        page = bonus.page or ""
        return any(
            self.wording(part) >= WORDING or self.facts(part, page) >= FACTS for part in (bonus.text, bonus.opening)
        )


@functools.lru_cache(maxsize=8)  # consecutive parts of a bonus share their opening
def _runs(line: str) -> frozenset[tuple[str, ...]]:
    tokens = [token for word in line.split() for token in text.tokens(word)]
    return frozenset(zip(*(tokens[start:] for start in range(RUN)), strict=False))


def clean(clues: Sequence[Bonus], questions: Collection[text.Profile]) -> list[Bonus]:
    """Return the clues that have a page and repeat no question, in the given order."""
    overlap = Overlap(questions)
    bar = tqdm(clues, "bonus parts against held-out questions", mininterval=2, leave=False)
    return [clue for clue in bar if clue.page is not None and not overlap.repeats(clue)]


@functools.cache
def clean_bonus() -> tuple[Bonus, ...]:
    """Return the bonus parts that have a page and repeat no held-out question, in file order."""
    return tuple(clean(load_bonus(), held_out()))
