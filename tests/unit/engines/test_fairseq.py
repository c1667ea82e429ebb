"""Conversion of checkpoints in fairseq's layout, here built from torch layers: the logits stay equal."""

import math
import os
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refused
from tables import tables_of
from torch import Tensor, nn

from smt.engines.fairseq import convert, read, read_dictionary
from smt.models.bundle import load_model
from smt.models.vocab import BOS, EOS
from smt.policies.waitk import FULL
from sqa.core import ConfigError, DataError

TABLES = tables_of(__file__)

WIDTH, HEADS, INNER, LAYERS = 16, 4, 24, 2
SOURCE = [f"▁s{i}" if i % 3 else f"s{i}" for i in range(30)]
TARGET = [f"▁t{i}" if i % 3 else f"t{i}" for i in range(26)]
VARIANTS = TABLES["variants"]


class Theirs(nn.Module):
    """A Transformer of torch layers with fairseq's embeddings, positions and token ids (the id of padding is 1)."""

    def __init__(self, options: dict[str, object]) -> None:
        super().__init__()
        self.options = options
        pre, activation = bool(options.get("encoder_normalize_before")), options.get("activation_fn", "relu")
        shape = {"d_model": WIDTH, "nhead": HEADS, "dim_feedforward": INNER, "dropout": 0.0, "batch_first": True}
        kind = {"activation": activation, "norm_first": pre}
        joint = options.get("share_all_embeddings")
        self.source = nn.Embedding(4 + len(SOURCE), WIDTH)
        self.target = self.source if joint else nn.Embedding(4 + len(TARGET), WIDTH)
        tied = joint or options.get("share_decoder_input_output_embed")
        self.output = self.target.weight if tied else nn.Parameter(torch.randn(4 + len(TARGET), WIDTH))
        self.places = nn.Embedding(2 + 50, WIDTH) if options.get("encoder_learned_pos") else None
        self.encoder = nn.ModuleList(nn.TransformerEncoderLayer(**shape, **kind) for _ in range(LAYERS))
        self.decoder = nn.ModuleList(nn.TransformerDecoderLayer(**shape, **kind) for _ in range(LAYERS))
        self.encoder_norm, self.decoder_norm = (nn.LayerNorm(WIDTH) if pre else nn.Identity() for _ in range(2))
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.4)

    def embed(self, table: nn.Embedding, ids: Tensor) -> Tensor:
        """Return scaled embeddings plus position embeddings; the first position is 2."""
        numbers = torch.arange(2, 2 + ids.shape[1])
        if self.places is not None:
            return table(ids) * math.sqrt(WIDTH) + self.places(numbers)
        rates = [10_000 ** (-i / (WIDTH // 2 - 1)) for i in range(WIDTH // 2)]
        rows = [[math.sin(n * r) for r in rates] + [math.cos(n * r) for r in rates] for n in numbers.tolist()]
        return table(ids) * math.sqrt(WIDTH) + torch.tensor(rows)

    def forward(self, source: Tensor, target: Tensor, k: int, causal: bool) -> Tensor:
        """Return logits of shape (1, T, V); target piece j attends to the first k + j - 1 source pieces."""
        s, t = source.shape[1], target.shape[1]
        future = torch.ones(s, s).triu(1).bool() if causal else None
        x = self.embed(self.source, source)
        for layer in self.encoder:
            x = layer(x, src_mask=future)
        x, y = self.encoder_norm(x), self.embed(self.target, target)
        for layer in self.decoder:
            y = layer(y, x, tgt_mask=torch.ones(t, t).triu(1).bool(), memory_mask=torch.ones(t, s).triu(k).bool())
        return self.decoder_norm(y) @ self.output.T

    def weights(self) -> dict[str, Tensor]:
        """Return the weights under fairseq's names, or under the older names of attn2d for its architectures."""
        old = str(self.options["arch"]).startswith("waitk")
        out = {"encoder.embed_tokens.weight": self.source.weight, "decoder.embed_tokens.weight": self.target.weight}
        if not self.options.get("share_decoder_input_output_embed"):
            out["decoder.embed_out" if old else "decoder.output_projection.weight"] = self.output
        for side in ("encoder", "decoder"):
            layers, norm = getattr(self, side), getattr(self, f"{side}_norm")
            if not old:
                out[f"{side}.version"] = torch.tensor([3.0])
            if self.places is not None:
                out[f"{side}.embed_positions.weight"] = self.places.weight
            elif old:
                out[f"{side}.embed_positions._float_tensor"] = torch.zeros(1)
            out |= {f"{side}.layer_norm.{name}": value for name, value in norm.named_parameters()}
            for i, layer in enumerate(layers):
                for name, value in layer.named_parameters():
                    renamed = self.renamed(side, name, value, old)
                    out |= {f"{side}.layers.{i}.{each}": part for each, part in renamed.items()}
        return {name: value.detach().clone() for name, value in out.items()}

    def renamed(self, side: str, name: str, value: Tensor, old: bool) -> dict[str, Tensor]:
        """Return a parameter of a layer under its fairseq name; torch's joint q, k, v matrix is split into three."""
        norms = ["self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"]
        if side == "encoder":
            norms = ["layer_norms.0", "layer_norms.1"] if old else norms[::2]
        names = {"multihead_attn": "encoder_attn", "linear": "fc"}
        names |= {f"norm{i}": norm for i, norm in enumerate(norms, 1)}
        for torchs, fairseqs in names.items():
            name = name.replace(torchs, fairseqs)
        start, joined, kind = name.partition("in_proj_")
        if old or not joined:
            return {name: value}
        return {f"{start}{x}_proj.{kind}": part for x, part in zip("qkv", value.chunk(3), strict=True)}


def write(folder: Path, model: Theirs, weights: dict[str, Tensor] | None = None, **more: object) -> list[Path]:
    """Write the checkpoint and the source and target dictionaries into `folder`."""
    joint = model.options.get("share_all_embeddings")
    for name, symbols in (("source", SOURCE), ("target", SOURCE if joint else TARGET)):
        (folder / f"dict.{name}.txt").write_text("".join(f"{s} 7\n" for s in symbols), encoding="utf-8")
    arguments = Namespace(encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, **model.options)
    content = {"args": arguments, "model": weights or model.weights(), "optimizer_history": [{"num_updates": 9}]}
    torch.save(content | more, folder / "checkpoint.pt")
    return [folder / "checkpoint.pt", folder / "dict.source.txt", folder / "dict.target.txt"]


def theirs(variant: str) -> Theirs:
    torch.manual_seed(3)
    return Theirs(VARIANTS[variant]).eval()


@pytest.mark.parametrize("variant", VARIANTS)
@torch.no_grad()
def test_converted_model_has_equal_logits(variant: str, tmp_path: Path) -> None:
    reference = theirs(variant)
    made = convert(*write(tmp_path, reference), tmp_path / "ours")
    model, vocabulary, about = load_model(tmp_path / "ours")
    assert about["architecture"] == VARIANTS[variant]["arch"] == made.architecture and about["updates"] == 9
    k = {"monotonic": 3, "attn2d": 5}.get(variant, FULL)
    assert made.k == about["k"] == ("full" if k == FULL else k)
    ids = torch.randint(4, 30, (2, 11))
    source = torch.cat([ids[:1], torch.tensor([[2]])], 1)  # </s> is 2 in fairseq
    target = torch.cat([torch.tensor([[2]]), ids[1:]], 1)
    expected = reference(source, target, k, causal=k != FULL)[0]  # (T, V)
    ours = torch.cat([ids[:1], torch.tensor([[EOS]])], 1), torch.cat([torch.tensor([[BOS]]), ids[1:]], 1)
    visible = torch.arange(12) < torch.arange(12)[:, None] + k
    got = model.logits(model(*ours, visible[None])[0][0], None)
    assert expected.std() > 0.5
    torch.testing.assert_close(got[:, [2, 0, 3, 1, *range(4, vocabulary.size)]], expected, atol=1e-5, rtol=0)


def test_half_precision_and_nested_configs_are_read(tmp_path: Path) -> None:
    reference = theirs("post")
    halves = {name: value.half() for name, value in reference.weights().items()}
    sides = {"encoder": {"attention_heads": HEADS, "normalize_before": False}, "decoder": {"attention_heads": HEADS}}
    cfg = {"model": {"_name": "transformer", "activation_fn": "relu", **sides}}
    statistics = {"best": np.float64(3.5), "path": tmp_path}  # objects of other packages
    files = write(tmp_path, reference, halves, args=None, cfg=cfg, extra_state=statistics)
    assert read(files[0]).arguments["encoder_attention_heads"] == HEADS and read(files[0]).updates == 9
    convert(*files, tmp_path / "ours")
    model, _, _ = load_model(tmp_path / "ours")
    assert model.embedding.weight.dtype == torch.float32
    assert model.embedding.weight[4].tolist() == halves["decoder.embed_tokens.weight"][4].tolist()
    refused(ConfigError, "already holds a model", convert, *files, tmp_path / "ours")


class Runs:
    """An object whose unpickling runs a function."""

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, ("ran",)


@pytest.mark.parametrize("zipped", [True, False])
def test_checkpoint_that_would_run_code_is_refused(zipped: bool, tmp_path: Path, monkeypatch: object) -> None:
    monkeypatch.chdir(tmp_path)
    files = write(tmp_path, theirs("post"))
    torch.save({"model": {}, "more": Runs()}, files[0], _use_new_zipfile_serialization=zipped)
    refused(DataError, "mkdir", convert, *files, tmp_path / "ours")
    assert not (tmp_path / "ran").exists()


BAD = {  # options, weights, message
    "another architecture": ({"arch": "transformer_lm_big"}, {}, "architecture transformer_lm_big; supported are"),
    "no wait-k": ({"arch": "transformer_monotonic", "simul_type": "infinite_lookback"}, {}, "only waitk is supported"),
    "unscaled": ({"no_scale_embedding": True}, {}, "no_scale_embedding = True"),
    "heads": ({"encoder_decoder_attention_heads": 2}, {}, "same number"),
    "more weights": ({}, {"decoder.layernorm_embedding.weight": torch.ones(WIDTH)}, "unsupported weights: decoder"),
    "no weights": ({}, {"encoder.layers.1.fc1.weight": None}, "has no weight encoder.layers.1.fc1.weight"),
    "no output": ({}, {"decoder.output_projection.weight": None}, "no output layer"),
}


@pytest.mark.parametrize(("options", "changes", "message"), BAD.values(), ids=BAD)
def test_unknown_options_and_weights_are_refused(options: dict, changes: dict, message: str, tmp_path: Path) -> None:
    model = theirs("post")
    model.options = {**model.options, **options}
    weights = {key: value for key, value in (model.weights() | changes).items() if value is not None}
    assert "checkpoint.pt" in refused(DataError, message, convert, *write(tmp_path, model, weights), tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize(("text", "message"), TABLES["mismatched_dictionaries_are_refused"])
def test_mismatched_dictionaries_are_refused(text: str, message: str, tmp_path: Path) -> None:
    files = write(tmp_path, theirs("post"))
    files[1].write_text(text, encoding="utf-8")
    refused(DataError, message, convert, *files, tmp_path / "ours")
    files[1].write_text("a 3\n<unk> 0 #fairseq:overwrite\n", encoding="utf-8")  # the flag allows a duplicate
    assert read_dictionary(files[1]) == ("<pad>", "<unk>", "<s>", "</s>", "a", "<unk>")
