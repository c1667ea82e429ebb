"""The language model's network beside the transformers package, its adapters beside peft, damaged files."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from refusals import refused
from stand_ins.lm_models import adapted, change, make

from smt.lm.adapter import load_adapter, save_adapter, tensors
from smt.lm.base import load_base
from smt.lm.files import load_network
from smt.lm.network import Seen, mask_of
from sqa.core.errors import DataError

FAMILIES = ("gemma3_text", "llama", "qwen2", "qwen3")


@pytest.fixture(scope="module", params=FAMILIES)
def folder(request, tmp_path_factory):
    return make(tmp_path_factory.mktemp(request.param), request.param)


def scores(network, pieces, first=0):
    """Logits (N, V) of one causal reading."""
    n = len(pieces)
    own = mask_of(torch.ones(1, n, n, dtype=torch.bool).tril(), network.dtype)
    states, _ = network(torch.tensor([pieces]), first + torch.arange(n)[None], own)
    return (states @ network.output_rows().T)[0]


@torch.inference_mode()
def test_logits_equal_those_of_transformers(folder):
    from transformers import AutoModelForCausalLM

    theirs = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    pieces = [2, *np.random.default_rng(0).integers(4, 300, 40).tolist()]
    expected = theirs(torch.tensor([pieces])).logits[0]
    ours = scores(load_network(folder, torch.float32), pieces)
    assert torch.allclose(ours, expected, atol=2e-4, rtol=1e-4)
    assert float(expected.std()) > 0.1  # there is something to agree on


@torch.inference_mode()
def test_what_was_read_before_need_not_be_read_again(folder):
    network = load_network(folder, torch.float32)
    pieces = torch.tensor([[2, 50, 60, 70, 80, 90]])
    whole = scores(network, pieces[0].tolist())
    assert torch.allclose(scores(network, pieces[0].tolist(), 37), whole, atol=1e-4)  # positions count by distance
    tril = torch.ones(1, 3, 3, dtype=torch.bool).tril()
    _, memory = network(pieces[:, :3], torch.arange(3)[None], mask_of(tril, torch.float32))
    before = Seen(memory, torch.zeros(1, 1, 3, 3))
    states, _ = network(pieces[:, 3:], torch.arange(3, 6)[None], mask_of(tril, torch.float32), [before])
    assert torch.allclose((states @ network.output_rows().T)[0], whole[3:], atol=1e-5)


def saved(folder, target):
    base = adapted(folder)
    pieces = torch.arange(0, base.tokens.size, 2)
    return save_adapter(target, tensors(base.network), pieces, base, ("es", "en"), "tiny", 2.0, {}), pieces


@torch.inference_mode()
def test_an_adapter_gives_the_same_apart_merged_and_reloaded(folder, tmp_path):
    pieces, base = [2, 50, 60, 70, 80], adapted(folder)
    path, kept = saved(folder, tmp_path / "adapter")
    apart = scores(base.network, pieces)
    base.network.merge()
    assert torch.allclose(scores(base.network, pieces), apart, atol=1e-4)
    again = load_base(folder, torch.float32)
    plain = scores(again.network, pieces)
    adapter = load_adapter(path)
    adapter.put_into(again)
    assert torch.allclose(scores(again.network, pieces), apart, atol=1e-2)  # the files hold float16
    assert not torch.allclose(plain, apart, atol=1e-2)
    assert adapter.pieces.tolist() == kept.tolist()


@torch.inference_mode()
def test_peft_reads_an_adapter(folder, tmp_path):
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForCausalLM

    path, _ = saved(folder, tmp_path / "adapter")
    theirs = peft.PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), path)
    base = load_base(folder, torch.float32)
    load_adapter(path).put_into(base)
    pieces = [2, 50, 60, 70, 80]
    assert torch.allclose(theirs(torch.tensor([pieces])).logits[0], scores(base.network, pieces), atol=2e-3)


def test_which_base_an_adapter_is_of(tmp_path):
    """Quantising the matrices does not make another base, other norms do."""
    folder = make(tmp_path / "one", "gemma3_text")
    path, _ = saved(folder, tmp_path / "adapter")
    base = load_base(folder, torch.float32)
    with torch.no_grad():
        base.network.layers[0].qkv.weight.mul_(1.01)
    load_adapter(path).put_into(base)
    other = load_base(make(tmp_path / "other", "gemma3_text", seed=5), torch.float32)
    refused(DataError, "an adapter of tiny, not of the model in", load_adapter(path).put_into, other)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"model_type": "mamba"}, "of type 'mamba'; this program computes"),
        ({"rope_scaling": {"type": "yarn"}}, "rope_scaling .* is not computed"),
        ({"hidden_size": 64}, "do not fit its config.json"),
        ({"num_hidden_layers": 5}, "its weights lack"),
        ({}, "pickled weights are never read"),
    ],
)
def test_folders_that_do_not_fit_are_refused(tmp_path, values, message):
    folder = make(tmp_path, "llama")
    change(folder, **values)
    if not values:
        (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    refused(DataError, message, load_network, folder, torch.float32)
