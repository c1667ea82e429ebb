"""The shared training loop: checkpoints on schedule, the best round, and equal results after a kill."""

import math

import pytest
import torch
from refusals import refused
from torch import nn

from sqa.core import ConfigError, DataError, NotComputable
from sqa.training.trainer import Checkpoints, Trainer, denormals_flushed

X = torch.linspace(-1, 1, 12).reshape(6, 2)


def trainer(checkpoints: Checkpoints | None = None, clip: float | None = 1.0) -> tuple[nn.Linear, Trainer]:
    torch.manual_seed(0)
    network = nn.Linear(2, 1)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.1)
    return network, Trainer("made", optimiser, {"network": network, "optimiser": optimiser}, checkpoints, clip)


def loss(network: nn.Linear, number: int) -> torch.Tensor:
    torch.manual_seed(number)
    return (network(X + torch.randn(6, 2)) - X.sum(1, keepdim=True)).square().mean()


@pytest.mark.parametrize(("every", "stopped"), [(1, False), (3, False), (3, True)])
def test_interrupted_training_gives_the_same_result(tmp_path, every, stopped):
    whole, first = trainer()
    for number in first.rounds(10, every):
        first.descend([loss(whole, number)])
        first.judge(-loss(whole, 99).item())
    _, cut = trainer(Checkpoints(tmp_path / "c.pt", identity={"a": 1}))
    network = cut.modules()[0][1]
    for number in cut.rounds(10, every, stopped=lambda: stopped and cut.done == 5):
        cut.descend([loss(network, number)])
        cut.judge(-loss(network, 99).item())
        if number == 7:  # killed before this round is saved
            break
    again, second = trainer(Checkpoints(tmp_path / "c.pt", identity={"a": 1}))
    assert second.resume() and second.done == (5 if stopped else 7 // every * every)
    for number in second.rounds(10, every):
        second.descend([loss(again, number)])
        second.judge(-loss(again, 99).item())
    assert torch.equal(whole.weight, again.weight) and (first.stale, first.best_score) == (
        second.stale,
        second.best_score,
    )
    assert torch.equal(first.best["network"]["weight"], second.best["network"]["weight"])


def test_best_round_is_kept(tmp_path):
    for later, expected in ((False, 1), (True, 3)):
        network, first = trainer()
        for number, score in enumerate([0.1, 0.5, 0.2, 0.5]):
            network.weight.data.fill_(number)
            first.judge(score, later)
        first.take_best()
        assert network.weight[0, 0] == expected and first.stale == 2


def test_step_follows_the_gradient_of_the_summed_losses():
    (whole, first), (parts, two) = trainer(clip=None), trainer(clip=None)
    total = first.descend([loss(whole, 0)])
    assert two.descend(loss(parts, 0) * share for share in (0.25, 0.75)) == pytest.approx(total)
    torch.testing.assert_close(whole.weight, parts.weight)


def test_no_step_with_non_finite_gradients():
    network, first = trainer()
    before = network.weight.detach().clone()
    refused(NotComputable, "made: epoch 1: the loss is nan", first.descend, [loss(network, 0) * math.nan])
    with pytest.raises(NotComputable, match="made: epoch 1, its gradient: the loss is (nan|inf)"):
        first.descend([network.weight.sub(network.weight.detach()).abs().sqrt().sum()])  # 0, with an infinite slope
    assert torch.equal(network.weight, before)


def test_no_checkpoint_has_non_finite_weights(tmp_path):
    network, first = trainer(Checkpoints(tmp_path / "c.pt"))
    network.weight.data.fill_(math.inf)
    refused(DataError, "made: epoch 0: weight has numbers", first.save)
    assert not (tmp_path / "c.pt").exists()


def test_checkpoint_of_another_config_is_refused(tmp_path):
    _, first = trainer(Checkpoints(tmp_path, identity={"a": 1, "b": 2}))
    first.save()
    _, other = trainer(Checkpoints(tmp_path, identity={"a": 1, "b": 3}))
    refused(ConfigError, r"belongs to another config \(b differ\)", other.resume)


def test_denormals_are_flushed_in_the_context_only():
    tiny = torch.tensor(1e-40)
    with denormals_flushed():
        assert (tiny * 1).item() == 0
    assert (tiny * 1).item() > 0
