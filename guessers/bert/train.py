"""Trains the BERT guesser in three steps, each taken up where it was left.

1. Passages of the training texts are read once by the encoder as it is, and their sums kept (work/passages).  Where not
   all of them are read (`read`), the others count with their word pieces' vectors only, which costs nothing.
2. The head is trained on sums of these: the passages of a text from a random one to a random later one, the last of
   them perhaps broken off at a random word.  It starts from the whitened means of the pages.
3. With `tuned_layers`, the encoder's last layers and the head are trained on: of each text drawn one passage, whole or
   broken off, is read anew with gradients; the ones before it count as they were read in step 1.

Shapes: R passages read, N texts of a batch, H width of the encoder, D bottleneck, P pages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from tqdm import tqdm

from guessers.bert.encoder import Encoder, Precision, find_encoder, load_encoder, rarity, weights_digest
from guessers.bert.guesser import BertGuesser, EncoderName, Head, Parts, Shape, add_tuned, tuned_tensors
from guessers.bert.reading import SHARD, Lesson, Material, Reading, Sums, read
from guessers.lessons import identity_of
from guessers.pretrained import Device
from sqa.core.errors import BelowOne, Bound, ConfigError, Count, NotNegative, Whole, checked
from sqa.training.checkpoints import Checkpoints
from sqa.training.trainer import Part, Trainer

CHECKPOINT, TUNING = "head.pt", "tuning.pt"  # in the work folder
ANY = ("device", "stop_after", "download", "tuning_updates")  # keys that may change while a training is under way
OF_TUNING = ("tuned_layers", "tuning_batch", "tuning_rate")  # of step 3 alone
SAVE_EVERY = 100  # updates between two savings of step 3


@dataclass(frozen=True, slots=True)
@checked
class BertTraining:
    """Keys of configs/train_guessers.yaml:bert; see there for meanings and units."""

    kind: Literal["bert"]
    output: Path
    work: Path
    folds: tuple[str, ...]
    bonus: bool
    encoder: str
    revision: str | None
    download: bool
    precision: Precision
    batch_tokens: Count
    device: Device
    read: Whole | None
    broken: BelowOne
    dev: Count
    bottleneck: Count
    dropout: BelowOne
    label_smoothing: BelowOne
    batch: Annotated[int, Bound(2)]
    learning_rate: NotNegative
    weight_decay: NotNegative
    epochs: Count
    stop_after: Count
    tuned_layers: Whole
    tuning_updates: Whole
    tuning_batch: Annotated[int, Bound(2)]
    tuning_rate: NotNegative
    seed: int
    texts: tuple[Path, ...] = ()  # your own, in place of the tossups: JSON lines {text, page, id?}


# --- step 2 ----------------------------------------------------------------------------------------------------------


def start_from_means(head: Head, sums: Sums, readings: Sequence[Reading]) -> None:
    """Set the head so that the untrained one names the page whose texts' mean is most like the text, whitened."""
    rows = [range(start, start + len(r.whole)) for start, r in zip(sums.starts, readings, strict=False)]
    mean = head.means(sums.added(rows)).detach().double()  # (N, 2 H)
    centre, spread = mean.mean(0), mean.var(0, unbiased=False) + 1e-12
    standard = (mean - centre) / (spread + head.norm.eps).sqrt()
    values, vectors = torch.linalg.eigh(standard.T @ standard / len(standard))
    depth = min(head.shape.bottleneck, len(values))
    best = vectors[:, -depth:] / (values[-depth:] + 0.05 * values.mean()).sqrt()  # (2 H, D)
    pages = torch.tensor([reading.page for reading in readings])
    low = standard @ best  # (N, D)
    total = torch.zeros(head.shape.pages, depth, dtype=torch.double).index_add_(0, pages, low)
    centres = total / (torch.bincount(pages, minlength=head.shape.pages)[:, None] + 1.0)
    tracked = head.norm.running_mean, head.norm.running_var
    assert tracked[0] is not None and tracked[1] is not None  # it was made to track them
    with torch.no_grad():
        tracked[0].copy_(centre)
        tracked[1].copy_(spread)
        head.bottleneck.weight[:depth] = best.T.float()
        head.bottleneck.bias.zero_()
        head.pages.weight[:, :depth] = centres.float() * (6 / depth**0.5)
        head.pages.bias.zero_()


def _draw(reading: Reading, start: int, rng: np.random.Generator) -> list[int]:
    """Rows of a random run of passages; the one broken off takes the place of its whole one if the run ends there."""
    last = int(rng.integers(len(reading.whole)))
    first = int(rng.integers(last + 1)) if rng.random() < 0.5 else 0
    rows = list(range(start + first, start + last + 1))
    if reading.broken is not None and reading.broken[0] == last:
        rows[-1] = start + len(reading.whole)
    return rows


# --- all of it -------------------------------------------------------------------------------------------------------


def train(config: BertTraining, lessons: Sequence[Lesson], dev: Sequence[Lesson]) -> BertGuesser:
    """Train to the end, going on from what `config.work` holds."""
    torch.manual_seed(config.seed)
    folder = find_encoder(config.encoder, config.revision, config.download)
    name = EncoderName(config.encoder, config.revision, weights_digest(folder))
    model, tokenizer = load_encoder(folder)
    material = Material.of(lessons, dev[: config.dev], config.broken, config.seed)
    weights = _weights(model, tokenizer, lessons)
    encoder = Encoder(model, tokenizer, weights, config.precision, config.batch_tokens, config.device)
    shape = Shape(encoder.width, len(material.titles), config.bottleneck, config.dropout)
    identity = f"{name.sha256} {config.precision} {hashlib.sha256(weights.tobytes()).hexdigest()}"
    kept = read(material.dev, encoder, config.work / "dev", identity)
    learnt = read(material.train, encoder, config.work / "passages", identity, config.read, config.seed)
    head = train_head(config, Head(shape), material, learnt, kept)
    model, _ = load_encoder(folder)  # the one above may be in bfloat16
    tuned: dict[str, np.ndarray] = {}
    if config.tuned_layers:
        tunable = Encoder(model, tokenizer, weights, "float32", config.batch_tokens, config.device)
        tuned = tune(config, tunable, head, material, learnt)
        model, _ = load_encoder(folder)
        add_tuned(model, tuned, config.output)
    parts = Parts(material.titles, material.words, weights, name, tuned)
    return BertGuesser(Encoder(model, tokenizer, weights, "float32", config.batch_tokens), head, parts)


def _weights(model: Any, tokenizer: Any, lessons: Sequence[Lesson]) -> np.ndarray:
    """(V,) float16 rarity of the word pieces among the training texts."""
    texts = [lesson.text for lesson in lessons]
    groups = (tokenizer(texts[i : i + SHARD], verbose=False)["input_ids"] for i in range(0, len(texts), SHARD))
    rows = (row for group in groups for row in group)
    return rarity(rows, model.config.vocab_size, tokenizer.all_special_ids).astype(np.float16)


def train_head(config: BertTraining, head: Head, material: Material, sums: Sums, kept: Sums) -> Head:
    """Step 2. Returns the head that was best on the dev texts."""
    optimiser = torch.optim.AdamW(head.parameters(), config.learning_rate, weight_decay=config.weight_decay)
    checkpoints = Checkpoints(config.work / CHECKPOINT, identity=identity_of(config, {*ANY, *OF_TUNING}))
    trainer = Trainer(config.work, optimiser, {"head": head, "optimiser": optimiser}, checkpoints)
    if not trainer.resume():
        start_from_means(head, sums, material.train)
        trainer.judge(_report(0, head, material, kept), later=True)
    for epoch in trainer.rounds(config.epochs, stopped=lambda: trainer.stale >= config.stop_after):
        trainer.set_rate(config.learning_rate * (1 - epoch / config.epochs))
        _epoch(config, trainer, head, material.train, sums, epoch)
        trainer.judge(_report(epoch + 1, head, material, kept), later=True)
    trainer.take_best()
    return head


def _epoch(
    config: BertTraining, trainer: Trainer, head: Head, readings: Sequence[Reading], sums: Sums, epoch: int
) -> None:
    """One pass over the texts. Random by seed and epoch only."""
    rng = np.random.default_rng([config.seed, epoch])
    torch.manual_seed(config.seed * 1000 + epoch)
    criterion = nn.CrossEntropyLoss(label_smoothing=config.label_smoothing)
    head.train()
    order = rng.permutation(len(readings))
    for start in range(0, len(order) - 1, config.batch):
        chosen = order[start : start + config.batch].tolist()
        rows = [_draw(readings[i], int(sums.starts[i]), rng) for i in chosen]
        loss = criterion(head(sums.added(rows)), torch.tensor([readings[i].page for i in chosen]))
        trainer.say(loss=f"{trainer.descend([loss]):.3f}")


def _report(epoch: int, head: Head, material: Material, kept: Sums) -> float:
    """Prints the dev accuracies after half of the passages and after all; returns their mean."""
    head.eval()
    gold = torch.tensor([reading.page for reading in material.dev])
    accuracies = []
    for share in (0.5, 1.0):
        lengths = [max(1, int(len(reading.whole) * share)) for reading in material.dev]
        rows = [range(a, a + n) for a, n in zip(kept.starts, lengths, strict=False)]
        with torch.inference_mode():
            accuracies.append(float((head(kept.added(rows)).argmax(1) == gold).double().mean()))
    tqdm.write(f"epoch {epoch}  dev accuracy after half  {accuracies[0]:.4f}  after all  {accuracies[1]:.4f}")
    return sum(accuracies) / 2


# --- step 3 ----------------------------------------------------------------------------------------------------------


def tune(config: BertTraining, encoder: Encoder, head: Head, material: Material, sums: Sums) -> dict[str, np.ndarray]:
    """Train the encoder's last layers and the head (in place); returns what changed in the encoder."""
    layers = last_layers(encoder.model, config.tuned_layers)
    before = {name: weight.detach().cpu().clone() for name, weight in encoder.model.named_parameters()}
    encoder.model.requires_grad_(False)
    layers.requires_grad_(True)
    groups = [
        {"params": list(layers.parameters()), "lr": config.tuning_rate},
        {"params": list(head.parameters()), "lr": 10 * config.tuning_rate},
    ]
    optimiser = torch.optim.AdamW(groups, weight_decay=config.weight_decay)
    checkpoints = Checkpoints(config.work / TUNING, identity=identity_of(config, ANY))
    parts: dict[str, Part] = {"head": head, "layers": layers, "optimiser": optimiser}
    trainer = Trainer(config.work, optimiser, parts, checkpoints, unit="update")
    trainer.resume()
    head.train()
    head.norm.eval()  # its statistics are those of whole passes; a few texts would shake them
    for update in trainer.rounds(config.tuning_updates, SAVE_EVERY, label="tuning"):
        trainer.descend([_tuning_loss(config, update, encoder, head, material.train, sums)])
    after = {name: weight.detach().cpu() for name, weight in encoder.model.named_parameters() if weight.requires_grad}
    return tuned_tensors(before, after)


def _tuning_loss(
    config: BertTraining, update: int, encoder: Encoder, head: Head, readings: Sequence[Reading], sums: Sums
) -> Tensor:
    rng = np.random.default_rng([config.seed, 1, update])
    torch.manual_seed(config.seed * 1000 + update)
    chosen = rng.choice(len(readings), min(config.tuning_batch, len(readings)), replace=False).tolist()
    before, anew = [], []
    for i in chosen:
        rows = _draw(readings[i], int(sums.starts[i]), rng)
        words = readings[i].whole[min(rows[-1] - int(sums.starts[i]), len(readings[i].whole) - 1)].split()
        anew.append(" ".join(words[: 1 + int(rng.integers(len(words)))] if rng.random() < 0.5 else words))
        before.append(rows[:-1])
    logits = head(sums.added(before) + encoder.sums_with_gradients(anew))
    pages = torch.tensor([readings[i].page for i in chosen])
    return nn.functional.cross_entropy(logits, pages, label_smoothing=config.label_smoothing)


def last_layers(model: Any, count: int) -> nn.ModuleList:
    """The last layers of a transformers encoder. ConfigError if it has fewer, or calls them otherwise."""
    depth = int(model.config.num_hidden_layers)
    stacks = [m for m in model.modules() if isinstance(m, nn.ModuleList) and len(m) == depth]
    if count > depth or not stacks:
        raise ConfigError(f"tuned_layers: the encoder has {depth if stacks else 'no list of'} layers, got {count}")
    return stacks[0][depth - count :]
