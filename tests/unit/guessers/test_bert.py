"""The BERT guesser with a small encoder, on generated tossups that it learns in seconds."""

import dataclasses
import json
from pathlib import Path

import pytest
import torch
import yaml
from refusals import refused
from safetensors.torch import load_file, save_file
from stand_ins.clues import CLUES, tossups
from stand_ins.quality_models import save_bert
from stand_ins.second_device import as_cuda

from guessers.bert import encoder as bert_encoder
from guessers.bert.encoder import rarity
from guessers.bert.guesser import BertConfig, build
from guessers.bert.train import BertTraining, train
from sqa.core import ROOT, DataError
from sqa.pipeline import config as configs

TOSSUPS = tossups(8)
TEXTS = [tossup.text for tossup in TOSSUPS[::5]]


def make_encoder(folder: Path, width: int = 16, seed: int = 0) -> Path:
    """Save a randomly initialized two-layer BERT whose vocabulary has the words of CLUES, and return its folder."""
    words = sorted({w.strip(".,").lower() for clues in CLUES.values() for clue in clues for w in clue.split()})
    size = {"hidden_size": width, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    return save_bert(folder, words, longest=128, seed=seed, deviation=0.02, **size)


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory) -> Path:
    return make_encoder(tmp_path_factory.mktemp("encoders") / "tiny")


SMALL = """{bonus: false, dtype: float32, batch_tokens: 256, device: cpu, broken: 0.5, dev: 6, bottleneck: 4,
dropout: 0.1, label_smoothing: 0.05, batch: 8, learning_rate: 0.01, epochs: 6, stop_after: 9}"""


def training(folder: Path, encoder: Path) -> BertTraining:
    """Return the bundled training config, scaled down to the generated tossups."""
    shipped = configs.load(ROOT / "configs" / "train_guessers.yaml:bert", BertTraining)
    paths = {"output": folder / "out", "work": folder / "work", "encoder": str(encoder)}
    return dataclasses.replace(shipped, **paths, **yaml.safe_load(SMALL))


@pytest.fixture
def config(tmp_path, encoder_folder) -> BertTraining:
    return training(tmp_path, encoder_folder)


@pytest.fixture(scope="module")
def trained(tmp_path_factory, encoder_folder) -> Path:
    """Return the folder of a trained model."""
    config = training(tmp_path_factory.mktemp("trained"), encoder_folder)
    train(dataclasses.replace(config, epochs=20, stop_after=20), TOSSUPS, TOSSUPS[::3]).save(config.output)
    return config.output


def assert_same(got, expected, tolerance=1e-5):
    assert [len(left) for left in got] == [len(right) for right in expected]
    for left, right in zip(got, expected, strict=True):
        scores = {guess.page: guess.score for guess in right}
        assert {g.page: g.score for g in left} == pytest.approx(scores, abs=tolerance)


# --- passages --------------------------------------------------------------------------------------------------------


def test_rarity_is_high_for_rare_and_0_for_special_pieces():
    weights = rarity([[0, 5, 6], [0, 5, 7], [0, 5, 5]], 9, [0])
    assert weights[0] == 0 and 0 <= weights[5] < weights[6] == weights[7] < weights[8] == 1


# --- guessing --------------------------------------------------------------------------------------------------------


def test_bert_learns_the_clues(trained):
    guesser = build(BertConfig(model=str(trained)))
    actual = guesser.guess([clues[0] for clues in CLUES.values()], 3)
    assert [guesses[0].page for guesses in actual] == ["Lima", "Oslo", "Cairo"]
    assert sum(guess.score for guess in actual[0]) == pytest.approx(1.0, abs=1e-9)
    assert guesser.pages == set(CLUES)


def test_int8_guesses_do_not_depend_on_the_batch(trained):
    plain = build(BertConfig(model=str(trained)))
    fast = build(BertConfig(model=str(trained), dtype="int8"))
    assert_same(fast.guess(TEXTS, 3), plain.guess(TEXTS, 3), tolerance=0.05)
    assert_same(fast.guess(TEXTS, 3), [fast.guess([text], 3)[0] for text in TEXTS])
    assert fast.fingerprint() != plain.fingerprint()


# --- training --------------------------------------------------------------------------------------------------------


def test_training_agrees_across_devices(config, monkeypatch, tmp_path):
    as_cuda(monkeypatch)
    config = dataclasses.replace(config, dropout=0.0, epochs=2)
    trained = [
        train(dataclasses.replace(config, device=device, work=tmp_path / device), TOSSUPS, TOSSUPS[::3])
        for device in ("cpu", "cuda")
    ]
    assert_same(*(guesser.guess(TEXTS, 3) for guesser in trained), tolerance=1e-3)


# --- files that do not fit -------------------------------------------------------------------------------------------


def rewritten(folder: Path, to: Path, change) -> Path:
    """Copy a model to the folder `to`, modified by `change(tensors, config)`, and return `to`."""
    tensors, config = load_file(folder / "model.safetensors"), json.loads((folder / "config.json").read_text())
    change(tensors, config)
    to.mkdir()
    save_file(tensors, to / "model.safetensors")
    (to / "config.json").write_text(json.dumps(config))
    return to


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t, c: t.pop("pages.weight"), "not a BERT guesser of this version"),
        (lambda t, c: c["shape"].update(width=8), "not a BERT guesser of this version"),
        (lambda t, c: c["shape"].update(pages=2), "3 titles for 2 pages"),
        (lambda t, c: c.update(encoder="tiny"), "encoder of the model"),
        (lambda t, c: t.update(weights=t["weights"][:-1].clone()), "the head has weights for"),
        (lambda t, c: t.update(weights=torch.cat([t["weights"], t["weights"]])), "the head has weights for"),
    ],
)
def test_mismatched_model_parts_give_one_line_error(trained, tmp_path, change, message):
    folder = rewritten(trained, tmp_path / "changed", change)
    refused(DataError, message, build, BertConfig(model=str(folder)))


def test_another_encoder_is_refused(trained, tmp_path):
    other = make_encoder(tmp_path / "other", width=8)
    refused(DataError, "was trained on the encoder .*tiny' with sha256", build, BertConfig(str(trained), str(other)))
    named = {"name": str(other), "sha256": bert_encoder.weights_digest(other)}
    folder = rewritten(trained, tmp_path / "changed", lambda t, c: c["encoder"].update(named))
    message = "the head reads vectors of 16 numbers, the encoder writes 8"
    refused(DataError, message, build, BertConfig(str(folder)))
