"""Conversion of translation models trained with fairseq to this program's own Transformer.

Text-to-text Transformers are supported: fairseq's `transformer*`, the models of its simultaneous_translation example
(`transformer_unidirectional*`, and `transformer_monotonic*` with wait-k attention) and the `waitk_transformer*` of
attn2d (Elbayad et al. 2020).  The converted model's logits equal fairseq's up to rounding.

Options of `smt.models.transformer.ModelConfig` cover the differences: normalisation after the residual, separate
source, target and output embeddings, sines and cosines in halves, positions numbered from 2, and decoding that begins
with </s>.  fairseq numbers <s> <pad> </s> <unk> 0 to 3; the rows of the embeddings are put in our order.

fairseq's k counts pieces: target piece j sees k + j - 1 source pieces, and the end of the source counts as a piece.

A checkpoint is read without fairseq and without running code named in the file.  It is a pickle.
`torch.load(weights_only=True)` creates tensors and plain containers.  The only other class that a fairseq checkpoint
needs is argparse.Namespace (its arguments), which is allowed.  Some checkpoints hold their configuration as omegaconf
objects, or numpy numbers among their statistics.  The names of these classes are bound to an inert record of this
module, so that neither package is imported.  A file with any other name is refused.
"""

import re
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor
from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals

from smt.models.bundle import save_model
from smt.models.transformer import ModelConfig, Transformer, sinusoid_halves
from smt.models.vocab_bpe import SPECIAL, Bpe, BpeVocabulary, Cutting
from sqa.core import ConfigError, DataError, certain
from sqa.files import file_digest, records

# names that are bound to _Record or _dictionary: types of configuration values, metadata and statistics
_HARMLESS = re.compile(
    r"(omegaconf|fairseq|typing|numpy|pathlib)\..*|_codecs\.encode|collections\.defaultdict"
    r"|builtins\.(bool|dict|float|int|list|str|tuple)"
)


class _Record:
    """Inert replacement for a pickled object, which stores the object's arguments and state."""

    def __init__(self, *args: object) -> None:
        self.args = args
        self.state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state


def _dictionary(*_: object) -> dict[object, object]:
    """Return an empty dictionary; replaces collections.defaultdict."""
    return {}


@dataclass(frozen=True)
class Checkpoint:
    """The parts of a checkpoint that a conversion needs."""

    path: Path
    arguments: Mapping[str, Any]  # the model's arguments, flat: encoder_embed_dim, ...
    weights: Mapping[str, Tensor]
    updates: int  # training steps; 0 if the file does not state them

    @property
    def architecture(self) -> str:
        """Return the name given to --arch."""
        return str(self.arguments.get("arch") or self.arguments.get("_name") or "?")


def read(path: Path) -> Checkpoint:
    """Read a checkpoint.  Raises DataError for any other file, and for a class that no checkpoint needs."""
    content = _load(path)
    weights = content.get("model") if isinstance(content, dict) else None
    if not isinstance(weights, dict) or not all(isinstance(value, Tensor) for value in weights.values()):
        raise DataError(f"{path}: not a fairseq checkpoint: it has no weights under 'model'")
    arguments = _plain(content.get("args"))
    if arguments is None:
        cfg = _plain(content.get("cfg"))
        arguments = cfg.get("model") if isinstance(cfg, dict) else None
    if not isinstance(arguments, dict):
        raise DataError(f"{path}: not a fairseq checkpoint: it has neither 'args' nor 'cfg' with the model's arguments")
    history = content.get("optimizer_history")
    last = history[-1] if isinstance(history, list) and history else {}
    updates = last.get("num_updates") if isinstance(last, dict) else None
    return Checkpoint(path, _flat(arguments), weights, updates if isinstance(updates, int) else 0)


def _load(path: Path) -> Any:
    """Return the unpickled file, made of tensors, containers, numbers, texts, Namespace and _Record."""
    try:
        with safe_globals([*_allowed(path)]):
            return torch.load(path, map_location="cpu", weights_only=True)
    except (UnpicklingError, RuntimeError, EOFError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise DataError(f"{path}: not a readable checkpoint: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    """Return the line of an unpickling error that names the problem."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "GLOBAL" in line or "WeightsUnpickler error" in line]
    return (telling or [f"{type(error).__name__} {' '.join(lines[:1])}"])[0][:200]


def _allowed(path: Path) -> list[Callable[..., object] | tuple[Callable[..., object], str]]:
    """Return Namespace and stand-ins for the file's other harmless names; raises DataError for any other name."""
    try:
        with safe_globals([Namespace]):
            names = get_unsafe_globals_in_checkpoint(path)
    except ValueError:  # in the format before torch 1.6, torch.load itself refuses such names
        return [Namespace]
    if refused := sorted(name for name in names if not _HARMLESS.fullmatch(name)):
        raise DataError(f"{path}: refused: this file would run {', '.join(refused[:5])}, which no model needs")
    return [Namespace, *((_dictionary if name == "collections.defaultdict" else _Record, name) for name in names)]


def _plain(value: Any) -> Any:
    """Convert namespaces and omegaconf records to dicts, lists and plain values."""
    if isinstance(value, Namespace):
        value = vars(value)
    if isinstance(value, _Record):
        state = value.state if isinstance(value.state, dict) else {}
        for key in ("_content", "_val"):
            if key in state:
                return _plain(state[key])
        return _plain(value.args[0]) if len(value.args) == 1 else None
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _flat(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments by command-line names: `encoder: {embed_dim: 512}` of newer files becomes encoder_embed_dim."""
    flat = dict(arguments)
    for side in ("encoder", "decoder"):
        nested = flat.pop(side, None)
        if isinstance(nested, dict):
            flat.update({f"{side}_{name}": value for name, value in nested.items()})
    return flat


ORDER = tuple(("<s>", "<pad>", "</s>", "<unk>").index(symbol) for symbol in SPECIAL)  # ids of SPECIAL in fairseq
FIRST_POSITION = 2  # fairseq's padding index + 1
OVERWRITE = "#fairseq:overwrite"  # flag of a dictionary line that may repeat a symbol

SIDES = ("encoder", "decoder")

_KNOWN = re.compile(r"(waitk_)?transformer(?!_lm|_ulm|_from_pretrained|_pointer)")
_CAUSAL = ("transformer_monotonic", "transformer_unidirectional", "waitk_transformer")
_UNUSED = re.compile(
    r"(encoder|decoder)\.(version|embed_positions\.(_float_tensor|weights))"
    r"|decoder\.layers\.\d+\.encoder_attn\.([kq]_proj_soft\.(weight|bias)|energy_bias)"  # unused by wait-k
)
_UNSUPPORTED = (  # arguments that change the computation without adding weights
    *("no_scale_embedding", "no_token_positional_embeddings", "no_cross_attention", "cross_self_attention"),
    *("merge_src_tgt_embed", "adaptive_input", "char_inputs"),
)
_OLD = (  # names before 2019 and in attn2d, and the same in current checkpoints
    (r"^decoder\.embed_out$", "decoder.output_projection.weight"),
    (r"\.layer_norms\.0\.", ".self_attn_layer_norm."),
    (r"^(decoder.*)\.layer_norms\.1\.", r"\1.encoder_attn_layer_norm."),
    (r"^(encoder.*)\.layer_norms\.1\.|^(decoder.*)\.layer_norms\.2\.", r"\1\2.final_layer_norm."),
)
_PARTS = {  # parts of our names -> parts of the names in current checkpoints
    **{"coder.": "coder.layers.", "coder_norm.": "coder.layer_norm."},
    **{".norm_attention.": ".self_attn_layer_norm.", ".norm_cross.": ".encoder_attn_layer_norm."},
    **{".norm_feed_forward.": ".final_layer_norm.", ".feed_forward.0.": ".fc1.", ".feed_forward.3.": ".fc2."},
    **{".attention.": ".self_attn.", ".cross.": ".encoder_attn.", ".query.": ".q_proj.", ".output.": ".out_proj."},
}


@dataclass(frozen=True, slots=True)
class Converted:
    """A converted checkpoint."""

    folder: Path
    architecture: str
    parameters: int
    k: int | str  # source PIECES read before the first target piece in training; or "full" or "multi", see `trained_k`


def convert(
    checkpoint: Path,
    source_dict: Path,
    target_dict: Path,
    output: Path,
    bpe: Bpe = "none",
    codes: Path | None = None,
    moses: str = "",
) -> Converted:
    """Write the model of `checkpoint` into the folder `output`, for `translator: {name: waitk, model: output}`.

    Args:
        source_dict: The source's dict.*.txt of fairseq-preprocess.
        target_dict: The target's dict.*.txt.
        bpe: Method that segmented the training text into pieces.
        codes: The subword-nmt codes, or the source's SentencePiece model.
        moses: Source language if Moses tokenised the text before the segmentation.

    Raises:
        DataError: A file has the wrong format, or the files do not match.
        ConfigError: The options contradict each other, or `output` already holds a model.
    """
    if (output / "config.json").exists():
        raise ConfigError(f"output: {output} already holds a model; name another folder or remove it")
    cutting = Cutting(bpe, codes.read_bytes() if codes else b"", moses)
    loaded = read(checkpoint)
    source, target = read_dictionary(source_dict), read_dictionary(target_dict)
    _check_size(loaded, "encoder", source, source_dict)
    _check_size(loaded, "decoder", target, target_dict)
    model = build_model(loaded, joint=source == target)
    vocabulary = BpeVocabulary(source, target, cutting)
    k = trained_k(loaded)
    metadata: dict[str, Any] = {"converted_from": "fairseq", "checkpoint_sha256": file_digest(checkpoint)}
    metadata |= {"architecture": loaded.architecture, "updates": loaded.updates, "k": k, "k_unit": "piece"}
    pair = [certain(path.suffixes[0][1:]) if path.suffixes else None for path in (source_dict, target_dict)]
    if all(pair):  # dict.es.txt and dict.en.txt, as fairseq-preprocess names them
        metadata["pair"] = "-".join(map(str, pair))
    save_model(model, vocabulary, output, metadata, quantised=False)
    return Converted(output, loaded.architecture, sum(p.numel() for p in model.parameters()), k)


def read_dictionary(path: Path) -> tuple[str, ...]:
    """Return the symbols of a dict.txt (one "symbol count" per line): our <pad> <unk> <s> </s>, then the file's."""
    symbols, seen = list(SPECIAL), set(SPECIAL)
    for number, line in enumerate("\n".join(records.lines(path)).rstrip("\n").split("\n"), 1):
        fields = line.rstrip().rsplit(" ", 2 if line.rstrip().endswith(OVERWRITE) else 1)
        if len(fields) < 2 or not fields[0] or not fields[1].isdecimal():
            raise DataError(f"{path}:{number}: not a line of a fairseq dictionary, 'symbol count': {line[:60]!r}")
        if fields[0] in seen and len(fields) == 2:
            raise DataError(f"{path}:{number}: symbol {fields[0]!r} appears twice")
        seen.add(fields[0])
        symbols.append(fields[0])
    return tuple(symbols)


def _check_size(loaded: Checkpoint, side: str, symbols: tuple[str, ...], path: Path) -> None:
    """Raise DataError if the sizes of dictionary and embedding differ."""
    table = loaded.weights.get(f"{side}.embed_tokens.weight")
    if table is None:
        raise DataError(f"{loaded.path}: not a text-to-text Transformer: it has no {side}.embed_tokens.weight")
    if len(table) != len(symbols):
        problem = f"{len(symbols)} symbols, including special ones, but the checkpoint's {side} has {len(table)}"
        raise DataError(f"{path}: {problem}")


def trained_k(loaded: Checkpoint) -> int | str:
    """Return the k used in training, in pieces; "full" without wait-k, "multi" if k was drawn per batch."""
    arguments = loaded.arguments
    if loaded.architecture.startswith("waitk_transformer"):
        if arguments.get("multi_waitk"):
            return "multi"
        k = arguments.get("waitk", 1024)
        return "full" if k >= 1024 else int(k)  # attn2d's default 1024 means waiting until the end
    if loaded.architecture.startswith("transformer_monotonic"):
        return int(arguments.get("waitk_lagging", 1))
    return "full"


def build_model(loaded: Checkpoint, joint: bool) -> Transformer:
    """Return our Transformer with the checkpoint's weights, in eval mode; `joint`: both sides share a dictionary."""
    _check_architecture(loaded)
    weights = _current(loaded)
    tables = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "decoder.output_projection.weight")
    rows = [weights.pop(name, None) for name in tables]
    source, target, output = (r if r is None else torch.cat([r[list(ORDER)], r[len(ORDER) :]]) for r in rows)
    config = _config(loaded, source, target, output, joint)
    model = Transformer(config)
    found = {"embedding.weight": target, "source_embedding.weight": source, "output.weight": output}
    if config.positions == "learned":
        usual = sinusoid_halves(FIRST_POSITION + config.max_pieces, config.width)  # of a side without learned ones
        for side, name in zip(SIDES, ("source_positions", "target_positions"), strict=True):
            places = weights.pop(f"{side}.embed_positions.weight", usual)
            found[name] = places[FIRST_POSITION : FIRST_POSITION + config.max_pieces]
    try:
        for name in model.state_dict():
            if name not in found:
                found[name] = torch.cat([_popped(loaded, weights, theirs) for theirs in _names(name)])
        unused = sorted(name for name in weights if not _UNUSED.fullmatch(name))
        if unused:
            raise DataError(f"{loaded.path}: {loaded.architecture} has unsupported weights: {unused[0]}")
        model.load_state_dict({name: found[name] for name in model.state_dict()})
    except RuntimeError as error:
        problem = " ".join(str(error).split()[:30])
        raise DataError(f"{loaded.path}: {loaded.architecture} is not a standard Transformer: {problem}") from error
    return model.eval()


def _check_architecture(loaded: Checkpoint) -> None:
    """Raise DataError for an architecture that our Transformer cannot compute."""
    name, arguments = loaded.architecture, loaded.arguments
    if not _KNOWN.match(name):
        raise DataError(f"{loaded.path}: architecture {name}; supported are transformer* and waitk_transformer*")
    if name.startswith("transformer_monotonic") and arguments.get("simul_type") != "waitk":
        raise DataError(f"{loaded.path}: {name} with simul_type {arguments.get('simul_type')}; only waitk is supported")
    for option in filter(arguments.get, _UNSUPPORTED):
        raise DataError(f"{loaded.path}: {name} with {option} = {arguments[option]}, which is not supported")
    heads = [arguments.get(f"{part}_attention_heads") for part in ("encoder", "decoder", "encoder_decoder")]
    if not isinstance(heads[0], int) or set(heads[1:]) - {heads[0], None}:
        raise DataError(f"{loaded.path}: attention heads {heads}, but all layers must have the same number")


def _config(loaded: Checkpoint, source: Tensor, target: Tensor, output: Tensor | None, joint: bool) -> ModelConfig:
    """Return the model's configuration: sizes from the weights, the rest from the arguments."""
    arguments, weights = loaded.arguments, loaded.weights
    activation = "gelu" if arguments.get("gelu") else arguments.get("activation_fn", "relu")
    if activation not in ("relu", "gelu"):
        raise DataError(f"{loaded.path}: activation {activation}; supported are relu and gelu")
    tied = arguments.get("share_decoder_input_output_embed") or arguments.get("share_all_embeddings")
    if source.shape[1:] != target.shape[1:]:
        raise DataError(f"{loaded.path}: encoder and decoder of different widths are not supported")
    if output is None and not tied:
        raise DataError(f"{loaded.path}: it has no output layer (decoder.output_projection.weight)")
    layers = [len({name.split(".")[2] for name in weights if name.startswith(f"{side}.layers.")}) for side in SIDES]
    inner = weights.get("encoder.layers.0.fc1.weight")
    learned = [weights[f"{s}.embed_positions.weight"] for s in SIDES if f"{s}.embed_positions.weight" in weights]
    one_table = joint and torch.equal(source, target)
    causal = loaded.architecture.startswith(_CAUSAL)
    return ModelConfig(
        vocabulary=len(target),
        width=target.shape[1],
        heads=int(arguments["encoder_attention_heads"]),
        feed_forward=0 if inner is None else len(inner),
        encoder_layers=layers[0],
        decoder_layers=layers[1],
        dropout=0.0,
        encoder="causal" if causal else "bidirectional",
        lexicon_width=0,
        source_vocabulary=0 if one_table else len(source),
        tied_output=output is None or torch.equal(output, target),
        encoder_norm="pre" if arguments.get("encoder_normalize_before") else "post",
        decoder_norm="pre" if arguments.get("decoder_normalize_before") else "post",
        encoder_final_norm="encoder.layer_norm.weight" in weights,
        decoder_final_norm="decoder.layer_norm.weight" in weights,
        activation=activation,
        positions="learned" if learned else "halves",
        position_offset=0 if learned else FIRST_POSITION,
        max_pieces=min((len(table) - FIRST_POSITION for table in learned), default=Transformer.MAX_PIECES),
        decoder_start="eos",
    )


def _current(loaded: Checkpoint) -> dict[str, Tensor]:
    """Return the weights in float32 under the names of current checkpoints.

    Before 2019 and in attn2d, queries, keys and values shared a matrix, and the norms of a layer were numbered.
    """
    current: dict[str, Tensor] = {}
    for name, weight in loaded.weights.items():
        start, joined, part = name.partition("in_proj_")
        new_name = name
        for old, new in _OLD:
            new_name = re.sub(old, new, new_name)
        names = [f"{start}{x}_proj.{part}" for x in "qkv"] if joined else [new_name]
        if both := sorted(loaded.weights.keys() & set(names) - {name}):
            raise DataError(f"{loaded.path}: {loaded.architecture} has unsupported weights: {name} beside {both[0]}")
        current |= dict(zip(names, weight.float().chunk(len(names)), strict=False))
    return current


def _names(name: str) -> list[str]:
    """Return the names in a current checkpoint of the weights that are stacked in one of ours."""
    for ours, theirs in _PARTS.items():
        name = name.replace(ours, theirs)
    return [name.replace("key_value", f"{x}_proj") for x in "kv"] if "key_value" in name else [name]


def _popped(loaded: Checkpoint, weights: dict[str, Tensor], name: str) -> Tensor:
    if name not in weights:
        raise DataError(f"{loaded.path}: {loaded.architecture} has no weight {name}")
    return weights.pop(name)
