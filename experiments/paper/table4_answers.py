"""The three steps of Table 4, with results in the store: translation into English, retrieval of passages, answers.

The rows of a step are stored in blocks, under a key of everything that can change them.  A killed run therefore
resumes, and readers share translations and passages.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from tqdm import tqdm

from experiments.outputs import cached_rows
from guessers.classifier_files import cached_vectors
from guessers.open_qa import passages as shelf
from guessers.open_qa import short_answers
from guessers.open_qa.passages import Passage, PassageIndex
from guessers.open_qa.reader import Reader, ReaderConfig
from guessers.retrieval.bm25 import VERSION as INDEX_VERSION
from sqa.core import cache_dir, checked
from sqa.data.xor_tydi import OpenQuestion
from sqa.files import Stage, Store, digest
from sqa.metrics.short_answers import normalise, says
from sqa.pipeline import BLOCK_SIZE, Parts, engine, make_ahead, run_from_mapping

DENSE_VERSION = 1  # version of the passages' vectors; increase it when they change
DENSE_BLOCK = 256  # passages per stored file of vectors
VERSION = 1  # version of the steps; increase it when the code would compute different rows from the same inputs

Make = Callable[[slice], Iterable[tuple[Any, ...]]]  # block of questions -> values of each question


class Retrieval(NamedTuple):
    """Passages retrieved for one question."""

    passages: tuple[int, ...]  # indices, best first
    rank: int  # rank of the first passage that contains a right answer; 0 if none does


class DenseIndex:
    """Index of passage vectors: the mean of a text encoder's last states, compared by cosine.

    The vectors are computed at the first search and stored in the cache folder.
    """

    def __init__(self, passages: Callable[[], Sequence[Passage]], model: str, identity: str) -> None:
        """Load the encoder: a folder or a hub name in the local cache.

        `identity` is a fingerprint of the passages, which are read at the first search.
        """
        from guessers.bert.encoder import Encoder, find_encoder, load_encoder, weights_digest

        folder = find_encoder(model)
        network: Any
        network, tokenizer = load_encoder(folder)
        ones = np.ones(network.config.vocab_size, np.float32)
        self._encoder, self._passages = Encoder(network, tokenizer, ones), passages
        self.fingerprint = digest([DENSE_VERSION, weights_digest(folder), identity])

    @cached_property
    def _vectors(self) -> np.ndarray:
        """Unit vectors of all passages, of shape (passages, width)."""
        texts = [f"{passage.title}. {passage.text}" for passage in self._passages()]
        folder = cache_dir() / "passages" / self.fingerprint
        return cached_vectors(folder, texts, DENSE_BLOCK, self._encoder.width, self._encoded)

    def _encoded(self, texts: Sequence[str]) -> np.ndarray:
        """Return the unit vector of each text, of shape (texts, width)."""
        states = self._encoder.sums(texts)[:, -self._encoder.width :]
        return states / np.linalg.norm(states, axis=1, keepdims=True)

    def search(self, query: str, n: int) -> list[Passage]:
        """Return the nearest `n` passages, best first, ties in the passages' order; [] for a blank query."""
        if not query.strip():
            return []
        [vector] = self._encoded([query])
        best = np.argsort(-(self._vectors @ vector), kind="stable")[:n]
        return [self._passages()[i] for i in best.tolist()]


@dataclass(frozen=True)
class Library:
    """A collection of passages, which is read and indexed when first needed."""

    path: Path | None  # None: the Quizbowl text in the data mirror
    depth: int  # passages per question
    retriever: str | None = None  # text encoder of the dense index

    @cached_property
    def passages(self) -> list[Passage]:
        """Passages in the order of their file."""
        return shelf.quiz_passages() if self.path is None else shelf.read_passages(self.path)

    @cached_property
    def index(self) -> PassageIndex:
        """BM25 index of the passages."""
        tqdm.write(f"sqa: indexing {len(self.passages)} passages", file=sys.stderr)
        return PassageIndex(self.passages)

    @cached_property
    def dense(self) -> DenseIndex:
        """Index of the passages' vectors; raises SqaError if the retriever is missing."""
        return DenseIndex(lambda: self.passages, str(self.retriever), self.fingerprint)

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Dict that maps the id of each passage to its index."""
        return {passage.id: number for number, passage in enumerate(self.passages)}

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the passages and of the retrieval method."""
        return digest([shelf.fingerprint(self.path), self.depth, shelf.K1, shelf.B, INDEX_VERSION])

    def search(self, text: str, dense: bool = False) -> list[Passage]:
        """Return the best passages for a text, by BM25 or by the dense index."""
        return (self.dense if dense else self.index).search(text, self.depth)


@dataclass(frozen=True, slots=True)
@checked
class ReaderEntry:
    """A configured reader that answers questions."""

    label: str
    answer: Literal["title", "typed", "model", "always-yes"]
    model: Annotated[ReaderConfig | None, "for answer: model"] = None
    passages: Annotated[Literal["retrieved", "dense"], "by BM25, or by the config's retriever"] = "retrieved"

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        wrong = (self.answer == "model") != (self.model is not None)
        return ["model: needed for answer: model, and for nothing else"] if wrong else []


class RuleReader(NamedTuple):
    """Reader that answers by a rule of `guessers.open_qa.short_answers`."""

    kind: str

    def answer(self, question: str, passages: Sequence[Passage]) -> str:
        """Return the answer, or "" if there is no passage."""
        rule = short_answers.title_answer if self.kind == "title" else short_answers.typed_answer
        return rule(question, passages)

    def fingerprint(self) -> str:
        """Name of the rule and its version."""
        return f"{self.kind} {short_answers.VERSION}"


AnyReader = RuleReader | Reader


def build_reader(entry: ReaderEntry) -> AnyReader:
    """Return the reader of a config; raises ConfigError if its model is missing."""
    return RuleReader(entry.answer) if entry.model is None else Reader(entry.model)


def is_yes_no(question: OpenQuestion) -> bool:
    """Return whether one of the question's right answers is yes or no."""
    return any(normalise(answer) in ("yes", "no") for answer in question.answers)


@dataclass(frozen=True)
class Steps:
    """Translation, retrieval and answers for the questions of one set and language."""

    questions: list[OpenQuestion]
    library: Library
    store: Store

    def translated(self, translator: Mapping[str, Any], parts: Parts) -> list[str]:
        """Return each question in English, translated at full input; raises SqaError if the translator fails."""
        sources = [question.as_question() for question in self.questions]
        run = engine.run(
            run_from_mapping({"name": "questions", "dataset": "mini-es", "translator": translator}),
            self.store,
            parts=parts,
            questions=sources,
            until="translate",
            ahead=make_ahead,
        )
        return [" ".join(filter(None, trace.hypotheses)) for trace in run.traces]

    def retrieved(self, texts: Sequence[str], dense: bool = False) -> list[Retrieval]:
        """Return the passages for each English question, and the rank of the first that contains a right answer."""

        def make(block: slice) -> Iterator[tuple[list[int], int]]:
            for question, text in zip(self.questions[block], texts[block], strict=True):
                best = self.library.search(text, dense)
                ranks = (rank for rank, p in enumerate(best, 1) if says(f"{p.title} {p.text}", question.answers))
                yield [self.library.numbers[passage.id] for passage in best], next(ranks, 0)

        encoder = (self.library.dense.fingerprint,) if dense else ()
        own = ("guessers.passages", self.library.fingerprint)
        upstream = (digest(list(texts)), *encoder)
        rows = self._rows("passages", *own, upstream, make, passages="[i4]", found="i4")
        return [Retrieval(tuple(passages), rank) for passages, rank in rows]

    def answered(self, reader: AnyReader, texts: Sequence[str], retrieved: Sequence[Retrieval]) -> list[str]:
        """Return the reader's answer to each question, or "" if the reader gives none."""

        def make(block: slice) -> Iterable[tuple[str]]:
            passages = [[self.library.passages[i] for i in item.passages] for item in retrieved[block]]
            return ((reader.answer(*pair),) for pair in zip(texts[block], passages, strict=True))

        upstream = (self.library.fingerprint, digest([list(texts), [item.passages for item in retrieved]]))
        rows = self._rows("answers", type(reader).__name__, reader.fingerprint(), upstream, make, answer="text")
        return [answer for (answer,) in rows]

    def _rows(
        self, name: str, implementation: str, fingerprint: str, upstream: tuple[str, ...], make: Make, **kinds: str
    ) -> list[tuple[Any, ...]]:
        """Return the values of each question in order; `make` computes the blocks that the store lacks."""
        content = digest([[q.id, q.split, q.language, q.text, q.answers, q.translation] for q in self.questions])
        stage = Stage(f"table4-{name}", implementation, digest([VERSION, fingerprint]), upstream, content, BLOCK_SIZE)
        title = f"{self.questions[0].split} {self.questions[0].language} {name}"
        return cached_rows(self.store, stage, [q.id for q in self.questions], make, title, **kinds)
