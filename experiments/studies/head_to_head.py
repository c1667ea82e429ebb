"""Systems compared with people who played the same questions: `sqa head-to-head configs/head_to_head.yaml`.

Question: how many recorded opponents does a guesser with its buzzer beat when it reads the same English text?

Each recorded buzz is one opponent.  The system buzzes after s words (infinity if never), the opponent after h.

                         opponent right     opponent wrong
    s < h   right             +10                +10
            wrong             -15                 -5
    s >= h  last guess right  -10                +15
            last guess wrong  -10                 +5

These are Protobowl's points, own minus the opponent's (Pinafore/qb, qanta/buzzer/eval.py).  If both buzz at the same
word, the opponent answers.  If the opponent is wrong, the system answers at the end of the question.  The system wins
at +10 and +15 and loses at -10 and -15; at -5 and +5 neither side answered correctly.  Every share is the mean over a
question's opponents, then over questions, with a bootstrap interval over questions.  The data contain only teams that
buzzed, so only these are opponents.

Questions that repeat a text of the guessers' training data are excluded and listed.  The overlap of two texts is
the number of common six-word sequences ("runs"), as a share of the runs of the text with fewer runs.  A question
repeats a text if that share is at least .3 and there are at least four common runs.  (Two tossups on the same answer
with the same famous quotation can reach .2; a reused question is near 1.)
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from tqdm import tqdm

from experiments.contestants import NamedContestant, check_labels, sift
from experiments.lab.item import Item, inputs_of
from experiments.lab.ledger import Row
from experiments.lab.tables import across, columns, pivot
from experiments.outputs import Outputs
from sqa.core.errors import DataError
from sqa.core.schema import Count, checked
from sqa.core.significance import Mean
from sqa.core.trace import QuestionTrace
from sqa.core.types import Question
from sqa.data import download, human_buzzes
from sqa.data.human_buzzes import Buzzes
from sqa.files import records
from sqa.files.store import Store
from sqa.metrics.curve_fit import METHODS, FitConfig, fit
from sqa.pipeline.config import RunConfig, of_parts
from sqa.pipeline.engine import RunResult
from sqa.pipeline.engine import run as run_stages
from sqa.pipeline.overrides import load_study
from sqa.pipeline.paired import intervals, scored
from sqa.pipeline.parts import Parts
from sqa.pipeline.spread import make_ahead

POINTS = (10, -15, -5, -10, 15, 5)
OUTCOMES = tuple(f"{value:+d}" for value in POINTS)
MEASURES = ("points", "beaten", "lost-to", "neither", "buzzes-first", "right-when-first", "beatable")
COLUMNS = ("contestant",)
RUN = 6  # words per run
SHARE, RUNS = 0.3, 4  # minimum share and minimum number of common runs
_WORD = re.compile(r"\w+")

Run = tuple[str, ...]


@dataclass(frozen=True, slots=True)
@checked
class HeadToHeadConfig:
    """Keys of `sqa head-to-head CONFIG`; configs/head_to_head.yaml explains them."""

    name: str
    dataset: str
    buzzes: str
    training: tuple[str, ...]
    contestants: tuple[NamedContestant, ...]
    metrics: tuple[str, ...]
    opponents: Literal["all", "first"] = "all"
    first_word: int = 0
    limit: Count | None = None
    resamples: Count = 1000
    seed: int = 0

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        wrong = check_labels(self.contestants, "contestants")
        if self.first_word not in (0, 1):
            wrong.append(f"first_word: must be 0 or 1, got {self.first_word}")
        for contestant in self.contestants:
            self.run(contestant)  # raises ConfigError
        return wrong

    def run(self, contestant: NamedContestant) -> RunConfig:
        """Return the config of a contestant's run, which reads the English text word by word."""
        return of_parts(
            name=f"{self.name}-{contestant.label}",
            dataset={"name": self.dataset, "limit": self.limit},
            translator={"name": "fixed", "text": "reference", "reveal": "diagonal"},
            guesser=contestant.guesser,
            buzzer=contestant.buzzer,
            metrics=self.metrics,
            seed=self.seed,
        )


@dataclass(frozen=True)
class Opponents:
    """The m people who buzzed on one question, as arrays of shape (m,)."""

    heard: np.ndarray  # int64, words heard at the buzz, 1 .. words of the question
    right: np.ndarray  # bool, whether the opponent was right


@dataclass(frozen=True, slots=True)
class Play:
    """The system's play on one question; words are counted from 1."""

    buzz: float  # words read at the first buzz; inf = never
    right: bool  # whether the answer at the buzz is right
    right_at_end: bool  # whether the top guess after the last word is right
    first_right: float  # words read when the top guess is first right; inf = never


def main(config_path: Path, runs: Path, words: Sequence[str] = ()) -> None:
    """Let every contestant play, write the scores and the list of excluded questions, and print the scores."""
    rows, repeats = played(config_path, runs, words)
    outputs = Outputs(runs / load_study(config_path, HeadToHeadConfig, words).name)
    outputs.rows("head_to_head.csv", COLUMNS, rows, show=True)
    lines = sorted([repeat.question, repeat.text, f"{repeat.share:.3f}", str(repeat.runs)] for repeat in repeats)
    outputs.csv("left_out.csv", [["question", "training_text", "share", "runs"], *lines])
    outputs.end()


def played(config_path: Path, runs: Path, words: Sequence[str] = ()) -> tuple[list[Row], list[Repeat]]:
    """Return the rows of every contestant, and each excluded question with the training text that it repeats."""
    config = load_study(config_path, HeadToHeadConfig, words)
    parts, store = Parts(), Store(runs)
    questions = parts.questions(config.run(config.contestants[0]).dataset)
    buzzes = human_buzzes.load_buzzes(config.buzzes, "clip")
    if config.opponents == "first":
        buzzes = human_buzzes.first_of_game(buzzes)
    opponents = opponents_of(buzzes, questions, config.first_word)
    repeats = [repeat for repeat in nearest(questions, config.training).values() if repeat.excluded]
    left_out = {repeat.question for repeat in repeats}
    kept = {q.id: opponents[q.id] for q in questions if q.id in opponents and q.id not in left_out}
    if not kept:
        raise DataError(f"{config_path}: no question has a recorded buzz and is not in the training data")
    unknown, people = sum(q.id not in opponents for q in questions), sum(len(them.heard) for them in kept.values())
    of_all = f"{len(kept)} of {len(questions)} questions, {people} opponents"
    print(f"{of_all}; {unknown} without a recorded buzz, {len(left_out)} in the training data", file=sys.stderr)
    rows: list[Row] = []

    def play(contestant: NamedContestant) -> None:
        rows.extend(
            rows_of(
                contestant.label, run_stages(config.run(contestant), store, parts=parts, ahead=make_ahead), kept, config
            )
        )

    sift(config.contestants, play)
    return rows, repeats


def opponents_of(buzzes: Buzzes, questions: Sequence[Question], first_word: int) -> dict[str, Opponents]:
    """Return the people who buzzed on each question, by question id.

    `first_word` is the word_index of a question's first word, 0 or 1.  A buzz at word_index w comes after w + 1 -
    first_word words, clipped to the length of the question.  Raises DataError if the number of words recorded with a
    buzz differs from the question's.
    """
    if buzzes.word is None or buzzes.words is None:
        raise DataError(f"{buzzes.name}: head-to-head needs the columns word_index and n_words")
    lengths = {question.id: len(question.words) for question in questions}
    by_question = {}
    for id in (id for id in np.unique(buzzes.question).tolist() if id in lengths):
        chosen = buzzes.question == id
        if wrong := set(buzzes.words[chosen].tolist()) - {lengths[id]}:
            raise DataError(
                f"{buzzes.name}: buzzes on {id} count {min(wrong)} words, but the question has {lengths[id]}"
            )
        heard = np.clip(buzzes.word[chosen] + 1 - first_word, 1, lengths[id])
        by_question[id] = Opponents(heard, buzzes.correct[chosen])
    return by_question


def play_of(trace: QuestionTrace) -> Play:
    """Return the system's play on a question; for a trace without steps, no buzz and no right guess."""
    read, correct = trace.source_words, trace.correct
    buzzed = np.flatnonzero([buzz.buzz for buzz in trace.buzzes or ()])
    right = np.flatnonzero(correct)
    return Play(
        buzz=float(read[buzzed[0]]) if len(buzzed) else np.inf,
        right=bool(len(buzzed)) and bool(correct[buzzed[0]]),
        right_at_end=bool(len(correct)) and bool(correct[-1]),
        first_right=float(read[right[0]]) if len(right) else np.inf,
    )


def points(play: Play, opponents: Opponents) -> np.ndarray:
    """Return the Protobowl points against each opponent (m,), by the table in the module's docstring."""
    first = play.buzz < opponents.heard
    when_first = np.where(play.right, 10, np.where(opponents.right, -15, -5))
    when_second = np.where(opponents.right, -10, 15 if play.right_at_end else 5)
    return np.where(first, when_first, when_second)


def measures(play: Play, opponents: Opponents) -> dict[str, tuple[float, float]]:
    """Return a dict that maps each measure to its (sum, weight) on one question, for `Mean`.

    points            mean points against an opponent
    beaten, lost-to, neither   shares of opponents; they sum to 1
    buzzes-first      share of opponents before whom the system buzzed
    right-when-first  among these opponents, the share against whom the system was right (a ratio of sums over
                      questions)
    beatable          share of opponents that were wrong, or right after the system's first right guess: the share that
                      a perfect buzzer could beat
    +10 ... +5        share of opponents with that outcome
    """
    won = points(play, opponents)
    first = float(np.mean(play.buzz < opponents.heard))
    beatable = ~(opponents.right & (play.first_right >= opponents.heard))
    shares = {
        "points": float(np.mean(won)),
        "beaten": float(np.mean((won == 10) | (won == 15))),
        "lost-to": float(np.mean((won == -10) | (won == -15))),
        "neither": float(np.mean(np.abs(won) == 5)),
        "buzzes-first": first,
        "beatable": float(np.mean(beatable)),
        **{f"{value:+d}": float(np.mean(won == value)) for value in POINTS},
    }
    return {**{name: (share, 1.0) for name, share in shares.items()}, "right-when-first": (first * play.right, first)}


def rows_of(label: str, result: RunResult, opponents: dict[str, Opponents], config: HeadToHeadConfig) -> list[Row]:
    """Return the rows of one contestant: the measures, then the run's metrics on the same questions."""
    measured = [measures(play_of(t), opponents[t.question.id]) for t in result.traces if t.question.id in opponents]
    how = f"opponents:{config.opponents}|first-word:{config.first_word}|tie:opponent|mean:question"
    tables = {name: np.array([values[name] for values in measured]) for name in (*MEASURES, *OUTCOMES)}
    against = [(Mean(name), table) for name, table in tables.items() if table[:, 1].sum() > 0]  # 0: never buzzed first
    is_played = np.array([question.id in opponents for question in result.questions])
    of_run = [(metric, stats[is_played]) for metric, stats in scored(result)]
    rows = intervals((label,), against, config.resamples, config.seed, unit="")
    rows = [replace(row, signature=f"{row.metric}|{how}") for row in rows]
    return rows + [replace(row, unit="") for row in intervals((label,), of_run, config.resamples, config.seed)]


# ---------------------------------------------------------------------------------------------- repeated questions


@dataclass(frozen=True, slots=True)
class Repeat:
    """Overlap of a question with the most similar training text."""

    question: str  # id of the question
    text: str  # "<file>:<record>"
    share: float  # common runs / runs of the text that has fewer, 0 to 1
    runs: int  # common runs

    @property
    def excluded(self) -> bool:
        """Whether the question counts as seen in training."""
        return self.share >= SHARE and self.runs >= RUNS


def nearest(questions: Sequence[Question], training: Sequence[str]) -> dict[str, Repeat]:
    """Return, by question id, the most similar training text; questions without a common run are absent.

    `training` lists names in the manifest or paths of JSON Lines files whose records have a `text`.
    """
    by_question = {question.id: runs_of(question.text) for question in questions}
    with_run: defaultdict[Run, list[str]] = defaultdict(list)
    for id, text_runs in by_question.items():
        for run in text_runs:
            with_run[run].append(id)
    nearest_text: dict[str, Repeat] = {}
    for name, text in tqdm(_texts(training), "training texts against the questions", mininterval=2, leave=False):
        text_runs = runs_of(text)
        for id, shared in Counter(id for run in text_runs for id in with_run.get(run, ())).items():
            repeat = Repeat(id, name, shared / min(len(text_runs), len(by_question[id])), shared)
            best = nearest_text.get(id)
            if best is None or (repeat.excluded, repeat.share) > (best.excluded, best.share):
                nearest_text[id] = repeat
    return nearest_text


def runs_of(text: str) -> set[Run]:
    """Return all sequences of RUN consecutive words of a text, ignoring case and punctuation."""
    words = _WORD.findall(text.casefold())
    return set(zip(*(words[start:] for start in range(RUN)), strict=False))


def _texts(training: Sequence[str]) -> Iterator[tuple[str, str]]:
    names = {entry.name for entry in download.entries()}
    for source in training:
        path = download.path_of(source) if source in names else Path(source)
        for i, record in enumerate(records.json_lines(path)):
            if not isinstance(record.get("text"), str):
                raise DataError(f"{path}: record {i}: has no text")
            yield f"{source}:{i}", record["text"]


# ------------------------------------------------------------------------------------------------------------ items

PEOPLE = "human-buzzes"
READ = (0, 0.25, 0.5, 0.75, 1)  # shares of a question read


def curves(_: Path, __: Path) -> Iterator[Row]:
    """Yield the expected wins at each share in READ by each fitted curve, with the band over questions."""
    for method in METHODS:
        fitted = fit(PEOPLE, FitConfig(method, "clip"))
        for t in READ:
            percent, n = round(100 * t), fitted.document["questions"]
            low, high = float(fitted.low[percent]), float(fitted.high[percent])
            yield Row((method, f"{t:g}"), "ew", float(fitted.curve(t)), low, high, n, "0-1")


BEATEN = columns("beaten: opponents beaten") + columns("points: points a game", digits=2)
REACHED = columns("ew: EW", "stable-ew: stable EW", "beatable: a perfect buzzer would beat", interval=False)
ITEMS = (
    Item(
        "curves",
        "expected wins by curves fitted to recorded buzzes",
        "",
        ("method", "read"),
        curves,
        inputs_of(datasets=(PEOPLE,)),
        {"table": pivot(("method",), across("ew", "read", ("0.5", "1"), "EW({})"))},
    ),
    Item(
        "head-to-head",
        "share of recorded opponents that each contestant beats on the questions that people played",
        "head_to_head.yaml",
        COLUMNS,
        lambda config, runs: played(config, runs)[0],
        blocks={"table": pivot(COLUMNS, BEATEN + REACHED)},
        kept="15 minutes on one core",
    ),
)
