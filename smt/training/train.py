"""Training of a wait-k or full-input Transformer: `sqa train smt CONFIG`.

One optimiser step reads as the algorithm: draw k, mask, forward, label-smoothed cross-entropy plus guided alignment,
backward, clip, schedule, step.  Every random choice is keyed by (seed, step), so a training that was killed and
resumed sees the same batches, the same k and the same dropout as one that was not.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from tqdm import tqdm

from smt.models.bundle import load_model, model_folder, save_model
from smt.models.transformer import Transformer
from smt.models.vocab import PAD, Vocabulary
from smt.policies.waitk import draw_k, parse_k
from smt.training import identity
from smt.training.batches import Batch, Batches, seen_by
from smt.training.config import SmtConfig, TrainConfig
from smt.training.corpus import Packed
from smt.training.prepare import is_prepared, prepare
from sqa.core.errors import ConfigError
from sqa.core.progress import beating
from sqa.files.atomic import claimed
from sqa.files.checkpoints import Checkpoints, moments, restore_moments
from sqa.files.finite import check_weights, finite_loss
from sqa.files.store import write_text
from sqa.run.config import folder_name


def summed_entropy(
    model: Transformer, states: Tensor, lexical: Tensor | None, target: Tensor, smoothing: float
) -> Tensor:
    """Label-smoothed cross-entropy (Szegedy et al. 2016), in nats, summed: states (N, D), target (N,) -> ()."""
    scores = model.logits(states, lexical).float()
    return F.cross_entropy(scores, target, label_smoothing=smoothing, reduction="sum")


def losses(
    model: Transformer,
    batch: Batch,
    k: int,
    smoothing: float,
    entropy_of: Callable[..., Tensor] = summed_entropy,
    emission_rate: float = 1.0,
) -> tuple[Tensor, Tensor | None, int]:
    """Summed label-smoothed cross-entropy, mean guided-alignment loss (None without links), target pieces."""
    seen = seen_by(batch, k, emission_rate)  # (B, T, S)
    states, alignment, memory = model(batch.source, batch.target_input, seen)
    real = batch.target != PAD  # (B, T)
    lexical = None
    if alignment is not None:
        lexical = (alignment.exp() @ model.lexicon_matrix(memory.pieces))[real]  # (N, V)
    device = batch.source.device.type
    with torch.autocast(device, enabled=device == "cpu" and torch.is_autocast_enabled(device)):
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


@contextmanager
def arithmetic(device: str, precision: str) -> Iterator[None]:
    """bfloat16 matrix products on a GPU, and on a CPU if asked for; float32 keeps the weights and the sums."""
    with ExitStack() as stack:
        if device == "cuda" or precision == "bfloat16":
            stack.enter_context(torch.autocast(device, torch.bfloat16))
        if device == "cpu" and precision == "bfloat16":
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))  # the fused kernel's backward pass is slow in bfloat16
        yield


@contextmanager
def denormals_flushed() -> Iterator[None]:
    """Tiny numbers count as 0 in here: the gradients of rare pieces make a step several times slower otherwise."""
    for kind in (np.float32, np.float64):
        np.finfo(kind)  # numpy computes its limits once, and warns if denormals are flushed by then
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


class Trainer:
    """The state of a training: model, optimiser, step."""

    def __init__(self, config: SmtConfig, folder: Path, data: Path | None = None) -> None:
        self.config, self.folder = config, folder
        self.log = StepLog(folder / "steps.tsv")
        self.checkpoints = Checkpoints(folder, config.train.keep)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if config.train.threads:
            torch.set_num_threads(config.train.threads)
        torch.manual_seed(config.train.seed)
        data = data or folder / "data"
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
            with arithmetic(self.device.type, t.precision):
                entropy, guided, n = losses(self.model, batch, k, t.label_smoothing, self.entropy_of, t.emission_rate)
            loss = entropy / expected
            if guided is not None:
                loss = loss + t.alignment_weight * guided / t.accumulate
            loss.backward()
            total, pieces = total + float(entropy.detach()), pieces + n
        where = f"{self.folder}: step {self.step + 1}"
        finite_loss(total, where)
        finite_loss(float(torch.nn.utils.clip_grad_norm_(self.model.parameters(), t.clip)), f"{where}, its gradient")
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.step += 1
        return total / pieces, pieces

    def save(self) -> Path:
        """Write checkpoint-<step> whole or not at all, and drop the oldest beyond `keep`; no NaN is ever written."""
        check_weights(f"{self.folder}: step {self.step}", self.model.named_parameters())
        kept = moments(self.optimizer, self.model.named_parameters())
        return self.checkpoints.write(self.step, {"model": self.model.state_dict(), "optimizer": kept})

    def resume(self) -> None:
        """Continue from the newest checkpoint; without one, begin with the weights of `start`, if that is given."""
        if (kept := self.checkpoints.newest()) is not None:
            self.model.load_state_dict(kept["model"])
            restore_moments(self.optimizer, self.model.named_parameters(), kept["optimizer"])
            self.step = kept["step"]
        elif self.config.start is not None:
            self.start_from(model_folder(self.config.start, "start"))
        self.log.cut(self.step)

    def start_from(self, folder: Path) -> None:
        """Take over a model's weights.  They fit if the sizes do: a causal encoder's also start a bidirectional one."""
        model, vocabulary, _ = load_model(folder)
        free = ("dropout", "encoder")
        theirs, ours = (
            {k: v for k, v in asdict(c).items() if k not in free} for c in (model.config, self.config.model)
        )
        wrong = [
            f"model.{key}: {folder} has {theirs[key]}, got {ours[key]}" for key in ours if ours[key] != theirs[key]
        ]
        if vocabulary.model != self.vocabulary.model:
            wrong.append(f"start: the training data was not segmented with the vocabulary of {folder}; prepare it anew")
        if wrong:
            raise ConfigError(wrong)
        self.model.load_state_dict(model.state_dict())

    def run(self, stop: Path | None = None) -> bool:
        """Train to the last step with a progress bar, checkpoints, development BLEU and log lines.

        A file at `stop` ends the training after the current step, with a checkpoint; returns whether the last step
        was reached.
        """
        with denormals_flushed():
            return self._run(stop or self.folder / "stop")

    def _run(self, stop: Path) -> bool:
        t = self.config.train
        bar = tqdm(total=t.steps, initial=self.step, unit="step", dynamic_ncols=True, file=sys.stderr)
        bleu: dict[str, float] = {}
        since, pieces = time.monotonic(), 0
        window: list[float] = []
        with bar, beating(bar):
            while self.step < t.steps and not stop.exists():
                began = time.monotonic()
                loss, n = self.train_step()
                self.log.add(self.step, loss, n, rate(t, self.step - 1), time.monotonic() - began)
                pieces, window = pieces + n, [*window[-99:], loss]
                bar.update()
                elapsed = time.monotonic() - since
                bar.set_postfix(loss=f"{np.mean(window):.3f}", pieces_s=f"{pieces / elapsed:.0f}", **bleu)
                if self.step % t.checkpoint_every == 0 or self.step == t.steps:
                    self.save()
                if t.evaluate_every and (self.step % t.evaluate_every == 0 or self.step == t.steps):
                    bleu = {f"bleu_{k}": round(v, 2) for k, v in self.evaluate().items()}
                    row = {"step": self.step, "loss": float(np.mean(window)), "pieces_per_s": pieces / elapsed, **bleu}
                    with (self.folder / "log.jsonl").open("a") as file:
                        file.write(json.dumps(row) + "\n")
                    since, pieces = time.monotonic(), 0
        if self.step < t.steps:
            self.save()
        return self.step == t.steps

    def evaluate(self) -> dict[str, float]:
        """Development BLEU per k of `evaluate_k`."""
        from smt.training.evaluate import bleu_by_k

        return bleu_by_k(self.model, self.vocabulary, self.config, self.config.train.evaluate_k)


class StepLog:
    """steps.tsv: one line per optimiser step; after a kill it goes on where the training does."""

    HEADER = "step\tloss\tpieces\tlearning_rate\tseconds\n"

    def __init__(self, path: Path) -> None:
        self.path = path

    def cut(self, step: int) -> None:
        """Drop what was logged after `step`: it will be done again."""
        lines = self.path.read_text().splitlines(keepends=True)[1:] if self.path.exists() else []
        kept = [line for line in lines if line.endswith("\n") and int(line.split("\t")[0]) <= step]
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(self.path, "".join([self.HEADER, *kept]))

    def add(self, step: int, loss: float, pieces: int, learning_rate: float, seconds: float) -> None:
        """One step: number from 1, smoothed cross-entropy (nats per piece), target pieces, learning rate, time."""
        with self.path.open("a") as file:
            file.write(f"{step}\t{loss!r}\t{pieces}\t{learning_rate:.6g}\t{seconds:.4f}\n")


def work_folder(config: SmtConfig, runs: Path) -> Path:
    """Where this training keeps its checkpoints, and its data unless it shares another's."""
    wrong = folder_name(config.name)
    if wrong:
        raise ConfigError(wrong)
    return runs / "smt" / config.name


def prepared_data(config: SmtConfig, runs: Path) -> Path:
    """The folder of the training data, prepared if need be; with `data`, that of another training, as it is."""
    vocabulary = Vocabulary.load(model_folder(config.start, "start") / "vocabulary.model") if config.start else None
    folder = runs / "smt" / (config.data or config.name) / "data"
    if config.data is None:
        prepare(config.corpus, folder, vocabulary)
    elif not is_prepared(config.corpus, folder):
        raise ConfigError(f"data: {folder} holds no data prepared with this `corpus`; set data: null to prepare it")
    return folder


def train(config: SmtConfig, runs: Path, fresh: bool = False) -> Path | None:
    """Prepare data if needed, train and finish in `work_folder`; see `train_in`.

    ConfigError if another process works there, or if its checkpoints are another config's and `fresh` is not set.
    """
    folder = work_folder(config, runs)
    with claimed(folder):
        if fresh:
            (folder / identity.FILE).unlink(missing_ok=True)
            Checkpoints(folder).remove()
        data = prepared_data(config, runs)
        identity.check(folder, config, data)
        identity.write(folder, config, data)
        return train_in(folder, config, data)


def train_in(folder: Path, config: SmtConfig, data: Path, stop: Path | None = None) -> Path | None:
    """Train (resuming), average, and write the finished model; its folder, or None if a stop file ended it early."""
    trainer = Trainer(config, folder, data)
    trainer.resume()
    if not trainer.run(stop or folder / "stop"):
        return None
    model = Transformer(replace(config.model, dropout=0.0))
    model.load_state_dict(Checkpoints(folder).average(config.train.keep))
    return save_model(model, trainer.vocabulary, folder / "model", {"training": asdict(config), "steps": trainer.step})


def main(config_path: Path, runs: Path, fresh: bool = False) -> None:
    """Train (resuming unless `fresh`) and print the model's folder."""
    from sqa.run.config import load

    config = load(config_path, SmtConfig)
    folder = train(config, runs, fresh)
    if folder is None:
        stop = work_folder(config, runs) / "stop"
        print(f"sqa: stopped; delete {stop} and run again to go on", file=sys.stderr)
    else:
        print(folder)
