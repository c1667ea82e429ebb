"""Training of a wait-k or full-input Transformer: `sqa train smt CONFIG`.

One optimiser step reads as the algorithm: draw k, mask, forward, label-smoothed cross-entropy plus guided alignment,
backward, clip, schedule, step.  Every random choice is keyed by (seed, step), so a training that was killed and
resumed sees the same batches, the same k and the same dropout as one that was not.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import Tensor
from tqdm import tqdm

from smt.bundle import load_model, model_folder, save_model
from smt.corpus import Packed
from smt.prepare import CorpusConfig, prepare
from smt.transformer import ModelConfig, Transformer
from smt.vocab import BOS, PAD, Vocabulary
from smt.waitk import FULL, HIDDEN_WORD, draw_k, pad, parse_k, visible
from sqa.errors import ConfigError, DataError


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """The optimiser's side of a training."""

    steps: int = 4000  # optimiser steps in all
    batch_pieces: int = 2000  # target pieces per batch, padding included
    accumulate: int = 1  # batches per optimiser step
    k: tuple[int | str, ...] = (3, 6, 9, 12, 15, "full")  # one value: single-k; several: multi-path, one k a batch
    k_weights: tuple[float, ...] = ()  # chance of each k, same order; empty = equal
    learning_rate: float = 1.5e-3  # the peak, reached after `warmup` steps
    warmup: int = 300  # steps of linear rise
    schedule: Literal["inverse_sqrt", "constant"] = "inverse_sqrt"  # between the rise and the final fall
    cooldown: int = 500  # last steps, falling linearly to zero
    label_smoothing: float = 0.1
    alignment_weight: float = 0.3  # weight of the guided-alignment loss
    clip: float = 1.0  # gradient norm
    weight_decay: float = 0.0
    checkpoint_every: int = 250  # steps
    keep: int = 4  # checkpoints kept, and averaged into the final model
    evaluate_every: int = 500  # steps between BLEU measurements on the development set; 0 = never
    evaluate_sentences: int = 200
    evaluate_k: tuple[int | str, ...] = (6, "full")
    compile: bool = False  # compile the output layer and loss (needs a C++ compiler): a tenth faster
    threads: int = 0  # CPU threads; 0 = torch's choice
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.k:
            raise ConfigError("train.k: at least one value is needed")
        for k in (*self.k, *self.evaluate_k):
            parse_k(k)
        if self.k_weights and len(self.k_weights) != len(self.k):
            raise ConfigError(f"train.k_weights: {len(self.k)} values expected (one per k), got {len(self.k_weights)}")
        for name in ("steps", "batch_pieces", "accumulate", "checkpoint_every", "keep"):
            if getattr(self, name) < 1:
                raise ConfigError(f"train.{name}: must be >= 1, got {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class SmtConfig:
    """One training."""

    name: str  # results go to runs/smt/<name>
    corpus: CorpusConfig
    model: ModelConfig = field(default_factory=ModelConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    development: str = "flores-dev"  # part whose first sentences measure BLEU while training
    start: str | None = None  # a bundled model or a folder whose vocabulary and weights to begin with

    def __post_init__(self) -> None:
        if self.model.vocabulary != self.corpus.vocabulary_size:
            raise ConfigError(
                f"model.vocabulary: must equal corpus.vocabulary_size {self.corpus.vocabulary_size}, "
                f"got {self.model.vocabulary}"
            )
        if self.model.encoder == "bidirectional" and any(parse_k(k) != FULL for k in self.train.k):
            raise ConfigError("train.k: a bidirectional encoder reads ahead, so only 'full' is possible")


@dataclass(frozen=True, slots=True)
class Batch:
    """Tensors of one batch; word indices are 0-based, the end-of-sentence piece has the next index."""

    source: Tensor  # (B, S) int64
    source_word: Tensor  # (B, S)
    target_input: Tensor  # (B, T)
    target: Tensor  # (B, T)
    target_word: Tensor  # (B, T)
    links: Tensor  # (L, 3) sentence, target piece, source piece

    def to(self, device: torch.device) -> Batch:
        """The same on another device."""
        return Batch(*(getattr(self, name).to(device, non_blocking=True) for name in self.__slots__))


class Batches:
    """Length-bucketed batches in an order that depends on (seed, epoch) alone."""

    def __init__(self, packed: Packed, starts_word: np.ndarray, batch_pieces: int, seed: int) -> None:
        self.packed, self.starts_word, self.batch_pieces, self.seed = packed, starts_word, batch_pieces, seed
        self.lengths = np.stack([np.diff(packed.source_start), np.diff(packed.target_start)], 1)  # (N, 2)
        self._epoch, self._order = -1, []
        self._per_epoch = len(self.order(0))  # later epochs differ by a batch or two; `at` wraps around

    def order(self, epoch: int) -> list[np.ndarray]:
        """Sentence numbers of each batch of an epoch."""
        if epoch != self._epoch:
            rng = np.random.default_rng((self.seed, epoch))
            noise = rng.random(len(self.lengths))
            by_length = np.lexsort((noise, self.lengths[:, 0], self.lengths[:, 1]))
            batches: list[np.ndarray] = []
            start, widest = 0, 0
            for i, n in enumerate(by_length):
                widest_now = max(widest, int(self.lengths[n].max()))
                if i > start and widest_now * (i + 1 - start) > self.batch_pieces:
                    batches.append(by_length[start:i])
                    start, widest_now = i, int(self.lengths[n].max())
                widest = widest_now
            batches.append(by_length[start:])
            self._epoch, self._order = epoch, [batches[i] for i in rng.permutation(len(batches))]
        return self._order

    def at(self, number: int) -> Batch:
        """The number-th batch since the start of the training."""
        epoch, within = divmod(number, self._per_epoch)
        order = self.order(epoch)
        return self.make(order[within % len(order)])

    def _words(self, ids: np.ndarray) -> np.ndarray:
        """0-based word of each piece; the final EOS counts as a word of its own."""
        start = self.starts_word[ids]
        start[0] = True
        start[-1] = True
        return np.cumsum(start) - 1

    def make(self, sentences: np.ndarray) -> Batch:
        """Tensors of these sentences."""
        p = self.packed
        source = [np.asarray(p.source[p.source_start[n] : p.source_start[n + 1]]) for n in sentences]
        target = [np.asarray(p.target[p.target_start[n] : p.target_start[n + 1]]) for n in sentences]
        links = [p.links[p.link_start[n] : p.link_start[n + 1]] for n in sentences]
        rows = [
            np.stack([np.full(len(link), i), link[:, 1], link[:, 0]], 1).astype(np.int64)
            for i, link in enumerate(links)
        ]
        return Batch(
            pad(source, PAD),
            pad([self._words(x) for x in source], HIDDEN_WORD),
            pad([np.concatenate([[BOS], y[:-1]]) for y in target], PAD),
            pad(target, PAD),
            pad([self._words(y) for y in target], 0),
            torch.from_numpy(np.concatenate(rows)),
        )


def summed_entropy(
    model: Transformer, states: Tensor, lexical: Tensor | None, target: Tensor, smoothing: float
) -> Tensor:
    """Label-smoothed cross-entropy (Szegedy et al. 2016), in nats, summed: states (N, D), target (N,) -> ()."""
    return F.cross_entropy(model.logits(states, lexical), target, label_smoothing=smoothing, reduction="sum")


def losses(
    model: Transformer, batch: Batch, k: int, smoothing: float, entropy_of: Callable[..., Tensor] = summed_entropy
) -> tuple[Tensor, Tensor | None, int]:
    """Summed label-smoothed cross-entropy, mean guided-alignment loss (None without links), target pieces."""
    seen = visible(batch.source_word, batch.target_word, k)  # (B, T, S)
    states, alignment, memory = model(batch.source, batch.target_input, seen)
    real = batch.target != PAD  # (B, T)
    lexical = None
    if alignment is not None:
        lexical = (alignment.exp() @ model.lexicon_matrix(memory.pieces))[real]  # (N, V)
    with torch.autocast(batch.source.device.type, enabled=False):
        entropy = entropy_of(model, states[real].float(), lexical, batch.target[real], smoothing)
    guided = None
    if alignment is not None and len(batch.links):
        sentence, t, s = batch.links.unbind(1)
        shown = seen[sentence, t, s]
        if shown.any():
            guided = -alignment[sentence, t, s][shown].mean()
    return entropy, guided, int(real.sum())


def rate(config: TrainConfig, step: int) -> float:
    """Learning rate at a 0-based step."""
    rise = min(1.0, (step + 1) / config.warmup) if config.warmup else 1.0
    held = (config.warmup / max(step + 1, config.warmup)) ** 0.5 if config.schedule == "inverse_sqrt" else 1.0
    fall = min(1.0, (config.steps - step) / config.cooldown) if config.cooldown else 1.0
    return config.learning_rate * rise * held * fall


class Trainer:
    """The state of a training: model, optimiser, step."""

    def __init__(self, config: SmtConfig, folder: Path) -> None:
        self.config, self.folder = config, folder
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if config.train.threads:
            torch.set_num_threads(config.train.threads)
        for kind in (np.float32, np.float64):
            np.finfo(kind)  # numpy computes its limits once, and warns if denormals are flushed by then
        torch.set_flush_denormal(True)  # tiny gradients of rare pieces make a step several times slower otherwise
        torch.manual_seed(config.train.seed)
        data = folder / "data"
        self.vocabulary = Vocabulary.load(data / "vocabulary.model")
        self.model = Transformer(config.model)
        if config.model.lexicon_width:
            width = config.model.lexicon_width
            self.model.lexicon_ids.copy_(torch.from_numpy(np.load(data / "lexicon_ids.npy")[:, :width]))
            self.model.lexicon_probabilities.copy_(
                torch.from_numpy(np.load(data / "lexicon_probabilities.npy")[:, :width])
            )
        self.model.to(self.device)
        t = config.train
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=t.learning_rate,
            betas=(0.9, 0.98),
            eps=1e-9,
            weight_decay=t.weight_decay,
            fused=True,
        )
        packed = Packed.load(data / "packed")
        self.batches = Batches(packed, self.vocabulary.starts_word, t.batch_pieces, t.seed)
        self.step = 0
        self.ks = tuple(parse_k(k) for k in t.k)
        self.entropy_of = torch.compile(summed_entropy, dynamic=True) if t.compile else summed_entropy

    def train_step(self) -> tuple[float, int]:
        """One optimiser step; returns the mean cross-entropy (nats per piece, smoothed) and the target pieces."""
        t = self.config.train
        torch.manual_seed(t.seed * 1_000_003 + self.step)
        rng = np.random.default_rng((t.seed, 1, self.step))
        self.model.train()
        for group in self.optimizer.param_groups:
            group["lr"] = rate(t, self.step)
        total, pieces = 0.0, 0
        group_batches = [self.batches.at(self.step * t.accumulate + i) for i in range(t.accumulate)]
        expected = sum(int((batch.target != PAD).sum()) for batch in group_batches)
        for batch in group_batches:
            batch = batch.to(self.device)
            k = draw_k(self.ks, t.k_weights or (1.0,) * len(self.ks), rng)
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
                entropy, guided, n = losses(self.model, batch, k, t.label_smoothing, self.entropy_of)
            loss = entropy / expected
            if guided is not None:
                loss = loss + t.alignment_weight * guided / t.accumulate
            loss.backward()
            total, pieces = total + float(entropy.detach()), pieces + n
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), t.clip)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        return total / pieces, pieces

    def save(self) -> Path:
        """Write checkpoint-<step> whole or not at all, and drop the oldest beyond `keep`."""
        target = self.folder / f"checkpoint-{self.step:07d}"
        draft = target.with_suffix(".part")
        draft.mkdir(parents=True, exist_ok=True)
        save_file({k: v.contiguous() for k, v in self.model.state_dict().items()}, draft / "model.safetensors")
        moments = {
            f"{name}.{key}": value.contiguous()
            for name, parameter in self.model.named_parameters()
            for key, value in self.optimizer.state[parameter].items()
        }
        save_file(moments, draft / "optimizer.safetensors")
        (draft / "state.json").write_text(json.dumps({"step": self.step}) + "\n")
        if target.exists():
            _remove(target)
        draft.replace(target)
        for old in checkpoints(self.folder)[: -self.config.train.keep]:
            _remove(old)
        return target

    def resume(self) -> None:
        """Continue from the newest checkpoint; without one, begin with the weights of `start`, if that is given."""
        found = checkpoints(self.folder)
        if not found:
            if self.config.start is not None:
                self.model.load_state_dict(load_model(model_folder(self.config.start))[0].state_dict())
            return
        newest = found[-1]
        self.model.load_state_dict(load_file(newest / "model.safetensors", device=str(self.device)))
        moments = load_file(newest / "optimizer.safetensors", device=str(self.device))
        for name, parameter in self.model.named_parameters():
            keys = ("step", "exp_avg", "exp_avg_sq")
            self.optimizer.state[parameter] = {key: moments[f"{name}.{key}"] for key in keys}
        self.step = json.loads((newest / "state.json").read_text())["step"]

    def run(self) -> None:
        """Train to the last step with a progress bar, checkpoints, development BLEU and a log line per measurement."""
        t = self.config.train
        log = self.folder / "log.jsonl"
        bar = tqdm(total=t.steps, initial=self.step, unit="step", dynamic_ncols=True, file=sys.stderr)
        bleu: dict[str, float] = {}
        since, pieces, window = time.monotonic(), 0, []
        while self.step < t.steps:
            loss, n = self.train_step()
            pieces, window = pieces + n, [*window[-99:], loss]
            bar.update()
            elapsed = time.monotonic() - since
            bar.set_postfix(loss=f"{np.mean(window):.3f}", pieces_s=f"{pieces / elapsed:.0f}", **bleu)
            if self.step % t.checkpoint_every == 0 or self.step == t.steps:
                self.save()
            if t.evaluate_every and (self.step % t.evaluate_every == 0 or self.step == t.steps):
                bleu = {f"bleu_{k}": round(v, 2) for k, v in self.evaluate().items()}
                row = {"step": self.step, "loss": float(np.mean(window)), "pieces_per_s": pieces / elapsed, **bleu}
                with log.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                since, pieces = time.monotonic(), 0
        bar.close()

    def evaluate(self) -> dict[str, float]:
        """Development BLEU per k of `evaluate_k`."""
        from smt.evaluate import bleu_by_k

        return bleu_by_k(self.model, self.vocabulary, self.config, self.config.train.evaluate_k)


def checkpoints(folder: Path) -> list[Path]:
    """Complete checkpoints, oldest first."""
    return sorted(path for path in folder.glob("checkpoint-???????") if (path / "state.json").exists())


def _remove(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


def average(folder: Path, last: int) -> dict[str, Tensor]:
    """Mean of the weights of the `last` newest checkpoints."""
    found = checkpoints(folder)[-last:]
    if not found:
        raise DataError(f"{folder}: no checkpoint to average; train first")
    total: dict[str, Tensor] = {}
    for path in found:
        for name, value in load_file(path / "model.safetensors").items():
            total[name] = total[name] + value if name in total and value.is_floating_point() else value
    return {name: value / len(found) if value.is_floating_point() else value for name, value in total.items()}


def work_folder(config: SmtConfig, runs: Path) -> Path:
    """Where this training keeps its data and checkpoints."""
    return runs / "smt" / config.name


def train(config: SmtConfig, runs: Path, fresh: bool = False) -> Path:
    """Prepare data if needed, train (resuming), average, and write the finished model; returns its folder."""
    folder = work_folder(config, runs)
    if fresh:
        for path in checkpoints(folder):
            _remove(path)
    vocabulary = Vocabulary.load(model_folder(config.start) / "vocabulary.model") if config.start else None
    prepare(config.corpus, folder / "data", vocabulary)
    trainer = Trainer(config, folder)
    trainer.resume()
    trainer.run()
    model = Transformer(replace(config.model, dropout=0.0))
    model.load_state_dict(average(folder, config.train.keep))
    return save_model(model, trainer.vocabulary, folder / "model", {"training": asdict(config), "steps": trainer.step})


def main(config_path: Path, runs: Path, fresh: bool = False) -> None:
    """`sqa train smt CONFIG`: train (resuming unless `fresh`) and print the model's folder."""
    from sqa.config import load

    print(train(load(config_path, SmtConfig), runs, fresh))
