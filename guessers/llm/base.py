"""A base language model (trained only on plain text) as a contestant in this process.

The prompt holds a few solved questions, so that the model only has to continue after "Answer:".

    likelihood   the model scores each title retrieved for the text by its likelihood; the confidence combines it with
                 the retrieval score and the title's likelihood without a text
    free         the model writes a title itself, always with the likeliest next piece, up to the line break

The network is smt/lm's.  Keys and values of a prompt are cached, and the part that the next prompt shares is reused.
A question that grows by five words therefore costs only those words and its candidates.  The text is always read in the
same portions (`every` words), whatever was read before it, so a reply never depends on the order of questions.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple

from msgspec import Meta

from guessers.llm.reply import Parsed
from guessers.retrieval.bm25 import Bm25Config, Bm25Guesser
from sqa.core.errors import ConfigError
from sqa.core.schema import checked
from sqa.core.types import Guess
from sqa.files.devices import FLOATS, Arithmetic, Device, Dtype
from sqa.files.model_files import resolve_model
from sqa.files.records import parse_json
from sqa.files.store import digest
from sqa.net.chat import Budget, Reply

if TYPE_CHECKING:
    from guessers.llm.memory import Reader

VERSION = 1  # raise it when the same model and prompt give another reply


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of a candidate's logit, fitted by `python -m guessers.llm.fit`."""

    retrieval: Annotated[float, "weight per unit of the BM25 score"]
    likelihood: Annotated[float, "weight per nat of the title's log probability after the text"]
    prior: Annotated[float, "weight per nat of the title's log probability without a text"]
    none: Annotated[float, "logit of the case that no candidate is right"]

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, astuple(self))):
            raise ConfigError(f"weights: expected four numbers, got {list(astuple(self))}")


WEIGHTS = Weights(retrieval=0.0754, likelihood=0.1995, prior=-0.1949, none=6.0562)  # fitted with --questions 40


@dataclass(frozen=True, slots=True)
@checked
class BaseConfig:
    """The model in this process, and its prompt."""

    base: Annotated[str, "a model of the extra lm, a model's folder, or a .gguf file"] = "gemma3-270m"
    answers: Annotated[Literal["likelihood", "free"], "score retrieved titles, or write a title"] = "likelihood"
    retrieval: Annotated[str, "likelihood: a bundled BM25 model or a folder; its pages are permitted"] = "bm25"
    candidates: Annotated[int, Meta(ge=1, le=50), "likelihood: titles scored per text, the best of retrieval"] = 15
    weights: Annotated[Weights, "likelihood: weights of the parts of a confidence"] = WEIGHTS
    max_tokens: Annotated[int, Meta(ge=1, le=600), "free: maximum number of pieces of a title"] = 16
    device: Annotated[Device, "auto = a GPU if there is one"] = "cpu"
    dtype: Annotated[Dtype, "auto = bfloat16 if the device has its arithmetic, else float32"] = "auto"
    ARITHMETIC: ClassVar = Arithmetic(FLOATS, ("bfloat16", "float32"))


class Candidate(NamedTuple):
    """A candidate title for a text, and its scores."""

    page: str
    retrieval: float  # BM25 score
    likelihood: float  # log P(title | few-shot prompt, text), nats, among the pieces that titles are made of
    prior: float  # the same without a text


class BaseChat:
    """A model of `smt.lm` that replies in JSON; loaded for the first prompt that has no stored reply."""

    workers = 1

    def __init__(self, config: BaseConfig, budget: Budget, prompt: str, every: int) -> None:
        """Store the settings without reading weights; raises ConfigError or DataError if the model is missing.

        Args:
            prompt: Prompt with {text} in place of the question.
            every: Words per portion of the text.
        """
        from smt.lm.lines import model_identity  # only this guesser loads torch

        self.config, self.budget, self.max_tokens = config, budget, config.max_tokens
        self._before, _, self._after = prompt.partition("{text}")
        self._every = every
        self._lock = threading.Lock()
        self._model = model_identity(config)
        self._priors: dict[str, float] = {}

    @cached_property
    def identity(self) -> str:
        """Return a hash of everything that a reply depends on besides the text: files, arithmetic, retrieval.

        The weights are excluded, because they apply to stored replies.
        """
        c = self.config
        if c.answers == "free":
            return digest(["base", VERSION, self._model, c.answers, c.max_tokens, self._every])
        parts = [self._retrieval.fingerprint(), c.candidates, self._before, self._after]
        return digest(["base", VERSION, self._model, c.answers, self._every, parts])

    @cached_property
    def _retrieval(self) -> Bm25Guesser:
        return Bm25Guesser.load(resolve_model(self.config.retrieval), Bm25Config(model=self.config.retrieval))

    @cached_property
    def _reader(self) -> Reader:
        from guessers.llm.memory import Reader
        from smt.lm.lines import load

        titles = map(spelt, self._retrieval.pages) if self.config.answers == "likelihood" else None
        return Reader(load(self.config), titles)

    def complete(self, prompt: str) -> Reply:
        """Return the reply to a prompt as JSON; prompts are processed one at a time."""
        with self._lock:
            self.budget.spend()
            text = prompt[len(self._before) : len(prompt) - len(self._after)]
            before = self._reader.pieces_run
            if self.config.answers == "free":
                reply, written = {"guesses": self._written(text)}, None
            else:
                reply, written = {"candidates": [candidate._asdict() for candidate in self.candidates(text)]}, 0
            return Reply(json.dumps(reply), self._reader.pieces_run - before, written)

    def candidates(self, text: str) -> list[Candidate]:
        """Return the best retrieved titles for a text, in retrieval order, with their scores; [] if there are none."""
        retrieved = self._retrieval.guess_prefixes(text.split(), self.config.candidates)[-1] if text.split() else []
        pages = [guess.page for guess in retrieved]
        for page in pages:
            if page not in self._priors:  # one at a time, because other rows change the last digits of a sum
                [self._priors[page]] = self._likelihoods("", [page])
        likelihoods = self._likelihoods(text, pages)
        return [
            Candidate(guess.page, guess.score, likelihood, self._priors[guess.page])
            for guess, likelihood in zip(retrieved, likelihoods, strict=True)
        ]

    def _likelihoods(self, text: str, pages: Sequence[str]) -> list[float]:
        if not pages:
            return []
        return self._reader.likelihoods(self._portions(text), self._after, [spelt(page) for page in pages])

    def _portions(self, text: str) -> list[str]:
        """Return the prompt before the request for the answer: the solved questions, then the text in portions."""
        words = text.split()
        return [
            self._before.rstrip(" "),
            *("".join(f" {word}" for word in words[i : i + self._every]) for i in range(0, len(words), self._every)),
        ]

    def _written(self, text: str) -> list[dict[str, object]]:
        title, likelihood = self._reader.write(self._portions(text), self._after, self.config.max_tokens)
        return [{"page": title, "confidence": math.exp(min(likelihood, 0.0))}] if title else []


def weighed(reply: str, weights: Weights) -> Parsed:
    """Return the guesses of a reply's candidates under these weights, best first."""
    try:
        candidates = [Candidate(**candidate) for candidate in parse_json(reply)["candidates"]]
    except (ValueError, KeyError, TypeError):
        return Parsed((), 0, "no candidates")
    guesses = [
        Guess(candidate.page, share)
        for candidate, share in zip(candidates, confidences(candidates, weights), strict=True)
    ]
    return Parsed(tuple(sorted(guesses, key=lambda guess: (-guess.score, guess.page))), 0, "")


def confidences(candidates: Sequence[Candidate], weights: Weights) -> list[float]:
    """Return probabilities of being right, 0..1, with a sum below 1.

    They are a softmax of the weighted scores and of the case that no candidate is right.
    """
    w = weights
    logits = [w.retrieval * c.retrieval + w.likelihood * c.likelihood + w.prior * c.prior for c in candidates]
    top = max([w.none, *logits])
    odds = [math.exp(logit - top) for logit in logits]
    total = math.exp(w.none - top) + sum(odds)
    return [odd / total for odd in odds]


def spelt(page: str) -> str:
    """Return a page's title as it appears in running text."""
    return page.replace("_", " ")
