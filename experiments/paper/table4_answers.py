"""Table 4's three steps, each kept in the store: questions into English, passages for them, answers from these.

A step's rows are found again under everything that can change them, block by block: a killed run goes on, and two
readers share translation and passages.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa
from tqdm import tqdm

from experiments.paper.table4_rows import is_yes_no
from guessers.open_qa import passages as shelf
from guessers.open_qa import short_answers
from guessers.open_qa.lm_reader import LmReader, LmReaderConfig
from guessers.open_qa.passages import Passage, PassageIndex
from guessers.open_qa.reader import Reader, ReaderConfig
from guessers.retrieval.index import VERSION as INDEX_VERSION
from sqa.core import trace
from sqa.core.errors import DataError
from sqa.core.registry import TRANSLATORS
from sqa.core.reveal import hypotheses
from sqa.core.types import Question
from sqa.data.xor_tydi import OpenQuestion
from sqa.files.store import Stage, Store, digest
from sqa.metrics.short_answers import says
from sqa.run.config import ComponentConfig
from sqa.run.parts import check_questions
from sqa.run.pipeline import BLOCK_SIZE, translate

VERSION = 1  # of the steps; raise it when the same parts would give other rows

_ID = pa.field("question_id", pa.string(), nullable=False)
TEXTS = pa.schema([_ID, pa.field("text", pa.string(), nullable=False)])
PASSAGES = pa.schema(
    [
        _ID,
        pa.field("passages", pa.list_(pa.int32()), nullable=False),  # numbers in the order of the file, best first
        pa.field("found", pa.int32(), nullable=False),  # rank of the first that has a right answer; 0 = none has
    ]
)
ANSWERS = pa.schema([_ID, pa.field("answer", pa.string(), nullable=False)])

Row = dict[str, Any]
Answers = Literal["title", "typed", "model", "lm"]


class Found(NamedTuple):
    """What was retrieved for one question."""

    passages: tuple[int, ...]  # numbers, best first
    found: int  # rank of the first with a right answer, 0 if none has one


@dataclass(frozen=True)
class Library:
    """The passages, read and indexed only when something has to be looked up."""

    path: Path | None  # None: the Quizbowl text of the mirror
    depth: int  # passages for each question

    @cached_property
    def passages(self) -> list[Passage]:
        """In the order of their file."""
        return shelf.quiz_passages() if self.path is None else shelf.read_passages(self.path)

    @cached_property
    def index(self) -> PassageIndex:
        """BM25 over them."""
        tqdm.write(f"sqa: indexing {len(self.passages)} passages", file=sys.stderr)
        return PassageIndex(self.passages)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """id -> place in the file."""
        return {passage.id: number for number, passage in enumerate(self.passages)}

    @cached_property
    def fingerprint(self) -> str:
        """Of the passages and of how they are searched."""
        return digest([shelf.fingerprint(self.path), self.depth, shelf.K1, shelf.B, INDEX_VERSION])


class RuleReader:
    """Answers by rule: `guessers.open_qa.short_answers`."""

    def __init__(self, kind: Literal["title", "typed"]) -> None:
        self.kind = kind

    def answer(self, question: str, passages: Sequence[Passage]) -> str:
        """The answer, "" without a passage."""
        rule = short_answers.title_answer if self.kind == "title" else short_answers.typed_answer
        return rule(question, passages)

    def fingerprint(self) -> str:
        """Names the rule and its version."""
        return f"{self.kind} {short_answers.VERSION}"


AnyReader = RuleReader | Reader | LmReader


def build_reader(answer: Answers, model: ReaderConfig | None, lm: LmReaderConfig | None = None) -> AnyReader:
    """The reader of a config; a model that is not there is a ConfigError."""
    if model is not None:
        return Reader(model)
    if lm is not None:
        return LmReader(lm)
    assert answer == "title" or answer == "typed"
    return RuleReader(answer)


def translated(
    translator: ComponentConfig, questions: Sequence[OpenQuestion], store: Store, component: Any
) -> list[str]:
    """Each question in English, by a built translator that reads all of it first."""
    sources = [question.as_question() for question in questions]
    check_questions(translator, component, sources)
    target = TRANSLATORS.identity(translator.name)
    stage = _stage("table4-texts", target, component.fingerprint(), (), questions)

    def make(start: int, end: int) -> list[Row]:
        block = sources[start:end]
        emissions = trace.emissions_rows(translate(component, block, lambda _: None))
        return [{"question_id": q.id, "text": _final(q, emissions.get(q.id, ()))} for q in block]

    return [row["text"] for row in _kept(store, stage, questions, TEXTS, make, "translate")]


def _final(question: Question, emissions: trace.Emissions) -> str:
    return " ".join(line for line in hypotheses(question, emissions) if line)


def retrieved(texts: Sequence[str], questions: Sequence[OpenQuestion], library: Library, store: Store) -> list[Found]:
    """The passages for each English question, and whether a right answer stands in one of them."""
    stage = _stage("table4-passages", "guessers.passages", library.fingerprint, (digest(list(texts)),), questions)

    def make(start: int, end: int) -> list[Row]:
        rows = []
        for question, text in zip(questions[start:end], texts[start:end], strict=True):
            hits = [hit.passage for hit in library.index.search(text, library.depth)]
            with_answer = (rank for rank, p in enumerate(hits, 1) if says(f"{p.title} {p.text}", question.answers))
            numbers = [library.numbers[passage.id] for passage in hits]
            rows.append({"question_id": question.id, "passages": numbers, "found": next(with_answer, 0)})
        return rows

    rows = _kept(store, stage, questions, PASSAGES, make, "retrieve")
    return [Found(tuple(row["passages"]), row["found"]) for row in rows]


def gold(questions: Sequence[OpenQuestion], library: Library, store: Store) -> list[Found] | None:
    """For each question one passage that says a right answer, none where none is found or the answer is yes or no.

    It is looked up with the human translation and the answer together, so no system has a say in it; None for a set
    that nobody translated.
    """
    if any(question.translation is None for question in questions):
        return None
    stage = _stage("table4-gold", "guessers.passages", library.fingerprint, (), questions)

    def make(start: int, end: int) -> list[Row]:
        rows = []
        for question in questions[start:end]:
            chosen = [] if is_yes_no(question) else _saying(question, library)
            rows.append({"question_id": question.id, "passages": chosen, "found": len(chosen)})
        return rows

    rows = _kept(store, stage, questions, PASSAGES, make, "look up gold passages")
    return [Found(tuple(row["passages"]), row["found"]) for row in rows]


def _saying(question: OpenQuestion, library: Library) -> list[int]:
    """The number of the best passage that says an answer, [] if none does."""
    for answer in question.answers:
        for hit in library.index.search(f"{question.translation} {answer}", library.depth):
            if says(f"{hit.passage.title} {hit.passage.text}", (answer,)):
                return [library.numbers[hit.passage.id]]
    return []


def answered(
    reader: AnyReader,
    texts: Sequence[str],
    found: Sequence[Found],
    questions: Sequence[OpenQuestion],
    library: Library,
    store: Store,
) -> list[str]:
    """The answer to each question, "" where there is none."""
    upstream = (library.fingerprint, digest([list(texts), [item.passages for item in found]]))
    stage = _stage("table4-answers", type(reader).__name__, reader.fingerprint(), upstream, questions)

    def make(start: int, end: int) -> list[Row]:
        asked, read = texts[start:end], [[library.passages[i] for i in item.passages] for item in found[start:end]]
        if isinstance(reader, LmReader):
            answers = reader.answers(asked, read)
        else:
            answers = [reader.answer(*pair) for pair in zip(asked, read, strict=True)]
        ids = [question.id for question in questions[start:end]]
        return [{"question_id": id, "answer": answer} for id, answer in zip(ids, answers, strict=True)]

    return [row["answer"] for row in _kept(store, stage, questions, ANSWERS, make, "answer")]


def _stage(
    name: str, implementation: str, fingerprint: str, upstream: tuple[str, ...], questions: Sequence[OpenQuestion]
) -> Stage:
    content = [[q.id, q.split, q.language, q.text, q.answers, q.translation] for q in questions]
    return Stage(name, implementation, digest([VERSION, fingerprint]), upstream, digest(content), BLOCK_SIZE)


def _kept(
    store: Store,
    stage: Stage,
    questions: Sequence[OpenQuestion],
    schema: pa.Schema,
    make: Callable[[int, int], list[Row]],
    doing: str,
) -> list[Row]:
    """One row for each question, in order; `make(start, end)` makes those of a block that the store lacks."""
    starts = range(0, len(questions), BLOCK_SIZE)
    if store.missing(stage, len(starts)):
        with store.working_on(stage):
            missing = store.missing(stage, len(starts))
            done = BLOCK_SIZE * (len(starts) - len(missing))
            where = f"{questions[0].split} {questions[0].language} {doing}"
            with tqdm(desc=where, total=len(questions), initial=done, unit="question", mininterval=2) as bar:
                for index in missing:
                    end = min(starts[index] + BLOCK_SIZE, len(questions))
                    rows = make(starts[index], end)
                    store.write(stage, index, pa.Table.from_pylist(rows, schema=schema))
                    bar.update(len(rows))
    rows = [row for index in range(len(starts)) for row in store.read(stage, index, schema).to_pylist()]
    if [row["question_id"] for row in rows] != [question.id for question in questions]:
        raise DataError(f"{store.folder(stage)}: its rows are not those of the questions; delete it and run again")
    return rows
