"""A causal language model in a local folder, run by `transformers`: greedy replies to prompts.

Weights are read only from safetensors, nothing is downloaded, and no code in a model's folder is run.  A model with a
chat template receives the prompt in that template.  Other models continue the prompt after a line break.
"""

import copy
import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

from sqa.core.errors import ConfigError, DataError
from sqa.core.packages import need
from sqa.core.schema import Count, checked
from sqa.files.atomic import file_digest
from sqa.files.devices import FLOATS, Arithmetic, Device, Dtype, Place, place
from sqa.files.pretrained import check_folder, load_pretrained
from sqa.files.store import digest
from sqa.net.chat import Budget, Reply

VERSION = 2  # raise it when the same files and prompt give another reply
DECISIVE = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja")  # files that determine a reply


@dataclass(frozen=True, slots=True)
@checked
class LocalConfig:
    """The model's folder and its settings."""

    folder: Annotated[Path, "config.json, *.safetensors and the tokenizer, as `save_pretrained` writes them"]
    max_tokens: Annotated[Count, "maximum number of pieces per reply; ten guesses take about 300"] = 600
    device: Annotated[Device, "auto = a GPU if there is one"] = "auto"
    dtype: Annotated[Dtype, "element type of the weights; auto = bfloat16 if the device has it"] = "float32"
    ARITHMETIC: ClassVar = Arithmetic(FLOATS, ("bfloat16", "float32"))


class LocalChat:
    """A chat model in memory, loaded for the first prompt that has no stored reply."""

    workers = 1

    def __init__(self, config: LocalConfig, budget: Budget) -> None:
        """Check the folder without reading weights; raises ConfigError or DataError if it holds no loadable model."""
        need("transformers", f"the model {config.folder}")
        self.config, self.budget, self.max_tokens = config, budget, config.max_tokens
        self.folder = config.folder.expanduser()
        self._lock = threading.Lock()
        if not self.folder.is_dir():
            raise ConfigError(f"local.folder: no folder {str(self.folder)!r}")
        check_folder(self.folder)

    @cached_property
    def identity(self) -> str:
        """Return a hash of the model's files, the arithmetic and the package."""
        import transformers

        paths = {path for pattern in DECISIVE for path in self.folder.glob(pattern) if path.is_file()}
        files = {path.name: file_digest(path) for path in sorted(paths)}
        c = self.config
        return digest([VERSION, transformers.__version__, files, c.max_tokens, *self._where])

    @cached_property
    def _where(self) -> Place:
        return place(self.config)

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        """Return tokenizer and model."""
        tokenizer, model = load_pretrained(
            self.folder, "AutoModelForCausalLM", "a causal language model", self._where.dtype
        )
        # set on the model, because in a config passed to `generate`, default values are replaced by the model's
        model.generation_config = self._generation(model)
        return tokenizer, model.to(self._where.device)

    def complete(self, prompt: str) -> Reply:
        """Return the greedy reply to a prompt, at most `max_tokens` pieces; prompts are processed one at a time."""
        import torch

        with self._lock:
            self.budget.spend()
            tokenizer, model = self._loaded
            pieces = self._pieces(tokenizer, prompt)  # {"input_ids": (1, L), "attention_mask": (1, L)}
            length = pieces["input_ids"].shape[1]
            limit = getattr(model.config, "max_position_embeddings", None)
            if isinstance(limit, int) and length + self.max_tokens > limit:
                raise ConfigError(
                    f"local.max_tokens: the prompt has {length} pieces and the model room for {limit}, "
                    f"so at most {max(limit - length, 0)} may be written, got {self.max_tokens}"
                )
            with torch.inference_mode():
                read = {key: pieces[key] for key in ("input_ids", "attention_mask")}
                written = model.generate(**read)[0, length:]  # (T,)
        return Reply(tokenizer.decode(written, skip_special_tokens=True), length, len(written))

    def _pieces(self, tokenizer: Any, prompt: str) -> Any:
        if tokenizer.chat_template is None:
            return tokenizer(f"{prompt}\n", return_tensors="pt", return_token_type_ids=False).to(self._where.device)
        from jinja2 import TemplateError

        try:
            turns = [{"role": "user", "content": prompt}]
            return tokenizer.apply_chat_template(
                turns, add_generation_prompt=True, return_tensors="pt", return_dict=True
            ).to(self._where.device)
        except (TemplateError, ValueError) as error:
            raise DataError(f"{self.folder}: its chat template cannot be used: {str(error)[:200]}") from error

    def _generation(self, model: Any) -> Any:
        """Return the model's own search settings, without sampling."""
        generation = copy.deepcopy(model.generation_config)
        generation.update(
            do_sample=False,
            num_beams=1,
            max_length=None,
            max_new_tokens=self.max_tokens,
            temperature=None,
            top_k=None,
            top_p=None,
            min_p=None,
            typical_p=None,
        )
        if generation.pad_token_id is None:
            ends = generation.eos_token_id
            generation.pad_token_id = ends[0] if isinstance(ends, list) else ends
        return generation
