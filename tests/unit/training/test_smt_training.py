"""Training: the loss falls, a killed training resumes to the same numbers, a saved model translates the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import refused
from safetensors.torch import load_file

from smt.models.bundle import load_model, save_model
from smt.models.decode import decode_batch
from smt.models.transformer import ModelConfig
from smt.models.transformer_stepper import TransformerWriter
from smt.policies.waitk import Schedule
from smt.training.config import CorpusConfig, SmtConfig, TrainConfig
from smt.training.train import SmtTraining, losses, rate
from sqa.core.errors import ConfigError
from sqa.core.paths import ROOT
from sqa.data.datasets import load_questions
from sqa.run.config import load
from sqa.training.checkpoints import Checkpoints
from tests.smt_models import random_model, vocabulary
from tests.sweep_process import prepared

CONFIG = SmtConfig(
    "tiny",
    CorpusConfig("es-en", vocabulary_size=600),
    ModelConfig(600, 32, 2, 64, 1, 1, 0.1, lexicon_width=4),
    TrainConfig(steps=8, batch_pieces=400, warmup=2, cooldown=2, checkpoint_every=4, evaluate_every=0, threads=1),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A prepared training folder made of the bundled questions."""
    return prepared(tmp_path).parent


def test_loss_falls(folder):
    config = replace(CONFIG, train=replace(CONFIG.train, steps=60, cooldown=0, learning_rate=5e-3, schedule="constant"))
    training = SmtTraining(config, folder)
    losses = [training.step(number)[0] for number in range(60)]
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 1.0


def test_accumulation_is_one_large_batch(folder, monkeypatch):
    """Two accumulated batches give the gradient of their pieces taken together, not a mean of means."""
    one_k = replace(CONFIG.train, accumulate=2, k=(3,), alignment_weight=0.0, clip=1e9)
    training = SmtTraining(replace(CONFIG, model=replace(CONFIG.model, dropout=0.0), train=one_k), folder)
    batches, weight = [training.batches.at(i) for i in range(2)], training.model.embedding.weight
    results = [losses(training.model, batch, Schedule(3), one_k.label_smoothing) for batch in batches]
    pieces = sum(n for _, _, n in results)
    mean = sum(entropy for entropy, _, _ in results) / pieces
    expected = torch.autograd.grad(mean, weight)[0]
    seen = []
    monkeypatch.setattr(training.trainer.optimiser, "step", lambda: seen.append(weight.grad.clone()))
    loss, n = training.step(0)
    assert n == pieces and loss == pytest.approx(float(mean.detach()), rel=1e-5)
    torch.testing.assert_close(seen[0], expected, rtol=1e-4, atol=1e-6)


def test_the_mean_of_finished_checkpoints(folder):
    training = SmtTraining(CONFIG, folder)
    for number in training.trainer.rounds(2):
        training.step(number)
    (folder / "checkpoint-0000009.part").mkdir()
    (folder / "checkpoint-0000009").mkdir()  # unfinished
    first, second = Checkpoints(folder).complete()
    a, b = (load_file(path / "model.safetensors")["decoder_norm.weight"] for path in (first, second))
    torch.testing.assert_close(Checkpoints(folder).average(2)["decoder_norm.weight"], (a + b) / 2)


def test_schedule_rises_falls_and_ends_near_zero():
    config = replace(CONFIG.train, steps=100, warmup=10, cooldown=20, learning_rate=1.0)
    rates = [rate(config, step) for step in range(100)]
    assert rates[0] == pytest.approx(0.1) and max(rates) == pytest.approx(1.0) and rates[-1] < 0.02
    assert rates[80:] == sorted(rates[80:], reverse=True)


def test_saved_model_translates_the_same_after_a_second_saving(tmp_path):
    model, words = random_model(), [list(load_questions("mini-es", limit=1)[0].sentences[0])]
    save_model(model, vocabulary(), tmp_path / "a", {})
    once, spm, _ = load_model(tmp_path / "a")
    save_model(once, spm, tmp_path / "b", {})
    twice, _, _ = load_model(tmp_path / "b")
    writers = [TransformerWriter(model, spm) for model in (once, twice)]
    assert decode_batch(writers[0], words, Schedule(3)) == decode_batch(writers[1], words, Schedule(3))
    scale = model.embedding.weight.abs().amax(1, keepdim=True) / 127
    assert ((once.embedding.weight - model.embedding.weight).abs() <= 0.51 * scale).all()


def test_shipped_configs_are_valid():
    for name in ("smt_es_en", "smt_pl_en"):
        stages = [load(ROOT / "configs" / f"{name}.yaml:{entry}", SmtConfig) for entry in ("first", "second", "third")]
        assert [stage.start for stage in stages] == [None, *(f"runs/smt/{stage.name}/model" for stage in stages[:-1])]
        assert len({(stage.model, stage.corpus.vocabulary_size) for stage in stages}) == 1
    refused(ConfigError, "reads ahead", replace, CONFIG, model=replace(CONFIG.model, encoder="bidirectional"))


def test_a_model_that_cannot_be_written_leaves_the_one_that_is_there(tmp_path, monkeypatch):
    save_model(random_model(), vocabulary(), tmp_path, {})
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(tensors, path):
        path.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr("smt.models.bundle.save_file", full)
    refused(OSError, "no space", save_model, random_model(seed=1), vocabulary(), tmp_path, {})
    with pytest.raises(TypeError):
        save_model(random_model(seed=1), vocabulary(), tmp_path, {"steps": object()})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
