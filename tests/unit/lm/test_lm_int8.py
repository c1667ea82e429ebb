"""Matrices of 8-bit integers: what a product is, how far it is off, and a translator that computes with them."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from stand_ins.lm_models import adapter, make

from smt.lm.base import load_base
from smt.lm.translator import CausalLmConfig, build
from smt.models.int8 import TOP, multiplied, quantised
from smt.models.writing import translated


def test_a_product_of_whole_numbers_is_exact():
    generator = torch.Generator().manual_seed(1)
    weight = torch.randint(-TOP, TOP + 1, (24, 40), generator=generator).float()
    x = torch.randint(-TOP, TOP + 1, (3, 5, 40), generator=generator).float()
    weight[:, 0], x[..., 0] = TOP, -TOP  # so every scale is 1
    assert torch.equal(multiplied(x, quantised(weight)), F.linear(x, weight))
    assert torch.equal(multiplied(x * 0.5, quantised(weight * 4)), F.linear(x, weight) * 2)


def test_rows_are_off_by_the_rounding_at_most_and_do_not_depend_on_each_other():
    generator = torch.Generator().manual_seed(2)
    weight, x = torch.randn(64, 128, generator=generator), torch.randn(7, 128, generator=generator)
    weight[3] *= 1000  # a scale of its own, which leaves the other rows alone
    x[2], x[4] = x[2] * 1e4, 0
    half, matrix = 0.5 / TOP, quantised(weight)
    tops = x.abs().amax(1)[:, None], weight.abs().amax(1)
    largest = half * (tops[0] * weight.abs().sum(1) + tops[1] * x.abs().sum(1)[:, None])
    together = multiplied(x, matrix)
    error = (together - F.linear(x, weight)).abs()
    assert bool((error <= largest + 128 * half**2 * tops[0] * tops[1] + 1e-3).all()) and float(error.max()) > 0
    assert torch.equal(torch.cat([multiplied(row[None], matrix) for row in x]), together)
    assert torch.equal(together[4], torch.zeros(64))


def test_the_translator_with_it(tmp_path):
    folder = make(tmp_path / "base", "gemma3_text", seed=3)
    path = adapter(folder, tmp_path / "adapter", 7)
    plain, fast = (build(CausalLmConfig(model=str(path), k=2, precision=p)) for p in ("float32", "int8"))
    words = "la casa grande is big".split()
    assert list(fast.translate(iter(words))) == [w.token for w in translated(fast.writer, [words], fast.schedule)[0]]
    pieces, positions, mask = torch.arange(4, 12)[None], torch.arange(8)[None], torch.zeros(1, 1, 8, 8)
    states = [translator.writer.model(pieces, positions, mask)[0] for translator in (plain, fast)]
    assert not torch.equal(*states)
    assert float((states[0] - states[1]).abs().mean()) < 0.03 * float(states[0].abs().mean())
    assert all(p.weight.numel() == 0 for p in fast.writer.model.projections())  # the memory is given back


def test_a_bias_is_added(tmp_path):
    """Qwen 2 has one."""
    network = load_base(make(tmp_path / "base", "qwen2", seed=3), torch.float32).network
    x = torch.randn(2, 3, network.shape.width, generator=torch.Generator().manual_seed(4))
    projection = network.layers[0].qkv
    before = projection(x)
    projection.quantise()
    torch.testing.assert_close(projection(x), before, atol=0.02, rtol=0.02)
