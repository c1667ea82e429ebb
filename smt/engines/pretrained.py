"""Pretrained sequence-to-sequence models of the `transformers` package: opus-mt, M2M100, NLLB, mBART.

    translator: {name: pretrained, model: Helsinki-NLP/opus-mt-es-en, download: true, revision: main}
    translator: {name: pretrained, model: some/folder, source_language: pol_Latn, target_language: eng_Latn}

The models read whole texts.  Without a policy, every word is written after the end of the sentence (k = infinity).  The
keys `policy`, `k` and `n` make the same model simultaneous, see smt/policies/prefixes.py.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

from smt.engines.hub import WANTED, TextCodec, check_model
from smt.policies.chosen import PolicyConfig, PolicyK, PolicyN, policy_of, simultaneous
from smt.policies.prefixes import PolicyTranslator, in_batches
from sqa.core.errors import ConfigError
from sqa.core.packages import need
from sqa.core.schema import Count, File, checked
from sqa.files.devices import FLOATS, Arithmetic, Device, Dtype, place
from sqa.files.hub import files_digest, find_model, load_pretrained
from sqa.files.store import digest

VERSION = 2  # increase when the output changes


@dataclass(frozen=True, slots=True)
@checked
class PretrainedConfig:
    """The model, its languages and its search options."""

    model: Annotated[File, "name on the Hugging Face hub, or a local folder with config, *.safetensors and tokenizer"]
    source_language: Annotated[
        str | None, "code of the source language in the tokenizer (es, spa_Latn, es_XX); null for opus-mt"
    ] = None
    target_language: Annotated[
        str | None, "code of the target language in the tokenizer; for opus-mt only if there are several"
    ] = None
    beams: Annotated[Count, "number of hypotheses; 1 = greedy"] = 1
    batch_tokens: Annotated[Count, "source pieces in a batch, padding included"] = 4096
    max_new_tokens: Annotated[Count, "maximum number of pieces written per text"] = 256
    device: Annotated[Device, "auto = a GPU if there is one"] = "auto"
    dtype: Annotated[Dtype, "element type of the weights; auto = bfloat16 if the device supports it"] = "float32"
    ARITHMETIC: ClassVar = Arithmetic(FLOATS, ("bfloat16", "float32"))
    revision: Annotated[str | None, "branch, tag or commit of a hub model; required for a download"] = None
    download: Annotated[bool, "download a hub model that is not in the local cache"] = False
    policy: Annotated[PolicyConfig, "policy, see smt/policies/prefixes.py"] = "wait-k"
    k: PolicyK = "full"
    n: PolicyN = None

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        policy_of(self)
        return []


class Pretrained:
    """A loaded model that maps texts to words."""

    def __init__(self, config: PretrainedConfig) -> None:
        self.config, self.where = config, place(config)
        self.device = self.where.device
        self.folder = find_model(config.model, config.revision, config.download, WANTED)
        check_model(self.folder)
        loaded = load_pretrained(self.folder, "AutoModelForSeq2SeqLM", "a translation model", self.where.dtype)
        tokenizer, self.model = loaded[0], loaded[1].to(self.device)
        self.codec = TextCodec(tokenizer, config.source_language, config.target_language)
        self.languages = self.codec.languages
        self.limit = int(self.model.config.max_position_embeddings)  # maximum number of pieces of source and target
        if config.max_new_tokens >= self.limit:
            raise ConfigError(f"max_new_tokens: must be less than {self.limit}, got {config.max_new_tokens}")
        self.model.generation_config = self._generation()  # `generate` ignores default values passed to it
        self._files = files_digest(self.folder, WANTED)

    def _generation(self) -> Any:
        """Return the model's own search settings (forbidden pieces, length penalty), without sampling."""
        generation = copy.deepcopy(self.model.generation_config)
        longest = self.config.max_new_tokens + 1  # with the start token
        unset = dict.fromkeys(("max_new_tokens", "temperature", "top_k", "top_p"))
        generation.update(
            num_beams=self.config.beams, do_sample=False, num_return_sequences=1, max_length=longest, **unset
        )
        if self.config.beams == 1:
            generation.update(early_stopping=False, length_penalty=1.0)
        if (token := self.codec.target_token) is not None:
            key = "decoder_start_token_id" if self.codec.starts_decoder else "forced_bos_token_id"
            generation.update(**{key: self.codec.tokenizer.convert_tokens_to_ids(token)})
        return generation

    def words(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the target words of each text, which are () for a blank text."""
        encode = partial(self.codec.encode, limit=self.limit)
        return in_batches(texts, encode, self._words, self.config.batch_tokens)

    def _words(self, rows: list[list[int]]) -> list[tuple[str, ...]]:
        return [self.codec.decode(pieces) for pieces in self.generate(rows)]

    def generate(self, rows: list[list[int]]) -> list[list[int]]:
        """Return the target pieces of rows of source pieces, without the start token."""
        import torch

        width, pad = max(map(len, rows)), self.codec.tokenizer.pad_token_id
        pieces = torch.tensor([row + [pad] * (width - len(row)) for row in rows], device=self.device)  # (B, S)
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows], device=self.device)
        with torch.inference_mode():
            written = self.model.generate(input_ids=pieces, attention_mask=mask)
        return written[:, 1:].tolist()  # (B, T), start token first

    def fingerprint(self) -> str:
        """Return a hash of the model's files, the languages, the search, the device and the package version."""
        import transformers

        c = self.config
        other = [] if self.where.dtype == "float32" else [self.where.dtype]
        search = [
            c.source_language,
            c.target_language,
            c.beams,
            c.max_new_tokens,
            self.device.partition(":")[0],
            *other,
        ]
        return digest(["pretrained", VERSION, transformers.__version__, search, self._files])


def build(config: PretrainedConfig) -> PolicyTranslator:
    """Return the translator of a config."""
    need("transformers", "translator 'pretrained'")
    return simultaneous(Pretrained, config)
