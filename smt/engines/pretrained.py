"""Pretrained sequence-to-sequence models of the `transformers` package: opus-mt, M2M100, NLLB, mBART.

    translator: {name: pretrained, model: Helsinki-NLP/opus-mt-es-en, download: true, revision: main}
    translator: {name: pretrained, model: some/folder, source_language: pol_Latn, target_language: eng_Latn}

The models read whole texts.  Without a policy, every word is written after the end of the sentence (k = infinity).  The
keys `policy`, `k` and `n` make the same model simultaneous, see smt/policies/prefixes.py.

Nothing is downloaded unless the config allows it, no pickle is read, and no code in a model's folder is run.
"""

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from smt.policies.prefixes import PolicyConfig, PolicyK, PolicyN, PolicyTranslator, policy_of, simultaneous
from sqa.core import ConfigError, Count, DataError, File, buckets, checked, did_you_mean, need
from sqa.core.languages import Pair, certain_pair, code_of
from sqa.files import FLOATS, Arithmetic, Device, Dtype, digest, place
from sqa.files.hub import check_folder, files_digest, find_model, load_pretrained

MODEL_TYPES = ("marian", "m2m_100", "mbart")  # config.json's model_type; NLLB is an m2m_100
WANTED = ("*.json", "*.safetensors", "*.spm", "*.model", "*.txt")  # fetched from a hub
MULTILINGUAL = ("M2M100Tokenizer", "NllbTokenizer", "MBartTokenizer", "MBart50Tokenizer")
LANGUAGE_TOKEN = re.compile(r"[a-z]{2,3}_[A-Z][A-Za-z]{1,3}")  # en_XX of mBART, eng_Latn of NLLB


def check_model(folder: Path) -> None:
    """Raise DataError or ConfigError for a folder without a translation model that can be loaded safely."""
    if (model_type := check_folder(folder)) not in MODEL_TYPES:
        raise ConfigError(f"model: {folder} is a {model_type!r} model, but must be one of {', '.join(MODEL_TYPES)}")


class TextCodec:
    """Converter from texts to source pieces, and from target pieces to words, with the tokenizer's language marks.

    `target_token` is the piece that names the target language; None if the model has none, or reads it in the source.
    If `starts_decoder` is true, the piece replaces the decoder's start token (mBART of 25 languages), else it comes
    second.
    """

    def __init__(self, tokenizer: Any, source_language: str | None, target_language: str | None) -> None:
        self.tokenizer = tokenizer
        self.kind = type(tokenizer).__name__.removesuffix("Fast")
        self.target_token: str | None = None
        self.starts_decoder = self.kind == "MBartTokenizer"
        self._last = max(tokenizer.get_vocab().values())  # models may have more pieces, which pad their matrices
        self._mark = ""  # prefix of every source text
        self.languages: Pair | None = None  # None unless config or tokenizer names them
        self._silent: frozenset[int] = frozenset()  # language pieces, which some tokenizers would otherwise decode
        if self.kind == "MarianTokenizer":
            self._bilingual(source_language, target_language)
        elif self.kind in MULTILINGUAL:
            pieces = self._languages()
            _check_languages({"source_language": source_language, "target_language": target_language}, pieces)
            tokenizer.src_lang = source_language
            self.languages = (code_of(str(source_language)), code_of(str(target_language)))
            self.target_token = pieces[str(target_language)]
            self._silent = frozenset(tokenizer.convert_tokens_to_ids(list(pieces.values())))
        else:
            supported = f"MarianTokenizer, {_listed(MULTILINGUAL)}"
            raise ConfigError(f"model: its tokenizer is a {self.kind}; supported are {supported}")

    def _languages(self) -> dict[str, str]:
        """Return the piece of each language code."""
        if self.kind == "M2M100Tokenizer":
            return dict(self.tokenizer.lang_code_to_token)
        return {t: t for t in self.tokenizer.all_special_tokens if LANGUAGE_TOKEN.fullmatch(t)}

    def _bilingual(self, source: str | None, target: str | None) -> None:
        """Set an opus-mt model's languages: a fixed pair, or a target language named at the beginning of the text."""
        language = target
        marks = {mark[2:-2]: mark for mark in self.tokenizer.supported_language_codes}
        if marks:
            _check_languages({"target_language": target}, marks)
            self._mark = f"{marks[str(target)]} "
            target = None
        self.languages = certain_pair(source or self.tokenizer.source_lang, language or self.tokenizer.target_lang)
        languages = {"source_language": (source, self.tokenizer.source_lang)}
        languages["target_language"] = (target, self.tokenizer.target_lang)
        wrong = {key: pair for key, pair in languages.items() if None not in pair and pair[0] != pair[1]}
        if wrong:
            raise ConfigError([f"{key}: the model only has {own!r}, got {got!r}" for key, (got, own) in wrong.items()])

    def encode(self, texts: Sequence[str], limit: int) -> list[list[int]]:
        """Return the piece ids of each text with all marks; raises DataError for a text of more than `limit` pieces."""
        rows = self.tokenizer([self._mark + text for text in texts], verbose=False)["input_ids"] if texts else []
        for text, row in zip(texts, rows, strict=True):
            if len(row) > limit:
                raise DataError(f"a text has {len(row)} pieces, but the model reads at most {limit}: {text[:60]!r}...")
        return rows

    def decode(self, pieces: Sequence[int]) -> tuple[str, ...]:
        """Return the words of target pieces, without marks and pieces unknown to the tokenizer."""
        spoken = [piece for piece in pieces if piece <= self._last and piece not in self._silent]
        text = self.tokenizer.decode(spoken, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return tuple(text.split())


def _check_languages(languages: dict[str, str | None], supported: dict[str, str]) -> None:
    problems = []
    for key, code in languages.items():
        if code is None:
            problems.append(f"{key}: missing; the tokenizer has {_listed(sorted(supported))}")
        elif code not in supported:
            begins = [name for name in sorted(supported) if name.lower().startswith(code.lower())]
            near = f", did you mean {begins[0]!r}" if begins else did_you_mean(code, supported)
            problems.append(f"{key}: unknown to the tokenizer: {code!r}{near}; it has {_listed(sorted(supported))}")
    if problems:
        raise ConfigError(problems)


def _listed(names: Sequence[str], most: int = 8) -> str:
    """Return the first names, and the number of the others."""
    others = len(names) - most
    return ", ".join(names[:most]) + (f" and {others} more" if others > 0 else "")


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
        """Return the target words of each text, which are () for a blank text.

        Texts of similar length are translated together.
        """
        words: list[tuple[str, ...]] = [()] * len(texts)
        filled = [i for i, text in enumerate(texts) if text.strip()]
        rows = self.codec.encode([texts[i] for i in filled], self.limit)
        for group in buckets([len(row) for row in rows], self.config.batch_tokens):
            for i, pieces in zip(group, self.generate([rows[i] for i in group]), strict=True):
                words[filled[i]] = self.codec.decode(pieces)
        return words

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
