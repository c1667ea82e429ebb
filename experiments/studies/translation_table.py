"""Figure 8 and the table of translators: BLEU, chrF and lag of each translator on each test set.

    sqa reproduce fig8

Question: what quality does each translator reach, at what lag, and how much does quality gain from reading further
ahead?  A segment is one question of XQB or one sentence of a news test.  Every number is computed over segments, with
a 95% bootstrap interval.  A translator that is not installed, or a test set that is not available, is left out and
named in differences.tsv with the reason.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from experiments.contestants import Needs
from experiments.outputs import LeftOut, Outputs
from experiments.paper.figure3 import in_colours
from experiments.results_book.item import Item, inputs_of
from experiments.results_book.ledger import Row
from experiments.results_book.tables import columns, pivot
from sqa import metrics as metric_names
from sqa.api.experiment import Entry, Experiment, Result, source_language
from sqa.core import ConfigError, Count, DataError, checked
from sqa.data import texts
from sqa.files import write_text
from sqa.pipeline import current, intervals, load
from sqa.report import plots
from sqa.results import Frame

METRICS = ("bleu", "chrf", "dal")
SHARES = ("empty", "copied", "looping")
COLUMNS = ("pair", "test", "translator", "k")  # columns of a ledger
COPIED_FROM = 4  # minimum number of words of a copied sentence; shorter sentences are often the same in both languages
LOOP = re.compile(r"(\b[\w' ]{1,30}\b)(?:\W+\1\b){3,}|(\w{1,4})\2{5,}")  # a phrase 4 times, or letters 6 times


@dataclass(frozen=True, slots=True)
class SetConfig:
    """One test set."""

    name: Annotated[str, "a question set, a file of questions, or a part of the parallel text of `pair`"]
    pair: Annotated[str, "language pair of the translators: es-en, pl-en"]


@dataclass(frozen=True, slots=True)
class TranslatorConfig:
    """A translator in the table, with one row per k."""

    label: Annotated[str, "name in table and figure"]
    pair: Annotated[str, "language pair of its test sets: es-en, pl-en"]
    translator: Annotated[dict[str, Any], "as in a run's config, without k if `k` is given"]
    k: Annotated[tuple[int | str, ...], "values of the translator's k; none = one row, without setting k"] = ()
    needs: Needs | None = None


@dataclass(frozen=True, slots=True)
@checked
class TableConfig:
    """Keys of `sqa reproduce fig8`; configs/translation_table.yaml explains them."""

    name: str
    sets: tuple[SetConfig, ...]
    translators: tuple[TranslatorConfig, ...]
    resamples: Count = 1000
    seed: int = 0
    limit: Count | None = None
    workers: Count | None = None

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        return [f"{key}: at least one is needed" for key in ("sets", "translators") if not getattr(self, key)]


def main(config_path: Path, runs: Path) -> None:
    """Write the table and the figure of the translators, and print the table."""
    config = load(config_path, TableConfig)
    rows, left_out = measure(config, runs)
    outputs, frame = Outputs(runs / config.name), Frame(COLUMNS, rows)
    outputs.rows("table.csv", frame, show=True)
    if frame.where("dal"):
        outputs.picture("figure8", quality_over_lag, frame)
    outputs.differences((), left_out, show=False)
    outputs.end()


def measure(config: TableConfig, runs: Path) -> tuple[list[Row], list[LeftOut]]:
    """Return all rows, and the entries left out; raises DataError if no test set is available."""
    entries: list[Entry] = []
    tests: dict[str, SetConfig] = {}  # by the data set's name in a run's config
    left_out: list[LeftOut] = []
    for one in config.translators:
        if reason := one.needs.missing() if one.needs else "":
            left_out.append(LeftOut(f"{one.label}, {one.pair}", reason))
            continue
        language = one.pair.partition("-")[0]
        ks = [(k, {**one.translator, "k": k}) for k in one.k] or [("", one.translator)]
        entries += [Entry(one.label, translator, k, language=language) for k, translator in ks]
    for test in config.sets:
        try:
            tests[dataset_of(test, runs)] = test
        except DataError as error:
            left_out.append(LeftOut(test.name, str(error).splitlines()[0]))
    for out in left_out:
        print(f"{out.label}: left out, {out.reason}", file=sys.stderr)
    if not tests:
        raise DataError("\n".join(["nothing to measure", *(f"{out.label}: {out.reason}" for out in left_out)]))
    results = Experiment(
        entries,
        {"texts": (None, None)},
        dataset=list(tests),
        limit=config.limit,
        metrics=METRICS,
        name=config.name,
        runs=runs,
        workers=config.workers,
    ).run()
    return [row for result in results for row in rows_of(result, tests[result.dataset], config)], left_out


def dataset_of(test: SetConfig, runs: Path) -> str:
    """Return the data set of a test set; the sentences of a parallel text are written to a file in the store's folder.

    Raises DataError if the set is not available, and ConfigError if it is unknown or in another language.
    """
    language, scheduler = test.pair.partition("-")[0], current()
    if test.name not in texts.parallel_parts(test.pair):
        if (of_test := source_language(test.name)) != language:
            raise ConfigError(f"sets: {test.name} is in {of_test}, but its pair is {test.pair}")
        return test.name
    path = (runs if scheduler is None else scheduler.store.root) / "texts" / f"{test.name}.jsonl"
    pairs = texts.load_parallel(test.pair, test.name)
    about = {"language": language, "page": "none"}  # a question needs a page, which nobody guesses
    lines = [json.dumps({**about, "source": [pair.source], "reference": [pair.target]}) for pair in pairs]
    write_text(path, "\n".join(lines) + "\n")
    return str(path)


def rows_of(result: Result, test: SetConfig, config: TableConfig) -> Iterator[Row]:
    """Yield a row for each metric and each share of odd sentences of a translator at one k on a test set.

    A metric that is undefined for the translator (DAL of a translator that retracts words) has no row.
    """
    cell = (test.pair, test.name, result.translator, result.k)
    given = [(m, result.stats[m.name]) for m in metric_names.build(METRICS) if m.name in result.stats]
    yield from intervals(cell, given, config.resamples, config.seed)
    pairs = (zip(map(" ".join, t.question.sentences), t.hypotheses, strict=True) for t in result.run.traces)
    odd = zip(SHARES, shares([pair for of_trace in pairs for pair in of_trace]), strict=True)
    yield from (Row(cell, name, share, n=len(result.saved.ids), unit="share") for name, share in odd)


def shares(sentences: Sequence[tuple[str, str]]) -> tuple[float, float, float]:
    """Return the shares (0 to 1) of empty, copied and looping translations; short sources do not count as copied."""
    long = [(source, target) for source, target in sentences if len(source.split()) >= COPIED_FROM]
    empty = sum(not target for _, target in sentences) / len(sentences)
    copied = sum(source == target for source, target in long) / max(1, len(long))
    looping = sum(bool(LOOP.search(target)) for _, target in sentences) / len(sentences)
    return empty, copied, looping


def quality_over_lag(frame: Frame) -> plots.Figure:
    """Draw Figure 8: BLEU over DAL, with a panel for each test set and a line for each translator that has a lag."""
    names = in_colours(frame.values("translator"))
    panels = []
    for test in dict.fromkeys(row["test"] for row in frame.where("dal")):
        lags = frame.where("dal", test=test)
        timed = {row.cell for row in lags}
        bleu = [row for row in frame.where("bleu", test=test) if row.cell in timed]
        lines = plots.lines(bleu, "translator", "k", names, over=lags)
        panels.append(plots.Panel(f"BLEU, {test}, {lags[0].n:,}", lines))
    grid = [panels[i : i + 2] for i in range(0, len(panels), 2)]
    return plots.over_k(
        grid, "lag (DAL, source words); a point for each k; bands and bars: 95% over segments", height=2.6
    )


# ------------------------------------------------------------------------------------------------------------ items


PAIRS = ("es-en", "pl-en")
CARD = columns("bleu: BLEU", interval=False) + columns("chrf: chrF", digits=1, interval=False) + columns(*SHARES)


ITEMS = (
    Item(
        "translations",
        "BLEU, chrF and lag of every translator on every test set (Figure 8)",
        "translation_table.yaml",
        COLUMNS,
        lambda config, runs: measure(load(config, TableConfig), runs)[0],
        inputs_of(kind=TableConfig),
        {pair: pivot(("test", "k"), CARD, pair=pair, translator="wait-k") for pair in PAIRS},
        {"docs/figure8.png": quality_over_lag},
        kept="the news tests take hours",
    ),
)
