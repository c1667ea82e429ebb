"""Fine-tuning of a causal language model as a wait-k translator: `sqa train smt CONFIG` with `base:`.

Trains an adapter on the parallel text of the config, which smt/training/prepare.py cleans and separates from
development and test sets.  A step draws a k for every pair, masks the source, and computes forward pass and
cross-entropy.

Every random choice is keyed by (seed, step), so a resumed training run sees the same batches.

Batches have the layout of smt/lm/tokenizer.py.  Letters in the shape comments: B sentence pairs, S source and T target
pieces (both padded), N = S + T, V pieces among which the output layer chooses.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from smt.lm.adapter import adapt, save_adapter
from smt.lm.base import Base, base_folder, load_base
from smt.lm.fine_tuning_config import LmConfig, LmTrainConfig
from smt.lm.lm_stepper import LmWriter
from smt.lm.network import mask_of
from smt.lm.tokenizer import OFFSET, Layout, Tokens
from smt.policies.waitk import FULL, HIDDEN_WORD, Schedule, pad
from smt.statistical.lexicon import Glosses, load_glosses, packed_folder
from smt.statistical.packed import PHRASES
from smt.training.clean import Pair
from smt.training.corpus import Buckets, load_arrays, parts, save_arrays, weigh
from smt.training.prepare import LEXICONS, development_pairs, digests_of, weighed, work_folder
from smt.training.steps import corpus_bleu, identity_of, run_steps
from sqa.core import ConfigError, DataError
from sqa.files import claimed, joined_digest, json_document, locked, place, write_text
from sqa.pipeline import load
from sqa.training.trainer import Checkpoints, Trainer

IGNORED = -100  # label of a position without a training target


@dataclass(frozen=True, slots=True)
class Pairs:
    """Segmented sentence pairs in flat arrays (memory-mapped when loaded).

    Pair n's source segment is source[source_start[n] : source_start[n + 1]]; `needs` has the number of words to read
    before each piece is visible.  Its target pieces are target[target_start[n] : target_start[n + 1]], and `words` has
    the 0-based word of each piece.  The layout adds the pieces around them.
    """

    source: np.ndarray  # int32
    needs: np.ndarray  # int16
    source_start: np.ndarray  # (pairs + 1,) int64
    target: np.ndarray  # int32
    words: np.ndarray  # int16
    target_start: np.ndarray  # (pairs + 1,) int64

    def __len__(self) -> int:
        return len(self.source_start) - 1

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]], tokens: Tokens, layout: Layout, longest: int) -> Pairs:
        """Segment pairs of (source, target) text; omit those without target or with over `longest` pieces on a side."""
        columns: tuple[list[int], ...] = ([], [], [], [])
        starts: tuple[list[int], list[int]] = ([0], [0])
        for source_text, target_text in pairs:
            rows = (*layout.source(tokens, source_text.split()), *tokens.words(target_text.split()))
            if max(map(len, rows)) <= longest and rows[-1]:
                for column, row in zip(columns, rows, strict=True):
                    column.extend(row)
                starts[0].append(len(columns[0]))
                starts[1].append(len(columns[-1]))
        kinds = (np.int32, np.int16) * 2
        source, needs, target, words = (np.array(column, kind) for column, kind in zip(columns, kinds, strict=True))
        source_start, target_start = (np.array(start, np.int64) for start in starts)
        return cls(source, needs, source_start, target, words, target_start)


@dataclass(frozen=True, slots=True)
class Batch:
    """Tensors of one batch of pairs."""

    pieces: Tensor  # (B, N) source segment, padding, target segment without its last piece, padding
    positions: Tensor  # (B, N)
    source_needs: Tensor  # (B, S) words to read before a source piece is visible; HIDDEN_WORD = padding
    target_words: Tensor  # (B, T) 0-based word to which each target position adds a piece
    labels: Tensor  # (B, T) next piece; IGNORED without a training target

    def to(self, device: torch.device) -> Batch:
        """Copy the tensors to a device."""
        return Batch(*(getattr(self, name).to(device) for name in self.__slots__))

    def mask(self, k: Tensor, dtype: torch.dtype, ahead: Tensor | None = None) -> Tensor:
        """Return the additive attention mask (B, 1, N, N); `k` (B,) counts source words.

        Where `ahead` (B,) is true, source positions also attend to later source positions.
        """
        b, n = self.pieces.shape
        s = self.source_needs.shape[1]
        allowed = self.pieces.new_ones(n, n, dtype=torch.bool).tril().expand(b, n, n).clone()
        read = (self.target_words + k[:, None]).clamp_max(HIDDEN_WORD - 1)  # (B, T): padding is never visible
        allowed[:, s:, :s] = self.source_needs[:, None, :] <= read[:, :, None]
        if ahead is not None:
            allowed[:, :s, :s] |= ahead[:, None, None] & (self.source_needs < HIDDEN_WORD)[:, None, :]
        return mask_of(allowed, dtype)


class Batches:
    """The batches of segmented pairs."""

    def __init__(self, pairs: Pairs, layout: Layout, batch_pieces: int, seed: int) -> None:
        self.pairs, self.layout, self.seed = pairs, layout, seed
        lengths = np.diff(pairs.source_start) + np.diff(pairs.target_start) + len(layout.asking)
        self.buckets = Buckets(lengths[:, None], batch_pieces, seed)

    def at(self, number: int) -> Batch:
        """Return batch `number`, counted from the start of training."""
        return self.make(self.buckets.at(number), np.random.default_rng((self.seed, 2, number)))

    def make(self, chosen: np.ndarray, rng: np.random.Generator) -> Batch:
        """Return the tensors of these pairs.

        For half of the targets, the end is predicted after the whole source has been read.  For the other half, the end
        follows the schedule like a separate word; if predicted before the source has ended, it means READ.
        """
        p, layout = self.pairs, self.layout
        source, needs = (parts(flat, p.source_start, chosen) for flat in (p.source, p.needs))
        target, words, labels = [], [], []
        before = len(layout.asking) - 1
        written = zip(*(parts(flat, p.target_start, chosen) for flat in (p.target, p.words)), strict=True)
        for pieces, narrow in written:
            word = narrow.astype(np.int64)
            last = FULL if rng.random() < 0.5 else int(word[-1]) + 1
            target.append(np.concatenate([layout.asking, pieces]))
            words.append(np.concatenate([np.zeros(before, np.int64), word, [last]]))
            labels.append(np.concatenate([np.full(before, IGNORED), pieces, [layout.end]]))
        source_pieces, target_pieces = pad(source, 0), pad(target, 0)
        b, s = source_pieces.shape
        positions = torch.cat([torch.arange(s), OFFSET + torch.arange(target_pieces.shape[1])]).expand(b, -1)
        return Batch(
            torch.cat([source_pieces, target_pieces], 1),
            positions,
            pad(needs, HIDDEN_WORD),
            pad(words, 0),
            pad(labels, IGNORED),
        )


def frequent(pairs: Pairs, tokens: Tokens, layout: Layout, size: int) -> Tensor:
    """Return the pieces (V,) among which an output layer learns to choose, in ascending order.

    They are the `size` most frequent target pieces, the letters and bytes that can spell all other words, and the line
    break.
    """
    counts = np.bincount(pairs.target, minlength=tokens.size)
    order = np.argsort(-counts, kind="stable")[:size]
    kept = np.concatenate([order[counts[order] > 0], np.flatnonzero(tokens.spelling), [layout.end]])
    return torch.from_numpy(np.unique(kept))


def writable(learnt: Tensor, tokens: Tokens) -> Tensor:
    """Return the pieces (V,) of translations in ascending order: the learnt pieces and all others of Latin script.

    The base model knows words that occur in no training target.  Without the pieces of such words, the model cannot
    spell one in five content words of a Quizbowl question, most of them names.
    """
    return torch.from_numpy(np.union1d(learnt.numpy(), np.flatnonzero(tokens.latin)))


class LmTraining:
    """A fine-tuning run: model, optimiser, batches."""

    def __init__(
        self,
        base: Base,
        pairs: Pairs,
        layout: Layout,
        choice: Tensor,
        config: LmTrainConfig,
        folder: Path,
        evaluate: Callable[[], Mapping[str, float]],
        identity: Mapping[str, Any] | None = None,
    ) -> None:
        model = base.network
        self.model, self.settings, self.folder, self.choice, self.evaluate = model, config, folder, choice, evaluate
        if config.threads:
            torch.set_num_threads(config.threads)
        adapt(model, config.rank, config.scale, config.seed)
        factors = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
        optimiser = torch.optim.AdamW(
            factors.values(), lr=config.learning_rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True
        )
        kept = nn.ParameterDict({name.replace(".", "/"): factor for name, factor in factors.items()})
        parts = {"model": kept, "optimizer": optimiser}
        self.trainer = Trainer(folder, optimiser, parts, Checkpoints(folder, 2, identity), config.clip, "step")
        if config.compile:
            for layer in model.model.get_decoder().layers:
                layer.compile(dynamic=True)
        self.batches = Batches(pairs, layout, config.batch_pieces, config.seed)
        choice = choice.to(model.device)
        self.rows = model.output_rows(choice)  # (V, D)
        self.label_of = torch.full((model.vocabulary,), IGNORED, device=model.device)
        self.label_of[choice] = torch.arange(len(choice), device=model.device)
        self.ks = np.array(config.k or (FULL,))

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Tensor, Tensor | None]:
        """Draw, for each of n pairs, a k and whether the source attends in both directions, each of shape (n,)."""
        full = rng.random(n) < self.settings.full_share
        k = torch.from_numpy(np.where(full, FULL, rng.choice(self.ks, n))).to(self.model.device)
        if not self.settings.bidirectional_share:
            return k, None
        ahead = torch.from_numpy(full & (rng.random(n) < self.settings.bidirectional_share))
        return k, ahead.to(self.model.device)

    def loss(self, batch: Batch, k: Tensor, ahead: Tensor | None = None) -> tuple[Tensor, int]:
        """Return the mean cross-entropy (nats per piece) and the number of target pieces."""
        s = batch.source_needs.shape[1]
        states = self.model(batch.pieces, batch.positions, batch.mask(k, self.model.dtype, ahead))
        pieces = batch.labels.clamp_min(0)
        labels = torch.where(batch.labels >= 0, self.label_of[pieces], IGNORED)
        learnt = labels >= 0
        scores = F.linear(states[:, s:][learnt], self.rows).float()
        loss = F.cross_entropy(scores, labels[learnt], label_smoothing=self.settings.label_smoothing)
        return loss, int(learnt.sum())

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, numbered from 0."""
        c = self.settings
        return c.learning_rate * min(1.0, (step + 1) / max(c.warmup, 1), (c.steps - step) / max(c.cooldown, 1))

    def step(self, number: int) -> tuple[float, int]:
        """Make one optimiser step; return the mean cross-entropy (nats per piece) and the number of target pieces."""
        batch = self.batches.at(number).to(self.model.device)
        k, ahead = self.draw(len(batch.pieces), np.random.default_rng((self.settings.seed, 1, number)))
        loss, pieces = self.loss(batch, k, ahead)
        return self.trainer.descend([loss]), pieces


def prepared(config: LmConfig, base: Base, layout: Layout, folder: Path) -> tuple[Pairs, Tensor]:
    """Return the segmented pairs of a config and the pieces that can be chosen; the result is stored in `folder`."""
    done = folder / "prepared.json"
    keys = ("reverse", "full_weight_words", "longest", "output_pieces")
    options: dict[str, Any] = {key: getattr(config, key) for key in keys} | {"glosses": None}
    if config.glosses:
        options["glosses"] = joined_digest([packed_folder(config.glosses, config.direction) / PHRASES])
    corpus = {"corpus": asdict(config.corpus), "files": digests_of(config.corpus)}
    identity_now = json.loads(json.dumps({**corpus, "base": base.fingerprint, **options}))
    if done.exists() and json_document(done) == identity_now:
        return load_arrays(Pairs, folder), torch.from_numpy(np.load(folder / "pieces.npy", allow_pickle=False))
    folder.mkdir(parents=True, exist_ok=True)
    rows, weights, report = weighed(config.corpus)
    rng = np.random.default_rng(config.corpus.seed)

    def weight_of(pair: Pair) -> float:
        weight = weights.get(pair[2], config.corpus.default_weight)
        return weight if pair[2] in LEXICONS else weight * min(1.0, len(pair[1].split()) / config.full_weight_words)

    texts = [(t, s) if config.reverse else (s, t) for s, t, _ in weigh(rows, weight_of, rng)]
    if glosses := glosses_of(config):
        texts = [(glosses.training_text(source, rng), target) for source, target in texts]
    pairs = Pairs.of(texts, base.tokens, layout, config.longest)
    if not len(pairs):
        raise DataError(f"{folder}: no training pair is left; check clean.tsv and corpus.weights")
    pieces = frequent(pairs, base.tokens, layout, config.output_pieces)
    write_text(folder / "clean.tsv", report.table().to_tsv())
    save_arrays(pairs, folder)
    np.save(folder / "pieces.npy", pieces.numpy())
    write_text(done, json.dumps(identity_now, indent=1) + "\n")
    return pairs, pieces


def glosses_of(config: LmConfig) -> Glosses | None:
    """Return the glosses of a config, or None; raises ConfigError if the direction of their model differs."""
    if not config.glosses:
        return None
    return load_glosses(packed_folder(config.glosses, config.direction), config.direction[0])


# config keys that may change before a run is resumed; the fingerprint of the base may not
FREE_TRAIN = "steps cooldown threads compile evaluate_every evaluate_sentences checkpoint_every device".split()
FREE = {"name", "development", "base", *(f"train.{key}" for key in FREE_TRAIN)}


def train(config: LmConfig, folder: Path, data: Path, fresh: bool = False) -> Path:
    """Fine-tune in `folder`, write the adapter and return its folder.

    Args:
        data: Folder for the segmented pairs; several training runs may share it.
        fresh: Start again instead of resuming.
    """
    with claimed(folder):
        if fresh:
            Checkpoints(folder).remove()
        where = place(config.train)
        base = load_base(base_folder(config.base))
        base.network.place(where)
        layout = Layout.of(base.tokens, *config.direction)
        with locked(data, wait=True):
            pairs, pieces = prepared(config, base, layout, data)
        written = writable(pieces, base.tokens)
        writer = replace(LmWriter.of(base, layout, written), glosses=glosses_of(config))
        evaluate = lambda: {"bleu_full": development_bleu(writer, config)}  # noqa: E731
        identity = identity_of(config, FREE, {"base": base.fingerprint})
        training = LmTraining(base, pairs, layout, pieces, config.train, folder, evaluate, identity)
        training.trainer.resume()
        run_steps(training)
        return save_adapter(folder / "model", base, written, config, len(pairs))


def development_bleu(writer: LmWriter, config: LmConfig) -> float:
    """Return the BLEU of full-input translation on the first sentences of the development part."""
    pairs = [(pair[1], pair[0]) if config.reverse else pair for pair in development_pairs(config)]
    return corpus_bleu(writer, pairs, Schedule(FULL))


def main(config_path: Path, runs: Path, fresh: bool = False, seeds: int | None = None) -> None:
    """Run `sqa train smt CONFIG` with `base:`: fine-tune (resuming unless `fresh`) and print the adapter's folder.

    With `seeds`, make that many training runs, from the config's seed on, in folders `seed<N>`.
    """
    config = load(config_path, LmConfig)
    folder = work_folder(config, runs)
    if seeds is not None and seeds < 1:
        raise ConfigError(f"--seeds: must be >= 1, got {seeds}")
    for seed in range(config.train.seed, config.train.seed + (seeds or 1)):
        work = folder if seeds is None else folder / f"seed{seed}"
        seeded = replace(config, train=replace(config.train, seed=seed))
        print(train(seeded, work, folder / "data", fresh))
