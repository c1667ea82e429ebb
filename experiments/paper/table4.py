"""Table 4 (XOR-TyDi, Finnish and Russian, full input): does a better translation of a question give a better answer?

    sqa reproduce table4

Each question is translated into English as a whole (k = infinity), BM25 retrieves passages for it, and a reader
extracts a short answer.  Exact match and F1 follow XOR-TyDi's official rule (`sqa.metrics.short_answers`).  Scores
are means over fi and ru, as in the official script, with 95% bootstrap intervals over questions.  Each pair of
translations is compared by a paired difference: the presumably better one minus the other.

Claims, after Table 4 of Han, Carpuat and Boyd-Graber (2022), judged for each set, language and reader by F1:
    - answers to a human translation are better than answers to the untranslated question (the floor);
    - answers to a machine translation are better than that floor, and worse than answers to a human translation;
    - a reader beats answering "yes" to every question, which needs neither translation nor passage.
The paper's scores use its own Wikipedia passages and a trained reader (experiments/ledger/xor-tydi-paper.tsv).

The only machine translation that needs no download is a weak phrase-based model.  It is trained on XOR-TyDi's own
translations of other questions (experiments/paper/xor_translator.py).

Sets: dev-engspan is the official set, without human translations; train-engspan has a human translation of every
question.  A system whose model, program or file is missing is listed in differences.tsv, with the reason.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from experiments.outputs import LeftOut, Outputs
from experiments.paper.table4_systems import NOTHING, Answered, Table4Config, measure, plain
from experiments.results_book.item import Item, elsewhere
from experiments.results_book.ledger import Ledger, Row, row_of
from experiments.results_book.tables import Column, number, pivot
from sqa.core import Emission, QuestionTrace, compare_many
from sqa.files import Store, write_text
from sqa.metrics.quality.bleu import Bleu
from sqa.metrics.short_answers import LanguageMean, by_language
from sqa.pipeline import Parts, intervals, load, score_texts
from sqa.results import Frame, markdown

MEAN = "mean"  # mean over the languages
COLUMNS = ("set", "language", "system", "reader")
METRICS = ("em", "f1", "em.spans", "f1.spans", "em.yes_no", "found")
DIFFERENCES = ("em", "f1", "f1.spans")
MINUS = " minus "  # separates the names of the two systems of a difference
RANK = {"human": 0, "trained": 1, "translated": 1, "source": 2, NOTHING: 3}  # a difference is lower minus higher rank
Group = tuple[str, str, str, str]  # set, language or MEAN, system, reader


def main(config_path: Path, runs: Path) -> None:
    """Write the scores, predictions and differences of Table 4, and print the differences."""
    config = load(config_path, Table4Config)
    results, left_out = measure(config, Store(runs))
    outputs = Outputs(runs / config.name)
    for result in results:
        stem = "_".join([result.set, result.language, plain(result.system), plain(result.reader)])
        predictions = {q.id: answer for q, answer in zip(result.questions, result.answers, strict=True)}
        text = json.dumps(predictions, ensure_ascii=False, indent=0) + "\n"
        write_text(outputs.folder / "predictions" / f"{stem}.json", text)
    of_texts, no_metric = text_rows(results, config, Store(runs))
    frame = Frame(COLUMNS, tuple(rows_of(results, config, of_texts)))
    outputs.rows("table4.csv", frame)
    left_out = [*left_out, *no_metric]
    outputs.csv("columns.csv", in_columns(frame.rows, config, left_out), show=True)
    outputs.differences((claim(row) for row in frame.rows if MINUS in row["system"] and row.metric == "f1"), left_out)
    outputs.end()


def rows_of(results: Sequence[Answered], config: Table4Config, of_texts: Sequence[Row]) -> Iterator[Row]:
    """Yield scores (0 to 1) of systems and readers, the rows of translations, and differences between systems.

    Each system is also compared with the reader that does not read the questions ("always yes").  A difference needs
    answers to the same questions.
    """
    by_cell = groups(results, config)
    for cell, parts in by_cell.items():
        given = [(LanguageMean(name), stats) for name in METRICS if (stats := _stats(parts, name)) is not None]
        yield from intervals(cell, given, config.resamples, config.seed, "0-1")
    yield from of_texts
    kinds = {NOTHING: NOTHING} | {system.label: system.question for system in config.systems}
    for a, b in combinations(sorted(by_cell, key=lambda cell: RANK[kinds[cell[2]]]), 2):
        same = a[:2] == b[:2] and (a[3] == b[3] or b[2] == NOTHING != a[2])
        if same and [p.questions for p in by_cell[a]] == [p.questions for p in by_cell[b]]:
            tables = {metric: (_stats(by_cell[a], metric), _stats(by_cell[b], metric)) for metric in DIFFERENCES}
            pairs = {LanguageMean(m): (x, y) for m, (x, y) in tables.items() if x is not None and y is not None}
            compared = compare_many(list(pairs.values()), list(pairs), config.resamples, config.seed)
            cell = (*a[:2], f"{a[2]}{MINUS}{b[3] if b[2] == NOTHING else b[2]}", a[3])
            yield from (row_of(cell, rule.name, gap, "0-1") for rule, gap in zip(pairs, compared, strict=True))


def groups(results: Sequence[Answered], config: Table4Config) -> dict[Group, list[Answered]]:
    """Return the answers of each set, language, system and reader; MEAN joins the languages if all are present."""
    by_cell: dict[Group, list[Answered]] = {}
    for result in results:
        for language in (result.language, MEAN):
            by_cell.setdefault((result.set, language, result.system, result.reader), []).append(result)
    every = len(config.languages)
    return {cell: parts for cell, parts in by_cell.items() if cell[1] != MEAN or len(parts) == every > 1}


def _stats(parts: Sequence[Answered], metric: str) -> np.ndarray | None:
    """Return the statistics of `LanguageMean` over all parts, of shape (n, 2 L), or None if a language has no value."""
    values = np.concatenate([part.values(metric) for part in parts])
    stats = by_language(values.tolist(), [part.language for part in parts for _ in part.questions])
    return stats if (stats.sum(axis=0)[1::2] > 0).all() else None


def text_rows(results: Sequence[Answered], config: Table4Config, store: Store) -> tuple[list[Row], list[LeftOut]]:
    """Return BLEU and the metrics of `quality` of each system's translations, and the metrics that are unavailable.

    Only questions that have a human translation are scored.
    """
    human = {system.label for system in config.systems if system.question == "human"}
    by_system = {(result.set, result.language, result.system): result for result in results}
    parts, bleu = Parts(), Bleu()
    metrics = [parts.quality(entry) for entry in config.quality]
    rows: list[Row] = []
    gone: dict[str, str] = {}
    for key, result in by_system.items():
        untranslated = any(question.translation is None for question in result.questions)
        if result.texts is None or result.system in human or untranslated:
            continue
        traces = []
        for question, text in zip(result.questions, result.texts, strict=True):
            source = question.as_question()
            emissions = [Emission(0, word, len(source.words), ended=True) for word in text.split()]
            traces.append(QuestionTrace(source, emissions))
        cell = (*key, NOTHING)
        stats = np.array([bleu.stats(trace) for trace in traces])
        rows += intervals(cell, [(bleu, stats)], config.resamples, config.seed, "0-100")
        given: list[tuple[Any, Any]] = []
        by_name, scores = score_texts(metrics, traces, store, progress=False)
        for name, metric in by_name.items():
            of_name = [scores[trace.question.id][name] for trace in traces]
            if reasons := [score.refusal or "" for score in of_name if score.stats is None]:
                gone[name] = reasons[0]
            else:
                given.append((metric, np.array([score.stats for score in of_name])))
        rows += intervals(cell, given, config.resamples, config.seed)
    return rows, [LeftOut(name, reason) for name, reason in gone.items()]


def in_columns(rows: Sequence[Row], config: Table4Config, left_out: Sequence[LeftOut]) -> list[list[str]]:
    """Return the table as in the paper: a row for each system and reader, a column for each metric.

    A system, reader or metric that could not be measured has a last row with the reason.
    """
    metrics = ["f1", "em", "bleu", *(entry.name for entry in config.quality)]
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    of_texts = {(row.cell[:3], row.metric): number(row, interval=False) for row in rows if row["reader"] == NOTHING}
    for row in rows:
        if MINUS not in row["system"] and row["reader"] != NOTHING:
            cells.setdefault(row.cell, {})[row.metric] = number(row, interval=False)
    lines = [[*COLUMNS, *metrics, "note"]]
    for cell, values in cells.items():
        shown = (values.get(name) or of_texts.get((cell[:3], name), "n/a") for name in metrics)
        lines.append([*cell, *shown, ""])
    blank = ["n/a"] * (len(COLUMNS) - 1 + len(metrics))
    return lines + [[out.label, *blank, f"not computed: {out.reason}"] for out in left_out]


def claim(row: Row) -> Row:
    """Return the row of a difference between two systems, labelled as a claim."""
    between, reader = row["system"], row["reader"]
    better, _, worse = between.partition(MINUS)
    words = f"answers to {better} are better than to {worse} (F1)"
    return replace(row, cell=(f"{row['set']} {row['language']}", better, reader, words, between))


# -------------------------------------------------------------------------------------------------------------- items


def rows_measured(config_path: Path, runs: Path) -> Iterator[Row]:
    """Yield the scores of all systems and readers, and the differences between each pair of systems."""
    config = load(config_path, Table4Config)
    results, _ = measure(config, Store(runs))
    return rows_of(results, config, text_rows(results, config, Store(runs))[0])


TYPED = [
    Column(metric, f"{name}: {head}", cell={"set": name, "reader": "typed"})
    for name in ("dev-engspan", "train-engspan")
    for metric, head in (("f1", "F1"), ("f1.spans", "F1 spans"), ("found", "found"))
]


def floor(ledger: Ledger) -> list[str]:
    """Return a table with the F1 of answering "yes" to every question, a lower limit for all systems."""
    sets = ("dev-engspan", "train-engspan")
    rows = [ledger.one("f1", set=name, language=MEAN, system="-", reader="always yes") for name in sets]
    return markdown(("answer", *(f"{name}: F1" for name in sets)), [["always yes", *map(number, rows)]])


ITEMS = (
    Item(
        "xor-tydi",
        "Table 4: answering Finnish and Russian questions through English",
        "table4.yaml",
        COLUMNS,
        rows_measured,
        blocks={"typed": pivot(("system",), TYPED, language=MEAN), "floor": floor},
        kept="ten minutes of a language model",
    ),
    Item(
        "xor-tydi-paper",
        "the paper's own Table 4",
        "",
        ("translation",),
        elsewhere("typed from Table 4 of Han, Carpuat and Boyd-Graber (2022)"),
        kept="typed from the paper",
    ),
)
