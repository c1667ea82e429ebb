"""The vocabulary of a model trained elsewhere: lists of symbols, and the segmentation of words into them.

It has the interface of `smt.models.vocab.Vocabulary`, but source and target may have separate symbols.  A SentencePiece
model or subword-nmt codes ("@@" marks a piece that continues) segment each word, or words stay whole.  A Moses
tokeniser may split off punctuation first, which is reattached in the output.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal, get_args
from xml.sax import saxutils

import numpy as np
import sentencepiece

from smt.models.vocab import CACHE, UNK, WORD_START, joined
from sqa.core import ConfigError, DataError, need
from sqa.files import parse_json

FORMAT = 1
SPECIAL = ("<pad>", "<unk>", "<s>", "</s>")  # ids 0 to 3, as in smt.models.vocab
Bpe = Literal["subword-nmt", "sentencepiece", "none"]
GOES_ON = "@@"

# Moses' escapes of characters that are special to Moses, in addition to those of XML
_ESCAPES = {"&#124;": "|", "&apos;": "'", "&quot;": '"', "&#91;": "[", "&#93;": "]"}
_CLOSING = frozenset(",.;:!?%)]}»”’…")  # marks attached to the preceding word
_OPENING = frozenset("([{¿¡«„“‘$£€#")  # marks attached to the following word
_HYPHEN = "@-@"  # Moses' symbol for a hyphen inside a word


def unescape(text: str) -> str:
    """Return the text with Moses' escapes and split hyphens as plain characters."""
    return saxutils.unescape(text, _ESCAPES).replace(_HYPHEN, "-")


@dataclass(frozen=True, slots=True)
class Cutting:
    """The segmentation of words into pieces."""

    bpe: Bpe = "none"
    codes: bytes = b""  # the source's subword-nmt codes (UTF-8 text) or SentencePiece model
    moses: str = ""  # source language of the Moses tokeniser (es, pl, en, ...); "" = words are not tokenised

    def __post_init__(self) -> None:
        if self.bpe not in get_args(Bpe):
            raise ConfigError(f"bpe: must be one of {', '.join(get_args(Bpe))}, got {self.bpe!r}")
        if (self.bpe == "none") == bool(self.codes):
            raise ConfigError(f"codes: must be {'omitted' if self.codes else 'a file'} for bpe {self.bpe!r}")

    def cutter(self) -> Callable[[str], list[str]]:
        """Return a function that splits a word into pieces; raises ConfigError if a package is missing."""
        makers = {"subword-nmt": self._subword_nmt, "sentencepiece": self._sentencepiece}
        cut = makers[self.bpe]() if self.bpe in makers else (lambda word: [word])
        if not self.moses:
            return cut
        need("sacremoses", "a Moses tokeniser")
        from sacremoses import MosesTokenizer

        tokenise = MosesTokenizer(lang=self.moses).tokenize
        return lambda word: [piece for token in tokenise(word) for piece in cut(token)]

    def _sentencepiece(self) -> Callable[[str], list[str]]:
        try:
            processor = sentencepiece.SentencePieceProcessor(model_proto=self.codes)
        except RuntimeError as error:
            raise DataError(f"codes: not a SentencePiece model ({error})") from error
        return processor.encode_as_pieces

    def _subword_nmt(self) -> Callable[[str], list[str]]:
        try:
            text = self.codes.decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(f"codes: not subword-nmt codes, which are UTF-8 text ({error})") from error
        for number, line in enumerate(text.rstrip("\n").split("\n"), 1):
            if len(line.strip("\r\n ").split(" ")) != 2:
                raise DataError(f"codes, line {number}: expected two symbols, got {line[:60]!r}")
        need("subword_nmt", "cutting by subword-nmt codes")
        from subword_nmt.apply_bpe import BPE

        bpe = BPE(io.StringIO(text))
        return lambda word: bpe.segment_tokens([word])


class BpeVocabulary:
    """Map between symbols and ids of two languages (pad 0, unk 1, bos 2, eos 3 in both)."""

    FILE = "vocabulary.json"  # file name in a model's folder

    def __init__(self, source: Sequence[str], target: Sequence[str], cutting: Cutting) -> None:
        """Create the vocabulary from all symbols by id, SPECIAL first; equal lists share one vocabulary."""
        for side, symbols in (("source", source), ("target", target)):
            if tuple(symbols[: len(SPECIAL)]) != SPECIAL:
                raise DataError(f"{side} symbols must begin with {' '.join(SPECIAL)}, got {list(symbols[:4])}")
        self.source, self.target, self.cutting = tuple(source), tuple(target), cutting
        self.size, self.source_size = len(self.target), len(self.source)
        self._ids = {symbol: i for i, symbol in enumerate(self.source) if i >= len(SPECIAL)}
        self._cut = cutting.cutter()
        self.word = lru_cache(maxsize=CACHE)(self._word)  # source piece ids of one white-space word (at least one id)
        self.starts_word = np.array([i >= len(SPECIAL) and self._starts(s) for i, s in enumerate(self.target)])  # (V,)
        self.joins_next = np.array([i >= len(SPECIAL) and self._joins(s) for i, s in enumerate(self.target)])  # (V,)
        self.has_digit = np.array([any(c.isdigit() for c in self._text(s)) for s in self.target])  # (V,)

    def _text(self, symbol: str) -> str:
        """Return the text of a target symbol."""
        if self.cutting.bpe == "sentencepiece":
            return symbol.replace(WORD_START, "")
        symbol = symbol.removesuffix(GOES_ON) if self.cutting.bpe == "subword-nmt" else symbol
        return unescape(symbol) if self.cutting.moses else symbol

    def _starts(self, symbol: str) -> bool:
        """Return whether a word begins with this symbol, unless the preceding symbol joins it."""
        if self.cutting.bpe == "sentencepiece":
            return symbol.startswith(WORD_START)
        if not self.cutting.moses:
            return True
        text = self._text(symbol)
        return not (set(text) <= _CLOSING or _HYPHEN in symbol or (text.startswith("'") and len(text) > 1))

    def _joins(self, symbol: str) -> bool:
        """Return whether the word always continues after this symbol."""
        if self.cutting.bpe == "sentencepiece":
            return False
        if self.cutting.bpe == "subword-nmt" and symbol.endswith(GOES_ON):
            return True
        text = self._text(symbol)
        return bool(self.cutting.moses) and (
            set(text) <= _OPENING or _HYPHEN in symbol or (text.endswith("'") and len(text) > 1)
        )

    @property
    def model(self) -> bytes:
        """Return the content of the vocabulary's file."""
        content = {
            "format": FORMAT,
            "bpe": self.cutting.bpe,
            "moses": self.cutting.moses,
            "codes": base64.b64encode(self.cutting.codes).decode("ascii"),
            "target": self.target,
            "source": None if self.source == self.target else self.source,
        }
        return json.dumps(content, ensure_ascii=False).encode("utf-8")

    @classmethod
    def load(cls, path: Path) -> BpeVocabulary:
        """Read a file with the content of `model`; raises DataError for any other file."""
        try:
            content = parse_json(path.read_bytes())
            if content["format"] != FORMAT:
                raise DataError(f"format {content['format']}, not {FORMAT}")
            cutting = Cutting(content["bpe"], base64.b64decode(content["codes"]), content["moses"])
            return cls(content["source"] or content["target"], content["target"], cutting)
        except (ConfigError, DataError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{path}: not a vocabulary of this program ({error!r})") from error

    def _word(self, word: str) -> tuple[int, ...]:
        return tuple(self._ids.get(piece, UNK) for piece in self._cut(word)) or (UNK,)

    def words(self, words: Sequence[str]) -> tuple[list[int], list[int]]:
        """Return the source piece ids of a sentence and, for each piece, the 0-based index of its word."""
        return joined(map(self.word, words))

    def decode_word(self, ids: Sequence[int]) -> str:
        """Return the word that target pieces spell, which may be "", without unprintable characters."""
        text = bytearray()
        for symbol in (self.target[i] for i in ids if i >= len(SPECIAL)):
            byte = _byte(symbol) if self.cutting.bpe == "sentencepiece" else None
            text += self._text(symbol).encode("utf-8") if byte is None else bytes([byte])
        word = text.decode("utf-8", errors="ignore")
        return "".join(c for c in word if c.isprintable() and not c.isspace())


def _byte(symbol: str) -> int | None:
    """Return the byte of a SentencePiece fallback symbol such as "<0xC3>"."""
    if len(symbol) == 6 and symbol.startswith("<0x") and symbol.endswith(">"):
        return int(symbol[3:5], 16)
    return None
