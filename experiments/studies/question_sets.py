"""Table 3: sizes of the question sets, the answers that guessers know, and those that English questions share.

sqa reproduce table3
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.contestants import NamedContestant, check_labels, components, sift
from experiments.grid import usable
from experiments.outputs import LeftOut, Outputs
from sqa.core import GUESSERS, Count, NotComputable, Question, checked
from sqa.core import key as answer_key
from sqa.data.datasets import load_questions
from sqa.data.texts import load_tossups
from sqa.pipeline import Parts, load

COMMONEST = 5  # answers listed in Table 3


@dataclass(frozen=True, slots=True)
@checked
class ReportConfig:
    """Keys of `sqa reproduce table1` and `table3`; configs/guessers.yaml explains them."""

    name: str
    datasets: tuple[str, ...]
    guessers: tuple[NamedContestant, ...]
    fallback: tuple[str, ...] = ()
    fractions: tuple[float, ...] = (1.0,)
    resamples: Count = 1000
    seed: int = 0
    limit: Count | None = None

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        problems = check_labels(self.guessers, "guessers")
        if list(self.fractions) != sorted(set(self.fractions)) or not all(0 < f <= 1 for f in self.fractions):
            problems.append(f"fractions: must grow, above 0 and at most 1, got {list(self.fractions)}")
        if not self.fractions or self.fractions[-1] != 1:
            problems.append("fractions: the last must be 1, the complete question")
        return problems


class Given(NamedTuple):
    """Data sets and guessers of a report."""

    sets: dict[str, list[Question]]  # the available data sets
    guessers: dict[str, tuple[Any, str]]  # label -> guesser, its identity in the registry
    left_out: list[LeftOut]


def given(config: ReportConfig) -> Given:
    """Return the available data sets and guessers; an optional guesser that cannot be loaded is left out."""
    parts, guessers = Parts(), {}

    def make(entry: NamedContestant) -> None:
        options, _ = components(entry.guesser)
        guesser = parts.component(GUESSERS, options)
        guesser.fingerprint()  # reads the guesser's files
        guessers[entry.label] = guesser, GUESSERS.identity(options.name)

    _, left_out = sift(config.guessers, make, "guessers")
    sets = {name: load_questions(name, config.limit) for name in usable(config)}
    if not sets:
        raise NotComputable(f"{config.name}: none of {', '.join(config.datasets)} is available")
    return Given(sets, guessers, left_out)


def main(config_path: Path, runs: Path) -> None:
    """Write Table 3: sizes of the translated question sets, and the answers that they share with English questions."""
    config = load(config_path, ReportConfig)
    outputs, inputs = Outputs(runs / config.name), given(config)
    outputs.csv("table3.csv", described(inputs), show=True)
    overlaps, answers = shared_answers(inputs.sets, [tossup.page for tossup in load_tossups()])
    outputs.csv("overlap.csv", overlaps, show=True)
    outputs.csv("answers.csv", answers)
    outputs.end()


def shared_answers(
    sets: Mapping[str, Sequence[Question]], english: Iterable[str | None]
) -> tuple[list[list[str]], list[list[str]]]:
    """Return two tables of the answers that each set shares with English questions, each with a header.

    The first has a row for each set: shares of its distinct answers and of its questions, and the commonest answers of
    each kind.  The second has a row for each answer, with its numbers of questions in the set and in English.

    Args:
        sets: Questions by name of their set.
        english: Answer page of each English question; None if unknown.
    """
    in_english = Counter(answer_key(page) for page in english if page)
    heads = ["dataset", "answers", "shared.answers", "shared.questions", "commonest.shared", "commonest.source.only"]
    overlaps, answers = [heads], [["dataset", "answer", "questions", "english_questions"]]
    for name, questions in sets.items():
        pages = {answer_key(question.page): question.page for question in questions}
        asked = Counter(answer_key(question.page) for question in questions)
        ordered = sorted(pages, key=lambda key: (-in_english[key], -asked[key], pages[key]))
        shared = [key for key in ordered if in_english[key]]
        listed = [", ".join(pages[key] for key in keys[:COMMONEST]) for keys in (shared, ordered[len(shared) :])]
        share = sum(asked[key] for key in shared) / len(questions)
        overlaps.append([name, str(len(pages)), f"{len(shared) / len(pages):.2f}", f"{share:.2f}", *listed])
        answers += [[name, pages[key], str(asked[key]), str(in_english[key])] for key in ordered]
    return overlaps, answers


def knows(guesser: Any, questions: Sequence[Question]) -> np.ndarray | None:
    """Return a boolean array (n,): whether the guesser can name each answer; None if it has no page list."""
    pages = getattr(guesser, "pages", None)
    if pages is None:
        return None
    own_pages = {answer_key(page) for page in pages}
    return np.array([answer_key(q.page) in own_pages for q in questions])


def described(inputs: Given) -> list[list[str]]:
    """Return a table: sizes of each data set, and the number of answers that each guesser knows.

    The number is "n/a" for a guesser without a page list.  If there is such a guesser, the number of answers that no
    guesser knows is also "n/a".
    """
    head = "dataset questions source_sentences source_words english_words source_words_a_question"
    head += " english_words_a_question pages"
    lines = [[*head.split(), *(f"guessable.{label}" for label in inputs.guessers), "guessable.nobody"]]
    for name, questions in inputs.sets.items():
        n = len(questions)
        texts = [(q.sentences, q.words, q.reference_text.split()) for q in questions]
        sizes = [sum(map(len, parts)) for parts in zip(*texts, strict=True)]
        masks = [knows(guesser, questions) for guesser, _ in inputs.guessers.values()]
        known_masks = [mask for mask in masks if mask is not None]
        counts: list[Any] = ["n/a" if mask is None else mask.sum() for mask in masks]
        counts.append((~np.any(known_masks, axis=0)).sum() if len(known_masks) == len(masks) else "n/a")
        means = [f"{size / n:.2f}" for size in sizes[1:]]
        lines.append([name, *map(str, (n, *sizes, *means, len({answer_key(q.page) for q in questions}), *counts))])
    return lines
