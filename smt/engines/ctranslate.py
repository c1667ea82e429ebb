"""CTranslate2 as the engine of full-input translation, for models of ours and of `transformers`.

    translator: {name: ctranslate2, folder: es-en-ct2, compute_type: int8}

`smt.engines.ctranslate_export.convert` writes such a folder.  It holds CTranslate2's model.bin, config.json and
vocabulary, and what turns text into pieces: our vocabulary.model, or the tokenizer of the Hugging Face model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from smt.engines.hub import TextCodec, files_fingerprint, load_tokenizer
from smt.models.next_piece import piece_limit
from smt.models.transformer import Transformer
from smt.models.vocab import BOS, PAD, UNK, Vocabulary
from smt.policies.chosen import PolicyConfig, policy_of, simultaneous
from smt.policies.full_input import in_batches
from smt.policies.prefixes import PolicyTranslator
from sqa.core.errors import Count, DataError, Whole, checked
from sqa.core.packages import need
from sqa.core.paths import File
from sqa.data.languages import Pair, certain_pair, pair_of
from sqa.files.records import json_document
from sqa.files.store import digest

VERSION = 1  # raise when translating changes its output
LANGUAGES = "languages.json"  # {"pair": "es-en"}, of models of ours that say it
MAX_PIECES = 1024  # source pieces where the tokenizer states no limit


@dataclass(frozen=True, slots=True)
@checked
class CTranslateConfig:
    """Which converted model and how it searches."""

    folder: File  # what `convert` wrote
    source_language: str | None = None  # code as the tokenizer knows it; null for bilingual models
    target_language: str | None = None  # the same
    beams: Count = 1  # hypotheses kept; 1 = greedy
    batch_tokens: Count = 4096  # source pieces in a batch, padding included
    max_new_tokens: Count = 256  # pieces written per text at most
    compute_type: Literal["default", "auto", "int8", "int8_float32", "int8_float16", "int16", "float16", "float32"] = (
        "default"  # arithmetic; default = as the model was stored, int8 = fastest on a CPU
    )
    device: Literal["auto", "cpu", "cuda"] = "cpu"  # auto = a GPU if there is one
    threads: Whole = 0  # of one translation; 0 = CTranslate2's choice
    policy: PolicyConfig = "wait-k"  # when to write what: see smt/policies/prefixes.py
    k: int | str = "full"  # wait-k: source WORDS read before the first target word, or "full" = the whole sentence
    n: int | None = None  # local-agreement: translations that must agree (2); hold, retranslate: words held back

    def problems(self) -> list[str]:
        """Beside the bounds."""
        policy_of(self)
        return []


class _OwnText:
    """Models of ours: word by word, as `smt.models.decode` does it."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary, self.pieces = vocabulary, vocabulary.pieces
        self._ids = {piece: i for i, piece in enumerate(self.pieces)}
        self.prefix: list[str] = []  # pieces that begin every translation
        self.suppress = [[self.pieces[i]] for i in (PAD, UNK, BOS)]  # never written

    def encode(self, texts: Sequence[str]) -> list[list[str]]:
        rows = [[self.pieces[i] for i in self.vocabulary.words(text.split())[0]] for text in texts]
        for text, row in zip(texts, rows, strict=True):
            if len(row) >= Transformer.MAX_PIECES:
                raise DataError(f"a text has {len(row)} pieces, the model reads {Transformer.MAX_PIECES}: {text[:60]}")
        return rows

    def decode(self, pieces: Sequence[str], source_pieces: int) -> tuple[str, ...]:
        limit = int(piece_limit(source_pieces + 1))  # the end of the source is a piece, too
        words: list[list[int]] = []
        for i in (self._ids[piece] for piece in pieces[:limit]):
            if not words or self.vocabulary.starts_word[i]:
                words.append([])
            words[-1].append(i)
        return tuple(token for token in map(self.vocabulary.decode_word, words) if token)


class _HubText:
    """Models of `transformers`, by their own tokenizer."""

    def __init__(self, tokenizer: Any, source_language: str | None, target_language: str | None) -> None:
        self.codec, self.tokenizer = TextCodec(tokenizer, source_language, target_language), tokenizer
        self.limit = min(tokenizer.model_max_length, MAX_PIECES)
        self.prefix = [] if self.codec.target_token is None else [self.codec.target_token]
        self.suppress: list[list[str]] = []

    def encode(self, texts: Sequence[str]) -> list[list[str]]:
        return [self.tokenizer.convert_ids_to_tokens(row) for row in self.codec.encode(texts, self.limit)]

    def decode(self, pieces: Sequence[str], source_pieces: int) -> tuple[str, ...]:
        return self.codec.decode(self.tokenizer.convert_tokens_to_ids(list(pieces)))


class CTranslate:
    """A loaded engine: texts in, words out."""

    def __init__(self, config: CTranslateConfig) -> None:
        import ctranslate2

        self.config, self.folder = config, Path(config.folder)
        if not (self.folder / "model.bin").is_file():
            raise DataError(f"{self.folder}: no model.bin; give a folder that was converted to CTranslate2")
        if (self.folder / "vocabulary.model").is_file():
            self.text: _OwnText | _HubText = _OwnText(Vocabulary.load(self.folder / "vocabulary.model"))
            self.languages = _own_languages(config, self.folder / LANGUAGES)
        else:
            hub = _HubText(load_tokenizer(self.folder), config.source_language, config.target_language)
            self.text, self.languages = hub, hub.codec.languages
        try:
            self.engine = ctranslate2.Translator(
                str(self.folder), device=config.device, compute_type=config.compute_type, intra_threads=config.threads
            )
        except (RuntimeError, ValueError) as error:
            raise DataError(f"{self.folder}: CTranslate2 cannot load it: {str(error).splitlines()[0]}") from error
        self._files = files_fingerprint(self.folder)

    def words(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Target words of each text; a blank text gives ()."""
        return in_batches(texts, self.text.encode, self._words, self.config.batch_tokens)

    def _words(self, rows: list[list[str]]) -> list[tuple[str, ...]]:
        written = zip(self.translate(rows), rows, strict=True)
        return [self.text.decode(pieces, len(row)) for pieces, row in written]

    def translate(self, rows: list[list[str]]) -> list[list[str]]:
        """Target pieces of rows of source pieces."""
        results = self.engine.translate_batch(
            rows,
            target_prefix=[self.text.prefix] * len(rows) if self.text.prefix else None,
            beam_size=self.config.beams,
            max_decoding_length=self.config.max_new_tokens,
            max_input_length=0,
            suppress_sequences=self.text.suppress or None,
        )
        return [result.hypotheses[0] for result in results]

    def fingerprint(self) -> str:
        """Hash of the folder's files, the languages, the search, the arithmetic and the package."""
        import ctranslate2

        c = self.config
        search = [c.source_language, c.target_language, c.beams, c.max_new_tokens]
        arithmetic = [self.engine.device, self.engine.compute_type, ctranslate2.__version__]
        return digest(["ctranslate2", VERSION, search, arithmetic, self._files])


def _own_languages(config: CTranslateConfig, path: Path) -> Pair | None:
    """The pair of a model of ours: what the config says, else what `convert` wrote beside it."""
    if config.source_language or config.target_language:
        return certain_pair(config.source_language, config.target_language)
    return pair_of(json_document(path)) if path.is_file() else None


def build(config: CTranslateConfig) -> PolicyTranslator:
    """The translator of a config."""
    need("ctranslate2", "translator 'ctranslate2'")
    return simultaneous(CTranslate, config)
