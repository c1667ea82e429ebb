"""Conversion of words to pieces and back, and the layout of a sentence pair for a language model.

A model's folder holds tokenizer.json.  For a GGUF file, this module builds the tokenizer from the file's pieces and
scores.  SentencePiece BPE repeatedly joins the adjacent pair whose joined piece has the highest score.  Spaces are "▁",
nothing is prepended, and characters without a piece become bytes.

Layout of a model that reads and writes at the same time:

    source segment    <bos> "Spanish:" w1 w2 ... wn "\\n"       positions 0, 1, 2, ...
    target segment    "English:" t1 t2 ... tm "\\n"             positions OFFSET, OFFSET + 1, ...

The source segment attends only backwards to itself, so its keys and values stay valid when more words are read.  A
target piece attends to the preceding target pieces and to the source pieces of the words read when it was chosen.
Source and target positions are numbered separately, so neither segment moves when the other grows (Guo et al., ACL
2024: Decoder-only Streaming Transformer; Raffel et al., EMNLP 2024: SimulMask).  The line break after the source marks
its end and is one more READ, as in smt/policies/waitk.py.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from smt.models.vocab import CACHE, joined
from sqa.core import DataError, language_of

FILE = "tokenizer.json"
BLANK = "▁"
_LATIN = re.compile(r"(?=.*\w)[A-Za-zÀ-ÖØ-öø-žḀ-ỿ'’.-]+")
CONTROL = 3  # GGUF's type of pieces that no text contains: <bos>, <pad>


def from_scores(pieces: Sequence[str], scores: Sequence[float], types: Sequence[int]) -> Tokenizer:
    """Return the tokenizer of a SentencePiece BPE vocabulary; a piece's index is its id."""
    number = {piece: i for i, piece in enumerate(pieces)}
    special = {i for i, kind in enumerate(types) if kind == CONTROL}
    merges: list[tuple[float, int, str, str]] = []
    for i, piece in enumerate(pieces):
        if i in special or len(piece) < 2:
            continue
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in number and right in number:
                merges.append((-scores[i], i, left, right))
    merges.sort(key=lambda row: (row[0], row[1], number[row[2]], number[row[3]]))
    model = models.BPE(
        vocab=number, merges=[row[2:] for row in merges], unk_token="<unk>", fuse_unk=True, byte_fallback=True
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Replace(" ", BLANK)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(BLANK, "merged_with_next")
    tokenizer.decoder = decoders.Sequence([decoders.Replace(BLANK, " "), decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens([AddedToken(pieces[i], special=True, normalized=False) for i in sorted(special)])
    return tokenizer


class Tokens:
    """A tokenizer applied word by word."""

    def __init__(self, tokenizer: Tokenizer, bos: int | None) -> None:
        self.tokenizer, self.bos = tokenizer, bos
        self.word = lru_cache(maxsize=CACHE)(self._word)  # pieces of a space and a word
        self.size = tokenizer.get_vocab_size()
        texts = [tokenizer.id_to_token(i) or "" for i in range(self.size)]
        mark = tokenizer.encode(" a", add_special_tokens=False).tokens[0][0]  # prefix of pieces that follow a space
        self.texts = [_spelled(text, mark) for text in texts]  # letters that each piece adds to a word
        self.starts_word = np.array([text.startswith(mark) for text in texts])  # (V,)
        self.has_digit = np.array([any(c.isdigit() for c in text) for text in texts])  # (V,)
        self.unprintable = np.array([_unprintable(text, mark) for text in texts])  # (V,) pieces that occur in no word
        self.spelling = np.array([_spells(text) for text in texts])  # (V,) single Latin characters, and bytes

    @classmethod
    def load(cls, folder: Path, bos: int | None) -> Tokens:
        """Return the tokenizer of a folder; raises DataError if it is missing or damaged."""
        path = folder / FILE
        if not path.is_file():
            raise DataError(f"{path}: not found; a language model's folder must contain it")
        try:
            return cls(Tokenizer.from_file(str(path)), bos)
        except Exception as error:  # the library raises no narrower exception
            raise DataError(f"{path}: not a tokenizer: {str(error).splitlines()[0]}") from error

    @property
    def latin(self) -> np.ndarray:
        """Whether each piece is part of a word in Latin script, (V,) bool."""
        return np.array([_LATIN.fullmatch(text) is not None for text in self.texts])

    def text(self, text: str) -> list[int]:
        """Return the pieces of a text, without added pieces before or after it."""
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def _word(self, word: str) -> tuple[int, ...]:
        return tuple(self.text(f" {word}"))

    def words(self, words: Sequence[str]) -> tuple[list[int], list[int]]:
        """Return the pieces of words, with a space before each word, and the 0-based word index of each piece."""
        return joined(map(self.word, words))

    def decode(self, pieces: Sequence[int]) -> str:
        """Return the text of pieces, without leading and trailing whitespace."""
        return self.tokenizer.decode(list(pieces), skip_special_tokens=True).strip()


def _spelled(piece: str, mark: str) -> str:
    """Return the letters of a piece, or "" for control pieces and bytes.

    Byte-level tokenizers spell only ASCII literally.
    """
    special = re.fullmatch(r"<[^<>]*>", piece) is not None
    return "" if special else piece.removeprefix(mark)


def _spells(piece: str) -> bool:
    bare = piece.removeprefix(BLANK)
    return bool(re.fullmatch(r"<0x[0-9A-F]{2}>", piece)) or piece == BLANK or (len(bare) == 1 and ord(bare) < 0x250)


def _unprintable(piece: str, mark: str) -> bool:
    """Return whether a piece is empty, a control piece, or contains spaces (Llama and Qwen spell a line break "Ċ")."""
    inside = piece.removeprefix(mark)
    control = re.fullmatch(r"<[^<>]*[a-z_|][^<>]*>|\[multimodal\]", piece) is not None
    return not piece or control or any(c.isspace() or c in f"{BLANK}ĠĊĉč" for c in inside)


OFFSET = 96  # position of the first target piece; longer sources are rare but supported


def name_of(code: str) -> str:
    """Return a language's name in the prompt: its English name if data/languages has it, else its code."""
    return language_of(code).name or code


@dataclass(frozen=True, slots=True)
class Layout:
    """The fixed pieces of one direction."""

    opening: tuple[int, ...]  # before the first source word
    asking: tuple[int, ...]  # before the first target word
    end: int  # the line break that ends either segment

    @classmethod
    def of(cls, tokens: Tokens, source_language: str, target_language: str) -> Layout:
        """Return the layout of a direction; languages are ISO 639-1 codes."""
        [end] = tokens.text("\n")
        opening = ([] if tokens.bos is None else [tokens.bos]) + tokens.text(f"{name_of(source_language)}:")
        return cls(tuple(opening), tuple(tokens.text(f"{name_of(target_language)}:")), end)

    def source(self, tokens: Tokens, words: Sequence[str]) -> tuple[list[int], list[int]]:
        """Return the pieces of a whole source segment, and the number of words to read before each is visible.

        The opening needs 0 words, the pieces of word n (from 1) need n, and the line break one more than the number of
        words.
        """
        pieces, index = tokens.words(words)
        needs = [0] * len(self.opening) + [i + 1 for i in index] + [len(words) + 1]
        return [*self.opening, *pieces, self.end], needs
