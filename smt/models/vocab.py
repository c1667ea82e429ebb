"""Joint SentencePiece vocabulary, applied word by word.

Every whitespace-delimited word is segmented alone, so its pieces do not depend on later words.  Streaming and batched
decoding therefore see the same pieces.
"""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from sqa.core import ConfigError, DataError
from sqa.files import content

PAD, UNK, BOS, EOS = 0, 1, 2, 3
WORD_START = "\u2581"
CACHE = 500_000  # words whose pieces, or whose spelling, are cached

# The corpora mix these typographic variants; replacing them keeps the vocabulary small.
_PUNCTUATION = str.maketrans("’‘“”„«»–—\u00a0", '\'\'"""""-- ') | {ord("…"): "..."}


def normalise(text: str) -> str:
    """Return the text in NFC with plain quotes and dashes and single spaces; a non-blank text never becomes empty."""
    return " ".join(unicodedata.normalize("NFC", text).translate(_PUNCTUATION).split())


def joined(words: Iterable[Sequence[int]]) -> tuple[list[int], list[int]]:
    """Return the piece ids of a sentence from the pieces of its words, and the 0-based word index of each piece."""
    ids: list[int] = []
    index: list[int] = []
    for position, pieces in enumerate(words):
        ids.extend(pieces)
        index.extend([position] * len(pieces))
    return ids, index


class Vocabulary:
    """Map between pieces and ids of one SentencePiece model (pad 0, unk 1, bos 2, eos 3)."""

    FILE = "vocabulary.model"  # file name in a model's folder

    def __init__(self, model: bytes) -> None:
        import sentencepiece

        self.model = model
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        self.size: int = self._processor.get_piece_size()
        self.source_size = self.size  # one vocabulary for both languages
        self.pieces = [self._processor.id_to_piece(i) for i in range(self.size)]
        self.starts_word = np.array([piece.startswith(WORD_START) for piece in self.pieces])  # (V,)
        self.joins_next = np.zeros(self.size, dtype=bool)  # (V,) pieces after which a word always continues
        self.has_digit = np.array([any(c.isdigit() for c in piece) for piece in self.pieces])  # (V,)
        self.word = lru_cache(maxsize=CACHE)(self._word)  # piece ids of one white-space word (at least one id)
        self._spelled = lru_cache(maxsize=CACHE)(self._spell)

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read a SentencePiece model file."""
        try:
            return cls(content(path))
        except (OSError, RuntimeError) as error:
            raise DataError(f"{path}: not a readable SentencePiece model ({error})") from error

    @classmethod
    def train(cls, lines: Iterable[str], size: int, kind: Literal["unigram", "bpe"] = "unigram") -> Vocabulary:
        """Learn `size` pieces (byte fallback) from `lines` of both languages.

        Raises ConfigError if `size` is too large for the lines or too small for their letters, and DataError if there
        is no line.
        """
        import sentencepiece

        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(lines),
                model_writer=model,
                vocab_size=size,
                model_type=kind,
                character_coverage=0.9997,
                byte_fallback=True,
                input_sentence_size=400_000,
                shuffle_input_sentence=True,
                num_threads=2,
                pad_id=PAD,
                unk_id=UNK,
                bos_id=BOS,
                eos_id=EOS,
                minloglevel=2,
            )
        except RuntimeError as error:
            raise _untrainable(size, str(error)) from error
        return cls(model.getvalue())

    def _word(self, word: str) -> tuple[int, ...]:
        return tuple(self._processor.encode(normalise(word))) or (UNK,)

    def words(self, words: Sequence[str]) -> tuple[list[int], list[int]]:
        """Return the piece ids of a sentence and, for each piece, the 0-based index of its word."""
        return joined(map(self.word, words))

    def decode_word(self, ids: Sequence[int]) -> str:
        """Return the word that pieces spell, which may be "", without bytes that form no printable character."""
        return self._spelled(tuple(ids))

    def _spell(self, ids: tuple[int, ...]) -> str:
        text = self._processor.decode(list(ids))
        return "".join(c for c in text if c.isprintable() and not c.isspace() and c != "\ufffd")


def _untrainable(size: int, message: str) -> ConfigError | DataError:
    """Convert SentencePiece's message to an error about the config's key."""
    if most := re.search(r"too high .*<= (\d+)", message):
        return ConfigError(f"corpus.vocabulary_size: at most {most[1]} for these pairs, got {size}")
    if least := re.search(r"smaller than required_chars. \d+ vs (\d+)", message):
        return ConfigError(f"corpus.vocabulary_size: at least {least[1]} for the letters of these pairs, got {size}")
    return DataError(f"no vocabulary can be learnt; is there any pair with a word? ({message.splitlines()[0]})")
