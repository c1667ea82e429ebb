"""Figure 8 and the table of translators: BLEU, chrF and lag of each translator on each test set.

    sqa reproduce fig8

Question: what quality does each translator reach, at what lag, and how much does quality gain from reading further
ahead?  A segment is one question of XQB or one sentence of a news test.  Every number is computed over segments, with
a 95% bootstrap interval.  A translator that is not installed, or a test set that is not available, is left out and
named in differences.tsv with the reason.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from experiments.contestants import Needs, twice
from experiments.outputs import LeftOut, Outputs
from experiments.results_book.item import Item, config_inputs, model_digests
from experiments.results_book.ledger import Row
from experiments.results_book.tables import columns, pivot
from sqa import metrics as metric_names
from sqa.core import progress
from sqa.core.errors import ConfigError, DataError
from sqa.core.registry import did_you_mean
from sqa.core.schema import Count, checked
from sqa.core.types import Question
from sqa.data import datasets, download, texts
from sqa.files import records
from sqa.files.store import Store
from sqa.pipeline.config import RunConfig, load, run_from_mapping
from sqa.pipeline.engine import run as run_stages
from sqa.pipeline.paired import intervals, scored
from sqa.pipeline.parts import Parts
from sqa.pipeline.runner import Job, run_jobs
from sqa.pipeline.scheduler import current
from sqa.report import plots
from sqa.results import Frame


@dataclass(frozen=True, slots=True)
class SetConfig:
    """One test set."""

    name: Annotated[str, "a question set, a part of the parallel text of `pair`, or your own file"]
    pair: Annotated[str, "language pair of the translators: es-en, pl-en"]


def load_set(config: SetConfig, limit: int | None) -> tuple[str, list[Question]]:
    """Return the data set name of a test set for a run's config, and its segments as questions.

    Raises DataError if the set is not available, and ConfigError if it is unknown or in another language.
    """
    language, name = config.pair.partition("-")[0], config.name
    parts = texts.parallel_parts(config.pair)
    if name in parts:
        pairs = [(pair.source, pair.target) for pair in islice(texts.load_parallel(config.pair, name), limit)]
        return str(download.entry(f"mt-{config.pair}-{name}").path), _sentences(name, language, pairs)
    if Path(name).suffix == ".tsv":
        if not Path(name).is_file():
            raise DataError(f"{name}: this file of sentences does not exist")
        pairs = [(row[0], row[1]) for row in islice(records.table(Path(name), 2), limit)]
        return name, _sentences(name, language, pairs)
    if name not in datasets.question_sets() and not Path(name).suffix:
        names = (*datasets.question_sets(), *parts)
        raise ConfigError(f"sets: no test set {name!r}{did_you_mean(name, names)}; known: {', '.join(names)}")
    questions = datasets.load_questions(name, limit)
    if others := {question.language for question in questions} - {language}:
        raise ConfigError(f"sets: {name} is in {', '.join(sorted(others))}, but its pair is {config.pair}")
    return name, questions


def _sentences(name: str, language: str, pairs: Sequence[tuple[str, str]]) -> list[Question]:
    """Return each pair as a question with one sentence."""
    questions = []
    for i, (source, target) in enumerate(pairs):
        words, english = tuple(source.split()), target.strip()
        if not words or not english:
            raise DataError(f"{name}: line {i + 1} has an empty side")
        questions.append(Question(f"{name}-{i}", name, language, (words,), (english,), page=""))
    if not questions:
        raise DataError(f"{name}: contains no sentences")
    return questions


METRICS = ("bleu", "chrf", "dal")
SHARES = ("empty", "copied", "looping")
COLUMNS = ("pair", "test", "translator", "k")  # columns of a ledger
COPIED_FROM = 4  # minimum number of words of a copied sentence; shorter sentences are often the same in both languages
LOOP = re.compile(r"(\b[\w' ]{1,30}\b)(?:\W+\1\b){3,}|(\w{1,4})\2{5,}")  # a phrase 4 times, or letters 6 times


@dataclass(frozen=True, slots=True)
@checked
class TranslatorConfig:
    """A translator in the table, with one row per k."""

    label: Annotated[str, "name in table and figure"]
    pair: Annotated[str, "language pair of its test sets: es-en, pl-en"]
    translator: Annotated[dict[str, Any], "as in a run's config, without k if `k` is given"]
    k: Annotated[tuple[int | str, ...], "values of the translator's k; none = one row, without setting k"] = ()
    needs: Needs | None = None

    def problems(self) -> list[str]:
        """Return no problems; raises ConfigError if the translator or k is invalid."""
        for k in self.k or (None,):
            self.run(k)
        return []

    def run(self, k: int | str | None, dataset: str = "mini-es", metrics: Sequence[str] = METRICS) -> RunConfig:
        """Return the config of a run whose questions the caller supplies."""
        translator = self.translator if k is None else {**self.translator, "k": k}
        run = {"name": "translations", "dataset": dataset, "translator": translator, "metrics": tuple(metrics)}
        return run_from_mapping(run)


@dataclass(frozen=True, slots=True)
@checked
class TableConfig:
    """Keys of `sqa reproduce fig8`; configs/translation_table.yaml explains them."""

    name: str
    sets: tuple[SetConfig, ...]
    translators: tuple[TranslatorConfig, ...]
    metrics: tuple[str, ...] = METRICS
    resamples: Count = 1000
    seed: int = 0
    limit: Count | None = None
    workers: Count | None = None

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        names = {"sets": [(s.name, s.pair) for s in self.sets]}
        names["translators"] = [(t.label, t.pair) for t in self.translators]
        wrong = [f"{key}: at least one is needed" for key, given in names.items() if not given]
        wrong += metric_names.problems(self.metrics)
        return wrong + [f"{key}: {name} of {pair} occurs twice" for key in names for name, pair in twice(names[key])]


class Wanted(NamedTuple):
    """A translator at one k on one test set."""

    cell: tuple[str, str, str, str]  # pair, test set, translator, k
    run: RunConfig  # its questions are supplied separately
    questions: Sequence[Question]


def main(config_path: Path, runs: Path) -> None:
    """Write the table and the figure of the translators, and print the table."""
    config = load(config_path, TableConfig)
    rows, left_out = measure(config, Store(runs))
    outputs = Outputs(runs / config.name)
    outputs.rows("table.csv", COLUMNS, rows, show=True)
    if any(row.metric == "dal" for row in rows):
        outputs.picture("figure8", quality_over_lag, Frame(COLUMNS, rows))
    outputs.differences((), left_out, show=False)
    outputs.end()


def measure(config: TableConfig, store: Store) -> tuple[list[Row], list[LeftOut]]:
    """Return all rows in the order of the config, and the entries left out; raises DataError if there is no row."""
    wanted, left_out = _wanted(config)
    for out in left_out:
        print(f"{out.label}: left out, {out.reason}", file=sys.stderr)
    if not wanted:
        raise DataError("\n".join(["nothing to measure", *(f"{out.label}: {out.reason}" for out in left_out)]))
    scheduler = current()
    keeping = store if scheduler is None else scheduler.store
    kept = {id(one.questions): keeping.keep(one.questions) for one in wanted}
    jobs = []
    for one in wanted:
        given = kept[id(one.questions)]
        finish = partial(finished, one.cell, one.run, config.resamples, config.seed, given)
        jobs.append(Job(one.run, finish, given=given, beside=one.cell[2]))
    rows: dict[int, list[Row]] = {}
    with progress.bar("translations", len(jobs), unit="run") as bar:
        for index, rows_of in run_jobs(jobs, store, config.workers):
            rows[index] = rows_of
            bar.update()
    return [row for index in range(len(wanted)) for row in rows[index]], left_out


def _wanted(config: TableConfig) -> tuple[list[Wanted], list[LeftOut]]:
    """Return the entries that can be measured, in the order of the config, and the entries left out."""
    wanted: list[Wanted] = []
    left_out: list[LeftOut] = []
    for test in config.sets:
        try:
            dataset, questions = load_set(test, config.limit)
        except DataError as error:
            left_out.append(LeftOut(test.name, str(error).splitlines()[0]))
            continue
        for translator in (t for t in config.translators if t.pair == test.pair):
            if reason := translator.needs.missing() if translator.needs else "":
                left_out.append(LeftOut(f"{test.name} {translator.label}", reason))
                continue
            for k in translator.k or (None,):
                cell = (test.pair, test.name, translator.label, "-" if k is None else str(k))
                wanted.append(Wanted(cell, translator.run(k, dataset, config.metrics), questions))
    return wanted, left_out


def finished(
    cell: tuple[str, ...], config: RunConfig, resamples: int, seed: int, kept: str, store: Store, parts: Parts
) -> list[Row]:
    """Return a row for each metric and each share of odd sentences, once all blocks are in the store.

    A metric that is undefined for the translator (DAL of a translator that retracts words) has no row.
    """
    result = run_stages(config, store, parts=parts, questions=store.kept(kept), progress=False)
    pairs = (zip(map(" ".join, t.question.sentences), t.hypotheses, strict=True) for t in result.traces)
    odd = zip(SHARES, shares([pair for of_trace in pairs for pair in of_trace]), strict=True)
    rows = intervals(cell, scored(result), resamples, seed)
    return rows + [Row(cell, name, share, n=len(result.questions), unit="share") for name, share in odd]


def shares(sentences: Sequence[tuple[str, str]]) -> tuple[float, float, float]:
    """Return the shares (0 to 1) of empty, copied and looping translations; short sources do not count as copied."""
    long = [(source, target) for source, target in sentences if len(source.split()) >= COPIED_FROM]
    empty = sum(not target for _, target in sentences) / len(sentences)
    copied = sum(source == target for source, target in long) / max(1, len(long))
    looping = sum(bool(LOOP.search(target)) for _, target in sentences) / len(sentences)
    return empty, copied, looping


def quality_over_lag(frame: Frame) -> plots.Figure:
    """Draw Figure 8: BLEU over DAL, with a panel for each test set and a line for each translator that has a lag."""
    names = frame.values("translator")
    panels = []
    for test in dict.fromkeys(row["test"] for row in frame.where("dal")):
        lags = frame.where("dal", test=test)
        timed = {row.cell for row in lags}
        bleu = [row for row in frame.where("bleu", test=test) if row.cell in timed]
        lines = plots.lines(bleu, "translator", "k", names, over=lags)
        panels.append(plots.Panel(f"BLEU, {test}, {lags[0].n:,}", lines))
    grid = [panels[i : i + 2] for i in range(0, len(panels), 2)]
    return plots.over_k(grid, "lag (DAL, source words); a point for each k", height=2.6)


# ------------------------------------------------------------------------------------------------------------ items


def rows_measured(config_path: Path, runs: Path) -> list[Row]:
    """Return the rows of every translator on every test set of a config."""
    return measure(load(config_path, TableConfig), Store(runs))[0]


def with_models(config_path: Path) -> dict[str, str]:
    """Return the digests of a config and of the bundled models that it names."""
    return {**config_inputs(config_path), **model_digests(load(config_path, TableConfig))}


PAIRS = ("es-en", "pl-en")
CARD = columns("bleu: BLEU", interval=False) + columns("chrf: chrF", digits=1, interval=False) + columns(*SHARES)


ITEMS = (
    Item(
        "translations",
        "BLEU, chrF and lag of every translator on every test set (Figure 8)",
        "translation_table.yaml",
        COLUMNS,
        rows_measured,
        with_models,
        {pair: pivot(("test", "k"), CARD, pair=pair, translator="wait-k") for pair in PAIRS},
        {"docs/figure8.png": quality_over_lag},
        kept="the news tests take hours",
    ),
)
