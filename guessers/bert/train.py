"""Training of the BERT guesser in two resumable steps.

1. The encoder reads the passages of the training texts once, and their sums are stored (work/passages).
2. The head is trained on sums over runs of passages of a text, from a random passage to a random later one.  The last
passage may be truncated at a random word.  The head is initialised with the whitened means of the pages.

Shapes: R passages read, N texts of a batch, H width of the encoder, D bottleneck, P pages.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor, nn
from tqdm import tqdm

from guessers import text
from guessers.bert.encoder import ARITHMETIC, Encoder, find_encoder, load_encoder, rarity, spans, weights_digest
from guessers.bert.guesser import BertGuesser, EncoderName, Head, Parts, Shape
from guessers.classifier_files import cached_vectors
from guessers.training_texts import identity_of
from sqa.core import BelowOne, Count, FilePath, NotNegative, checked
from sqa.files import Device, Dtype, place
from sqa.training.trainer import Checkpoints, Trainer

VERSION = 2  # version of the files of stored sums
SHARD = 500  # passages read between two writes
MIN_COUNT = 2  # minimum number of occurrences of a known stem in the training texts


class Lesson(text.Profile, Protocol):
    """A text with its page and id."""

    @property
    def id(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Reading:
    """A text split into passages, at most one of which is also given in a truncated form."""

    page: int  # -1 if it is not a page of the training texts
    whole: tuple[str, ...]
    broken: tuple[int, str] | None  # index of the truncated passage in `whole`, and its remaining text


@dataclass(frozen=True)
class Material:
    """The data of a training run."""

    titles: tuple[str, ...]
    words: frozenset[str]
    train: tuple[Reading, ...]
    dev: tuple[Reading, ...]

    @classmethod
    def of(cls, lessons: Sequence[Lesson], dev: Sequence[Lesson], broken: float, seed: int) -> Material:
        """Build the data; pages and words come only from `lessons`.

        A share `broken` of the lessons also has one truncated passage.  Lessons without a page or a word are omitted.
        """
        lessons = [lesson for lesson in lessons if lesson.page is not None and lesson.text.split()]
        titles = tuple(sorted({lesson.page for lesson in lessons if lesson.page}))
        ids = {title: id for id, title in enumerate(titles)}
        counts: Counter[str] = Counter()
        for lesson in lessons:
            for word in lesson.text.split():
                counts.update(text.content_stems(word))
        words = frozenset(stem for stem, count in counts.items() if count >= MIN_COUNT)
        train = tuple(_reading(lesson, ids, broken, seed) for lesson in lessons)
        kept = tuple(_reading(lesson, ids, 0.0, seed) for lesson in dev if lesson.text.split())
        return cls(titles, words, train, kept)


def _reading(lesson: Lesson, ids: dict[str, int], broken: float, seed: int) -> Reading:
    words = lesson.text.split()
    parts = spans(words)
    rng = np.random.default_rng([seed, *hashlib.sha256(lesson.id.encode()).digest()[:8]])
    broken_off = None
    if rng.random() < broken:
        number = int(rng.integers(len(parts)))
        start, end = parts[number]
        broken_off = (number, " ".join(words[start : start + 1 + int(rng.integers(end - start))]))
    return Reading(ids.get(lesson.page or "", -1), tuple(" ".join(words[a:b]) for a, b in parts), broken_off)


@dataclass(frozen=True)
class Sums:
    """The encoder's sums of readings' passages; the truncated passage of a reading follows its whole passages."""

    table: np.ndarray  # (R, 2 + 2 H) float16, the result of `Encoder.sums`
    starts: np.ndarray  # (readings + 1,) index of the first passage of each reading

    def added(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Return the sum over each group of passages, float32 of shape (len(rows), 2 + 2 H)."""
        flat = np.fromiter((row for group in rows for row in group), np.int64)
        owner = np.repeat(np.arange(len(rows)), [len(group) for group in rows])
        total = torch.zeros(len(rows), self.table.shape[1])
        return total.index_add_(0, torch.from_numpy(owner), torch.from_numpy(self.table[flat].astype(np.float32)))


def read(readings: Sequence[Reading], encoder: Encoder, folder: Path, identity: str) -> Sums:
    """Return the sums of all passages, stored in a folder below `folder` that is named by texts and encoder."""
    texts, starts = [], [0]
    for reading in readings:
        texts += [*reading.whole, *([reading.broken[1]] if reading.broken else [])]
        starts.append(len(texts))
    name = hashlib.sha256("\n".join([f"{VERSION} {identity}", *texts]).encode()).hexdigest()[:16]
    table = cached_vectors(folder / name, texts, SHARD, 2 + 2 * encoder.width, encoder.sums)
    return Sums(table, np.array(starts))


ANY = ("device", "stop_after", "download")  # keys that may change when a training run is resumed


@dataclass(frozen=True, slots=True)
@checked
class BertTraining:
    """Settings of the entry `bert` in configs/train_guessers.yaml, which documents their meanings and units."""

    kind: Literal["bert"]
    output: Path
    work: Path
    folds: tuple[str, ...]
    bonus: bool
    encoder: str
    revision: str | None
    download: bool
    batch_tokens: Count
    device: Device
    dtype: Dtype
    broken: BelowOne
    dev: Count
    bottleneck: Count
    dropout: BelowOne
    label_smoothing: BelowOne
    batch: Annotated[int, Meta(ge=2)]
    learning_rate: NotNegative
    weight_decay: NotNegative
    epochs: Count
    stop_after: Count
    seed: int
    texts: Annotated[tuple[FilePath, ...], "your own texts instead of the tossups: JSON lines {text, page, id?}"] = ()
    ARITHMETIC: ClassVar = ARITHMETIC


# --- step 2 ----------------------------------------------------------------------------------------------------------


def start_from_means(head: Head, sums: Sums, readings: Sequence[Reading]) -> None:
    """Initialise the head so that it names the page with the whitened mean most similar to the text."""
    rows = [range(start, start + len(r.whole)) for start, r in zip(sums.starts, readings, strict=False)]
    mean = head.means(sums.added(rows)).detach().cpu().double()  # (N, 2 H)
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
    assert tracked[0] is not None and tracked[1] is not None  # the batch norm tracks its statistics
    with torch.no_grad():
        tracked[0].copy_(centre)
        tracked[1].copy_(spread)
        head.bottleneck.weight[:depth] = best.T.float()
        head.bottleneck.bias.zero_()
        head.pages.weight[:, :depth] = centres.float() * (6 / depth**0.5)
        head.pages.bias.zero_()


def _draw(reading: Reading, start: int, rng: np.random.Generator) -> list[int]:
    """Return the rows of a random run of passages; the last one is replaced by its truncated form if it has one."""
    last = int(rng.integers(len(reading.whole)))
    first = int(rng.integers(last + 1)) if rng.random() < 0.5 else 0
    rows = list(range(start + first, start + last + 1))
    if reading.broken is not None and reading.broken[0] == last:
        rows[-1] = start + len(reading.whole)
    return rows


# --- both steps ------------------------------------------------------------------------------------------------------


def train(config: BertTraining, lessons: Sequence[Lesson], dev: Sequence[Lesson]) -> BertGuesser:
    """Train a guesser, resuming from `config.work`, and return it."""
    torch.manual_seed(config.seed)
    folder = find_encoder(config.encoder, config.revision, config.download)
    name = EncoderName(config.encoder, config.revision, weights_digest(folder))
    model, tokenizer = load_encoder(folder)
    material = Material.of(lessons, dev[: config.dev], config.broken, config.seed)
    weights, where = _weights(model, tokenizer, lessons), place(config)
    encoder = Encoder(model, tokenizer, weights, where, config.batch_tokens)
    shape = Shape(encoder.width, len(material.titles), config.bottleneck, config.dropout)
    identity = f"{name.sha256} {where.dtype} {hashlib.sha256(weights.tobytes()).hexdigest()}"
    kept = read(material.dev, encoder, config.work / "dev", identity)
    learnt = read(material.train, encoder, config.work / "passages", identity)
    head = train_head(config, Head(shape).to(where.device), material, learnt, kept)
    model, _ = load_encoder(folder)  # reloaded, since the model above may be in bfloat16
    parts = Parts(material.titles, material.words, weights, name)
    return BertGuesser(Encoder(model, tokenizer, weights, tokens=config.batch_tokens), head.cpu(), parts)


def _weights(model: Any, tokenizer: Any, lessons: Sequence[Lesson]) -> np.ndarray:
    """Return the rarity of each word piece in the training texts, float16."""
    texts = [lesson.text for lesson in lessons]
    groups = (tokenizer(texts[i : i + SHARD], verbose=False)["input_ids"] for i in range(0, len(texts), SHARD))
    rows = (row for group in groups for row in group)
    return rarity(rows, model.config.vocab_size, tokenizer.all_special_ids).astype(np.float16)


def train_head(config: BertTraining, head: Head, material: Material, sums: Sums, kept: Sums) -> Head:
    """Run step 2 and return the head that was best on the dev texts."""
    optimiser = torch.optim.AdamW(head.parameters(), config.learning_rate, weight_decay=config.weight_decay)
    checkpoints = Checkpoints(config.work, identity=identity_of(config, ANY))
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
    """Run one pass over the texts; the random choices depend only on seed and epoch."""
    rng = np.random.default_rng([config.seed, epoch])
    torch.manual_seed(config.seed * 1000 + epoch)
    criterion = nn.CrossEntropyLoss(label_smoothing=config.label_smoothing)
    head.train()
    order = rng.permutation(len(readings))
    for start in range(0, len(order) - 1, config.batch):
        chosen = order[start : start + config.batch].tolist()
        rows = [_draw(readings[i], int(sums.starts[i]), rng) for i in chosen]
        pages = torch.tensor([readings[i].page for i in chosen])
        loss = criterion(head(sums.added(rows)), pages.to(head.log_prior.device))
        trainer.say(loss=f"{trainer.descend([loss]):.3f}")


def _report(epoch: int, head: Head, material: Material, kept: Sums) -> float:
    """Print the dev accuracies after half of the passages and after all; return their mean."""
    head.eval()
    gold = torch.tensor([reading.page for reading in material.dev])
    accuracies = []
    for share in (0.5, 1.0):
        lengths = [max(1, int(len(reading.whole) * share)) for reading in material.dev]
        rows = [range(a, a + n) for a, n in zip(kept.starts, lengths, strict=False)]
        with torch.inference_mode():
            accuracies.append(float((head(kept.added(rows)).argmax(1).cpu() == gold).double().mean()))
    tqdm.write(f"epoch {epoch}  dev accuracy after half  {accuracies[0]:.4f}  after all  {accuracies[1]:.4f}")
    return sum(accuracies) / 2
