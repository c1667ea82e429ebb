"""A large language model as contestant: it reads the text so far and names pages with confidences, as JSON.

    guesser: {name: llm, endpoint: {base_url: "https://api.example.org/v1", model: m, api_key_env: MY_KEY}}
    guesser: {name: llm, local: {base: models/some-causal-model}}
    guesser: {name: llm, local: {base: gemma3-270m}, api: completions, reply: title, pages: bm25}

The last example is a base language model (trained only on plain text), which continues four solved questions.  The
model is asked after every `every` words, and the steps in between share its guesses.  A text of W words therefore costs
floor(W / every) requests, and no step depends on later words.  The replies of a server are stored on disk
(sqa/net/chat.py).  A reply that is not the requested JSON gives an empty guess list, and is counted and logged.
"""

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta
from tqdm import tqdm

from guessers.llm.reply import Parsed, Titles, parse, parse_title
from smt.lm.local import LocalConfig, language_model
from sqa.core import ConfigError, Count, File, Guess, checked
from sqa.files import digest
from sqa.net.chat import CachedChat, LanguageModel
from sqa.net.endpoint import CHAT, PLAIN, EndpointConfig

VERSION = 1  # version of the code from texts to prompts and from replies to guesses; raise it when guesses change
TITLE_VERSION = 2  # version of that code for `reply: title` alone
MAX_TEXT = 20_000  # maximum number of characters of a text that are sent
FIRST_WARNINGS = (1, 10, 100, 1000, 10_000)  # counts of unusable replies at which a message is printed
PROMPT = """\
You play Quizbowl. A question describes one thing, from obscure clues to easy ones; its answer is the title of an \
English Wikipedia page. Below is the beginning of a question, cut off anywhere. It was translated into English by a \
machine, so names may be misspelt and words wrong.

Name the {guesses} likeliest answers, best first, each with the probability that it is right: a number from 0 to 1, \
together at most 1. Reply with JSON and nothing else, in this form:
{"guesses": [{"page": "Exact page title", "confidence": 0.4}, {"page": "Another title", "confidence": 0.1}]}

Question so far: {text}"""
SOLVED = """\
Question: In this novel a scientist abandons the creature he has made, and it follows him to the ice of the north. For \
10 points, name this work by Mary Shelley.
Answer: Frankenstein

Question: Its compounds made the windows of old churches deep blue, and miners named its ore after the goblins that
Answer: Cobalt

Question: With an army that had crossed the Andes he freed Chile, and he met Bolívar in Guayaquil before he
Answer: José de San Martín

Question: The capital of this country lies on the Vistula
Answer: Poland

Question: {text}
Answer:"""


@dataclass(frozen=True, slots=True)
@checked
class LlmConfig:
    """Options of `guesser: {name: llm, ...}`: `endpoint` or `local`, and the prompt."""

    endpoint: Annotated[EndpointConfig | None, "a model behind an OpenAI-compatible endpoint"] = None
    local: Annotated[LocalConfig | None, "a causal language model in this process"] = None
    api: Annotated[
        Literal["chat", "completions"],
        "protocol of the model: chat = it answers; completions = it continues the prompt",
    ] = "chat"
    reply: Annotated[Literal["json", "title"], "form of a reply: JSON, or a line with one title"] = "json"
    every: Annotated[Count, "number of words between two requests; 1 = a request after each word"] = 5
    guesses: Annotated[int, Meta(ge=1, le=50), "number of pages requested"] = 10
    pages: Annotated[File | None, "permitted pages: a .txt file, one title per line, or a bundled BM25 model"] = None
    prompt: Annotated[str | None, "prompt with {text} and {guesses}; null = PROMPT, or SOLVED for titles"] = None
    max_requests: Annotated[Count, "maximum requests of a run, with retries; runs that need more do not start"] = 1000
    cache: Annotated[Path | None, "file of replies; null = llm-replies.sqlite in the cache folder ($SQA_CACHE)"] = None

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        wrong = []
        if (self.endpoint is None) == (self.local is None):
            wrong.append("endpoint: give either endpoint (with base_url and model) or local")
        if self.api == "completions" and self.reply != "title":
            wrong.append("api: completions is for `reply: title`, since a reply ends with its line")
        if "{text}" not in self.asked:
            wrong.append("prompt: must contain {text}, the place of the question so far")
        return wrong

    @property
    def asked(self) -> str:
        """Return the prompt, still with {text} and {guesses}."""
        if self.prompt is not None:
            return self.prompt
        return PROMPT if self.reply == "json" else SOLVED


class LlmGuesser:
    """A guesser that asks a chat model for pages."""

    def __init__(self, config: LlmConfig, model: LanguageModel, titles: Titles | None) -> None:
        """Store the parts; the guesser may name only pages in `titles`, or any page if it is None."""
        self.config, self.model, self._titles = config, model, titles
        self.unusable = 0  # replies that do not have the requested form

    @property
    def pages(self) -> frozenset[str] | None:
        """All pages that the guesser can name, None without a list."""
        return self._titles.pages if self._titles else None

    def fingerprint(self) -> str:
        """Return a hash of the model and its parameters, the prompt, `every`, `guesses` and the list of pages."""
        c = self.config
        listed = self._titles.fingerprint if self._titles else None
        replies: list[object] = [] if c.reply == "json" else [c.reply, TITLE_VERSION]
        return digest(["llm", VERSION, self.model.identity, c.asked, c.every, c.guesses, listed, *replies])

    def guess(self, texts: Sequence[str], n: int) -> list[list[Guess]]:
        """Return at most `n` pages for each text, given its words up to the last multiple of `every`.

        Scores are in 0..1.  A text of fewer than `every` words has no guesses.  Raises EndpointError, ConfigError or
        DataError if the model cannot be reached; replies received before are kept.
        """
        if n < 1:
            return [[] for _ in texts]
        prompts = [self.prompt(text) for text in texts]
        replies = self.model.ask([prompt for prompt in prompts if prompt])
        parsed = {prompt: self._parsed(reply.text) for prompt, reply in replies.items()}
        return [list(parsed[prompt].guesses[:n]) if prompt else [] for prompt in prompts]

    def prompt(self, text: str) -> str:
        """Return the prompt for a text; "" if the text has fewer than `every` words."""
        words = text.encode("utf-8", "replace").decode().split()
        shown = " ".join(words[: len(words) // self.config.every * self.config.every])[:MAX_TEXT]
        if not shown:
            return ""
        return self.config.asked.replace("{guesses}", str(self.config.guesses)).replace("{text}", shown)

    def _parsed(self, text: str) -> Parsed:
        """Return the guesses in a reply; count and log unusable ones."""
        c = self.config
        parsed = parse_title(text, self._titles) if c.reply == "title" else parse(text, c.guesses, self._titles)
        if parsed.problem:
            self.unusable += 1
            if self.unusable in FIRST_WARNINGS:
                reason = f"{parsed.problem}; it begins {text[:60]!r}" if text.strip() else "it is empty"
                tqdm.write(f"sqa: llm: unusable reply, no guesses ({self.unusable} so far): {reason}", file=sys.stderr)
        return parsed

    def check_texts(self, texts: Iterable[Sequence[str]]) -> None:
        """Raise ConfigError with the number of requests that these texts need if `max_requests` does not allow it."""
        if not isinstance(self.model, CachedChat):
            return
        needed = len(self.model.missing([prompt for steps in texts for prompt in map(self.prompt, steps) if prompt]))
        left = self.config.max_requests - self.model.chat.budget.spent
        if needed > left:
            raise ConfigError(
                f"max_requests: the run needs {needed} requests that are not in the cache, {left} are allowed; "
                f"raise it, ask less often (every: {self.config.every}) or limit the questions"
            )


def build(config: LlmConfig) -> LlmGuesser:
    """Return the guesser of a config; nothing is sent, and no weights are read, before the first text."""
    titles = Titles.of(config.pages) if config.pages else None
    return LlmGuesser(config, language_model(config, CHAT if config.api == "chat" else PLAIN), titles)
