"""Compare full-input decoding with CTranslate2 on the same weights, texts and number of threads.

The weights are those of a bundled model without its lexicon, which CTranslate2 cannot represent.  (Without it, both
translations are poor but have the usual length.)  CTranslate2 has no causal encoder.  The export expresses it as T5's
relative attention bias: 0 for positions up to the query and -10,000 for later ones.  CTranslate2 omits the position
vectors if the FIRST layer has such a bias, so an identity layer is inserted before the others.
"""

import dataclasses
import math
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.measuring import MODEL, Pairs, rate
from smt.models.bundle import load_model, model_folder
from smt.models.decode import decode_batch
from smt.models.transformer import Transformer
from smt.models.transformer_stepper import TransformerWriter
from smt.models.vocab import BOS, EOS, PAD, UNK, Vocabulary
from smt.policies.waitk import FULL, Schedule
from sqa.core import Question

BUCKETS, FARTHEST = 32, 128  # relative attention bias, as in T5; any values work
HIDDEN = -1e4  # added to the attention scores of hidden positions


def decoding(questions: Sequence[Question]) -> Pairs:
    """Yield the target words per second of CTranslate2 and of our decoder, each on one thread."""
    import ctranslate2

    model, vocabulary, _ = load_model(model_folder(MODEL))
    plain = Transformer(dataclasses.replace(model.config, lexicon_width=0))
    plain.load_state_dict({name: model.state_dict()[name] for name in plain.state_dict()})
    writer, pieces = TransformerWriter(plain.eval(), vocabulary), vocabulary.pieces
    sentences = [sentence for question in questions for sentence in question.sentences]
    rows = [[pieces[i] for i in vocabulary.words(sentence)[0]] for sentence in sentences]
    with tempfile.TemporaryDirectory() as folder:
        export(plain, vocabulary, folder)
        engine = ctranslate2.Translator(folder, compute_type="float32", intra_threads=1)

        def theirs() -> list[list[str]]:
            suppressed = [[pieces[i]] for i in (PAD, UNK, BOS)]
            options = {"beam_size": 1, "max_decoding_length": 512, "max_batch_size": 4096, "batch_type": "tokens"}
            results = engine.translate_batch(rows, suppress_sequences=suppressed, max_input_length=0, **options)
            return [[piece for piece in result.hypotheses[0] if piece.startswith("▁")] for result in results]

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        ours = rate(lambda: decode_batch(writer, sentences, Schedule(FULL)), rounds=2)
        torch.set_num_threads(threads)
        yield "full input: CTranslate2 on our weights, ours", "words/s", rate(theirs, rounds=2), ours


def export(model: Transformer, vocabulary: Vocabulary, folder: str) -> None:
    """Write one of this project's models, without alignment head and lexicon, as a CTranslate2 folder."""
    spec, pieces = _spec(model), vocabulary.pieces
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.add_source_eos = True
    spec.config.bos_token = spec.config.decoder_start_token = pieces[BOS]
    spec.config.eos_token, spec.config.unk_token = pieces[EOS], pieces[UNK]
    spec.validate()
    spec.optimize(quantization="float32")
    spec.save(folder)


def _spec(model: Transformer) -> Any:
    """Return CTranslate2's description of our network, weights included."""
    from ctranslate2 import specs

    c = model.config
    layers, relu = (c.encoder_layers + 1, c.decoder_layers), specs.Activation.RELU
    spec = specs.TransformerSpec.from_config(layers, c.heads, pre_norm=True, activation=relu)
    for half, table in ((spec.encoder, spec.encoder.embeddings[0]), (spec.decoder, spec.decoder.embeddings)):
        table.weight = _array(model.embedding.weight)  # (V, D)
        half.scale_embeddings = math.sqrt(c.width)
        half.position_encodings.encodings = _array(model.positions)  # (MAX_PIECES, D)
    spec.decoder.projection.weight = _array(model.embedding.weight)
    _norm(spec.encoder.layer_norm, model.encoder_norm)
    _norm(spec.decoder.layer_norm, model.decoder_norm)
    _identity(spec.encoder.layer[0], c.width)
    for target, layer in zip(spec.encoder.layer[1:], model.encoder, strict=True):
        target.self_attention = _backward_attention(c.heads)
        _attention(target.self_attention, layer.norm_attention, layer.attention, fused=True)
        _feed_forward(target.ffn, layer)
    for target, layer in zip(spec.decoder.layer, model.decoder, strict=True):
        _attention(target.self_attention, layer.norm_attention, layer.attention, fused=True)
        _attention(target.attention, layer.norm_cross, layer.cross, fused=False)
        _feed_forward(target.ffn, layer)
    return spec


def _attention(target: Any, norm: nn.LayerNorm, attention: Any, fused: bool) -> None:
    """Copy attention weights; self-attention has one matrix for query, key and value (`fused`), cross-attention two."""
    _norm(target.layer_norm, norm)
    query, key_value, output = attention.query, attention.key_value, attention.output
    maps = [[query, key_value], [output]] if fused else [[query], [key_value], [output]]
    for linear, parts in zip(target.linear, maps, strict=True):
        linear.weight = np.concatenate([_array(part.weight) for part in parts])
        linear.bias = np.concatenate([_array(part.bias) for part in parts])


def _feed_forward(target: Any, layer: Any) -> None:
    _norm(target.layer_norm, layer.norm_feed_forward)
    for linear, source in ((target.linear_0, layer.feed_forward[0]), (target.linear_1, layer.feed_forward[-1])):
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


def _identity(layer: Any, width: int) -> None:
    """Make a pre-norm layer the identity: its branches add zero."""
    fused, output = layer.self_attention.linear
    for linear, rows in ((fused, 3 * width), (output, width), (layer.ffn.linear_0, width), (layer.ffn.linear_1, width)):
        linear.weight, linear.bias = np.zeros((rows, width), np.float32), np.zeros(rows, np.float32)
    for norm in (layer.self_attention.layer_norm, layer.ffn.layer_norm):
        norm.gamma, norm.beta = np.ones(width, dtype=np.float32), np.zeros(width, dtype=np.float32)


def _array(weight: Tensor) -> np.ndarray:
    return weight.detach().float().numpy()
