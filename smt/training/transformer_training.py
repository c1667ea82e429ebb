"""Training of a wait-k or full-input Transformer: `sqa train smt CONFIG`.

An optimiser step draws k, masks the source, computes label-smoothed cross-entropy and the guided-alignment loss, clips
the gradient, and updates the weights.  Every random choice is keyed by (seed, step), so a resumed run sees the
same batches, k and dropout as an uninterrupted one.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from smt.models.bundle import folder_fingerprint, load_model, model_folder, save_model
from smt.models.transformer import Transformer
from smt.models.transformer_stepper import TransformerWriter
from smt.models.vocab import PAD, Vocabulary
from smt.policies.waitk import Schedule, draw_k
from smt.training.config import SmtConfig, TrainConfig
from smt.training.corpus import Batch, Batches, Packed, load_arrays
from smt.training.prepare import development_pairs, is_prepared, prepare, work_folder
from smt.training.steps import corpus_bleu, identity_of, run_steps
from sqa.core import ConfigError, parse_k
from sqa.files import claimed, joined_digest, place
from sqa.training.trainer import Checkpoints, Trainer, denormals_flushed

FREE = {"name", "data", "full_encoder", "train.threads", "train.compile", "train.device"}  # do not change the result
Entropy = Callable[..., Tensor]  # `summed_entropy` or its compiled form


def summed_entropy(
    model: Transformer, states: Tensor, lexical: Tensor | None, target: Tensor, smoothing: float
) -> Tensor:
    """Return the summed label-smoothed cross-entropy (Szegedy et al. 2016), nats: states (N, D), target (N,) -> ()."""
    scores = model.logits(states, lexical).float()
    return F.cross_entropy(scores, target, label_smoothing=smoothing, reduction="sum")


def losses(
    model: Transformer, batch: Batch, schedule: Schedule, smoothing: float, entropy_of: Entropy = summed_entropy
) -> tuple[Tensor, Tensor | None, int]:
    """Return summed label-smoothed cross-entropy, mean guided-alignment loss (None without links), number of pieces."""
    seen = schedule.visible(batch.source_word, batch.target_word)  # (B, T, S)
    states, alignment, memory = model(batch.source, batch.target_input, seen)
    places = (batch.target != PAD).flatten().nonzero()[:, 0]  # (N,)

    def real(x: Tensor) -> Tensor:
        """Return the rows of pieces that are not padding, (B, T, ...) -> (N, ...)."""
        return x.flatten(0, 1).index_select(0, places)

    lexical = None
    if alignment is not None:
        lexical = real(alignment.exp() @ model.lexicon_matrix(memory.pieces))  # (N, V)
    device = batch.source.device.type
    with torch.autocast(device, enabled=device == "cpu" and torch.is_autocast_enabled(device)):
        entropy = entropy_of(model, real(states).float(), lexical, real(batch.target), smoothing)
    guided = None
    if alignment is not None and len(batch.links):
        sentence, t, s = batch.links.unbind(1)
        is_seen = seen[sentence, t, s]
        if is_seen.any():
            guided = -alignment[sentence, t, s][is_seen].mean()
    return entropy, guided, len(places)


def rate(config: TrainConfig, step: int) -> float:
    """Return the learning rate of a step, numbered from 0."""
    rise = min(1.0, (step + 1) / config.warmup) if config.warmup else 1.0
    held = (config.warmup / max(step + 1, config.warmup)) ** 0.5 if config.schedule == "inverse_sqrt" else 1.0
    fall = min(1.0, (config.steps - step) / config.cooldown) if config.cooldown else 1.0
    return config.learning_rate * rise * held * fall


@contextmanager
def arithmetic(device: str, dtype: str) -> Iterator[None]:
    """Compute matrix products in `dtype`; weights and sums stay in float32."""
    with ExitStack() as stack:
        if dtype == "bfloat16":
            stack.enter_context(torch.autocast(device, torch.bfloat16))
        if device == "cpu" and dtype == "bfloat16":
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))  # the fused kernel's backward pass is slow in bfloat16
        if device == "cuda":  # not cuDNN, which builds a plan for every new shape
            stack.enter_context(sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]))
        yield


class SmtTraining:
    """A training run of a Transformer: model, optimiser, batches."""

    def __init__(self, config: SmtConfig, folder: Path, data: Path) -> None:
        self.config, self.settings, self.folder = config, config.train, folder
        where = place(config.train)
        self.device, self.dtype = torch.device(where.device), where.dtype
        t = config.train
        if t.threads:
            torch.set_num_threads(t.threads)
        torch.manual_seed(t.seed)
        self.vocabulary = Vocabulary.load(data / "vocabulary.model")
        self.model = Transformer(config.model)
        if width := config.model.lexicon_width:
            for name in ("lexicon_ids", "lexicon_probabilities"):
                getattr(self.model, name).copy_(torch.from_numpy(np.load(data / f"{name}.npy")[:, :width]))
        self.model.to(self.device)
        adam: dict[str, Any] = {"betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": t.weight_decay, "fused": True}
        optimiser = torch.optim.AdamW(self.model.parameters(), t.learning_rate, **adam)
        parts = {"model": self.model, "optimizer": optimiser}
        checkpoints = Checkpoints(folder, t.keep, identity(config, data))
        self.trainer = Trainer(folder, optimiser, parts, checkpoints, t.clip, "step")
        packed = load_arrays(Packed, data / "packed")
        self.batches = Batches(packed, self.vocabulary.starts_word, t.batch_pieces, t.seed)
        self.ks = tuple(parse_k(k) for k in t.k)
        self.entropy_of = torch.compile(summed_entropy, dynamic=True) if t.compile else summed_entropy

    def step(self, number: int) -> tuple[float, int]:
        """Make one optimiser step; return the mean smoothed cross-entropy (nats) and the number of target pieces."""
        t = self.config.train
        torch.manual_seed(t.seed * 1_000_003 + number)
        rng = np.random.default_rng((t.seed, 1, number))
        self.model.train()
        batches = [self.batches.at(number * t.accumulate + i) for i in range(t.accumulate)]
        expected = sum(int((batch.target != PAD).sum()) for batch in batches)
        entropies: list[float] = []

        def summands() -> Iterator[Tensor]:
            for batch in batches:
                batch = batch.to(self.device)
                k = draw_k(self.ks, t.k_weights or (1.0,) * len(self.ks), rng)
                with arithmetic(self.device.type, self.dtype):
                    schedule = Schedule(k, t.emission_rate)
                    entropy, guided, _ = losses(self.model, batch, schedule, t.label_smoothing, self.entropy_of)
                entropies.append(float(entropy.detach()))
                loss = entropy / expected
                yield loss if guided is None else loss + t.alignment_weight * guided / t.accumulate

        self.trainer.descend(summands())
        return sum(entropies) / expected, expected

    def start_from(self, folder: Path) -> None:
        """Load weights of a model of the same size; a causal encoder's weights also start a bidirectional encoder."""
        model, vocabulary, _ = load_model(folder)
        start, wanted = (asdict(replace(c, dropout=0.0, encoder="causal")) for c in (model.config, self.config.model))
        wrong = [f"model.{key}: {folder} has {start[key]}, got {n}" for key, n in wanted.items() if n != start[key]]
        if vocabulary.model != self.vocabulary.model:
            wrong.append(
                f"start: the training data were not segmented with the vocabulary of {folder}; prepare them again"
            )
        if wrong:
            raise ConfigError(wrong)
        self.model.load_state_dict(model.state_dict())

    def rate(self, number: int) -> float:
        """Return the learning rate of a step, numbered from 0."""
        return rate(self.settings, number)

    def evaluate(self) -> dict[str, float]:
        """Return development BLEU per k of `evaluate_k`."""
        bleu = bleu_by_k(self.model, self.vocabulary, self.config, self.config.train.evaluate_k)
        return {f"bleu_{k}": score for k, score in bleu.items()}


def bleu_by_k(
    model: Transformer, vocabulary: Vocabulary, config: SmtConfig, ks: Sequence[int | str]
) -> dict[str, float]:
    """Return corpus BLEU per k on the first `evaluate_sentences` development sentences; the model ends in eval mode."""
    writer, pairs = TransformerWriter(model.eval(), vocabulary), development_pairs(config)
    return {str(k): corpus_bleu(writer, pairs, Schedule(parse_k(k), config.train.emission_rate)) for k in ks}


def prepared_data(config: SmtConfig, runs: Path) -> Path:
    """Return the folder of the training data, prepared if necessary; with `data`, that of another training run."""
    vocabulary = Vocabulary.load(model_folder(config.start, "start") / "vocabulary.model") if config.start else None
    folder = runs / "smt" / (config.data or config.name) / "data"
    if config.data is None:
        prepare(config.corpus, folder, vocabulary)
    elif not is_prepared(config.corpus, folder):
        raise ConfigError(
            f"data: {folder} contains no data prepared with this `corpus`; set data: null to prepare them"
        )
    return folder


def train(config: SmtConfig, runs: Path, fresh: bool = False) -> Path:
    """Prepare the data if necessary, train and finish in `work_folder`; see `train_in`.

    Raises ConfigError if another process trains there, or if the checkpoints belong to another config and `fresh` is
    False.
    """
    folder = work_folder(config, runs)
    with claimed(folder):
        if fresh:
            Checkpoints(folder).remove()
        return train_in(folder, config, prepared_data(config, runs))


def identity(config: SmtConfig, data: Path) -> dict[str, Any]:
    """Return the values on which a training run's result depends."""
    files = ("vocabulary.model", "lexicon_probabilities.npy", "packed/target_start.npy")
    start = folder_fingerprint(model_folder(config.start, "start")) if config.start else None
    return identity_of(config, FREE, {"data": joined_digest(data / name for name in files), "start model": start})


def train_in(folder: Path, config: SmtConfig, data: Path) -> Path:
    """Train (resuming), average checkpoints and write the model; return its folder."""
    training = SmtTraining(config, folder, data)
    if not training.trainer.resume() and config.start is not None:
        training.start_from(model_folder(config.start, "start"))
    with denormals_flushed():
        run_steps(training)
    model = Transformer(replace(config.model, dropout=0.0))
    model.load_state_dict(Checkpoints(folder).average(config.train.keep))
    about = {"training": asdict(config), "steps": config.train.steps}
    return save_model(model, training.vocabulary, folder / "model", about)
