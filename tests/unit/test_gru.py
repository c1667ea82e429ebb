"""The GRU guesser on a made-up world small enough to learn in seconds."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from guessers.gru import GruConfig, GruGuesser, PrefixGru, Shape
from guessers.gru_train import CHECKPOINT, GruTraining, Material, start_from_svd, train
from sqa.datasets import Tossup
from sqa.errors import ConfigError, DataError

CLUES = {
    "Lima": ["Pizarro founded this city near the Pacific.", "It is the capital of Peru and has a metro."],
    "Oslo": ["Vikings sailed from its fjord towards Denmark.", "It is the capital of Norway and loves skiing."],
    "Cairo": ["Napoleon marched here across sand dunes.", "It is the capital of Egypt and lies along the Nile."],
}
TOSSUPS = [
    Tossup(f"{page}-{i}", " ".join(clues if i % 2 else clues[::-1]), page, "Geography", page, "made up", None)
    for page, clues in CLUES.items()
    for i in range(6)
]


@pytest.fixture(scope="module")
def material() -> Material:
    return Material.of(TOSSUPS, TOSSUPS[::3], 500)


@pytest.fixture
def config(tmp_path) -> GruTraining:
    return GruTraining(
        kind="gru", output=tmp_path / "out", work=tmp_path / "work", folds=("guesser",), vocabulary=500, embedding=2,
        hidden=8, bottleneck=2, dropout=0.1, word_dropout=0.1, start="svd", whole=0.4, points=1, label_smoothing=0.0,
        batch=6, learning_rate=0.03, clip=0.25, epochs=6, patience=3, stop_after=9, seed=0,
    )  # fmt: skip


def network(features_of: int = 8) -> PrefixGru:
    torch.manual_seed(0)
    return PrefixGru(Shape(20, 5, 4, features_of, 4, 0.5)).eval()


def test_features_of_a_prefix_do_not_see_the_rest():
    ids = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
    with torch.inference_mode():
        whole = network().features(ids)
        for end in range(1, 9):
            torch.testing.assert_close(network().features(ids[:, :end]), whole[:, :end], rtol=0, atol=1e-6)


def test_it_learns_the_clues(config, material):
    guesser = train(dataclasses.replace(config, epochs=25, stop_after=25), material)
    texts = ["Pizarro Pacific", "Norway skiing", "Egypt Nile dunes"]
    assert [guesses[0].page for guesses in guesser.guess(texts, 3)] == ["Lima", "Oslo", "Cairo"]
    assert sum(guess.score for guess in guesser.guess(["Peru"], 3)[0]) == pytest.approx(1.0, abs=1e-6)


def test_a_training_that_was_cut_short_ends_as_one_that_was_not(config, material, tmp_path):
    whole = train(config, material)
    cut = dataclasses.replace(config, work=tmp_path / "cut")
    train(dataclasses.replace(cut, epochs=2), material)
    resumed = train(cut, material)
    texts = ["Pizarro marched towards the fjord"]
    assert resumed.guess(texts, 3) == whole.guess(texts, 3)


def test_a_checkpoint_of_another_config_is_refused(config, material):
    train(dataclasses.replace(config, epochs=1), material)
    with pytest.raises(ConfigError, match="belongs to another config"):
        train(dataclasses.replace(config, hidden=9), material)


def test_a_damaged_checkpoint_is_one_clear_error(config, material):
    config.work.mkdir(parents=True)
    (config.work / CHECKPOINT).write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(DataError, match="damaged"):
        train(config, material)


def test_saving_keeps_the_scores_to_a_thousandth(config, material, tmp_path):
    guesser = train(config, material)
    guesser.save(tmp_path / "saved")
    loaded = GruGuesser.load(tmp_path / "saved")
    for before, after in zip(guesser.guess(["Pizarro Nile"], 3)[0], loaded.guess(["Pizarro Nile"], 3)[0], strict=True):
        assert after.score == pytest.approx(before.score, abs=5e-3)
    assert loaded.pages == guesser.pages == set(CLUES)


def test_temperature_flattens_without_reordering(config, material, tmp_path):
    train(config, material).save(tmp_path / "saved")
    sharp = GruGuesser.load(tmp_path / "saved").guess(["Pizarro Peru"], 3)[0]
    flat = GruGuesser.load(tmp_path / "saved", temperature=5.0).guess(["Pizarro Peru"], 3)[0]
    assert [guess.page for guess in flat] == [guess.page for guess in sharp] and flat[0].score < sharp[0].score


def test_the_svd_start_already_knows_pages_by_their_words(material):
    torch.manual_seed(0)
    started = PrefixGru(Shape(len(material.words), 3, 2, 4, 2, 0.0)).eval()
    start_from_svd(started, material.train)
    with torch.inference_mode():
        mean = torch.stack([started.embedding(torch.from_numpy(e.ids).long()).mean(0) for e in material.train])
        found = (mean @ started.pages.weight.T).argmax(1).numpy()
    assert np.mean(found == [example.page for example in material.train]) > 0.6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden": 0}, "hidden: must be >= 1"),
        ({"dropout": 1.0}, "dropout: must be in"),
        ({"bottleneck": 3}, "needs it equal"),
    ],
)
def test_wrong_training_configs_are_named(config, change, message):
    with pytest.raises(ConfigError, match=message):
        dataclasses.replace(config, **change)


def test_a_temperature_must_be_positive():
    with pytest.raises(ConfigError, match="temperature: must be > 0"):
        GruConfig(temperature=0)
