"""Fine-tuning of a causal language model as a wait-k translator: `sqa train smt CONFIG` with `base:`.

Trains an adapter on the parallel text of the config, which smt/training/prepare.py cleans and separates from
development and test sets.  A step draws a k for every pair, masks the source, and computes forward pass and
cross-entropy.

Every random choice is keyed by (seed, step), so a resumed training run sees the same batches.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from smt.lm.adapter import adapt, save_adapter
from smt.lm.base import Base, base_folder, load_base
from smt.lm.data import IGNORED, Batch, Batches, Pairs, frequent, writable
from smt.lm.fine_tuning_config import LmConfig, LmTrainConfig
from smt.lm.lm_stepper import LmWriter
from smt.lm.tokenizer import Layout
from smt.policies.waitk import FULL, Schedule
from smt.statistical.lexicon import Glosses, load_glosses
from smt.statistical.lexicon import model_folder as packed_folder
from smt.statistical.packed import PHRASES
from smt.training.clean import Pair, Report
from smt.training.corpus import load_arrays, save_arrays, weigh
from smt.training.prepare import cleaned, development_pairs, lexicon_pairs, names
from smt.training.steps import corpus_bleu, identity_of, run_steps
from sqa.core.errors import ConfigError, DataError
from sqa.files.atomic import claimed, joined_digest, locked, write_text
from sqa.files.devices import place
from sqa.files.records import json_document
from sqa.pipeline.config import load
from sqa.training.trainer import Checkpoints, Moments, Trainer


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
        parts = {"model": kept, "optimizer": Moments(optimiser, factors.items())}
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


LEXICONS = ("freedict", "cldr")  # corpora of single words or names


def prepared(config: LmConfig, base: Base, layout: Layout, folder: Path) -> tuple[Pairs, Tensor]:
    """Return the segmented pairs of a config and the pieces that can be chosen; the result is stored in `folder`."""
    done = folder / "prepared.json"
    keys = ("reverse", "full_weight_words", "longest", "output_pieces")
    options: dict[str, Any] = {key: getattr(config, key) for key in keys} | {"glosses": None}
    if folder_of_glosses := glosses_folder(config):
        options["glosses"] = joined_digest([folder_of_glosses / PHRASES])
    identity_now = json.loads(json.dumps({"corpus": asdict(config.corpus), "base": base.fingerprint, **options}))
    if done.exists() and json_document(done) == identity_now:
        return load_arrays(Pairs, folder), torch.from_numpy(np.load(folder / "pieces.npy", allow_pickle=False))
    folder.mkdir(parents=True, exist_ok=True)
    report, rng = Report(), np.random.default_rng(config.corpus.seed)
    language = config.corpus.pair[:2]
    rows = [*cleaned(config.corpus, report), *lexicon_pairs(config.corpus.pair), *names(language)]
    texts = [(t, s) if config.reverse else (s, t) for s, t, _ in weigh(rows, weights(config), rng)]
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


def glosses_folder(config: LmConfig) -> Path | None:
    """Return the folder of the packed model with a config's glosses; raises ConfigError if its direction differs."""
    return packed_folder(config.glosses, config.direction) if config.glosses else None


def glosses_of(config: LmConfig) -> Glosses | None:
    """Return the glosses of a config, or None."""
    folder = glosses_folder(config)
    return load_glosses(folder, config.direction[0]) if folder else None


def weights(config: LmConfig) -> Callable[[Pair], float]:
    """Return a function that weighs a pair: the corpus's weight, reduced for a short pair outside the lexicons."""
    corpora = config.corpus.weights | dict.fromkeys(LEXICONS, config.corpus.lexicon_weight)

    def weight_of(pair: Pair) -> float:
        weight = corpora.get(pair[2], config.corpus.default_weight)
        return weight if pair[2] in LEXICONS else weight * min(1.0, len(pair[1].split()) / config.full_weight_words)

    return weight_of


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
    rows = islice(development_pairs(config.corpus, config.development), config.train.evaluate_sentences)
    pairs = [(target, source) if config.reverse else (source, target) for source, target, _ in rows]
    return corpus_bleu(writer, pairs, Schedule(FULL))


def main(config_path: Path, runs: Path, fresh: bool = False, seeds: int | None = None) -> None:
    """Run `sqa train smt CONFIG` with `base:`: fine-tune (resuming unless `fresh`) and print the adapter's folder.

    With `seeds`, make that many training runs, from the config's seed on, in folders `seed<N>`.
    """
    config = load(config_path, LmConfig)
    folder = runs / "smt" / config.name
    if seeds is not None and seeds < 1:
        raise ConfigError(f"--seeds: must be >= 1, got {seeds}")
    for seed in range(config.train.seed, config.train.seed + (seeds or 1)):
        work = folder if seeds is None else folder / f"seed{seed}"
        seeded = replace(config, train=replace(config.train, seed=seed))
        print(train(seeded, work, folder / "data", fresh))
