"""A causal language model in this process, behind the interface that an endpoint has as well (sqa/net/chat.py).

    model = LocalModel(LocalConfig("gemma3-270m"))
    model.ask([Task("Spanish: la casa", "English:", 8)])  # {task: Reply(" the house", 9, 2)}

With `completions`, a reply is the most likely line after the text.  With `chat`, it is the most likely answer in the
format of the model's chat template; a model without one continues the text after a line break.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from sqa.core import Count, DataError, File, checked
from sqa.files import FLOATS, Arithmetic, Device, Dtype, digest, files_digest, place
from sqa.net.chat import Budget, Cache, CachedChat, LanguageModel, P, Reply, Task
from sqa.net.endpoint import CHAT, PLAIN, Endpoint

if TYPE_CHECKING:
    from smt.lm.base import Base
    from smt.lm.lines import LineWriter

VERSION = 4  # increase when the same model and prompt give another reply or other counts
TEMPLATE = ("*.jinja", "tokenizer_config.json", "generation_config.json")  # files that determine a chat


@dataclass(frozen=True, slots=True)
@checked
class LocalConfig:
    """The model and its arithmetic."""

    base: Annotated[File, "a model of the extra lm, a model's folder, or a .gguf file"] = "gemma3-270m"
    max_tokens: Annotated[Count, "maximum number of pieces per reply; ten guesses take about 300"] = 600
    device: Annotated[Device, "auto = a GPU if there is one"] = "cpu"
    dtype: Annotated[Dtype, "auto = bfloat16 if the device supports it, else float32"] = "auto"
    ARITHMETIC: ClassVar = Arithmetic(FLOATS, ("bfloat16", "float32"))


class LocalModel:
    """A model that is loaded for the first prompt; prompts of one call are completed in batches."""

    def __init__(self, config: LocalConfig, route: str = PLAIN, beginning: str = "") -> None:
        """Check the model without reading its weights; raises ConfigError or DataError if it is missing.

        Args:
            config: The model.
            route: PLAIN, or CHAT for an answer.
            beginning: Common start of all texts, which is read once.
        """
        from smt.lm.base import base_folder, load_fingerprint  # a config does not load torch

        self.where, self.max_tokens, self._beginning = place(config), config.max_tokens, beginning
        self.folder, self._is_chat = base_folder(config.base), route == CHAT
        files = files_digest(self.folder, TEMPLATE) if self._is_chat else ""
        model = digest([load_fingerprint(self.folder), f"torch.{self.where.dtype}", *self.where.key])
        self.identity = digest(["local", VERSION, model, route, files, config.max_tokens])

    @cached_property
    def _base(self) -> "Base":
        from smt.lm.base import load_base

        base = load_base(self.folder)
        base.network.place(self.where)
        return base

    @cached_property
    def _writer(self) -> "LineWriter":
        from smt.lm.lines import LineWriter

        if not self._is_chat:
            return LineWriter(self._base, self._beginning)
        ends = self._base.network.model.generation_config.eos_token_id
        return LineWriter(self._base, "", ends if isinstance(ends, list) else [ends], begins=self._template is None)

    @cached_property
    def _template(self) -> Any:
        """Return the tokenizer that holds the model's chat template, or None without a template."""
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(self.folder, local_files_only=True, trust_remote_code=False)
        return tokenizer if tokenizer.chat_template else None

    def ask(self, prompts: Sequence[P]) -> dict[P, Reply]:
        """Return the reply to each prompt."""
        tasks = {prompt: Task(prompt, "", self.max_tokens) if isinstance(prompt, str) else prompt for prompt in prompts}
        replies: dict[P, Reply] = {}
        for most in sorted({task.max_tokens for task in tasks.values()}):
            group = {prompt: self._text(task) for prompt, task in tasks.items() if task.max_tokens == most}
            written = self._writer.write([*group.values()], min(most, self.max_tokens))
            replies |= dict(zip(group, written, strict=True))
        return replies

    def _text(self, task: Task) -> str:
        """Return the text that the model continues, without the common beginning."""
        if not self._is_chat:
            return f"{task.text} {task.begun}".rstrip()[len(self._beginning) :]
        if self._template is None:
            return f"{task.text}\n"
        from jinja2 import TemplateError

        turns = [{"role": "user", "content": task.text}]
        try:
            return str(self._template.apply_chat_template(turns, add_generation_prompt=True, tokenize=False))
        except (TemplateError, ValueError) as error:
            raise DataError(f"{self.folder}: its chat template cannot be used: {str(error)[:200]}") from error


def language_model(config: Any, route: str, beginning: str = "") -> LanguageModel:
    """Return the model of a config that has `local`, or `endpoint` with `max_requests` and `cache`."""
    if config.local is not None:
        return LocalModel(config.local, route, beginning)
    endpoint = Endpoint(config.endpoint, Budget(config.max_requests), route)
    return CachedChat(endpoint, Cache(config.cache))
