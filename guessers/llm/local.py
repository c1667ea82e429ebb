"""A causal language model in a local folder, run by `transformers`: the likeliest reply to a prompt, piece by piece.

Weights are read from safetensors only, nothing is fetched, no code that comes with a model is run.  A model with a chat
template is asked as its template says; one without reads the prompt and a line break, and goes on.
"""

from __future__ import annotations

import copy
import json
import threading
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from guessers.llm.client import Budget, Reply
from sqa.core.errors import ConfigError, Count, DataError, checked, need
from sqa.files.atomic import file_digest
from sqa.files.hub import check_shards
from sqa.files.model_files import check_weights
from sqa.files.store import digest

VERSION = 1  # raise it when the same files and prompt would give another reply
DECISIVE = ("*.json", "*.safetensors", "*.model", "*.txt", "*.jinja")  # files that decide a reply


@dataclass(frozen=True, slots=True)
@checked
class LocalConfig:
    """Which folder, and how the model in it is run."""

    folder: Path  # config.json, *.safetensors and the tokenizer, as `save_pretrained` writes them
    max_tokens: Count = 600  # pieces written per reply at most; ten guesses take about 300
    device: Literal["auto", "cpu", "cuda"] = "auto"  # auto = a GPU if there is one
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"  # of the weights in memory


class LocalChat:
    """A chat model in memory; it is loaded by the first prompt that has no kept reply."""

    workers = 1

    def __init__(self, config: LocalConfig, budget: Budget) -> None:
        """Looks at the folder, reads no weights.  ConfigError or DataError if it holds no model that can be loaded."""
        need("transformers", f"the model {config.folder}")
        self.config, self.budget, self.max_tokens = config, budget, config.max_tokens
        self.folder = config.folder.expanduser()
        self._lock = threading.Lock()
        _check(self.folder)

    def identity(self) -> str:
        """Hash of the model's files, the arithmetic and the package."""
        return self._identity

    @cached_property
    def _identity(self) -> str:
        import transformers

        files: dict[str, str] = {}
        for path in sorted({path for pattern in DECISIVE for path in self.folder.glob(pattern) if path.is_file()}):
            files[path.name] = file_digest(path)
        c = self.config
        return digest([VERSION, transformers.__version__, files, c.max_tokens, self._device, c.dtype])

    @cached_property
    def _device(self) -> str:
        import torch

        if self.config.device == "cuda" and not torch.cuda.is_available():
            raise ConfigError("local.device: no GPU is to be had here, got cuda; take auto or cpu")
        return "cuda" if torch.cuda.is_available() and self.config.device != "cpu" else "cpu"

    @cached_property
    def _loaded(self) -> tuple[Any, Any]:
        """Tokenizer and model."""
        return _load(self.folder, self.config.dtype, self._device)

    def complete(self, prompt: str, halt: threading.Event) -> Reply:
        """The likeliest reply, at most `max_tokens` pieces.  One at a time; `halt` is for models that wait."""
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
            written = self._generate(tokenizer, model, pieces)[0, length:]  # (T,)
        return Reply(tokenizer.decode(written, skip_special_tokens=True), length, len(written))

    def _pieces(self, tokenizer: Any, prompt: str) -> Any:
        if tokenizer.chat_template is None:
            return tokenizer(f"{prompt}\n", return_tensors="pt", return_token_type_ids=False).to(self._device)
        from jinja2 import TemplateError

        try:
            turns = [{"role": "user", "content": prompt}]
            return tokenizer.apply_chat_template(
                turns, add_generation_prompt=True, return_tensors="pt", return_dict=True
            ).to(self._device)
        except (TemplateError, ValueError) as error:
            raise DataError(f"{self.folder}: its chat template cannot be used: {_line(error)}") from error

    def _generate(self, tokenizer: Any, model: Any, pieces: Any) -> Any:
        """(1, L + T) pieces, by the model's own settings of search but for sampling."""
        import torch

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
        with torch.inference_mode():
            return model.generate(
                input_ids=pieces["input_ids"], attention_mask=pieces["attention_mask"], generation_config=generation
            )


def _check(folder: Path) -> None:
    """One line on what is wrong with a folder, before anything of it is loaded."""
    if not folder.is_dir():
        raise ConfigError(f"local.folder: no folder {str(folder)!r}")
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DataError(f"{folder}: no config.json; give a folder that model.save_pretrained wrote") from error
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{folder}/config.json: cannot be read: {_line(error)}") from error
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise DataError(f"{folder}/config.json: not a model's configuration (no model_type)")
    if not any(folder.glob("*.safetensors")):
        pickled = " (pickled weights are not read)" if any(folder.glob("*.bin")) else ""
        raise DataError(f"{folder}: no *.safetensors weights{pickled}; save it with safe_serialization=True")


def _load(folder: Path, dtype: str, device: str) -> tuple[Any, Any]:
    """Tokenizer and model of a folder, in eval mode.  DataError if they cannot be loaded or do not belong together."""
    import torch
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    check_shards(folder)
    verbosity = logging.get_verbosity()
    logging.set_verbosity_error()  # it would list every weight that is missing; one line does
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            folder,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            dtype=getattr(torch, dtype),
            output_loading_info=True,
        )
        model, loading = loaded
    except (ValueError, OSError, KeyError, TypeError, RuntimeError, ImportError, SafetensorError) as error:
        raise DataError(f"{folder}: it cannot be loaded as a causal language model: {_line(error)}") from error
    finally:
        logging.set_verbosity(verbosity)
    if loading["missing_keys"]:
        lacking = sorted(loading["missing_keys"])[0]
        raise DataError(f"{folder}: its weights lack {lacking}; not those of its config.json")
    if len(tokenizer) > model.get_input_embeddings().num_embeddings:
        raise DataError(f"{folder}: its tokenizer has {len(tokenizer)} pieces, more than the model")
    check_weights(folder, model.named_parameters())
    return tokenizer, model.eval().to(device)


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:200] or type(error).__name__
