"""Trains the GRU guesser on tossups: every tossup once an epoch, from a random sentence on, asked at several points.

A tossup read from sentence s on gives one example per later sentence end (the prefix that begins at s), and some at
random words.  With s drawn at random this covers single sentences, whole questions and all prefixes in one pass of the
recurrent layer.  Word vectors and page vectors start as a truncated SVD of the BM25-weighted page-by-word matrix of the
same tossups.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.linalg import svds
from torch import Tensor, nn
from tqdm import tqdm

from guessers import text
from guessers.gru import GruGuesser, PrefixGru, Shape
from sqa.datasets import Tossup
from sqa.errors import ConfigError, DataError
from sqa.sentences import split

CHECKPOINT = "checkpoint.pt"  # in the work folder


@dataclass(frozen=True, slots=True)
class GruTraining:
    """Keys of configs/guesser_gru.yaml; see there for meanings and units."""

    kind: Literal["gru"]
    output: Path
    work: Path
    folds: tuple[str, ...]
    vocabulary: int
    embedding: int
    hidden: int
    bottleneck: int
    dropout: float
    word_dropout: float
    start: Literal["svd", "random"]
    whole: float
    points: int
    label_smoothing: float
    batch: int
    learning_rate: float
    clip: float
    epochs: int
    patience: int
    stop_after: int
    seed: int

    def __post_init__(self) -> None:
        problems = [
            f"{name}: must be >= 1, got {getattr(self, name)}"
            for name in ("vocabulary", "embedding", "hidden", "bottleneck", "points", "batch", "epochs", "stop_after")
            if getattr(self, name) < 1
        ]
        problems += [
            f"{name}: must be in [0, 1), got {getattr(self, name)}"
            for name in ("dropout", "word_dropout", "whole", "label_smoothing")
            if not 0 <= getattr(self, name) < 1
        ]
        if self.start == "svd" and self.bottleneck != self.embedding:
            problems.append(f"bottleneck: start: svd needs it equal to embedding ({self.embedding})")
        if problems:
            raise ConfigError(problems)


@dataclass(frozen=True, slots=True)
class Example:
    """One tossup as numbers."""

    ids: np.ndarray  # (L,) int32 token ids
    ends: np.ndarray  # (S,) int32, tokens up to the end of each sentence; increasing, the last is L
    page: int


class Codec:
    """Words and pages as numbers, taken from the training tossups."""

    def __init__(self, tossups: Sequence[Tossup], vocabulary: int) -> None:
        count: Counter[str] = Counter()
        for tossup in tossups:
            for word in tossup.text.split():
                count.update(text.content_stems(word))
        common = sorted(count.items(), key=lambda item: (-item[1], item[0]))[:vocabulary]
        self.words = [word for word, times in common if times > 1]
        self.pages = sorted({tossup.page for tossup in tossups if tossup.page})
        self._ids = {word: id for id, word in enumerate(self.words, start=1)}
        self._page_ids = {page: id for id, page in enumerate(self.pages)}

    def example(self, tossup: Tossup) -> Example:
        """A tossup whose page may be unknown (page -1)."""
        ids: list[int] = []
        ends: list[int] = []
        for sentence in split(tossup.text, "en"):
            ids += [self._ids.get(stem, 0) for word in sentence for stem in text.content_stems(word)]
            if len(ids) > (ends[-1] if ends else 0):
                ends.append(len(ids))
        page = self._page_ids.get(tossup.page or "", -1)
        return Example(np.array(ids, np.int32), np.array(ends, np.int32), page)


@dataclass(frozen=True, slots=True)
class Material:
    """What a training reads: tossups as numbers, and the words and pages behind the numbers."""

    words: tuple[str, ...]
    pages: tuple[str, ...]
    train: tuple[Example, ...]
    dev: tuple[Example, ...]

    @classmethod
    def of(cls, tossups: Sequence[Tossup], dev: Sequence[Tossup], vocabulary: int) -> Material:
        """Words and pages come from `tossups` only."""
        codec = Codec(tossups, vocabulary)
        train = tuple(codec.example(tossup) for tossup in tqdm(tossups, "reading tossups", mininterval=5))
        return cls(tuple(codec.words), tuple(codec.pages), train, tuple(codec.example(tossup) for tossup in dev))


def train(config: GruTraining, material: Material) -> GruGuesser:
    """Train to the end, resuming from `config.work`/checkpoint.pt if there is one; returns the best guesser."""
    torch.manual_seed(config.seed)
    torch.set_flush_denormal(True)  # the gradients of rare words are tiny, and tiny numbers are slow
    try:
        return _train(config, material)
    finally:
        torch.set_flush_denormal(False)


def _train(config: GruTraining, material: Material) -> GruGuesser:
    words, pages = material.words, material.pages
    network = PrefixGru(
        Shape(len(words), len(pages), config.embedding, config.hidden, config.bottleneck, config.dropout)
    )
    if config.start == "svd" and not (config.work / CHECKPOINT).is_file():
        start_from_svd(network, material.train)
    run = _Run(config, network)
    run.resume()
    while run.epoch < config.epochs and run.stale < config.stop_after:
        loss = _epoch(run, material.train)
        accuracy = dev_accuracy(network, material.dev, config.batch)
        run.finish_epoch(sum(accuracy.values()) / len(accuracy))
        shares = "  ".join(f"{fraction:.2f}: {value:.4f}" for fraction, value in accuracy.items())
        tqdm.write(f"epoch {run.epoch}  loss {loss:.3f}  dev accuracy by fraction read  {shares}  lr {run.rate():.1e}")
    network.load_state_dict(run.best)
    return GruGuesser(network, words, pages)


class _Run:
    """What a training has to remember: network, optimiser, schedule, best weights. Saved after every epoch."""

    def __init__(self, config: GruTraining, network: PrefixGru) -> None:
        self.config, self.network = config, network
        self.optimiser = torch.optim.Adam(network.parameters(), lr=config.learning_rate)
        self.schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
            self.optimiser, mode="max", factor=0.3, patience=config.patience
        )
        self.epoch, self.stale, self.best_accuracy = 0, 0, -1.0
        self.best: dict[str, Tensor] = {}
        self.path = config.work / CHECKPOINT

    def rate(self) -> float:
        """The present learning rate."""
        return float(self.optimiser.param_groups[0]["lr"])

    def finish_epoch(self, accuracy: float) -> None:
        """Count the epoch, keep the best weights, step the schedule, save."""
        self.epoch += 1
        self.stale += 1
        if accuracy > self.best_accuracy:
            self.best_accuracy, self.stale = accuracy, 0
            self.best = {name: tensor.clone() for name, tensor in self.network.state_dict().items()}
        self.schedule.step(accuracy)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".tmp")
        torch.save(
            {
                "config": _identity(self.config),
                "network": self.network.state_dict(),
                "best": self.best,
                "optimiser": self.optimiser.state_dict(),
                "schedule": self.schedule.state_dict(),
                "counts": (self.epoch, self.stale, self.best_accuracy),
            },
            temporary,
        )
        temporary.replace(self.path)

    def resume(self) -> None:
        """Go on from the checkpoint, if there is one. ConfigError if it is another config's."""
        if not self.path.is_file():
            return
        try:
            saved = torch.load(self.path, weights_only=True)
        except (RuntimeError, pickle.UnpicklingError) as error:
            raise DataError(f"{self.path}: the checkpoint is damaged; remove it to start again") from error
        if saved["config"] != _identity(self.config):
            raise ConfigError(f"work: {self.path} belongs to another config; remove it or name another folder")
        self.network.load_state_dict(saved["network"])
        self.optimiser.load_state_dict(saved["optimiser"])
        self.schedule.load_state_dict(saved["schedule"])
        self.best = saved["best"]
        self.epoch, self.stale, self.best_accuracy = saved["counts"]


def _identity(config: GruTraining) -> str:
    """What a checkpoint must agree in: all but where files lie and when to stop."""
    skip = {"output", "work", "epochs", "stop_after"}
    return repr({key: value for key, value in asdict(config).items() if key not in skip})


def _epoch(run: _Run, examples: Sequence[Example]) -> float:
    """One pass over the tossups; returns the mean loss per point asked. Random by seed and epoch only."""
    config, network = run.config, run.network
    rng = np.random.default_rng([config.seed, run.epoch])
    torch.manual_seed(config.seed * 1000 + run.epoch)
    criterion = nn.CrossEntropyLoss(label_smoothing=config.label_smoothing)
    network.train()
    total = count = 0.0
    batches = list(_batches(examples, config, rng))
    bar = tqdm(batches, f"epoch {run.epoch + 1}", mininterval=10)
    for ids, rows, columns, pages in bar:
        network.zero_grad(set_to_none=True)
        logits = network.logits(network.features(ids)[rows, columns])  # (N, P)
        loss = criterion(logits, pages)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), config.clip)
        run.optimiser.step()
        total, count = total + loss.detach().item() * len(pages), count + len(pages)
        bar.set_postfix(loss=f"{total / count:.3f}", refresh=False)
    return total / count


def _batches(
    examples: Sequence[Example], config: GruTraining, rng: np.random.Generator
) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Batches of similar length: ids (B, L), and of the points asked the rows (N,), columns (N,) and pages (N,)."""
    drawn = [_draw(example, config, rng) for example in examples]
    noisy = np.array([len(ids) for ids, _ in drawn]) + rng.uniform(0, 8, len(drawn))
    order = np.argsort(noisy)
    starts = np.arange(0, len(order), config.batch)
    for start in rng.permutation(starts):
        chosen = order[start : start + config.batch]
        ids = np.zeros((len(chosen), max(len(drawn[i][0]) for i in chosen)), np.int64)
        for row, i in enumerate(chosen):
            ids[row, : len(drawn[i][0])] = drawn[i][0]
        points = [(row, point, examples[i].page) for row, i in enumerate(chosen) for point in drawn[i][1]]
        rows, columns, pages = (torch.tensor(column) for column in zip(*points, strict=True))
        yield torch.from_numpy(ids), rows, columns, pages


def _draw(example: Example, config: GruTraining, rng: np.random.Generator) -> tuple[np.ndarray, list[int]]:
    """The tossup from a random sentence on, some words hidden, and the places (token index) to ask at."""
    first = 0 if rng.random() < config.whole else int(rng.integers(len(example.ends)))
    begin = 0 if first == 0 else int(example.ends[first - 1])
    ids = example.ids[begin:].copy()
    ids[rng.random(len(ids)) < config.word_dropout] = 0
    ends = [int(end) - begin for end in example.ends[first:]]
    return ids, sorted({end - 1 for end in ends} | set(rng.integers(len(ids), size=config.points).tolist()))


@torch.inference_mode()
def dev_accuracy(network: PrefixGru, examples: Sequence[Example], batch: int) -> dict[float, float]:
    """Share of tossups whose top page is right after 25, 50, 75 and 100 % of the tokens."""
    network.eval()
    right = {0.25: 0, 0.5: 0, 0.75: 0, 1.0: 0}
    ordered = sorted(examples, key=lambda example: len(example.ids))
    for start in range(0, len(ordered), batch):
        chunk = ordered[start : start + batch]
        ids = np.zeros((len(chunk), max(len(example.ids) for example in chunk)), np.int64)
        for row, example in enumerate(chunk):
            ids[row, : len(example.ids)] = example.ids
        features = network.features(torch.from_numpy(ids))
        gold = torch.tensor([example.page for example in chunk])
        for fraction in right:
            at = torch.tensor([max(0, int(len(example.ids) * fraction) - 1) for example in chunk])
            logits = network.logits(features[torch.arange(len(chunk)), at])
            right[fraction] += int((logits.argmax(-1) == gold).sum())
    return {fraction: count / len(examples) for fraction, count in right.items()}


def start_from_svd(network: PrefixGru, examples: Sequence[Example]) -> None:
    """Set word and page vectors so that the untrained network already retrieves pages by latent semantics.

    W (pages x words) holds BM25 weights; W ~ U S V'.  Words get V S^1/2, pages U S^1/2, and the bottleneck passes the
    running mean of the word vectors on.
    """
    shape = network.shape
    rows = np.concatenate([np.full(len(example.ids), example.page) for example in examples])
    columns = np.concatenate([example.ids for example in examples])
    counts = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), (shape.pages, shape.vocabulary + 1))
    counts.sum_duplicates()
    frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    idf = np.log1p((shape.pages - frequency + 0.5) / (frequency + 0.5))
    idf[0] = 0.0  # the unknown word says nothing
    length = np.asarray(counts.sum(1)).ravel()
    scale = np.repeat(0.9 * (0.15 + 0.85 * length / length.mean()), np.diff(counts.indptr))
    counts.data = counts.data / (counts.data + scale) * idf[counts.indices]
    left, singular, right = svds(counts, k=shape.embedding, v0=np.ones(min(counts.shape)))
    word = right.T * np.sqrt(singular)
    word /= word.std()
    page = left * np.sqrt(singular)
    page /= np.linalg.norm(page, axis=1).mean()
    with torch.no_grad():
        network.embedding.weight.copy_(torch.from_numpy(word.copy()))
        network.pages.weight.copy_(torch.from_numpy(page.copy()))
        network.pages.bias.zero_()
        network.bottleneck.weight.mul_(0.3)
        begin = 2 * shape.hidden  # the running mean of word vectors stands here among the features
        network.bottleneck.weight[:, begin : begin + shape.embedding] += torch.eye(shape.embedding)
