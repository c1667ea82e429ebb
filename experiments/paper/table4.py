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
from collections.abc import Iterator
from pathlib import Path

from experiments.outputs import Outputs
from experiments.paper.table4_config import COLUMNS, MEAN, MINUS, Table4Config, plain
from experiments.paper.table4_measured import measure
from experiments.paper.table4_rows import claim, in_columns, rows_of, text_rows
from experiments.results_book.item import Item, elsewhere
from experiments.results_book.ledger import Ledger, Row
from experiments.results_book.tables import Column, number, pivot
from sqa.files import Store, write_text
from sqa.pipeline import load
from sqa.results import Frame, markdown


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
    rows = Frame(COLUMNS, tuple(rows_of(results, config, of_texts))).rows
    outputs.rows("table4.csv", COLUMNS, rows)
    left_out = [*left_out, *no_metric]
    outputs.csv("columns.csv", in_columns(rows, config, left_out), show=True)
    outputs.differences((claim(row) for row in rows if MINUS in row["system"] and row.metric == "f1"), left_out)
    outputs.end()


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
