"""Export of this project's models, and of models of `transformers`, as CTranslate2 folders.

    sqa convert ctranslate2 MODEL FOLDER [--storage int8] [--download --revision REVISION]

Our network maps onto CTranslate2's Transformer: pre-norm, ReLU, one embedding scaled by sqrt(width), sinusoidal
positions from 0, the end of the source appended, and a decoder that begins with <s>.  There are two exceptions:

* The alignment head and the lexicon have no counterpart, so a model with them is refused.
* CTranslate2 has no causal encoder.  The export expresses it as T5's relative attention bias: 0 for positions up to the
  query and -10,000 for later ones.  CTranslate2 omits the position vectors if the FIRST layer has such a bias, so an
  identity layer is inserted before the others.
"""

import json
import math
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from smt.engines.ctranslate import LANGUAGES
from smt.engines.hub import WANTED, check_model, load_tokenizer
from smt.engines.pretrained import check_vocabulary, load_translator
from smt.models.bundle import load_model, model_folder
from smt.models.transformer import Attention, FeedForward, Transformer
from smt.models.vocab import BOS, EOS, UNK, Vocabulary
from sqa.core.errors import ConfigError, DataError
from sqa.core.packages import need
from sqa.core.paths import DATA
from sqa.core.registry import did_you_mean
from sqa.data.languages import Pair, pair_of
from sqa.files.atomic import atomic_folder
from sqa.files.hub import find_model
from sqa.files.model_files import stored

Storage = Literal["float32", "float16", "int8", "int8_float16", "int16"]
BUCKETS, FARTHEST = 32, 128  # relative attention bias, as in T5; any values work
HIDDEN = -1e4  # added to the attention scores of hidden positions; representable in float16


def convert(
    model: str, folder: Path, storage: Storage = "float32", revision: str | None = None, download: bool = False
) -> Path:
    """Write the CTranslate2 folder of `model`: a bundled model's name, one of our folders, or a Hugging Face model.

    Raises ConfigError if `folder` exists or a package is missing, and DataError if the model cannot be expressed.
    """
    need("ctranslate2", "converting a model")
    if storage not in get_args(Storage):
        raise ConfigError(f"storage: unknown {storage!r}{did_you_mean(storage, get_args(Storage))}")
    if folder.exists():
        raise ConfigError(f"{folder}: already exists; give a new folder")
    bundled = stored(DATA / "models" / model / "vocabulary.model").is_file()
    if bundled or (Path(model) / "vocabulary.model").is_file():
        network, vocabulary, metadata = load_model(model_folder(model))
        return export(network, vocabulary, folder, storage, pair_of(metadata))
    return _convert_hub(find_model(model, revision, download, WANTED), folder, storage)


def export(
    model: Transformer, vocabulary: Vocabulary, folder: Path, storage: Storage = "float32", pair: Pair | None = None
) -> Path:
    """Write one of this project's models, with its language pair if given.

    Raises DataError for a model that has a lexicon or was converted from fairseq.
    """
    if not isinstance(vocabulary, Vocabulary):
        raise DataError(f"{folder} not written: a model converted from fairseq cannot be expressed")
    if model.config.lexicon_width:
        raise DataError(f"{folder} not written: CTranslate2 cannot express the model's lexicon; train without one")
    spec = _spec(model)
    pieces = vocabulary.pieces
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.add_source_eos = True
    spec.config.bos_token = spec.config.decoder_start_token = pieces[BOS]
    spec.config.eos_token, spec.config.unk_token = pieces[EOS], pieces[UNK]
    with atomic_folder(folder) as partial:
        _save(spec, partial, storage)
        (partial / "vocabulary.model").write_bytes(vocabulary.model)
        if pair and None not in pair:
            (partial / LANGUAGES).write_text(json.dumps({"pair": "-".join(map(str, pair))}) + "\n", encoding="utf-8")
    return folder


def _convert_hub(source: Path, folder: Path, storage: Storage) -> Path:
    need("transformers", f"the model {source.name}")
    from ctranslate2.converters import transformers as loaders

    model_type, model, tokenizer = check_model(source), load_translator(source), load_tokenizer(source)
    check_vocabulary(source, model, tokenizer)
    if model_type == "mbart":  # the hub's config.json may omit it
        model.config.normalize_before = model.config.normalize_embedding = True
    kinds = {"marian": loaders.MarianMTLoader, "m2m_100": loaders.M2M100Loader, "mbart": loaders.MBartLoader}
    with torch.no_grad():
        spec = kinds[model_type]()(model, tokenizer)
    if type(tokenizer).__name__.startswith("MBart50Tokenizer"):
        spec.config.decoder_start_token = tokenizer.eos_token  # the loader may leave it out
    if spec.config.bos_token is None:
        spec.config.bos_token = tokenizer.eos_token  # must name a piece, but is never used
    with atomic_folder(folder) as partial:
        try:
            _save(spec, partial, storage)
        except ValueError as error:
            raise DataError(f"{source}: cannot be converted: {error}") from error
        tokenizer.save_pretrained(partial)
    return folder


def _save(spec: Any, folder: Path, storage: Storage) -> None:
    spec.validate()
    spec.optimize(quantization=storage)
    spec.save(str(folder))


def _spec(model: Transformer) -> Any:
    """Return CTranslate2's description of our network, weights included."""
    from ctranslate2 import specs

    c, causal = model.config, model.config.encoder == "causal"
    spec = specs.TransformerSpec.from_config(
        (c.encoder_layers + causal, c.decoder_layers), c.heads, pre_norm=True, activation=specs.Activation.RELU
    )
    embedding = _array(model.embedding.weight)  # (V, D)
    for half, table in ((spec.encoder, spec.encoder.embeddings[0]), (spec.decoder, spec.decoder.embeddings)):
        table.weight = embedding
        half.scale_embeddings = math.sqrt(c.width)
        half.position_encodings.encodings = _array(model.positions)  # (MAX_PIECES, D)
    spec.decoder.projection.weight = embedding
    _norm(spec.encoder.layer_norm, model.encoder_norm)
    _norm(spec.decoder.layer_norm, model.decoder_norm)
    if causal:
        _do_nothing(spec.encoder.layer[0], c.width)
    for target, layer in zip(spec.encoder.layer[causal:], model.encoder, strict=True):
        if causal:
            target.self_attention = _backward_attention(c.heads)
        _attention(target.self_attention, layer.norm_attention, layer.attention, fused=True)
        _feed_forward(target.ffn, layer.norm_feed_forward, layer.feed_forward)
    for target, layer in zip(spec.decoder.layer, model.decoder, strict=True):
        _attention(target.self_attention, layer.norm_attention, layer.attention, fused=True)
        _attention(target.attention, layer.norm_cross, layer.cross, fused=False)
        _feed_forward(target.ffn, layer.norm_feed_forward, layer.feed_forward)
    return spec


def _attention(target: Any, norm: nn.LayerNorm, attention: Attention, fused: bool) -> None:
    """Copy attention weights; self-attention has one matrix for query, key and value (`fused`), cross-attention two."""
    _norm(target.layer_norm, norm)
    query, key_value, output = attention.query, attention.key_value, attention.output
    maps: list[list[nn.Linear]] = [[query, key_value], [output]] if fused else [[query], [key_value], [output]]
    for linear, parts in zip(target.linear, maps, strict=True):
        linear.weight = np.concatenate([_array(part.weight) for part in parts])
        linear.bias = np.concatenate([_array(part.bias) for part in parts])


def _feed_forward(target: Any, norm: nn.LayerNorm, layer: FeedForward) -> None:
    _norm(target.layer_norm, norm)
    for linear, source in zip((target.linear_0, target.linear_1), (layer[0], layer[-1]), strict=True):
        linear.weight, linear.bias = _array(source.weight), _array(source.bias)


def _norm(target: Any, norm: nn.LayerNorm) -> None:
    target.gamma, target.beta = _array(norm.weight), _array(norm.bias)


def _backward_attention(heads: int) -> Any:
    """Return self-attention whose bias of shape (BUCKETS, H) hides later keys, to which half of the buckets belong."""
    from ctranslate2.specs import attention_spec

    attention = attention_spec.MultiHeadAttentionSpec(self_attention=True, relative_attention_bias=True)
    bias = np.zeros((BUCKETS, heads), dtype=np.float32)
    bias[BUCKETS // 2 :] = HIDDEN
    attention.relative_attention_bias = bias
    attention.relative_attention_max_distance = np.dtype("int32").type(FARTHEST)
    return attention


def _do_nothing(layer: Any, width: int) -> None:
    """Make a pre-norm layer the identity: its branches add zero."""
    fused, output = layer.self_attention.linear
    for linear, rows in ((fused, 3 * width), (output, width), (layer.ffn.linear_0, width), (layer.ffn.linear_1, width)):
        linear.weight, linear.bias = np.zeros((rows, width), np.float32), np.zeros(rows, np.float32)
    for norm in (layer.self_attention.layer_norm, layer.ffn.layer_norm):
        norm.gamma, norm.beta = np.ones(width, dtype=np.float32), np.zeros(width, dtype=np.float32)


def _array(weight: Tensor) -> np.ndarray:
    return weight.detach().float().numpy()
