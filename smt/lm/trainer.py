"""The optimiser's loop of a fine-tuning: draw a k for every pair, mask, forward, cross-entropy, backward, clip, step.

Every random choice is keyed by (seed, step), so a training that was killed and resumed sees the same batches.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from tqdm import tqdm

from smt.lm.data import IGNORED, Batch, Batches, Pairs
from smt.lm.layout import Layout
from smt.lm.network import CausalLM
from smt.lm.tokens import Tokens
from smt.lm.train_config import LmTrainConfig
from smt.policies.waitk import FULL
from smt.training.train import StepLog
from sqa.files.checkpoints import Checkpoints, moments, restore_moments
from sqa.files.finite import finite_loss


class LmTrainer:
    """The state of a fine-tuning: model, optimiser, step."""

    def __init__(
        self, model: CausalLM, pairs: Pairs, layout: Layout, choice: Tensor, config: LmTrainConfig, folder: Path,
        tokens: Tokens,
    ) -> None:  # fmt: skip
        self.model, self.config, self.folder, self.choice = model, config, folder, choice
        self.log, self.checkpoints = StepLog(folder / "steps.tsv"), Checkpoints(folder, keep=2)
        if config.threads:
            torch.set_num_threads(config.threads)
        model.adapt(config.rank, config.scale, config.seed)
        self.parameters = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self.optimizer = torch.optim.AdamW(
            self.parameters.values(), lr=config.learning_rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True
        )
        if config.compile:
            for layer in model.layers:
                layer.compile(dynamic=True)
        looked_at = tokens if config.copy_weight != 1 else None
        self.batches = Batches(pairs, layout, config.batch_pieces, config.seed, looked_at)
        self.rows = model.output_rows(choice)  # (V, D)
        self.label_of = torch.full((model.shape.vocabulary,), IGNORED)
        self.label_of[choice] = torch.arange(len(choice))
        self.ks = np.array(config.k or (FULL,))
        self.step = 0

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
        known = batch.labels.clamp_min(0)
        labels = torch.where(batch.labels >= 0, self.label_of[known], IGNORED)
        learnt = labels >= 0
        scores = F.linear(states[:, s:][learnt], self.rows).float()
        smoothing = self.config.label_smoothing
        if batch.copied is None:
            return F.cross_entropy(scores, labels[learnt], label_smoothing=smoothing), int(learnt.sum())
        each = F.cross_entropy(scores, labels[learnt], label_smoothing=smoothing, reduction="none")
        weights = torch.where(batch.copied[learnt] > 0, self.config.copy_weight, 1.0)
        return (each * weights).sum() / weights.sum(), int(learnt.sum())

    def rate(self) -> float:
        """Learning rate of the next step."""
        c = self.config
        return c.learning_rate * min(
            1.0, (self.step + 1) / max(c.warmup, 1), (c.steps - self.step) / max(c.cooldown, 1)
        )

    def train_step(self) -> tuple[float, int]:
        """One optimiser step: mean cross-entropy, target pieces."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()
        batch = self.batches.at(self.step)
        k, ahead = self.draw(len(batch.pieces), np.random.default_rng((self.config.seed, 1, self.step)))
        loss, pieces = self.loss(batch, k, ahead)
        value = finite_loss(float(loss.detach()), f"{self.folder}, step {self.step + 1}")
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters.values(), self.config.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        return value, pieces

    def save(self) -> Path:
        """Write checkpoint-<step> whole or not at all."""
        weights = {name: parameter.detach() for name, parameter in self.parameters.items()}
        kept = moments(self.optimizer, self.parameters.items())
        return self.checkpoints.write(self.step, {"model": weights, "optimizer": kept})

    def resume(self) -> None:
        """Go on from the newest checkpoint, if there is one."""
        if (kept := self.checkpoints.newest()) is not None:
            with torch.no_grad():
                for name, parameter in self.parameters.items():
                    parameter.copy_(kept["model"][name])
            restore_moments(self.optimizer, self.parameters.items(), kept["optimizer"])
            self.step = kept["step"]
        self.log.cut(self.step)

    def run(self, stop: Path, evaluate: Callable[[], float]) -> bool:
        """Train to the last step; a file at `stop` ends it after the current one.  Whether the last was reached."""
        c = self.config
        bar = tqdm(total=c.steps, initial=self.step, unit="step", dynamic_ncols=True, file=sys.stderr)
        window: list[float] = []
        while self.step < c.steps and not stop.exists():
            began, rate = time.monotonic(), self.rate()
            loss, pieces = self.train_step()
            self.log.add(self.step, loss, pieces, rate, time.monotonic() - began)
            window = [*window[-49:], loss]
            bar.update()
            bar.set_postfix(loss=f"{np.mean(window):.3f}")
            last = self.step == c.steps
            if self.step % c.checkpoint_every == 0 or last:
                self.save()
            if c.evaluate_every and (self.step % c.evaluate_every == 0 or last):
                row = {"step": self.step, "loss": float(np.mean(window)), "bleu_full": round(evaluate(), 2)}
                with (self.folder / "log.jsonl").open("a") as file:
                    file.write(json.dumps(row) + "\n")
        bar.close()
        if self.step < c.steps:
            self.save()
        return self.step == c.steps
