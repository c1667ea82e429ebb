"""The steps of a fine-tuning: draw a k for every pair, mask, forward, cross-entropy.

Every random choice is keyed by (seed, step), so a training that was killed and resumed sees the same batches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from smt.lm.data import IGNORED, Batch, Batches, Pairs
from smt.lm.layout import Layout
from smt.lm.network import CausalLM
from smt.lm.tokens import Tokens
from smt.lm.train_config import LmTrainConfig
from smt.policies.waitk import FULL
from smt.training.steps import run_steps
from sqa.training.checkpoints import Checkpoints, Moments
from sqa.training.trainer import Trainer


class Factors:
    """The parameters of an adapter, as a part of a training."""

    def __init__(self, model: CausalLM) -> None:
        self.parameters = {n: p for n, p in model.named_parameters() if p.requires_grad}

    def state_dict(self) -> dict[str, Tensor]:
        """By name."""
        return {name: parameter.detach() for name, parameter in self.parameters.items()}

    @torch.no_grad()
    def load_state_dict(self, kept: Mapping[str, Tensor]) -> None:
        """Take over what `state_dict` gave."""
        for name, parameter in self.parameters.items():
            parameter.copy_(kept[name])


class LmTraining:
    """A fine-tuning: model, optimiser, batches."""

    def __init__(
        self,
        model: CausalLM,
        pairs: Pairs,
        layout: Layout,
        choice: Tensor,
        config: LmTrainConfig,
        folder: Path,
        tokens: Tokens,
    ) -> None:
        self.model, self.config, self.folder, self.choice = model, config, folder, choice
        if config.threads:
            torch.set_num_threads(config.threads)
        model.adapt(config.rank, config.scale, config.seed)
        factors = Factors(model)
        optimiser = torch.optim.AdamW(
            factors.parameters.values(), lr=config.learning_rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True
        )
        parts = {"model": factors, "optimizer": Moments(optimiser, factors.parameters.items())}
        self.trainer = Trainer(folder, optimiser, parts, Checkpoints(folder, keep=2), config.clip, "step")
        if config.compile:
            for layer in model.layers:
                layer.compile(dynamic=True)
        looked_at = tokens if config.copy_weight != 1 else None
        self.batches = Batches(pairs, layout, config.batch_pieces, config.seed, looked_at)
        self.rows = model.output_rows(choice)  # (V, D)
        self.label_of = torch.full((model.shape.vocabulary,), IGNORED)
        self.label_of[choice] = torch.arange(len(choice))
        self.ks = np.array(config.k or (FULL,))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Tensor, Tensor | None]:
        """A k for each of n pairs (n,), and which sources look at themselves in both directions (n,)."""
        full = rng.random(n) < self.config.full_share
        k = torch.from_numpy(np.where(full, FULL, rng.choice(self.ks, n)))
        if not self.config.bidirectional_share:
            return k, None
        return k, torch.from_numpy(full & (rng.random(n) < self.config.bidirectional_share))

    def loss(self, batch: Batch, k: Tensor, ahead: Tensor | None = None) -> tuple[Tensor, int]:
        """Mean cross-entropy of the target (nats per piece), and the pieces it is of."""
        s = batch.source_needs.shape[1]
        states, _ = self.model(batch.pieces, batch.positions, batch.mask(k, self.model.dtype, ahead))
        pieces = batch.labels.clamp_min(0)
        labels = torch.where(batch.labels >= 0, self.label_of[pieces], IGNORED)
        learnt = labels >= 0
        scores = F.linear(states[:, s:][learnt], self.rows).float()
        smoothing = self.config.label_smoothing
        if batch.copied is None:
            return F.cross_entropy(scores, labels[learnt], label_smoothing=smoothing), int(learnt.sum())
        each = F.cross_entropy(scores, labels[learnt], label_smoothing=smoothing, reduction="none")
        weights = torch.where(batch.copied[learnt] > 0, self.config.copy_weight, 1.0)
        return (each * weights).sum() / weights.sum(), int(learnt.sum())

    def rate(self, step: int) -> float:
        """Learning rate at a 0-based step."""
        c = self.config
        return c.learning_rate * min(1.0, (step + 1) / max(c.warmup, 1), (c.steps - step) / max(c.cooldown, 1))

    def step(self, number: int) -> tuple[float, int]:
        """One optimiser step: mean cross-entropy, target pieces."""
        batch = self.batches.at(number)
        k, ahead = self.draw(len(batch.pieces), np.random.default_rng((self.config.seed, 1, number)))
        loss, pieces = self.loss(batch, k, ahead)
        return self.trainer.descend([loss]), pieces

    def run(self, stop: Path, evaluate: Callable[[], float]) -> bool:
        """Train to the last step, see `run_steps`; `evaluate` gives the development BLEU of full input."""

        def bleu() -> dict[str, float]:
            return {"bleu_full": evaluate()}

        return run_steps(self.trainer, self.config, self.folder, self.rate, self.step, bleu, stop)
