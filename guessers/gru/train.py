"""Training of the GRU guesser: Adam, clipped gradients, learning rate decay when dev accuracy stalls, early stopping.

guessers/gru/examples.py selects the examples of an epoch.  Word vectors start from a file of pretrained vectors, from
an SVD, or at random.  The SVD is a truncated SVD of the BM25-weighted page-by-word matrix of the same tossups; it also
initialises the page vectors of the forward network.

A file of pretrained vectors has the text format of GloVe (https://nlp.stanford.edu/projects/glove/) or word2vec: each
line has a word and its numbers, separated by spaces.  A first line of two numbers, as in word2vec and fastText, is
skipped.  The file may be compressed as .zst.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from scipy import sparse
from scipy.sparse.linalg import svds
from torch import nn
from tqdm import tqdm

from guessers import text
from guessers.gru.examples import Example, GruTraining, Material, batches, padded
from guessers.gru.guesser import GruGuesser
from guessers.gru.network import Network, PrefixGru, Shape, network_of
from guessers.training_texts import identity_of
from sqa.core import ConfigError, DataError
from sqa.files import place, records
from sqa.training.trainer import Checkpoints, Trainer, denormals_flushed


@denormals_flushed()
def train(config: GruTraining, material: Material) -> GruGuesser:
    """Train to the end, resuming from the checkpoint in `config.work` if there is one; return the best guesser."""
    torch.manual_seed(config.seed)
    counts = len(material.train), len(material.dev)
    if counts[0] < 2 or counts[1] < 1:
        raise DataError(f"training needs two tossups, and one for early stopping, got {counts[0]} and {counts[1]}")
    words, pages = material.words, material.pages
    sizes = (len(words), len(pages), config.embedding, config.hidden, config.bottleneck or 0)
    network = network_of(Shape(*sizes, config.dropout, config.direction)).to(place(config).device)
    optimiser = torch.optim.Adam(network.parameters(), lr=config.learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimiser, mode="max", factor=config.rate_factor, patience=config.patience
    )
    parts = {"network": network, "optimiser": optimiser, "schedule": schedule}
    checkpoints = Checkpoints(config.work, identity=identity_of(config, ("epochs", "stop_after", "device", "dtype")))
    trainer = Trainer(config.work, optimiser, parts, checkpoints, config.clip)
    if not trainer.resume():
        set_start(network, config, material)
    for epoch in trainer.rounds(config.epochs, stopped=lambda: trainer.stale >= config.stop_after):
        loss = _epoch(config, trainer, network, material, epoch)
        accuracy = dev_accuracy(network, material.dev, config.batch)
        mean = sum(accuracy.values()) / len(accuracy)
        trainer.judge(mean)
        schedule.step(mean)
        shares = "  ".join(f"{fraction:.2f}: {value:.4f}" for fraction, value in accuracy.items())
        tqdm.write(
            f"epoch {epoch + 1}  loss {loss:.3f}  dev accuracy by fraction read  {shares}  "
            f"lr {optimiser.param_groups[0]['lr']:.1e}  core minutes {trainer.seconds / 60:.1f}"
        )
    trainer.take_best()
    return GruGuesser(network, words, pages, config.units)


def _epoch(config: GruTraining, trainer: Trainer, network: Network, material: Material, epoch: int) -> float:
    """Run one pass over the tossups; return the mean loss per queried point.

    The random choices depend only on seed and epoch.
    """
    torch.manual_seed(config.seed * 1000 + epoch)
    criterion = nn.CrossEntropyLoss(label_smoothing=config.label_smoothing)
    network.train()
    total = count = 0.0
    for ids, rows, columns, pages in batches(material, config, epoch):
        ids, rows, columns, pages = (part.to(network.embedding.weight.device) for part in (ids, rows, columns, pages))
        logits = network.logits(network.features_at(ids, rows, columns))  # (N, P)
        total += trainer.descend([criterion(logits, pages)]) * len(pages)
        count += len(pages)
        trainer.say(loss=f"{total / count:.3f}")
    return total / count


@torch.inference_mode()
def dev_accuracy(network: Network, examples: Sequence[Example], batch: int) -> dict[float, float]:
    """Return the share of correct top pages after 25, 50, 75 and 100 % of the tokens, by fraction."""
    network.eval()
    right = {0.25: 0, 0.5: 0, 0.75: 0, 1.0: 0}
    ordered = sorted((e for e in examples if len(e.ids)), key=lambda example: len(example.ids))
    for start in range(0, len(ordered), batch):
        chunk = ordered[start : start + batch]
        device = network.embedding.weight.device
        ids, rows = padded([example.ids for example in chunk]).to(device), torch.arange(len(chunk), device=device)
        gold = torch.tensor([example.page for example in chunk], device=device)
        columns = [torch.tensor([max(0, int(len(e.ids) * f) - 1) for e in chunk], device=device) for f in right]
        features = network.features_at(ids, rows.repeat(len(columns)), torch.cat(columns)).split(len(chunk))
        for fraction, part in zip(right, features, strict=True):
            right[fraction] += int((network.logits(part).argmax(-1) == gold).sum())
    return {fraction: count / len(examples) for fraction, count in right.items()}


def set_start(network: Network, config: GruTraining, material: Material) -> None:
    """Set word vectors (and page vectors) of the untrained network according to the config."""
    if config.vectors is not None:
        stems = config.units == "stems"
        table, count = vector_table(config.vectors, material.words, config.embedding, stems=stems)
        tqdm.write(f"{count} of {len(material.words)} words have a vector in {config.vectors}")
        with torch.no_grad():
            network.embedding.weight.copy_(torch.from_numpy(table))
    elif config.start == "svd":
        start_from_svd(network, material.train)


def start_from_svd(network: Network, examples: Sequence[Example]) -> None:
    """Set word and page vectors so that an untrained forward network already retrieves pages by latent semantics.

    W (pages x words) holds BM25 weights; W ~ U S V'.  Words get V S^1/2, pages get U S^1/2, and the bottleneck copies
    the running mean of the word vectors.  The bidirectional network has no such mean and gets only the word vectors.
    Raises ConfigError if there are too few pages or words for vectors of the configured width.
    """
    shape = network.shape
    if shape.embedding >= min(shape.pages, shape.vocabulary + 1):
        most = min(shape.pages - 1, shape.vocabulary)
        raise ConfigError(f"embedding: must be <= {most} with start: svd (fewer than pages), got {shape.embedding}")
    rows = np.concatenate([np.full(len(example.ids), example.page) for example in examples])
    columns = np.concatenate([example.ids for example in examples])
    counts = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), (shape.pages, shape.vocabulary + 1))
    counts.sum_duplicates()
    frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    idf = np.log1p((shape.pages - frequency + 0.5) / (frequency + 0.5))
    idf[0] = 0.0  # the unknown word carries no information
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
        if not isinstance(network, PrefixGru):
            return
        network.pages.weight.copy_(torch.from_numpy(page.copy()))
        network.pages.bias.zero_()
        network.bottleneck.weight.mul_(0.3)
        begin = 2 * shape.hidden  # position of the running mean of word vectors among the features
        network.bottleneck.weight[:, begin : begin + shape.embedding].diagonal().add_(1.0)


def vector_table(path: Path, vocabulary: Sequence[str], width: int, *, stems: bool) -> tuple[np.ndarray, int]:
    """Return a vocabulary's vectors, float32 of shape (V + 1, width), and the number of its words found in the file.

    Row 0 (the unknown word) and missing words get the mean of the vectors found, as in QANTA.  With `stems`, a stem
    gets the mean vector of the file's words with that stem.  Raises DataError if the vectors have another width or if
    no word is found.
    """
    rows = {word: row for row, word in enumerate(vocabulary, start=1)}
    total, count = np.zeros((len(rows) + 1, width)), np.zeros(len(rows) + 1)
    for word, vector in read_vectors(path, width):
        tokens = text.tokens(word)  # a vector of exactly one token is used
        if len(tokens) == 1 and (row := rows.get(text.stem(tokens[0]) if stems else tokens[0])):
            total[row] += vector
            count[row] += 1
    has_vector = count > 0
    if not has_vector.any():
        raise DataError(f"{path}: contains none of the {len(rows)} training words; is it an English file?")
    total[has_vector] /= count[has_vector, None]
    total[~has_vector] = total[has_vector].mean(0)
    return total.astype(np.float32), int(has_vector.sum())


def read_vectors(path: Path, width: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the words of a file and their vectors of shape (width,).  Raises DataError that names an invalid line."""
    for number, line in enumerate(tqdm(records.lines(path), "reading vectors", unit=" words", mininterval=4), start=1):
        fields = line.rstrip().split(" ")
        if number == 1 and len(fields) == 2 and all(field.isdecimal() for field in fields):
            if int(fields[1]) != width:
                raise DataError(_wrong_width(path, width, int(fields[1])))
            continue
        if number == 1 and len(fields) != width + 1:
            raise DataError(_wrong_width(path, width, len(fields) - 1))
        try:
            vector = np.array(fields[-width:], dtype=np.float64)
        except ValueError:
            vector = np.full(width, np.nan)
        if len(fields) <= width or not np.isfinite(vector).all():
            raise DataError(f"{path}:{number}: expected a word and {width} numbers, got {line[:60]!r}")
        yield " ".join(fields[:-width]), vector  # a few words of GloVe 840B contain spaces


def _wrong_width(path: Path, width: int, actual: int) -> str:
    return f"{path}: its vectors have {actual} numbers, but the config has embedding: {width}; set embedding: {actual}"
