"""Folders of pretrained translation models in the Hugging Face layout: search, checks, and text processing.

Nothing is downloaded unless the config allows it, no pickle is read, and no code in a model's folder is run.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqa.core.errors import ConfigError, DataError
from sqa.core.languages import Pair, certain_pair, code_of
from sqa.core.registry import did_you_mean
from sqa.files.hub import check_folder

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
