"""CTranslate2 as the engine of full-input translation, for this project's models and those of `transformers`.

    translator: {name: ctranslate2, folder: es-en-ct2, compute_type: int8}

`smt.engines.ctranslate_export.convert` writes such a folder.  It holds CTranslate2's model.bin, config.json and
vocabulary, and the tokenizer: our vocabulary.model, or the tokenizer of the Hugging Face model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from smt.engines.hub import TextCodec, files_fingerprint, load_tokenizer
from smt.models.next_piece import piece_limit
from smt.models.transformer import Transformer
from smt.models.vocab import BOS, PAD, UNK, Vocabulary
from smt.policies.chosen import PolicyConfig, PolicyK, PolicyN, policy_of, simultaneous
from smt.policies.full_input import in_batches
from smt.policies.prefixes import PolicyTranslator
from sqa.core.errors import DataError
from sqa.core.packages import need
from sqa.core.schema import Count, File, Whole, checked
from sqa.data.languages import Pair, certain_pair, pair_of
from sqa.files.records import json_document
from sqa.files.store import digest

VERSION = 1  # increase when the output changes
LANGUAGES = "languages.json"  # {"pair": "es-en"}, for those of our models that state their pair
MAX_PIECES = 1024  # limit on source pieces, unless the tokenizer states a lower one


@dataclass(frozen=True, slots=True)
@checked
class CTranslateConfig:
    """The converted model and its search options."""

    folder: Annotated[File, "folder that `convert` wrote"]
    source_language: Annotated[
        str | None, "code of the source language in the tokenizer; null for bilingual models"
    ] = None
    target_language: Annotated[
        str | None, "code of the target language in the tokenizer; null for bilingual models"
    ] = None
    beams: Annotated[Count, "number of hypotheses; 1 = greedy"] = 1
    batch_tokens: Annotated[Count, "source pieces in a batch, padding included"] = 4096
    max_new_tokens: Annotated[Count, "maximum number of pieces written per text"] = 256
    compute_type: Annotated[
        Literal["default", "auto", "int8", "int8_float32", "int8_float16", "int16", "float16", "float32"],
        "default = as stored, int8 = fastest on a CPU",
    ] = "default"
    device: Annotated[Literal["auto", "cpu", "cuda"], "auto = a GPU if there is one"] = "cpu"
    threads: Annotated[Whole, "threads of one translation; 0 = CTranslate2's choice"] = 0
    policy: Annotated[PolicyConfig, "policy, see smt/policies/prefixes.py"] = "wait-k"
    k: PolicyK = "full"
    n: PolicyN = None

    def problems(self) -> list[str]:
        """Return the problems that the declared bounds do not check."""
        policy_of(self)
        return []


class _OwnText:
    """Text processing for this project's models: word by word, as in `smt.models.decode`."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary, self.pieces = vocabulary, vocabulary.pieces
        self._ids = {piece: i for i, piece in enumerate(self.pieces)}
        self.prefix: list[str] = []  # pieces at the beginning of every translation
        self.suppress = [[self.pieces[i]] for i in (PAD, UNK, BOS)]  # never written

    def encode(self, texts: Sequence[str]) -> list[list[str]]:
        rows = [[self.pieces[i] for i in self.vocabulary.words(text.split())[0]] for text in texts]
        for text, row in zip(texts, rows, strict=True):
            if len(row) >= Transformer.MAX_PIECES:
                raise DataError(
                    f"a text has {len(row)} pieces, but the model reads at most {Transformer.MAX_PIECES}: {text[:60]}"
                )
        return rows

    def decode(self, pieces: Sequence[str], source_pieces: int) -> tuple[str, ...]:
        limit = int(piece_limit(source_pieces + 1))  # the end of the source also counts as a piece
        words: list[list[int]] = []
        for i in (self._ids[piece] for piece in pieces[:limit]):
            if not words or self.vocabulary.starts_word[i]:
                words.append([])
            words[-1].append(i)
        return tuple(token for token in map(self.vocabulary.decode_word, words) if token)


class _HubText:
    """Text processing for models of `transformers`, by their own tokenizer."""

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
    """A loaded engine that maps texts to words."""

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
        """Return the target words of each text, which are () for a blank text."""
        return in_batches(texts, self.text.encode, self._words, self.config.batch_tokens)

    def _words(self, rows: list[list[str]]) -> list[tuple[str, ...]]:
        written = zip(self.translate(rows), rows, strict=True)
        return [self.text.decode(pieces, len(row)) for pieces, row in written]

    def translate(self, rows: list[list[str]]) -> list[list[str]]:
        """Translate rows of source pieces into rows of target pieces."""
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
        """Return a hash of the folder's files, the languages, the search, the arithmetic and the package version."""
        import ctranslate2

        c = self.config
        search = [c.source_language, c.target_language, c.beams, c.max_new_tokens]
        arithmetic = [self.engine.device, self.engine.compute_type, ctranslate2.__version__]
        return digest(["ctranslate2", VERSION, search, arithmetic, self._files])


def _own_languages(config: CTranslateConfig, path: Path) -> Pair | None:
    """Return the language pair of one of our models, from the config or from the file that `convert` wrote."""
    if config.source_language or config.target_language:
        return certain_pair(config.source_language, config.target_language)
    return pair_of(json_document(path)) if path.is_file() else None


def build(config: CTranslateConfig) -> PolicyTranslator:
    """Return the translator of a config."""
    need("ctranslate2", "translator 'ctranslate2'")
    return simultaneous(CTranslate, config)
