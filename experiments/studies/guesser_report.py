"""The guessers' report: how often each knows the answer after 10%, 20%, ... 100% of the question; Table 1.

    sqa guessers configs/guessers.yaml

The text is the English one that a person wrote (the human translation of XQB, the question itself of guessdev).  After
a fraction f of its characters, in whole words, a guesser names its best 50 pages, and each question gives

    acc@1, acc@10, acc@50   1 if the answer is among the first 1, 10, 50, else 0
    mrr                     1 / rank of the answer, 0 beyond 50
    ew                      EW(f) if the top guess is right, else 0: what a buzz at f would win

Every number is a mean over questions with a 95% bootstrap interval over them; a question whose page the guesser does
not know counts as wrong, and `guessable` is the group without those.  Ranks are kept in the store under the guesser's
fingerprint, block by block: a killed report goes on, and a guesser trained anew is measured anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from tqdm import tqdm

from experiments.contestant import Value, below_one, components
from experiments.contestants import MeanCurve, check_labels, sift
from experiments.grid import usable
from experiments.lab import curves
from experiments.lab.ledger import Row as Number
from experiments.made import LeftOut, Made
from guessers.evaluate import DEPTH, rank_of
from sqa import __version__
from sqa.core.answers import key as answer_key
from sqa.core.errors import ConfigError, DataError
from sqa.core.interfaces import IncrementalGuesser
from sqa.core.registry import GUESSERS
from sqa.core.significance import Band, bootstrap_band
from sqa.core.types import Guess, Question
from sqa.data.datasets import MINI, load_guessdev, load_questions
from sqa.files import records
from sqa.files.store import Stage, Store, blocks_of, dataset_fingerprint, digest
from sqa.metrics.curve import AnyCurve, curve_named
from sqa.report.figure_style import COLUMN, save, style
from sqa.run.config import load
from sqa.run.parts import Parts
from sqa.run.pipeline import BLOCK_SIZE

DEPTHS = (1, 10, DEPTH)
MEASURES = (*(f"acc@{depth}" for depth in DEPTHS), "mrr", "ew")  # the order of the statistics
ALL, GUESSABLE = "all", "guessable"  # groups beside the categories
STEM = "guessers_accuracy"
VERSION = 1  # of how ranks are found; raise it when they change
RANKS = pa.schema(
    [pa.field("question_id", pa.string(), nullable=False), pa.field("ranks", pa.list_(pa.int32()), nullable=False)]
)


@dataclass(frozen=True, slots=True)
class Entry:
    """A guesser of the report."""

    label: str  # in table and figure
    guesser: dict[str, Value]  # as in a run's config
    optional: bool = False  # left out, with the reason, where it cannot be had
    every_word: bool = True  # ask it for all prefixes at once if it can; false = for those at the fractions only

    def __post_init__(self) -> None:
        if not self.optional:
            components(self.guesser)


@dataclass(frozen=True, slots=True)
class ReportConfig:
    """What `sqa guessers CONFIG` reads; configs/guessers.yaml explains each key."""

    name: str
    datasets: tuple[str, ...]
    fallback: tuple[str, ...]
    guessers: tuple[Entry, ...]
    fractions: tuple[float, ...]
    curve: str = "qanta2018"  # a published one, or a .json of `sqa curve fit`
    resamples: int = 1000
    seed: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        problems = check_labels(self.guessers, "guessers")
        if list(self.fractions) != sorted(set(self.fractions)) or not all(0 < f <= 1 for f in self.fractions):
            problems.append(f"fractions: must grow, above 0 and at most 1, got {list(self.fractions)}")
        if not self.fractions or self.fractions[-1] != 1:
            problems.append("fractions: the last must be 1, the complete question")
        try:
            curve_named(self.curve)
        except ConfigError as error:
            problems += error.problems
        problems += below_one(self, "resamples", "limit")
        if problems:
            raise ConfigError(problems)


class Row(NamedTuple):
    """One guesser on one group of questions of one data set."""

    dataset: str
    group: str  # ALL, GUESSABLE or a category
    guesser: str  # label
    n: int  # questions of the group
    band: Band | None  # (measures * fractions,), measure by measure; None where the group is empty

    def at(self, measure: str, fraction: int) -> tuple[float, float, float] | None:
        """Value, low and high of a measure at the fraction of an index (-1: the complete question)."""
        if self.band is None:
            return None
        per = len(self.band.value) // len(MEASURES)
        place = MEASURES.index(measure) * per + fraction % per
        return float(self.band.value[place]), float(self.band.low[place]), float(self.band.high[place])

    def numbers(self, measure: str, places: Iterable[str]) -> dict[str, Number]:
        """A measure as a line of a figure: by the index of the fraction."""
        found = {place: self.at(measure, int(place)) for place in places}
        return {place: Number((self.guesser,), measure, *triple) for place, triple in found.items() if triple}


class Report(NamedTuple):
    """All there is to write."""

    rows: list[Row]
    datasets: list[dict[str, str]]  # lines of Table 1
    left_out: list[LeftOut]
    fingerprints: dict[str, str]  # label -> of the guesser: its weights, config and code version


def main(config_path: Path, runs: Path) -> None:
    """`sqa guessers CONFIG`: guess what the store lacks; tables and figure; the table on stdout."""
    config = load(config_path, ReportConfig)
    report, made = measure(config, Store(runs)), Made(runs / config.name)
    made.table("guessers.tsv", *table(report, config.fractions), show=True)
    made.table("table1.tsv", list(report.datasets[0]), (list(line.values()) for line in report.datasets))
    how = f"input:human-english|pos:target-char|top:{DEPTH}|curve:{curve_named(config.curve).name}"
    how += f"|resamples:{config.resamples}|seed:{config.seed}|v:{__version__}"
    made.table("signatures.tsv", ("guesser", "fingerprint", "signature"),
               ([label, mark, how] for label, mark in report.fingerprints.items()))  # fmt: skip
    made.add(draw(report, config.fractions, made.folder))
    for path in made.paths:
        print(f"sqa: {path}", file=sys.stderr)


def measure(config: ReportConfig, store: Store) -> Report:
    """Everything of the report.  A guesser that fails is left out if it is optional, else its error is raised."""
    parts = Parts()
    sets = {name: load_questions(name, config.limit) for name in usable(config)}
    guessers: dict[str, Any] = {}  # by label
    ranks: dict[tuple[str, str], np.ndarray] = {}  # by label and data set

    def ask(entry: Entry) -> None:
        options, _ = components(entry.guesser)
        guesser = parts.component(GUESSERS, options)
        target = GUESSERS.identity(options.name)
        for name, questions in sets.items():
            ranks[entry.label, name] = ranks_of(guesser, target, questions, config.fractions, store, entry.every_word)
        guessers[entry.label] = guesser

    present, left_out = sift(config.guessers, ask)
    if not present:
        raise ConfigError(["guessers: none of them can be had", *(f"{o.label}: {o.reason}" for o in left_out)])
    rows, lines = [], []
    for name, questions in sets.items():
        known = {entry.label: knows(guessers[entry.label], questions) for entry in present}
        lines.append(describe(name, questions, known))
        for entry in present:
            for group, members in groups(name, questions, known[entry.label]):
                band = band_of(ranks[entry.label, name][members], config) if members.any() else None
                rows.append(Row(name, group, entry.label, int(members.sum()), band))
    return Report(rows, lines, left_out, {label: guesser.fingerprint() for label, guesser in guessers.items()})


# ------------------------------------------------------------------------------------------------------- ranks


def words_at(words: Sequence[str], fractions: Sequence[float]) -> np.ndarray:
    """(F,) int64: how many words lie wholly within each fraction of the characters of " ".join(words)."""
    ends = np.cumsum([len(word) + 1 for word in words]) - 1  # characters up to the end of each word
    return np.searchsorted(ends, np.array(fractions) * ends[-1] + 1e-9, side="right")


def guesses_at(
    guesser: Any, words: Sequence[str], fractions: Sequence[float], every_word: bool
) -> list[Sequence[Guess]]:
    """The guesses after each fraction of the text; none before its first word."""
    counts = words_at(words, fractions).tolist()
    if every_word and isinstance(guesser, IncrementalGuesser):
        steps = guesser.guess_prefixes(words, DEPTH)
        return [steps[count - 1] if count else [] for count in counts]
    wanted = [count for count in counts if count]
    answers = iter(guesser.guess([" ".join(words[:count]) for count in wanted], DEPTH))
    return [next(answers) if count else [] for count in counts]


def ranks_of(
    guesser: Any, target: str, questions: Sequence[Question], fractions: Sequence[float], store: Store, every_word: bool
) -> np.ndarray:
    """(n, F) int64 rank of the answer at each fraction, 0 beyond DEPTH; blocks that the store holds are read."""
    identity = digest([VERSION, DEPTH, list(fractions), guesser.fingerprint()])
    stage = Stage("ranks", target, identity, (), dataset_fingerprint(questions), BLOCK_SIZE)
    blocks = blocks_of(questions, BLOCK_SIZE)
    if store.missing(stage, len(blocks)):
        with store.working_on(stage):
            missing = store.missing(stage, len(blocks))
            todo = sum(len(blocks[index]) for index in missing)
            name = f"{questions[0].dataset} {target.partition(':')[0]}"
            with tqdm(desc=name, total=len(questions), initial=len(questions) - todo, unit="question") as bar:
                for index in missing:
                    lists = []
                    for q in blocks[index]:
                        guesses = guesses_at(guesser, q.reference_text.split(), fractions, every_word)
                        lists.append([rank_of(listed, q.page) for listed in guesses])
                        bar.update()
                    store.write(stage, index, _ranks_table(blocks[index], lists))
    rows: dict[str, list[int]] = {}
    for index in range(len(blocks)):
        block = store.read(stage, index, RANKS)
        rows |= dict(zip(block["question_id"].to_pylist(), block["ranks"].to_pylist(), strict=True))
    try:
        return np.array([rows[q.id] for q in questions], dtype=np.int64)
    except KeyError as error:
        raise DataError(f"{store.folder(stage)}: has no row for {error}; delete it and run again") from error


def _ranks_table(questions: Sequence[Question], lists: Sequence[Sequence[int]]) -> pa.Table:
    columns = [pa.array([q.id for q in questions], pa.string()), pa.array(lists, pa.list_(pa.int32()))]
    return pa.Table.from_arrays(columns, schema=RANKS)


# ------------------------------------------------------------------------------------------- numbers and groups


def values(ranks: np.ndarray, fractions: Sequence[float], curve: AnyCurve) -> np.ndarray:
    """(n, F) ranks -> (n, len(MEASURES) * F), measure by measure in the order of MEASURES."""
    listed = ranks > 0
    hits = [listed & (ranks <= depth) for depth in DEPTHS]
    reciprocal = np.where(listed, 1 / np.maximum(ranks, 1), 0.0)
    wins = np.where(ranks == 1, curve(np.array(fractions)), 0.0)
    return np.hstack([*hits, reciprocal, wins])


def band_of(ranks: np.ndarray, config: ReportConfig) -> Band:
    """All measures at all fractions, with pointwise 95% intervals over questions."""
    scores = values(ranks, config.fractions, curve_named(config.curve))
    stats = np.hstack([scores, np.ones((len(scores), 1))])
    return bootstrap_band(stats, MeanCurve("guesser"), config.resamples, config.seed)


def knows(guesser: Any, questions: Sequence[Question]) -> np.ndarray | None:
    """(n,) bool, whether the guesser can name the answer; None if it does not say which pages it has."""
    pages = getattr(guesser, "pages", None)
    if pages is None:
        return None
    known = {answer_key(page) for page in pages}
    return np.array([answer_key(q.page) in known for q in questions])


def describe(name: str, questions: Sequence[Question], known: dict[str, np.ndarray | None]) -> dict[str, str]:
    """The data set's line of Table 1: words per question, different answers, questions whose page each guesser knows.

    "n/a" is said of a guesser that does not say which pages it has, and then of those that nobody knows.
    """
    n = len(questions)
    counts = {label: None if mask is None else int(mask.sum()) for label, mask in known.items()}
    masks = [mask for mask in known.values() if mask is not None]
    counts["nobody"] = int((~np.any(masks, axis=0)).sum()) if len(masks) == len(known) else None
    return {
        "dataset": name,
        "questions": str(n),
        "source_words": f"{sum(len(q.words) for q in questions) / n:.2f}",
        "english_words": f"{sum(len(q.reference_text.split()) for q in questions) / n:.2f}",
        "pages": str(len({answer_key(q.page) for q in questions})),
        **{f"guessable.{label}": "n/a" if count is None else str(count) for label, count in counts.items()},
    }


def categories(name: str) -> dict[str, str]:
    """question id -> category, for the data sets that have them: guessdev and the bundled one."""
    if name == "guessdev":
        return {tossup.id: tossup.category for tossup in load_guessdev()}
    if name.startswith("mini-"):
        listed = records.json_document(MINI)["questions"]
        return {f"{record['id']}-{name.removeprefix('mini-')}": record["category"] for record in listed}
    return {}


def groups(name: str, questions: Sequence[Question], known: np.ndarray | None) -> Iterator[tuple[str, np.ndarray]]:
    """(group, (n,) bool): all, the guessable ones if that is known, and each category, the largest first."""
    yield ALL, np.ones(len(questions), dtype=bool)
    if known is not None:
        yield GUESSABLE, known
    by_id = categories(name)
    of = np.array([by_id.get(q.id, "") for q in questions])
    names, counts = np.unique(of[of != ""], return_counts=True)
    for category in names[np.lexsort((names, -counts))].tolist():
        yield category, of == category


# ------------------------------------------------------------------------------------------------------- files


def table(report: Report, fractions: Sequence[float]) -> tuple[list[str], list[list[str]]]:
    """Header, and a line per guesser, data set, group and fraction; "n/a" where there is no question."""
    header = ["dataset", "group", "questions", "guesser", "fraction"]
    header += [f"{measure}{part}" for measure in MEASURES for part in ("", ".low", ".high")]
    lines = []
    for row in report.rows:
        for place, fraction in enumerate(fractions):
            cells = [row.dataset, row.group, str(row.n), row.guesser, f"{fraction:g}"]
            for measure in MEASURES:
                found = row.at(measure, place)
                cells += ["n/a"] * 3 if found is None else [f"{x:.6f}" for x in found]
            lines.append([*cells, ""])
    blank = ["n/a"] * (3 * len(MEASURES) + 1)
    lines += [["all", ALL, "n/a", out.label, *blank, f"left out: {out.reason}"] for out in report.left_out]
    return [*header, "note"], lines


def draw(report: Report, fractions: Sequence[float], folder: Path) -> list[Path]:
    """Accuracy at 1 over the question, a panel per data set, one column wide; returns the PDF and the PNG."""
    read = {str(i): Number((), "read", 100 * fraction) for i, fraction in enumerate(fractions)}
    looks = {label: place for place, label in enumerate(report.fingerprints)}
    panels = []
    for line in report.datasets:
        rows = [row for row in report.rows if (row.dataset, row.group) == (line["dataset"], ALL)]
        lines = [curves.Line(row.guesser, looks[row.guesser], row.numbers("acc@1", read)) for row in rows]
        title = f"accuracy at 1, {line['dataset']}, {line['questions']} questions"
        panels.append([curves.Panel(title, lines, lags=[read] * len(lines))])
    with style():
        figure = curves.over_k(panels, "question read (% of its characters)", height=1.5, width=COLUMN)
        return save(figure, folder, STEM)
