"""Questions and answers by a language model: prompts, replies in JSON, and the problems of replies.

A reply must contain a JSON object of the requested form; text around it is ignored.  Otherwise the prompt is sent again
with a remark, at most TRIES times in all.  All problems are counted, and a file of questions lists them in its header.
Replies are cached, so that a second run sends nothing and gives equal bytes (sqa/net/chat.py).
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, log2
from typing import Any, TypeVar

from msgspec import Struct, ValidationError, convert

from sqa.core import ConfigError, language_of, takes
from sqa.net.chat import LanguageModel, Reply
from sqa.questions.ask import CHECKS
from sqa.questions.files import TextQuestion
from sqa.questions.make import DROPPED, numbered
from sqa.questions.rules import answers_in, words_of
from sqa.questions.texts import Segment

T = TypeVar("T", bound=Struct)
TRIES = 3  # requests for a reply of the right form
LONGEST = 10  # words of an answer; longer answers are wrong, since they could hold everything
CHARACTERS_PER_TOKEN = 4  # for estimates
MAKE = """\
Write at most {most} questions in {language} that a listener could answer from the passage alone. First choose {most} \
facts of the passage, then ask one question about each. An answer is at most five words, copied from the passage. No \
question contains its answer. The kind of a question is its question word in English: who, what, where, when, how many.
Reply with JSON only: {{"questions": [{{"question": "...", "answer": "...", "kind": "..."}}]}}

Passage: {reference}
{source}"""
READ = """\
Answer the question from the text alone, in {language} and at most five words. The text is a translation that may be \
incomplete or wrong. If it does not say the answer, the answer is "".
Reply with JSON only: {{"answer": "..."}}

Text: {text}
Question: {question}"""
AGAIN = "\n\nReply number {attempt} was not the JSON object that is asked for. Reply with this object only."


class Written(Struct):
    """A question in a reply."""

    question: str
    answer: str
    kind: str


class Questions(Struct):
    """The reply to MAKE."""

    questions: list[Written]


class Answer(Struct):
    """The reply to READ."""

    answer: str


@dataclass
class Asking:
    """A language model that is asked for JSON objects."""

    model: LanguageModel
    problems: Counter[str] = field(default_factory=Counter)

    def ask(self, prompts: Sequence[str], kind: type[T]) -> list[T | None]:
        """Return the object in the reply to each prompt; None after TRIES replies without one."""
        found: dict[str, T | None] = dict.fromkeys(prompts)
        for attempt in range(TRIES):
            remark = AGAIN.format(attempt=attempt) if attempt else ""
            missing = [prompt for prompt, value in found.items() if value is None]
            try:
                replies = self.model.ask([prompt + remark for prompt in missing])
            except ConfigError as error:
                raise ConfigError(str(error).replace("max_requests", "--limit-requests")) from error
            for prompt in missing:
                found[prompt] = self._read(replies[prompt + remark], kind)
        self.problems["given up"] += sum(value is None for value in found.values())
        return [found[prompt] for prompt in prompts]

    def _read(self, reply: Reply, kind: type[T]) -> T | None:
        """Return the object in a reply, or None, and count the problem."""
        start = reply.text.find("{")
        try:
            value, _ = json.JSONDecoder().raw_decode(reply.text[start:] if start >= 0 else "")
            return convert(value, kind)
        except ValidationError:
            self.problems["another form"] += 1
        except (ValueError, RecursionError):
            self.problems["no JSON" if start < 0 else "broken JSON"] += 1
        return None


@dataclass
class ModelReader:
    """A reader that is a language model."""

    asking: Asking
    language: str
    name: str
    every_word: bool = False

    def right(self, asked: Sequence[tuple[TextQuestion, str]]) -> list[bool]:
        """Return whether each question is answered right from its text."""
        name = language_of(self.language).name or self.language
        prompts = [READ.format(language=name, text=text, question=q.question) for q, text in asked]
        answers = self.asking.ask(prompts, Answer)
        return [bool(a and self._is_right(q, a.answer)) for (q, _), a in zip(asked, answers, strict=True)]

    def _is_right(self, question: TextQuestion, answer: str) -> bool:
        """Return whether an answer is right by the rule for short answers, or has the right name or number."""
        short = 0 < len(words_of(answer)) <= LONGEST
        return short and (takes(answer, question.answers) or answers_in(question, answer, self.language))


@dataclass
class ModelMaker:
    """A language model that writes questions."""

    asking: Asking
    pair: tuple[str, str]
    name: str
    most: int  # questions per segment

    @property
    def reader(self) -> ModelReader:
        return ModelReader(self.asking, self.pair[1], self.name)

    @property
    def about(self) -> Mapping[str, Any]:
        problems = {kind: n for kind, n in sorted(self.asking.problems.items()) if n}
        return {"model": self.name, "most": self.most, "prompt": MAKE, "reading": READ, "problems": problems}

    def prompts(self, texts: Sequence[tuple[int, str, str]]) -> list[str]:
        """Return the prompt for each segment."""
        language = language_of(self.pair[1]).name or self.pair[1]
        return [
            MAKE.format(most=self.most, language=language, reference=reference, source=f"Source: {s}" if s else "")
            for _, reference, s in texts
        ]

    def questions(self, texts: Sequence[tuple[int, str, str]]) -> Iterator[TextQuestion]:
        """Yield the questions about segments that have words, at most `most` about each."""
        texts = [each for each in texts if each[1].split()]
        replies = self.asking.ask(self.prompts(texts), Questions)
        for (number, _, _), reply in zip(texts, replies, strict=True):
            distinct = {each.answer.casefold(): each for each in reversed(reply.questions if reply else [])}
            written = list(reversed(distinct.values()))
            self.asking.problems["repeated"] += len(reply.questions) - len(written) if reply else 0
            self.asking.problems["more than asked"] += max(0, len(written) - self.most)
            for each in written[: self.most]:
                kind = " ".join(each.kind.split())[:20].lower() or "other"
                yield TextQuestion(number, each.question, (each.answer,), kind, "endpoint", (0, 1))


def estimate_making(maker: ModelMaker, references: Sequence[str], sources: Sequence[str]) -> tuple[int, int]:
    """Return the greatest numbers of requests and tokens that making needs without faulty replies."""
    sizes = [len(prompt) for prompt in maker.prompts(numbered(references, sources))]
    readings = maker.most * (len(DROPPED) - 2)
    return len(sizes) * (1 + readings), (sum(sizes) * (1 + readings)) // CHARACTERS_PER_TOKEN


def estimate_asking(pairs: Sequence[tuple[TextQuestion, Segment]], every_word: bool) -> tuple[int, int]:
    """Return the usual numbers of requests and tokens that asking needs without faulty replies."""
    requests = characters = 0
    for question, segment in pairs:
        moments = len(segment.moments)
        readings = moments if every_word else min(moments, 1 + CHECKS + ceil(log2(max(1, moments))))
        requests += readings
        characters += readings * (len(READ) + len(question.question) + len(segment.text(len(segment.words))))
    return requests, characters // CHARACTERS_PER_TOKEN


def announce(requests: int, tokens: int, limit: int) -> None:
    """Print an estimate before the first request."""
    print(
        f"sqa: about {requests} requests and {tokens} tokens, fewer with cached replies; limit {limit}", file=sys.stderr
    )
