"""Language models as prompted translators: on an OpenAI-compatible server, or in this process.

    translator: {name: llm, source_language: es, endpoint: {base_url: "http://localhost:8000/v1", model: m}, k: 3}
    translator: {name: llm, source_language: es, local: {base: gemma3-270m}, policy: local-agreement}

`policy: continuation`, the default, is wait-k over prompts.  From the k-th source word on, the model continues the
committed target after every source word, and its next word is committed.  At the end of the sentence all remaining
words are committed.  Every other policy retranslates each prefix (smt/policies/prefixes.py).  A prompt contains only
words that have been read.  smt/engines/llm_replies.py turns replies into words.
"""

import math
import re
import sys
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, NamedTuple

from tqdm import tqdm

from smt.engines import llm_replies
from smt.engines.llm_replies import VOID, Asked, translation
from smt.lm.local import LocalConfig, language_model
from smt.policies.policy import Words
from smt.policies.prefixes import PolicyK, PolicyN, PolicyTranslator, moments, policy_of
from sqa.core import POLICIES, Count, DataError, Emission, Question, Whole, checked, parse_k
from sqa.core.languages import certain_pair, code_of, language_of
from sqa.core.paths import OwnPart
from sqa.files import digest
from sqa.net.chat import Reply, Task
from sqa.net.endpoint import CHAT, PLAIN, EndpointConfig

VERSION = 1  # increase when the same config sends different prompts
CONTINUATION = "continuation"
if TYPE_CHECKING:
    LlmPolicy = str | OwnPart
else:
    LlmPolicy = Literal[(CONTINUATION, *POLICIES.entries)] | OwnPart
_LABEL = "{target_language}:"  # the end of the usual prompts
PAIR = "{source_language}: {source}\n{target_language}:"
PLAIN_PROMPT = "{examples}\n{previous}" + PAIR
CHAT_PROMPT = (
    """\
Translate a {source_language} text into {target_language}. The text is cut off anywhere. Translate what is there, add \
nothing, and write the translation only, on one line.

{examples}{previous}"""
    + PAIR
)
_PLACE = re.compile(r"\{(source_language|target_language|examples|previous|source|target)\}")
Pairs = tuple[tuple[str, str], ...]
ENGLISH = (
    "With an army that had crossed the Andes, this general freed Chile and met Bolívar.",
    'Compounds of this metal, which is mined in the Congo, gave the stained glass of churches its "deep blue" colour.',
    "In this battle the Greeks defeated the Persians, who had landed near Athens; for 10 points, name this battle of "
    "490 BC.",
)
SPANISH = (
    "Con un ejército que había cruzado los Andes, este general liberó Chile y se reunió con Bolívar.",
    "Los compuestos de este metal, que se extrae en el Congo, dieron a las vidrieras de las iglesias su color "
    '"azul profundo".',
    "En esta batalla los griegos vencieron a los persas, que habían desembarcado cerca de Atenas; por 10 puntos, "
    "nombre esta batalla del año 490 a. C.",
)
POLISH = (
    "Z armią, która przeszła Andy, ten generał wyzwolił Chile i spotkał się z Bolívarem.",
    "Związki tego metalu, wydobywanego w Kongu, nadały witrażom kościołów „głęboko niebieską” barwę.",
    "W tej bitwie Grecy pokonali Persów, którzy wylądowali w pobliżu Aten; za 10 punktów podaj nazwę tej bitwy "
    "z 490 r. p.n.e.",
)
EXAMPLES: dict[str, Pairs] = {  # translations into English, by source language
    "es": tuple(zip(SPANISH, ENGLISH, strict=True)),
    "pl": tuple(zip(POLISH, ENGLISH, strict=True)),
}
ALL_WRONG, MOST_WRONG = 20, 0.25  # number and share of replies without a translation at which a run ends
_LONGER = "{max_tokens: 4000, chat_template_kwargs: {enable_thinking: false}}"
ADVICE = {  # kind of reply -> what to do
    "thinking": f"raise max_tokens or switch thinking off, such as endpoint.extra: {_LONGER}",
    "empty": f"if the model thinks, raise max_tokens or switch thinking off, such as endpoint.extra: {_LONGER}",
    "error": "the server fails while it writes; see its log",
    "pieces": "the server returns raw tokens; have it decode them",
    "filter": "the server's content filter withholds them; switch it off, or use another model",
}
SHOWN = (1, 10, 100, 1000, 10_000)  # a kind of problem is reported when its count reaches these values
MARGIN, PER_WORD, STEP = 16, 4, 64  # token limit of a whole reply: base, tokens per source word, rounding step


@dataclass(frozen=True, slots=True)
@checked
class LlmConfig:
    """The model, its prompt and its policy."""

    source_language: Annotated[str, "ISO 639-1 code: es, pl"]
    target_language: Annotated[str, "language of the translation"] = "en"
    endpoint: Annotated[EndpointConfig | None, "a model behind an OpenAI-compatible server"] = None
    local: Annotated[LocalConfig | None, "a causal language model in this process, with `api: completions`"] = None
    api: Annotated[Literal["completions", "chat"], "completions = the model continues a text; chat = it answers"] = (
        "completions"
    )
    policy: Annotated[LlmPolicy, "continuation, or a policy that retranslates every prefix"] = CONTINUATION
    k: PolicyK = "full"
    n: PolicyN = None
    prompt: Annotated[str | None, "with {source}; {target} = committed words, otherwise they begin the reply"] = None
    examples: Annotated[Pairs | None, "[source, target] shown first; null = three for es and pl"] = None
    previous: Annotated[Whole, "continuation: number of preceding sentences in the prompt"] = 0
    step_tokens: Annotated[Count, "continuation: maximum number of tokens of a reply before the source ends"] = 16
    max_requests: Annotated[Count, "maximum per run, including retries"] = 20_000
    cache: Annotated[Path | None, "file of replies; null = llm-replies.sqlite in the cache folder ($SQA_CACHE)"] = None
    prices: Annotated[tuple[float, float] | None, "costs per million prompt and reply tokens, for run.json"] = None
    COUNTS_REPLIES: ClassVar = True  # reports contain the counts of replies and tokens, and run.json their cost

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        wrong = []
        if (self.endpoint is None) == (self.local is None):
            wrong.append("endpoint: give either endpoint (with base_url and model) or local")
        if self.local is not None and self.api != "completions":
            wrong.append("api: local continues a text, so it must be completions")
        if "{source}" not in self.template:
            wrong.append("prompt: must contain {source}, the place of the words read so far")
        if self.api == "completions" and self.prompt is None and not self.shown:
            pair = f"{self.source_language!r} to {self.target_language!r}"
            wrong.append(f"examples: give two pairs; none from {pair} are built in")
        if self.prices is not None and not all(0 <= price < math.inf for price in self.prices):
            wrong.append(f"prices: must be >= 0, got {list(self.prices)}")
        if self.policy != CONTINUATION:
            policy_of(self)
            wrong += [f"previous: only for policy continuation, got {self.policy!r}"] if self.previous else []
        elif self.n is not None:
            wrong.append(f"n: continuation takes k only, got n = {self.n!r}")
        parse_k(self.k)
        return wrong

    @property
    def template(self) -> str:
        """Return the prompt with its placeholders."""
        return self.prompt or (PLAIN_PROMPT if self.api == "completions" else CHAT_PROMPT)

    @property
    def shown(self) -> Pairs:
        """Return the examples."""
        if self.examples is not None:
            return self.examples
        return EXAMPLES.get(code_of(self.source_language), ()) if code_of(self.target_language) == "en" else ()


class Step(NamedTuple):
    """The state of a sentence: words read, whether it has ended, words committed, preceding sentences."""

    read: Words
    ended: bool
    target: Words = ()
    previous: tuple[tuple[Words, Words], ...] = ()


class Llm:
    """A prompted language model as a translator; `usage` counts the replies of a batch, cached or not."""

    def __init__(self, config: LlmConfig) -> None:
        """Prepare the model; it receives no request, and no weights are read, before the first text."""
        self.config, self.usage, self._told = config, Counter[str](), Counter[str]()
        self._asked, self._void = 0, Counter[str]()  # replies of the whole run, and those without a translation by kind
        self.codes = code_of(config.source_language), code_of(config.target_language)
        self.languages = certain_pair(*self.codes)
        before = re.split(r"\{(?:previous|source|target)\}", config.template)[0]
        beginning = self._filled(before, Step((), False)).rstrip(" ")
        self._model = language_model(config, PLAIN if config.api == "completions" else CHAT, beginning)

    def fingerprint(self) -> str:
        """Return a hash of the model, the prompt and the rules for replies."""
        c = self.config
        asked = [c.api, c.template, c.shown, self.codes, MARGIN, PER_WORD, STEP]
        return digest(["llm", VERSION, llm_replies.VERSION, self._model.identity, asked])

    def words(self, texts: Sequence[str]) -> list[Words]:
        """Return the target words of each text, which are () for a blank text."""
        steps = [Step(tuple(text.split()), True) for text in texts]
        written = iter(self.continued([step for step in steps if step.read]))
        return [next(written) if step.read else () for step in steps]

    def continued(self, steps: Sequence[Step]) -> list[Words]:
        """Return the words that the model writes next at each step: at most one before the sentence has ended.

        Raises EndpointError, ConfigError or DataError if the model cannot be reached, or never returns a translation.
        """
        tasks = [self._task(step) for step in steps]
        waiting = dict(zip(tasks, steps, strict=True))
        read: dict[Task, Words] = {}
        while waiting:  # few at first, so that a server without translations costs few requests
            some = len(waiting) if self.config.local else ALL_WRONG + self._asked - self._void.total()
            now = list(waiting)[:some]
            for task, reply in self._model.ask(now).items():
                step = waiting.pop(task)
                words, problems = self._read(task, step, reply)
                read[task] = words if step.ended else words[:1]
                self._count(reply, problems)
        return [read[task] for task in tasks]

    def _task(self, step: Step) -> Task:
        c = self.config
        begun = "" if "{target}" in c.template else " ".join(step.target)
        whole = -(-(PER_WORD * len(step.read) + MARGIN) // STEP) * STEP
        return Task(self._filled(c.template, step), begun, whole if step.ended else c.step_tokens)

    def _filled(self, template: str, step: Step) -> str:
        """Return a template with its placeholders filled from the words of a step."""
        source_name, target_name = (language_of(code).name or code for code in self.codes)
        texts = {"source_language": source_name, "target_language": target_name}

        def pairs(shown: Iterable[tuple[str, str]]) -> str:
            return "".join(f"{source_name}: {source}\n{target_name}: {target}\n" for source, target in shown)

        texts |= {"source": " ".join(step.read), "target": " ".join(step.target)}
        texts["examples"] = pairs(self.config.shown)
        texts["previous"] = pairs((" ".join(source), " ".join(target)) for source, target in step.previous)
        return _PLACE.sub(lambda place: texts[place[1]], template)

    def _read(self, task: Task, step: Step, reply: Reply) -> tuple[Words, tuple[str, ...]]:
        c = self.config
        instruction = _PLACE.sub(" ", c.template)
        joined = c.api == "completions" and "{target}" not in c.template
        cut = reply.finish == "length" if reply.finish else (reply.reply_tokens or 0) >= task.max_tokens
        label = "" if "{target}" in c.template or not c.template.endswith(_LABEL) else self._filled(_LABEL, step)
        ended = (cut, step.ended, reply.finish, label)
        return translation(reply.text, Asked(" ".join(step.read), step.target, instruction, self.codes, joined, *ended))

    def _count(self, reply: Reply, problems: Iterable[str]) -> None:
        self.usage["replies"] += 1
        for name, tokens in (("prompt-tokens", reply.prompt_tokens), ("reply-tokens", reply.reply_tokens)):
            if tokens is not None:
                self.usage[name] += tokens
        for kind in problems:
            self.usage[f"replies-{kind}"] += 1
            self._told[kind] += 1
            if self._told[kind] in SHOWN:
                what = "no translation" if kind in VOID else "changed or cut"
                begins = reply.text.strip()[:60]
                tqdm.write(f"sqa: llm: {what}, {kind} ({self._told[kind]} so far): {begins!r}", file=sys.stderr)
        self._asked += 1
        if void := [kind for kind in problems if kind in VOID]:
            self._void[void[0]] += 1
            if self._void.total() >= max(ALL_WRONG, self._asked * MOST_WRONG):
                raise DataError(self._useless(reply))

    def _useless(self, reply: Reply) -> str:
        """Return the message of a run that stops because too many replies are no translations."""
        kinds = ", ".join(f"{n} {kind}" for kind, n in self._void.most_common())
        said = f"llm: {self._void.total()} of {self._asked} replies are no translations ({kinds})"
        finish = f", finish_reason {reply.finish}" if reply.finish else ""
        advice = ADVICE.get(self._void.most_common(1)[0][0], "a base model needs api: completions; else change prompt")
        begins = f"such as {reply.text.strip()[:60]!r}{finish}"
        return f"{said}, {begins}; {advice}; another endpoint.label asks cached prompts again"


class Continuation:
    """A language model that continues its own words; streaming and batched decoding give the same words and g."""

    def __init__(self, system: Llm, k: int, previous: int) -> None:
        self.system, self.k, self.previous = system, k, previous
        self.languages, self.usage = system.languages, system.usage

    def translate(self, source: Iterator[str]) -> Iterator[str]:
        """Yield the words of one sentence while reading `source`; its prompts contain no preceding sentences."""
        target: Words = ()
        for read, ended in moments(source, self.k):
            [words] = self.system.continued([Step(read, ended, target)])
            yield from words
            target += words

    def translate_batch(self, questions: Sequence[Question]) -> list[list[Emission]]:
        """Return the emissions of whole questions from batches of prompts.

        With `previous`, each sentence waits for the preceding one.
        """
        written: list[list[list[Emission]]] = [[[] for _ in question.sentences] for question in questions]
        lanes = []
        for question, emissions in zip(questions, written, strict=True):
            numbers = range(len(question.sentences))
            for lane in [numbers] if self.previous else [range(i, i + 1) for i in numbers]:
                lanes.append(self._lane(question, lane, emissions))
        waiting = [(lane, step) for lane in lanes if (step := next(lane)) is not None]
        while waiting:
            # The long replies at ends of sentences wait until nothing else is left, so that they form large batches.
            now = [pair for pair in waiting if not pair[1].ended] or waiting
            later = [pair for pair in waiting if pair[1].ended] if len(now) < len(waiting) else []
            answered = zip(now, self.system.continued([step for _, step in now]), strict=True)
            waiting = [(lane, step) for (lane, _), words in answered if (step := lane.send(words)) is not None]
            waiting += later
        return [[emission for sentence in emissions for emission in sentence] for emissions in written]

    def _lane(
        self, question: Question, numbers: Iterable[int], written: Sequence[list[Emission]]
    ) -> Generator[Step | None, Words, None]:
        """Yield the steps of these sentences in order, then None; append the words sent back for each to `written`."""
        before: list[tuple[Words, Words]] = []
        for number in numbers:
            target: Words = ()
            for read, ended in moments(question.sentences[number], self.k):
                words = yield Step(read, ended, target, tuple(before[max(0, len(before) - self.previous) :]))
                written[number].extend(Emission(number, word, len(read), ended) for word in words)
                target += words
            before.append((question.sentences[number], target))
        yield None

    def fingerprint(self) -> str:
        """Return a hash of the model, its prompts and the policy."""
        policy = [CONTINUATION, self.k, self.previous, self.system.config.step_tokens]
        return digest([VERSION, policy, self.system.fingerprint()])


def build(config: LlmConfig) -> Continuation | PolicyTranslator:
    """Return the translator of a config."""
    system = Llm(config)
    if config.policy == CONTINUATION:
        return Continuation(system, parse_k(config.k), config.previous)
    return PolicyTranslator(system, policy_of(config))
