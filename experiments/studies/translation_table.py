"""Figure 8 and the table of translators: BLEU, chrF and lag of each on each test set, in one command.

    sqa translations configs/translation_table.yaml

Question: what quality does each translator reach, at what lag, and what does reading further ahead buy it?  A segment
is one question of XQB, or one sentence of a news test; every number is over segments, with a 95% bootstrap interval.  A
translator that is not installed, or a test set that cannot be had, is left out, and the table says so.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from experiments.contestant import below_one
from experiments.grid import DECODED, intervals_of
from experiments.lab import curves
from experiments.lab.ledger import Ledger, Row, row_of
from experiments.made import Made
from experiments.needs import Needs
from sqa import __version__
from sqa.core.errors import ConfigError, DataError
from sqa.core.registry import did_you_mean
from sqa.core.types import Question
from sqa.data import datasets, download
from sqa.files.store import Store
from sqa.report.figure_style import save, style
from sqa.run.blocks import workshop_of
from sqa.run.config import RunConfig, load, run_from_mapping
from sqa.run.pipeline import run as run_stages
from sqa.run.scheduler import current

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sqa.core.trace import QuestionTrace
    from sqa.run.parts import Parts
    from sqa.run.scheduler import Scheduler

METRICS = ("bleu", "chrf", "dal")
SHARES = ("empty", "copied", "looping")
COLUMNS = ("pair", "test", "translator", "k")  # of a ledger
COPIED_FROM = 4  # words of a sentence that could be copied: shorter ones often are the same in both languages
LOOP = re.compile(r"(\b[\w' ]{1,30}\b)(?:\W+\1\b){3,}|(\w{1,4})\2{5,}")  # a phrase 4 times, or 6 times some letters

Value = str | int | float | bool | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class SetConfig:
    """One test set."""

    name: str  # a question set; a part of the parallel text of `pair`; or a file of your own: .json, .jsonl or .tsv
    pair: str  # es-en, pl-en: which translators it is for


@dataclass(frozen=True, slots=True)
class TranslatorConfig:
    """A translator of the table, one row for each k."""

    label: str  # its name in table and figure
    pair: str  # the test sets it is for
    translator: dict[str, Value]  # as in a run's config, without k where `k` is given
    k: tuple[int | str, ...] = ()  # values of the translator's k; none = one row, as the translator stands
    needs: Needs | None = None

    def __post_init__(self) -> None:
        for k in self.k or (None,):
            run_from_mapping(self.run(k))  # raises ConfigError("translator...: ...")

    def run(self, k: int | str | None) -> dict[str, Any]:
        """A run's mapping, on questions to be filled in."""
        translator = self.translator if k is None else {**self.translator, "k": k}
        return {"name": "translations", "dataset": {"name": "mini-es"}, "translator": translator, "metrics": METRICS}


@dataclass(frozen=True, slots=True)
class TableConfig:
    """What `sqa translations CONFIG` reads; configs/translation_table.yaml explains each key."""

    name: str
    sets: tuple[SetConfig, ...]
    translators: tuple[TranslatorConfig, ...]
    resamples: int = 1000
    seed: int = 0
    limit: int | None = None

    def __post_init__(self) -> None:
        wrong = below_one(self, "resamples", "limit")
        wrong += [f"{key}: at least one is needed" for key in ("sets", "translators") if not getattr(self, key)]
        for key, names in (
            ("sets", [(s.name, s.pair) for s in self.sets]),
            ("translators", [(t.label, t.pair) for t in self.translators]),
        ):
            twice = {name for name in names if names.count(name) > 1}
            wrong += [f"{key}: {name} of {pair} is there twice" for name, pair in twice]
        if wrong:
            raise ConfigError(wrong)


@dataclass(frozen=True, slots=True)
class TestSet:
    """A test set that is here."""

    __test__ = False  # not a test of pytest's

    name: str
    dataset: str  # what a run's config calls it
    questions: list[Question]


class LeftOut(NamedTuple):
    """A translator, or (label "") a whole test set, that has no numbers."""

    test: str
    label: str
    reason: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A row that can be made."""

    test: str
    translator: TranslatorConfig
    k: int | str | None
    run: RunConfig  # on the questions of the test set, which are given to it


def main(config_path: Path, runs: Path, sets: Sequence[str] = ()) -> None:
    """`sqa translations CONFIG`: what the store lacks is translated; then table and figure; the table on stdout.

    `sets` names those of the config's test sets that are wanted; none = all.
    """
    config = _only(load(config_path, TableConfig), sets)
    rows, left_out = measure(config, Store(runs))
    ledger, made = Ledger(config.name, "", __version__, "", {}, COLUMNS, tuple(rows)), Made(runs / config.name)
    made.table("table.tsv", *table(ledger, left_out), show=True)
    made.add(draw(ledger, made.folder))
    for path in made.paths:
        print(f"sqa: {path}", file=sys.stderr)


def _only(config: TableConfig, names: Sequence[str]) -> TableConfig:
    known = [test.name for test in config.sets]
    wrong = [
        f"sets: no {name!r}{did_you_mean(name, known)}; known: {', '.join(known)}"
        for name in names
        if name not in known
    ]
    if wrong:
        raise ConfigError(wrong)
    return replace(config, sets=tuple(test for test in config.sets if test.name in names)) if names else config


def measure(config: TableConfig, store: Store) -> tuple[list[Row], list[LeftOut]]:
    """All rows in the order of the config, and what has none.  No row at all: DataError.

    Inside `scheduled(...)` they are made by the workers of a scheduler, whose store then takes the place of `store`.
    """
    wanted, left_out = _wanted(config)
    if not wanted:
        raise DataError("\n".join(["nothing to measure", *(f"{o.test} {o.label}: {o.reason}" for o in left_out)]))
    scheduler = current()
    if scheduler is not None:
        return _spread(scheduler, wanted, config), left_out
    rows: list[Row] = []
    for cell, test in wanted:
        at = "" if cell.k is None else f", k = {cell.k}"
        print(f"sqa: {cell.test}: {cell.translator.label}{at}", file=sys.stderr)
        rows += measure_one(cell, config, test.questions, store, workshop_of(store).parts)
    return rows, left_out


def _wanted(config: TableConfig) -> tuple[list[tuple[Cell, TestSet]], list[LeftOut]]:
    """The rows that can be made, in the order of the config, and what cannot."""
    wanted: list[tuple[Cell, TestSet]] = []
    left_out: list[LeftOut] = []
    for asked in config.sets:
        try:
            test = load_set(asked, config.limit)
        except DataError as error:
            left_out.append(LeftOut(asked.name, "", str(error).splitlines()[0]))
            continue
        for translator in (t for t in config.translators if t.pair == asked.pair):
            reason = translator.needs.missing() if translator.needs else ""
            if reason:
                left_out.append(LeftOut(asked.name, translator.label, reason))
                continue
            for k in translator.k or (None,):
                run = run_from_mapping({**translator.run(k), "dataset": {"name": test.dataset}})
                wanted.append((Cell(test.name, translator, k, run), test))
    return wanted, left_out


def _spread(scheduler: Scheduler, wanted: Sequence[tuple[Cell, TestSet]], config: TableConfig) -> list[Row]:
    """The rows, made by workers; these find the questions in the store, and need no data of their own."""
    from sqa.core import progress
    from sqa.run.blocks import keep
    from sqa.run.spread import PROCESSES, Job, spread

    given = {id(test): keep(scheduler.store, test.questions) for _, test in wanted}
    chains: dict[tuple[Any, ...], list[tuple[int, Job]]] = {}
    for place, (cell, test) in enumerate(wanted):
        # prefix translations of a program are remembered within a process, so its k stay together
        apart = cell.k if cell.run.translator.name in DECODED else None
        job = Job(cell.run, partial(_finish, cell, config, given[id(test)]), given=given[id(test)])
        chains.setdefault((id(test), cell.translator.label, apart), []).append((place, job))
    of_jobs = list(chains.values())
    rows: dict[int, list[Row]] = {}
    with progress.bar("translations", len(wanted), unit="row") as bar:
        for (chain, at), its in spread(scheduler, [[job for _, job in jobs] for jobs in of_jobs], PROCESSES):
            rows[of_jobs[chain][at][0]] = its
            bar.update()
    return [row for place in range(len(wanted)) for row in rows[place]]


def _finish(cell: Cell, config: TableConfig, given: str, store: Store, parts: Parts) -> list[Row]:
    """On a worker, when all blocks of a row are in the store."""
    from sqa.run.blocks import kept

    return measure_one(cell, config, kept(store, given), store, parts, progress=False)


def load_set(config: SetConfig, limit: int | None) -> TestSet:
    """The segments of a test set.  Not to be had: DataError; not known, or in another language: ConfigError."""
    parts = datasets.parallel_parts(config.pair)
    if config.name in parts:
        pairs = datasets.load_parallel(config.pair, config.name)
        return _sentences(config, download.entry(f"mt-{config.pair}-{config.name}").path, pairs, limit)
    if config.name.endswith(".tsv"):
        from sqa.files.records import table as read_table

        path = Path(config.name)
        if not path.is_file():
            raise DataError(f"{path}: there is no such file of sentences")
        pairs = (datasets.Pair(source, target, path.stem) for source, target in read_table(path, 2))
        return _sentences(config, config.name, pairs, limit)
    if config.name not in datasets.question_sets() and not Path(config.name).suffix:
        known = (*datasets.question_sets(), *parts)
        raise ConfigError(
            f"sets: no test set {config.name!r}{did_you_mean(config.name, known)}; known: {', '.join(known)}"
        )
    questions = datasets.load_questions(config.name, limit)
    others = {question.language for question in questions} - {config.pair.partition("-")[0]}
    if others:
        raise ConfigError(f"sets: {config.name} is in {', '.join(sorted(others))}, its pair is {config.pair}")
    return TestSet(config.name, config.name, questions)


def _sentences(config: SetConfig, dataset: str, pairs: Iterator[datasets.Pair], limit: int | None) -> TestSet:
    """Each pair as a question of one sentence."""
    language, found = config.pair.partition("-")[0], []
    for i, pair in enumerate(islice(pairs, limit)):
        words, target = tuple(pair.source.split()), pair.target.strip()
        if not words or not target:
            raise DataError(f"{config.name}: line {i + 1} has an empty side")
        found.append(Question(f"{config.name}-{i}", config.name, language, (words,), (target,), page=""))
    if not found:
        raise DataError(f"{config.name}: no sentences in it")
    return TestSet(config.name, dataset, found)


def measure_one(
    cell: Cell, config: TableConfig, questions: Sequence[Question], store: Store, parts: Parts, progress: bool = True
) -> list[Row]:
    """Translate (what the store lacks) and score: a row for each metric and each share of odd sentences.

    A metric that is undefined here (DAL of what retracts words) has none.
    """
    result = run_stages(cell.run, store, parts=parts, questions=questions, progress=progress)
    _, intervals, signatures = intervals_of(result.metrics, result.stats, config.resamples, config.seed)
    key = (cell.translator.pair, cell.test, cell.translator.label, "-" if cell.k is None else str(cell.k))
    units = {metric.name: metric.unit for metric in result.metrics}
    odd = shares([pair for trace in result.traces for pair in _pairs(trace)])
    return [
        *(row_of(key, name, found, units[name], signatures[name]) for name, found in intervals.items()),
        *(Row(key, name, share, n=len(questions), unit="share") for name, share in zip(SHARES, odd, strict=True)),
    ]


def _pairs(trace: QuestionTrace) -> Iterator[tuple[str, str]]:
    """(source, translation) of each sentence of a question."""
    sources = (" ".join(words) for words in trace.question.sentences)
    return zip(sources, trace.hypotheses, strict=True)


def shares(sentences: Sequence[tuple[str, str]]) -> tuple[float, float, float]:
    """Shares, 0 to 1, of (source, translation) pairs that came out empty, copied (of the long ones), looping."""
    long = [(source, target) for source, target in sentences if len(source.split()) >= COPIED_FROM]
    empty = sum(not target for _, target in sentences) / len(sentences)
    copied = sum(source == target for source, target in long) / max(1, len(long))
    looping = sum(bool(LOOP.search(target)) for _, target in sentences) / len(sentences)
    return empty, copied, looping


# ------------------------------------------------------------------------------------------------------- files


def table(ledger: Ledger, left_out: Sequence[LeftOut]) -> tuple[list[str], list[list[str]]]:
    """Header, and a line per row with value and 95% interval of each metric, shares and signatures; "n/a" for none.

    What was left out has a line too, with the reason in the column `note`.
    """
    header = ["test", "segments", "translator", "k"]
    header += [f"{name}{part}" for name in METRICS for part in ("", ".low", ".high")]
    header += [*SHARES, *(f"{name}.signature" for name in METRICS), "note"]
    lines = []
    for cell in dict.fromkeys(row.cell for row in ledger.rows):
        found = {row.metric: row for row in ledger.rows if row.cell == cell}
        cells = [cell[1], str(found["empty"].n), *cell[2:]]
        for name in METRICS:
            row = found.get(name)
            cells += ["n/a"] * 3 if row is None else [f"{x:.6f}" for x in (row.value, row.low, row.high)]
        cells += [f"{found[share].value:.6f}" for share in SHARES]
        lines.append([*cells, *(found[name].signature if name in found else "n/a" for name in METRICS), ""])
    for out in left_out:
        blank = ["n/a"] * (len(header) - 4)
        lines.append([out.test, "n/a", out.label or "all", *blank, f"left out: {out.reason}"])
    return header, [[cell.replace("\t", " ") for cell in line] for line in lines]


def draw(ledger: Ledger, folder: Path) -> list[Path]:
    """Figure 8 as PDF and PNG; returns both paths.  No translator with a lag: no figure."""
    if not ledger.where("dal"):
        return []
    with style():
        return save(quality_over_lag(ledger), folder, "figure8")


def quality_over_lag(ledger: Ledger) -> Figure:
    """Figure 8: BLEU over DAL, a panel for each test set, a line through the k of each translator that has a lag."""

    def by_k(metric: str, test: str, label: str) -> dict[str, Row]:
        return {row.cell[3]: row for row in ledger.where(metric, test=test, translator=label)}

    looks = {label: place for place, label in enumerate(ledger.values("translator"))}
    panels = []
    for test in dict.fromkeys(row.cell[1] for row in ledger.where("dal")):
        found = ledger.where("dal", test=test)
        labels = dict.fromkeys(row.cell[2] for row in found)
        lines = [curves.Line(label, looks[label], by_k("bleu", test, label)) for label in labels]
        lags = [by_k("dal", test, label) for label in labels]
        panels.append(curves.Panel(f"BLEU, {test}, {found[0].n:,}", lines, lags=lags))
    grid = [panels[i : i + 2] for i in range(0, len(panels), 2)]
    return curves.over_k(grid, "lag (DAL, source words); a point for each k", height=2.6)
