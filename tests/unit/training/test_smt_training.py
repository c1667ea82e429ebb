"""Training: the loss falls, a saved model translates identically, and training runs stay in separate folders."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from refusals import refused
from stand_ins.second_device import as_cuda
from tables import tables_of

from smt.models.bundle import load_model, save_model
from smt.models.decode import decode_batch
from smt.models.transformer import ModelConfig
from smt.models.transformer_stepper import TransformerWriter
from smt.policies.waitk import Schedule
from smt.train import main as train_main
from smt.training.config import CorpusConfig, SmtConfig, TrainConfig
from smt.training.sweep import main as sweep_main
from smt.training.transformer_training import SmtTraining, arithmetic, losses, rate, train
from sqa.core import ROOT, ConfigError
from sqa.data.datasets import load_questions
from sqa.pipeline import load, to_mapping
from sqa.training.trainer import Checkpoints
from tests.smt_models import random_model, vocabulary
from tests.sweep_process import config, prepared

TABLES = tables_of(__file__)
SMALL = SmtConfig(
    "tiny",
    CorpusConfig("es-en", vocabulary_size=600),
    ModelConfig(600, 32, 2, 64, 1, 1, 0.1, lexicon_width=4),
    TrainConfig(steps=8, batch_pieces=400, warmup=2, cooldown=2, checkpoint_every=4, evaluate_every=0, threads=1),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a training folder with prepared data of the bundled questions."""
    return prepared(tmp_path).parent


def test_training_lowers_the_loss(folder):
    config = replace(SMALL, train=replace(SMALL.train, steps=60, cooldown=0, learning_rate=5e-3, schedule="constant"))
    training = SmtTraining(config, folder, folder / "data")
    losses = [training.step(number)[0] for number in range(60)]
    assert np.mean(losses[-5:]) < np.mean(losses[:5]) - 1.0


def test_accumulation_equals_one_large_batch(folder, monkeypatch):
    """Two accumulated batches give the gradient over all their pieces, not a mean of means."""
    one_k = replace(SMALL.train, accumulate=2, k=(3,), alignment_weight=0.0, clip=1e9)
    training = SmtTraining(
        replace(SMALL, model=replace(SMALL.model, dropout=0.0), train=one_k), folder, folder / "data"
    )
    batches, weight = [training.batches.at(i) for i in range(2)], training.model.embedding.weight
    results = [
        losses(training.model, batch.to(training.device), Schedule(3), one_k.label_smoothing) for batch in batches
    ]
    pieces = sum(n for _, _, n in results)
    mean = sum(entropy for entropy, _, _ in results) / pieces
    expected = torch.autograd.grad(mean, weight)[0]
    seen = []
    monkeypatch.setattr(training.trainer.optimiser, "step", lambda: seen.append(weight.grad.clone()))
    loss, n = training.step(0)
    assert n == pieces and loss == pytest.approx(float(mean.detach()), rel=1e-5)
    torch.testing.assert_close(seen[0], expected, rtol=1e-4, atol=1e-6)


def test_training_agrees_across_devices(folder, monkeypatch):
    as_cuda(monkeypatch)
    config = replace(SMALL, model=replace(SMALL.model, dropout=0.0))
    losses = []
    for device in ("cpu", "cuda"):
        train = replace(SMALL.train, device=device)
        training = SmtTraining(replace(config, train=train), folder / device, folder / "data")
        losses.append([training.step(number)[0] for number in range(3)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_training_on_a_gpu_avoids_cudnn_attention():
    with arithmetic("cuda", "float32"):
        assert not torch.backends.cuda.cudnn_sdp_enabled()
    assert torch.backends.cuda.cudnn_sdp_enabled()


def test_model_is_the_mean_of_finished_checkpoints(folder):
    training = SmtTraining(SMALL, folder, folder / "data")
    for number in training.trainer.rounds(2):
        training.step(number)
    (folder / ".checkpoint-0000009.pt.0.partial").touch()  # unfinished
    first, second = Checkpoints(folder).complete()
    a, b = (torch.load(path)["model"]["decoder_norm.weight"] for path in (first, second))
    torch.testing.assert_close(Checkpoints(folder).average(2)["decoder_norm.weight"], (a + b) / 2)


def test_schedule_rises_falls_and_ends_near_zero():
    config = replace(SMALL.train, steps=100, warmup=10, cooldown=20, learning_rate=1.0)
    rates = [rate(config, step) for step in range(100)]
    assert rates[0] == pytest.approx(0.1) and max(rates) == pytest.approx(1.0) and rates[-1] < 0.02
    assert rates[80:] == sorted(rates[80:], reverse=True)


def test_model_saved_twice_translates_identically(tmp_path):
    model, words = random_model(), [list(load_questions("mini-es", limit=1)[0].sentences[0])]
    save_model(model, vocabulary(), tmp_path / "a", {})
    once, spm, _ = load_model(tmp_path / "a")
    save_model(once, spm, tmp_path / "b", {})
    twice, _, _ = load_model(tmp_path / "b")
    writers = [TransformerWriter(model, spm) for model in (once, twice)]
    assert decode_batch(writers[0], words, Schedule(3)) == decode_batch(writers[1], words, Schedule(3))
    scale = model.embedding.weight.abs().amax(1, keepdim=True) / 127
    assert ((once.embedding.weight - model.embedding.weight).abs() <= 0.51 * scale).all()


def test_bundled_configs_are_valid():
    for name in ("smt_es_en", "smt_pl_en"):
        stages = [load(ROOT / "configs" / f"{name}.yaml:{entry}", SmtConfig) for entry in ("first", "second", "third")]
        assert [stage.start for stage in stages] == [None, *(f"runs/smt/{stage.name}/model" for stage in stages[:-1])]
        assert len({(stage.model, stage.corpus.vocabulary_size) for stage in stages}) == 1
    refused(ConfigError, "needs the whole source", replace, SMALL, model=replace(SMALL.model, encoder="bidirectional"))


def test_failed_save_keeps_the_old_model(tmp_path, monkeypatch):
    save_model(random_model(), vocabulary(), tmp_path, {})
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(tensors, path):
        path.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr("safetensors.torch.save_file", full)
    refused(OSError, "no space", save_model, random_model(seed=1), vocabulary(), tmp_path, {})
    with pytest.raises(TypeError):
        save_model(random_model(seed=1), vocabulary(), tmp_path, {"steps": object()})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(("changed", "problem"), TABLES["impossible_settings_are_refused"])
def test_impossible_settings_are_refused(changed, problem):
    whole = config()
    part = whole.model if set(changed) & {"heads", "source_vocabulary"} else whole.train
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in changed.items()}
    refused(ConfigError, problem, replace, part, **values)


@pytest.mark.parametrize("name", ["../../../evil", "/tmp/evil", "..", "new\nline"])
def test_names_cannot_leave_the_runs_folder(tmp_path, name):
    path = tmp_path / "c.yaml"
    path.write_text(yaml.safe_dump({**to_mapping(config()), "name": name}), encoding="utf-8")
    for command in (train_main, sweep_main):
        refused(ConfigError, "name: must be a plain folder name", command, path, tmp_path / "runs")
    refused(ConfigError, "name: must be a plain folder name", train, replace(config(), name=name), tmp_path / "runs")
    refused(ConfigError, "data: must be a plain folder name", replace, config(), data=name)
    assert not (tmp_path / "runs").exists()
