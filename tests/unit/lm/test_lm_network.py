"""The language model's masks and memory compared with transformers, its adapters with peft, and its 8-bit matrices."""

from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from needs import reason
from refusals import refused
from safetensors.numpy import save as save_arrays
from stand_ins.lm_models import adapted, adapter, change, make
from tables import tables_of

from smt.lm.adapter import load_adapter, save_adapter
from smt.lm.base import load_base
from smt.lm.causal_lm import CausalLmConfig, build
from smt.lm.fine_tuning_config import LmConfig, LmTrainConfig
from smt.lm.network import Memory, load_network
from smt.models.decode import decode_batch
from smt.models.int8 import TOP, Linear8, Matrix8, multiplied, quantised
from smt.training.config import CorpusConfig
from sqa.core import DataError
from sqa.files import is_fast

TABLES = tables_of(__file__)

FAMILIES = ("gemma3_text", "llama", "qwen2", "qwen3")
RANK_4 = LmTrainConfig(rank=4, scale=2.0)
needs_vnni = pytest.mark.skipif(not is_fast("int8"), reason=reason("vnni"))


@pytest.fixture(scope="module", params=FAMILIES)
def folder(request, tmp_path_factory):
    return make(tmp_path_factory.mktemp(request.param), request.param)


def scores(network, pieces):
    """Return the logits of one causal pass, of shape (N, V)."""
    return (network.read(torch.tensor([pieces])) @ network.output_rows().T)[0]


@torch.inference_mode()
def test_logits_match_transformers(folder):
    from transformers import AutoModelForCausalLM

    theirs = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    pieces = [2, *np.random.default_rng(0).integers(4, 300, 40).tolist()]
    expected = theirs(torch.tensor([pieces])).logits[0]
    assert torch.allclose(scores(load_network(folder), pieces), expected, atol=2e-4, rtol=1e-4)
    assert float(expected.std()) > 0.1  # the logits are not constant


@torch.inference_mode()
def test_memory_gives_the_states_of_one_pass(folder):
    network, memory = load_network(folder), Memory()
    pieces = torch.tensor([[2, 50, 60, 70, 80], [2, 51, 61, 71, 81]])
    parts = [network.read(pieces[:, a:b], memory, a) for a, b in pairwise([0, 2, 3, 5])]
    torch.testing.assert_close(torch.cat(parts, 1), network.read(pieces))
    first = memory.map(lambda x: x[:1, :, :3].expand(2, -1, -1, -1))  # two rows share the first row's beginning
    states = network.read(pieces[:, 3:], first, 3)
    torch.testing.assert_close(states[0], parts[2][0])
    assert not torch.allclose(states[1], parts[2][1], atol=1e-3)


def saved(folder, target):
    base = adapted(folder)
    pieces = torch.arange(0, base.tokens.size, 2)
    return save_adapter(target, base, pieces, LmConfig("a", "tiny", CorpusConfig("es-en"), train=RANK_4), 0), pieces


@torch.inference_mode()
def test_merging_an_adapter_does_not_change_logits(folder, tmp_path):
    pieces, base = [2, 50, 60, 70, 80], adapted(folder)
    path, kept = saved(folder, tmp_path / "adapter")
    apart = scores(base.network, pieces)
    again = load_base(folder)
    plain = scores(again.network, pieces)
    adapter = load_adapter(path)
    adapter.put_into(again)
    assert torch.allclose(scores(again.network, pieces), apart, atol=1e-2)  # the files hold float16
    assert not torch.allclose(plain, apart, atol=1e-2)
    assert adapter.pieces.tolist() == kept.tolist()


@pytest.mark.needs("peft")
@torch.inference_mode()
def test_peft_reads_an_adapter(folder, tmp_path):
    import peft
    from transformers import AutoModelForCausalLM

    path, _ = saved(folder, tmp_path / "adapter")
    theirs = peft.PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32), path)
    base = load_base(folder)
    load_adapter(path).put_into(base)
    pieces = [2, 50, 60, 70, 80]
    assert torch.allclose(theirs(torch.tensor([pieces])).logits[0], scores(base.network, pieces), atol=2e-3)


def test_adapter_identifies_its_base(tmp_path):
    """Changed matrices, as after quantising, keep the identity of the base. Other norms change it."""
    folder = make(tmp_path / "one", "gemma3_text")
    path, _ = saved(folder, tmp_path / "adapter")
    base = load_base(folder)
    with torch.no_grad():
        base.network.model.get_decoder().layers[0].mlp.up_proj.weight.mul_(1.01)
    load_adapter(path).put_into(base)
    other = load_base(make(tmp_path / "other", "gemma3_text", seed=5))
    refused(DataError, "an adapter for tiny, not for the model in", load_adapter(path).put_into, other)


@pytest.mark.parametrize(("values", "message"), TABLES["mismatched_folders_are_refused"])
def test_mismatched_folders_are_refused(tmp_path, values, message):
    folder = make(tmp_path, "llama")
    change(folder, **values)
    if not values:
        (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    refused(DataError, message, load_network, folder)


@needs_vnni
def test_integer_product_is_exact():
    generator = torch.Generator().manual_seed(1)
    weight = torch.randint(-TOP, TOP + 1, (24, 40), generator=generator).float()
    x = torch.randint(-TOP, TOP + 1, (3, 5, 40), generator=generator).float()
    weight[:, 0], x[..., 0] = TOP, -TOP  # so every scale is 1
    assert torch.equal(multiplied(x, quantised(weight)), F.linear(x, weight))
    assert torch.equal(multiplied(x * 0.5, quantised(weight * 4)), F.linear(x, weight) * 2)


@needs_vnni
def test_rows_are_rounded_independently():
    generator = torch.Generator().manual_seed(2)
    weight, x = torch.randn(64, 128, generator=generator), torch.randn(7, 128, generator=generator)
    weight[3] *= 1000  # a separate scale that does not affect the other rows
    x[2], x[4] = x[2] * 1e4, 0
    half, matrix = 0.5 / TOP, quantised(weight)
    tops = x.abs().amax(1)[:, None], weight.abs().amax(1)
    largest = half * (tops[0] * weight.abs().sum(1) + tops[1] * x.abs().sum(1)[:, None])
    together = multiplied(x, matrix)
    error = (together - F.linear(x, weight)).abs()
    assert bool((error <= largest + 128 * half**2 * tops[0] * tops[1] + 1e-3).all()) and float(error.max()) > 0
    assert torch.equal(torch.cat([multiplied(row[None], matrix) for row in x]), together)
    assert torch.equal(together[4], torch.zeros(64))


@needs_vnni
def test_int8_translator_runs_and_frees_memory(tmp_path):
    folder = make(tmp_path / "base", "gemma3_text", seed=3)
    path = adapter(folder, tmp_path / "adapter", 7)
    plain, fast = (build(CausalLmConfig(model=str(path), k=2, dtype=p)) for p in ("float32", "int8"))
    words = "la casa grande is big".split()
    assert list(fast.translate(iter(words))) == [w.token for w in decode_batch(fast.writer, [words], fast.schedule)[0]]
    states = [translator.writer.model.read(torch.arange(4, 12)[None])[0] for translator in (plain, fast)]
    assert not torch.equal(*states)
    assert float((states[0] - states[1]).abs().mean()) < 0.03 * float(states[0].abs().mean())
    kinds = {type(part) for part in fast.writer.model.model.get_decoder().modules()}
    assert Linear8 in kinds and torch.nn.Linear not in kinds  # no matrix is kept twice
    assert isinstance(fast.writer.rows, Matrix8) and not isinstance(plain.writer.rows, Matrix8)


def test_adapter_pieces_must_be_in_the_vocabulary(folder, tmp_path):
    saved(folder, tmp_path / "a")
    pieces = tmp_path / "a" / "pieces.safetensors"
    pieces.write_bytes(save_arrays({"pieces": np.full(1 << 10, 255, np.uint8)}))
    base = load_base(folder)
    refused(DataError, "not pieces of a vocabulary of", load_adapter(tmp_path / "a").put_into, base)
