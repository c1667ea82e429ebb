"""Table 4: does a better translation of the question give better answers?  Full input, XOR-TyDi Finnish and Russian.

    sqa reproduce table4

Each question is put into English as a whole (k = infinity), BM25 finds passages for it, and a reader takes a short
answer from these.  Exact match and F1 by XOR-TyDi's official rule (`sqa.metrics.short_answers`), mean over fi and ru as
the official script averages languages, 95% bootstrap intervals over questions, and paired differences of every two
translations, the better one first.

Claims, after Table 4 of Han, Carpuat and Boyd-Graber (2022), judged for each set, language and reader by F1:
    - answers to a human translation are better than answers to the untranslated question (the floor);
    - answers to a machine translation are better than that floor, and worse than those to a human one;
    - a reader beats the answer "yes" to everything, which needs neither translation nor passage.
The paper's scores stand below ours; they are of its Wikipedia passages and of a trained reader.

A language model reads, too, with the retrieved passages and with one that says the answer ("gold": looked up with the
human translation and the answer together, so only where a set has both; yes/no questions have none).

The machine translation that needs no download is phrase-based, learnt from XOR-TyDi's own translations of other
questions (experiments/paper/xor_translator.py): a weak one.

Sets: dev-engspan is the official one, without human translations; train-engspan has a human translation of
every question.  A system whose model, program or file is missing is in the table as "not computed", with the reason.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import combinations, product
from pathlib import Path
from typing import Literal

import numpy as np

from experiments.contestants import Value, twice
from experiments.lab.item import Item, elsewhere
from experiments.lab.ledger import Row, row_of
from experiments.lab.tables import Column, pivot
from experiments.measured import intervals
from experiments.outputs import LeftOut, Outputs
from experiments.paper.table4_answers import AnyReader, Library, ReaderEntry, Retrieval, Steps, build_reader, is_yes_no
from sqa.core.differences import compare_many
from sqa.core.errors import ConfigError, Count, DataError, SqaError, checked
from sqa.core.trace import QuestionTrace
from sqa.core.types import Emission
from sqa.data.xor_tydi import OpenQuestion, load_xor_tydi
from sqa.files.atomic import write_text
from sqa.files.store import Store
from sqa.metrics.quality.bleu import Bleu
from sqa.metrics.short_answers import LanguageMean, by_language, exact_match, f1
from sqa.pipeline.config import load, of_parts
from sqa.pipeline.parts import Parts

MEAN = "mean"  # of the languages
COLUMNS = ("set", "language", "system", "reader")
METRICS = ("em", "f1", "em.spans", "f1.spans", "em.yes_no", "found")
DIFFERENCES = ("em", "f1", "f1.spans")
MINUS = " minus "  # between the two systems of a difference
YES = "always-yes"
GOLD = "gold"  # of `ReaderEntry.passages`
ALL = "all"  # in place of a language, system or reader that something is missing for
NOTHING = "-"  # the "system" of a reader that reads no question
RANK = {"human": 0, "trained": 1, "translated": 1, "source": 2, NOTHING: 3}  # of two the lower comes first

Group = tuple[str, str, str, str]  # set, language or MEAN, system, reader

# human: XOR-TyDi's translators; source: as it stands, in its own language; trained:
# experiments/paper/xor_translator.py, trained first where it is not; translated: by `translator`
Question = Literal["human", "source", "trained", "translated"]
Set = Literal["dev-engspan", "train-engspan"]
Language = Literal["fi", "ru"]


@dataclass(frozen=True, slots=True)
class System:
    """A way to put questions into English."""

    label: str
    question: Question = "translated"
    translator: dict[str, Value] = field(default_factory=dict)  # as in a run's config; for "translated"
    languages: tuple[Language, ...] = ("fi", "ru")  # those it is for
    sets: tuple[Set, ...] = ("dev-engspan", "train-engspan")  # those it is for; a file of translations is of one set

    def __post_init__(self) -> None:
        if (self.question == "translated") != bool(self.translator):
            raise ConfigError("translator: needed for question: translated, and for nothing else")
        if self.translator:
            of_parts(translator=self.translator)  # raises ConfigError


@dataclass(frozen=True, slots=True)
@checked
class Table4Config:
    """Keys of `sqa reproduce table4`; configs/table4.yaml explains them."""

    name: str
    systems: tuple[System, ...]
    readers: tuple[ReaderEntry, ...]
    sets: tuple[Set, ...] = ("dev-engspan", "train-engspan")
    languages: tuple[Language, ...] = ("fi", "ru")
    passages: Path | None = None
    depth: Count = 10
    resamples: Count = 1000
    seed: int = 0
    limit: Count | None = None

    def problems(self) -> list[str]:
        """Return problems beyond the declared bounds."""
        files = [("readers", plain(entry.label), "") for entry in self.readers]
        for entry in self.systems:
            cells = product(entry.languages, entry.sets)
            files += [("systems", plain(entry.label), f" for {language} of {name}") for language, name in cells]
        problem = "two labels give files of predictions the name"
        return [f"{key}: {problem} {name!r}{where}" for key, name, where in twice(files)]


@dataclass(frozen=True, eq=False)
class Answered:
    """One system and reader on one set and language."""

    set: str
    language: str
    system: str  # label, or NOTHING
    reader: str  # label
    questions: list[OpenQuestion]
    answers: list[str]  # "" = none
    texts: list[str] | None = None  # the questions as the system puts them; None for NOTHING
    found: list[bool] | None = None  # whether a retrieved passage has a right answer; None = no search

    @cache  # noqa: B019 as long as the results, which are all compared with one another
    def values(self, metric: str) -> np.ndarray:
        """Return (n,) values from 0 to 1, nan for questions that the metric omits."""
        spans = np.array([not is_yes_no(question) for question in self.questions])
        if metric == "found":
            return np.full(len(spans), np.nan) if self.found is None else np.where(spans, self.found, np.nan)
        score = exact_match if metric.startswith("em") else f1
        values = [score(a, q.answers) for a, q in zip(self.answers, self.questions, strict=True)]
        return np.where({"yes_no": ~spans, "spans": spans}.get(metric.partition(".")[2], True), values, np.nan)


def plain(label: str) -> str:
    """Return a label as part of a file's name."""
    return "".join(c if c.isalnum() else "-" for c in label.lower())


def main(config_path: Path, runs: Path) -> None:
    """Write table, predictions and differences of Table 4; print the differences."""
    config = load(config_path, Table4Config)
    results, left_out = measure(config, Store(runs))
    outputs = Outputs(runs / config.name)
    for result in results:
        stem = "_".join([result.set, result.language, plain(result.system), plain(result.reader)])
        predictions = {q.id: answer for q, answer in zip(result.questions, result.answers, strict=True)}
        text = json.dumps(predictions, ensure_ascii=False, indent=0) + "\n"
        write_text(outputs.folder / "predictions" / f"{stem}.json", text)
    rows = list(rows_of(results, config))
    outputs.rows("table4.csv", COLUMNS, rows)
    outputs.differences((claim(row) for row in rows if MINUS in row.cell[2] and row.metric == "f1"), left_out)
    outputs.end()


def measure(config: Table4Config, store: Store) -> tuple[list[Answered], list[LeftOut]]:
    """Return the answers of every system and reader, and the entries without numbers; raises DataError if all are."""
    outcomes = list(_answered(config, store))
    results = [outcome for outcome in outcomes if isinstance(outcome, Answered)]
    left_out = [outcome for outcome in outcomes if isinstance(outcome, LeftOut)]
    if not any(outcome.system != NOTHING for outcome in results):
        reasons = [f"{out.label}: {out.reason}" for out in left_out]
        raise DataError("\n".join(["table4: no system could be measured", *reasons]))
    return results, left_out


def _answered(config: Table4Config, store: Store) -> Iterator[Answered | LeftOut]:
    library, parts = Library(config.passages, config.depth), Parts()
    readers: dict[str, AnyReader] = {}  # by label
    for entry in (entry for entry in config.readers if entry.answer != YES):
        try:
            readers[entry.label] = build_reader(entry)
        except SqaError as error:
            yield from (_gone(name, ALL, ALL, entry.label, str(error)) for name in config.sets)
    for name, language in product(config.sets, config.languages):
        steps = Steps(load_xor_tydi(name, language, config.limit), library, store)
        yield from _one_set(name, language, steps, config, readers, parts)


def _one_set(
    name: str, language: str, steps: Steps, config: Table4Config, readers: Mapping[str, AnyReader], parts: Parts
) -> Iterator[Answered | LeftOut]:
    """Yield the answers on one set and language, in the order of the config."""
    questions = steps.questions
    for entry in config.readers:
        if entry.answer == YES:
            yield Answered(name, language, NOTHING, entry.label, questions, ["yes"] * len(questions))
    entries = [entry for entry in config.readers if entry.label in readers]
    gold = steps.gold() if any(entry.passages == GOLD for entry in entries) else None
    for entry in entries:
        if entry.passages == GOLD and gold is None:
            yield _gone(name, language, ALL, entry.label, "no human translation to look up gold passages with")
    for system in config.systems:
        if name not in system.sets or language not in system.languages:
            continue
        try:
            texts = english(system, steps, parts)
        except SqaError as error:
            yield _gone(name, language, system.label, ALL, str(error))
            continue
        retrieved = steps.retrieved(texts)
        for entry in entries:
            passages = gold if entry.passages == GOLD else retrieved
            if passages is None:
                continue
            indices = _sample(entry, passages, config.seed)
            if not indices:
                yield _gone(name, language, system.label, entry.label, "no passage says the answer of a question")
                continue
            sample = replace(steps, questions=[questions[i] for i in indices])
            english_texts, retrievals = [texts[i] for i in indices], [passages[i] for i in indices]
            answers = sample.answered(readers[entry.label], english_texts, retrievals)
            hits = [retrieval.rank > 0 for retrieval in retrievals]
            yield Answered(name, language, system.label, entry.label, sample.questions, answers, english_texts, hits)


def _sample(entry: ReaderEntry, passages: Sequence[Retrieval], seed: int) -> list[int]:
    """Return the indices of the questions that a reader answers: those with passages, then a sample of these.

    The sample depends on the questions alone: it is the same for every system.
    """
    indices = [i for i, retrieval in enumerate(passages) if entry.passages != GOLD or retrieval.passages]
    drawn = np.random.default_rng(seed).permutation(len(indices))[: entry.sample]
    return [indices[i] for i in sorted(drawn.tolist())]


def english(system: System, steps: Steps, parts: Parts) -> list[str]:
    """Return each question as the system puts it; raises SqaError with the reason if it cannot."""
    questions: list[OpenQuestion] = steps.questions
    if system.question == "source":
        return [question.text for question in questions]
    if system.question == "human":
        english_texts = [question.translation for question in questions if question.translation is not None]
        if missing := len(questions) - len(english_texts):
            raise DataError(f"{missing} of {len(questions)} questions have no human translation")
        return english_texts
    translator = system.translator
    if system.question == "trained":
        from experiments.paper import xor_translator

        translator = {"name": "pbmt", "model": str(xor_translator.model(questions[0].language, steps.store.root))}
    return steps.translated(translator, parts)


def _gone(name: str, language: str, system: str, reader: str, why: str) -> LeftOut:
    """Return an entry without numbers; ALL stands for every language, system or reader."""
    return LeftOut(f"{name} {language} {system} {reader}", " ".join(why.split()))


# ---------------------------------------------------------------------------------------------------------- numbers


def rows_of(results: Sequence[Answered], config: Table4Config) -> Iterator[Row]:
    """Yield scores (0 to 1) of systems and readers, BLEU of each system, and differences of two systems.

    The last also against the reader that reads nothing, where both were asked the same questions.
    """
    by_cell = groups(results, config)
    for cell, parts in by_cell.items():
        given = [(LanguageMean(name), stats) for name in METRICS if (stats := _stats(parts, name)) is not None]
        yield from intervals(cell, given, config.resamples, config.seed, "0-1")
    yield from _bleu(results, config)
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
    """Group answers by system and reader: each language, then the mean where all languages are there."""
    by_cell: dict[Group, list[Answered]] = {}
    for result in results:
        for language in (result.language, MEAN):
            by_cell.setdefault((result.set, language, result.system, result.reader), []).append(result)
    every = len(config.languages)
    return {cell: parts for cell, parts in by_cell.items() if cell[1] != MEAN or len(parts) == every > 1}


def _stats(parts: Sequence[Answered], metric: str) -> np.ndarray | None:
    """Return (n, 2 L) statistics of `LanguageMean` over all parts; None if a language has no value."""
    values = np.concatenate([part.values(metric) for part in parts])
    stats = by_language(values.tolist(), [part.language for part in parts for _ in part.questions])
    return stats if (stats.sum(axis=0)[1::2] > 0).all() else None


def _bleu(results: Sequence[Answered], config: Table4Config) -> Iterator[Row]:
    """Yield the BLEU (0 to 100) of each system's questions, where there is a human translation."""
    human = {system.label for system in config.systems if system.question == "human"}
    by_size = sorted(results, key=lambda result: len(result.questions))
    largest = {(result.set, result.language, result.system): result for result in by_size}
    rule = Bleu()
    for cell, result in largest.items():
        untranslated = any(question.translation is None for question in result.questions)
        if result.texts is None or result.system in human or untranslated:
            continue
        traces = []
        for question, text in zip(result.questions, result.texts, strict=True):
            source = question.as_question()
            emissions = [Emission(0, word, len(source.words), ended=True) for word in text.split()]
            traces.append(QuestionTrace(source, emissions))
        stats = np.array([rule.stats(trace) for trace in traces])
        yield from intervals((*cell, "-"), [(rule, stats)], config.resamples, config.seed, "0-100")


def claim(row: Row) -> Row:
    """Return a difference of two systems as a claim."""
    name, language, between, reader = row.cell
    better, _, worse = between.partition(MINUS)
    words = f"answers to {better} are better than to {worse} (F1)"
    return replace(row, cell=(f"{name} {language}", better, reader, words, between))


# ------------------------------------------------------------------------------------------------------------ items


def rows_measured(config_path: Path, runs: Path) -> Iterator[Row]:
    """Yield the rows of all systems and readers, and the differences of each two systems."""
    config = load(config_path, Table4Config)
    return rows_of(measure(config, Store(runs))[0], config)


TYPED = [
    Column(metric, f"{name}: {head}", cell={"set": name, "reader": "typed"})
    for name in ("dev-engspan", "train-engspan")
    for metric, head in (("f1", "F1"), ("f1.spans", "F1 spans"), ("found", "found"))
]
ITEMS = (
    Item(
        "xor-tydi",
        "Table 4: answering Finnish and Russian questions through English",
        "table4.yaml",
        COLUMNS,
        rows_measured,
        blocks={"typed": pivot(("system",), TYPED, language=MEAN)},
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
