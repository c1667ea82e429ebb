"""A base language model (trained only on plain text) as the reader of retrieved passages.

The prompt starts with a few solved questions.  Then come the title of each passage with the sentence that shares most
stems with the question, the question, and "Answer:".  The answer is the greedy continuation up to the end of the line.
The answer need not occur in any passage, so it can be right even if retrieval found nothing.

    reader = LmReader(LmReaderConfig())                # Gemma 3 270M of the extra lm
    reader = LmReader(LmReaderConfig(endpoint=...))    # a base model behind an OpenAI-compatible server
    reader.answers(["Who founded Rome?"], [passages])  # ["Romulus"]

The solved questions were written for this project; none is in XOR-TyDi.  They include yes/no questions, as the data
sets do.  Questions are answered in batches (smt/lm/lines.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

from msgspec import Meta

from guessers.open_qa.passages import Passage
from guessers.open_qa.short_answers import closest_sentence, sentences_of
from guessers.text import line_stems
from sqa.core.schema import Count, File, checked
from sqa.files.devices import FLOATS, Arithmetic, Device, Dtype
from sqa.files.store import digest
from sqa.net.chat import Budget, Task
from sqa.net.endpoint import PLAIN, Endpoint, EndpointConfig
from sqa.net.reply_cache import Cache, CachedChat

VERSION = 1  # increase when answers change
LONGEST = 60  # maximum number of words shown of a sentence
CACHE_MB = 1024  # size of the file of replies at which the oldest replies are dropped
SOLVED = """\
Each question is answered in a few words.

Marie Curie: Born in Warsaw, she moved to Paris in 1891 and shared a prize in physics with her husband.
Polonium: She named this element after the country in which she was born.
Question: In which year did Marie Curie move to Paris?
Answer: 1891

Kilimanjaro: Its three cones are Kibo, Mawenzi and Shira, and Kibo may erupt again.
Tanzania: The highest mountain of Africa stands in the north of this country.
Question: Is Kilimanjaro a volcano?
Answer: yes

The Trial: In this novel Josef K. is arrested one morning without having done anything wrong.
Franz Kafka: This writer of "The Metamorphosis" worked for an insurance company in Prague.
Question: Who wrote the novel The Trial?
Answer: Franz Kafka

Penguin: These birds cannot fly, but swim fast in the cold seas of the south.
Question: Can penguins fly?
Answer: no

Cello: A bow is drawn over its four strings, which are tuned in fifths.
Question: How many strings does a cello have?
Answer: four

Canberra: Sydney and Melbourne both wanted to be the capital, so this city was built between them.
Question: Where was the capital of Australia built?
Answer: between Sydney and Melbourne
"""
ASKING = "\nAnswer:"


@dataclass(frozen=True, slots=True)
@checked
class LmReaderConfig:
    """The model and the sizes of its input."""

    base: Annotated[File, "model of the extra lm, or a folder, a .gguf file or a hub name"] = "gemma3-270m"
    passages: Annotated[int, Meta(ge=0, le=50), "number of best passages that are shown"] = 3
    max_tokens: Annotated[int, Meta(ge=1, le=100), "maximum number of pieces of an answer"] = 10
    device: Annotated[Device, "auto = a GPU if there is one"] = "cpu"
    dtype: Annotated[Dtype, "auto = bfloat16 if the device supports it, else float32"] = "auto"
    endpoint: Annotated[EndpointConfig | None, "server with a base model, which is asked in place of `base`"] = None
    max_requests: Annotated[Count, "maximum requests of one run, retries included"] = 20_000
    ARITHMETIC: ClassVar = Arithmetic(FLOATS, ("bfloat16", "float32"))


class LmReader:
    """Reader that answers questions by continuing a prompt; the first question loads the model."""

    def __init__(self, config: LmReaderConfig) -> None:
        """Check the model, or the endpoint's package; raises ConfigError or DataError if it is missing."""
        self.config = config
        self._chat: CachedChat | None = None
        if config.endpoint is None:
            from smt.lm.lines import model_identity  # only this reader loads torch

            self._identity = model_identity(config)
        else:
            endpoint = Endpoint(config.endpoint, Budget(config.max_requests), PLAIN)
            self._chat, self._identity = CachedChat(endpoint, Cache.at(None, CACHE_MB)), endpoint.identity

    @cached_property
    def _writer(self) -> Any:
        from smt.lm.lines import LineWriter, load

        return LineWriter(load(self.config), SOLVED)

    def answers(self, questions: Sequence[str], passages: Sequence[Sequence[Passage]]) -> list[str]:
        """Return an answer to each question; "" for a blank question, or if the model ends the line immediately."""
        indices = [i for i, question in enumerate(questions) if question.strip()]
        prompts = [prompt(questions[i], passages[i][: self.config.passages]) for i in indices]
        written = dict(zip(indices, self._lines(prompts), strict=True))
        return [written.get(i, "") for i in range(len(questions))]

    def _lines(self, prompts: Sequence[str]) -> list[str]:
        """Return the line after each prompt."""
        most = self.config.max_tokens
        if self._chat is None:
            return [line.text.strip() for line in self._writer.write(prompts, most)]
        tasks = [Task(SOLVED + prompt, "", most) for prompt in prompts]
        replies = self._chat.ask(list(dict.fromkeys(tasks)))
        return [replies[task].text.strip().partition("\n")[0] for task in tasks]

    def fingerprint(self) -> str:
        """Return a hash of everything that determines an answer: the model's files, arithmetic, prompt and sizes."""
        c = self.config
        return digest(["lm-reader", VERSION, self._identity, SOLVED, ASKING, LONGEST, c.passages, c.max_tokens])


def prompt(question: str, passages: Sequence[Passage]) -> str:
    """Return the part of the prompt after the solved questions."""
    shown = "".join(f"\n{line}" for line in evidence(question, passages))
    return f"{shown}\nQuestion: {' '.join(question.split())}{ASKING}"


def evidence(question: str, passages: Sequence[Passage]) -> list[str]:
    """Return title and sentence of each passage: the first sentence that shares the most stems with the question.

    Sentences are cut off after LONGEST words.
    """
    question_stems = line_stems(question)
    sentences = ([part for part in sentences_of(passage.text) if part.strip()] for passage in passages)
    best = [closest_sentence(parts, question_stems).split()[:LONGEST] for parts in sentences]
    return [f"{p.title.replace('_', ' ')}: {' '.join(words)}" for p, words in zip(passages, best, strict=True)]
