"""Tables 1 and 3: how often each guesser knows the answer after 10%, 20%, ... 100% of the question.

    sqa reproduce table1
    sqa reproduce table3      # sizes of the Spanish and the Polish question set

The text is English written by a person (the human translation of XQB, the question itself of guessdev).  After a
fraction f of its characters, in whole words, a guesser names its best 50 pages, and each question is scored by

    acc@1, acc@10, acc@50   1 if the answer is among the first 1, 10, 50, else 0
    mrr                     1 / rank of the answer, 0 beyond 50
    ew                      EW(f) if the top guess is right, else 0: the expected wins of a buzz at f

Every number is a mean over questions with a 95% bootstrap interval.  A question whose page the guesser does not
know counts as wrong; the group `guessable` excludes such questions.  Ranks are stored in blocks under the guesser's
fingerprint.  Therefore a killed report resumes, and a retrained guesser is measured again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np

from experiments.contestants import NamedContestant, check_labels, components, sift
from experiments.grid import usable
from experiments.outputs import LeftOut, Outputs, cached_rows
from experiments.results_book.ledger import Row, row_of
from guessers.evaluate import DEPTH, rank_of
from sqa.core.answers import key as answer_key
from sqa.core.errors import ConfigError, NotComputable
from sqa.core.registry import GUESSERS
from sqa.core.schema import Count, checked
from sqa.core.significance import bootstrap_band, mean_curve, means
from sqa.core.types import Guess, IncrementalGuesser, Question
from sqa.data.datasets import load_questions
from sqa.data.texts import load_tossups
from sqa.files.store import Stage, Store, dataset_fingerprint, digest
from sqa.metrics.qa import AnyCurve, curve_named
from sqa.pipeline.config import load
from sqa.pipeline.engine import BLOCK_SIZE, Parts
from sqa.report import plots
from sqa.results import Frame

DEPTHS = (1, 10, DEPTH)
MEASURES = (*(f"acc@{depth}" for depth in DEPTHS), "mrr", "ew")  # in the order of the statistics
ALL, GUESSABLE = "all", "guessable"  # groups of questions
COLUMNS = ("dataset", "group", "guesser", "read")
COMMONEST = 5  # answers listed in Table 3
VERSION = 1  # version of the ranks; increase it when their computation changes


@dataclass(frozen=True, slots=True)
@checked
class ReportConfig:
    """Keys of `sqa reproduce table1` and `table3`; configs/guessers.yaml explains them."""

    name: str
    datasets: tuple[str, ...]
    guessers: tuple[NamedContestant, ...]
    fallback: tuple[str, ...] = ()
    fractions: tuple[float, ...] = (1.0,)
    curve: Annotated[str, "a published one, or a .json of `sqa train curve`"] = "qanta2018"
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
        try:
            curve_named(self.curve)
        except ConfigError as error:
            problems += error.problems
        return problems


class Given(NamedTuple):
    """Data sets and guessers of a report."""

    sets: dict[str, list[Question]]  # the available data sets
    guessers: dict[str, tuple[Any, str, bool]]  # label -> guesser, its identity in the registry, `every_word`
    left_out: list[LeftOut]


def given(config: ReportConfig) -> Given:
    """Return the available data sets and guessers; an optional guesser that cannot be loaded is left out."""
    parts, guessers = Parts(), {}

    def make(entry: NamedContestant) -> None:
        options, _ = components(entry.guesser)
        guesser = parts.component(GUESSERS, options)
        guesser.fingerprint()  # reads the guesser's files
        guessers[entry.label] = guesser, GUESSERS.identity(options.name), entry.every_word

    _, left_out = sift(config.guessers, make, "guessers")
    sets = {name: load_questions(name, config.limit) for name in usable(config)}
    if not sets:
        raise NotComputable(f"{config.name}: none of {', '.join(config.datasets)} is available")
    return Given(sets, guessers, left_out)


def main(config_path: Path, runs: Path) -> None:
    """Write the tables and the figure of the guessers, and print the scores."""
    config = load(config_path, ReportConfig)
    inputs, outputs = given(config), Outputs(runs / config.name)
    rows = list(measured(inputs, config, Store(runs)))
    outputs.rows("guessers.csv", COLUMNS, rows, show=True)
    outputs.csv("table1.csv", described(inputs))
    outputs.picture("guessers_accuracy", accuracy_over_question, Frame(COLUMNS, rows), list(inputs.guessers))
    outputs.differences((), inputs.left_out)
    outputs.end()


def table3(config_path: Path, runs: Path) -> None:
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


def measured(inputs: Given, config: ReportConfig, store: Store) -> Iterator[Row]:
    """Yield each guesser's scores on each group of questions at each fraction."""
    how = f"input:human-english|pos:target-char|top:{DEPTH}|curve:{curve_named(config.curve).name}|version:{VERSION}"
    for name, questions in inputs.sets.items():
        for label, (guesser, identity, every_word) in inputs.guessers.items():
            ranks = ranks_of(guesser, identity, every_word, questions, config.fractions, store)
            signature = f"guesser:{guesser.fingerprint()}|{how}"
            for group, members in groups(questions, knows(guesser, questions)):
                if not members.any():
                    continue
                scores = values(ranks[members], config.fractions, curve_named(config.curve))
                band = bootstrap_band(means(scores), mean_curve, config.resamples, config.seed)
                for (metric, fraction), interval in zip(product(MEASURES, config.fractions), band, strict=True):
                    yield row_of((name, group, label, f"{fraction:g}"), metric, interval, "0-1", signature)


# ------------------------------------------------------------------------------------------------------- ranks


def words_at(words: Sequence[str], fractions: Sequence[float]) -> np.ndarray:
    """Return the number of words completely within each fraction of the text's characters, as an array (F,)."""
    ends = np.cumsum([len(word) + 1 for word in words]) - 1  # characters up to the end of each word
    return np.searchsorted(ends, np.array(fractions) * ends[-1] + 1e-9, side="right")


def guesses_at(
    guesser: Any, words: Sequence[str], fractions: Sequence[float], every_word: bool
) -> list[Sequence[Guess]]:
    """Return the guesses after each fraction of the text; an empty list if the fraction has no complete word."""
    counts = words_at(words, fractions).tolist()
    if every_word and isinstance(guesser, IncrementalGuesser):
        steps = guesser.guess_prefixes(words, DEPTH)
        return [steps[count - 1] if count else [] for count in counts]
    answers = iter(guesser.guess([" ".join(words[:count]) for count in counts if count], DEPTH))
    return [next(answers) if count else [] for count in counts]


def ranks_of(
    guesser: Any,
    identity: str,
    every_word: bool,
    questions: Sequence[Question],
    fractions: Sequence[float],
    store: Store,
) -> np.ndarray:
    """Return the rank of each answer at each fraction, 0 beyond DEPTH, of shape (n, F).

    Blocks that are not in the store are computed.  `identity` is the guesser's identity in the registry.
    """
    implementation = digest([VERSION, DEPTH, list(fractions), guesser.fingerprint()])
    stage = Stage("ranks", identity, implementation, (), dataset_fingerprint(questions), BLOCK_SIZE)

    def make(block: slice) -> Iterator[tuple[list[int]]]:
        for question in questions[block]:
            guesses = guesses_at(guesser, question.reference_text.split(), fractions, every_word)
            yield ([rank_of(listed, question.page) for listed in guesses],)

    title = f"{questions[0].dataset} {identity.partition(':')[0]}"
    rows = cached_rows(store, stage, [question.id for question in questions], make, title, ranks="[i4]")
    return np.array([ranks for (ranks,) in rows], dtype=np.int64)


def values(ranks: np.ndarray, fractions: Sequence[float], curve: AnyCurve) -> np.ndarray:
    """Return the scores of ranks (n, F), of shape (n, len(MEASURES) * F), grouped by measure."""
    listed = ranks > 0
    hits = [listed & (ranks <= depth) for depth in DEPTHS]
    reciprocal = np.where(listed, 1 / np.maximum(ranks, 1), 0.0)
    wins = np.where(ranks == 1, curve(np.array(fractions)), 0.0)
    return np.hstack([*hits, reciprocal, wins])


# ------------------------------------------------------------------------------------------------------- groups


def knows(guesser: Any, questions: Sequence[Question]) -> np.ndarray | None:
    """Return a boolean array (n,): whether the guesser can name each answer; None if it has no page list."""
    pages = getattr(guesser, "pages", None)
    if pages is None:
        return None
    own_pages = {answer_key(page) for page in pages}
    return np.array([answer_key(q.page) in own_pages for q in questions])


def described(inputs: Given) -> list[list[str]]:
    """Return Table 1: sizes of each data set, and the number of answers that each guesser knows.

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
        masks = [knows(guesser, questions) for guesser, *_ in inputs.guessers.values()]
        known_masks = [mask for mask in masks if mask is not None]
        counts: list[Any] = ["n/a" if mask is None else mask.sum() for mask in masks]
        counts.append((~np.any(known_masks, axis=0)).sum() if len(known_masks) == len(masks) else "n/a")
        means = [f"{size / n:.2f}" for size in sizes[1:]]
        lines.append([name, *map(str, (n, *sizes, *means, len({answer_key(q.page) for q in questions}), *counts))])
    return lines


def groups(questions: Sequence[Question], is_known: np.ndarray | None) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each group with its mask (n,): all questions, and those whose answer the guesser can name."""
    yield ALL, np.ones(len(questions), dtype=bool)
    if is_known is not None:
        yield GUESSABLE, is_known


def accuracy_over_question(frame: Frame, labels: Sequence[str]) -> plots.Figure:
    """Draw accuracy at 1 over the fraction of the question read, with a panel for each data set, one column wide."""
    panels = []
    for name in frame.values("dataset"):
        of_dataset = frame.where("acc@1", dataset=name, group=ALL)
        read = {row["read"]: 100 * float(row["read"]) for row in of_dataset}
        lines = [line._replace(x=read) for line in plots.lines(of_dataset, "guesser", "read", labels)]
        panels.append([plots.Panel(f"accuracy at 1, {name}, {of_dataset[0].n} questions", lines)])
    return plots.over_k(panels, "question read (% of its characters)", height=1.5, width=plots.COLUMN)
